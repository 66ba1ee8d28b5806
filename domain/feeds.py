"""Change feeds: what to ask a provider that only says "look again", and how to read its answer.

A cursor is the provider's own text and opaque to us. Every event that a feed tells has a derived
id, so that a walk over the same stretch finds the same events again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from domain import canonical, instants, strict_json
from domain.canonical import ABSENT
from domain.profiles.values import Action, Comparator, SourceEvent
from domain.strict_json import InvalidJson, JsonValue

# The types of events that no delivery told: a walk found them as a notice had asked it to look,
# or of its own accord, so that without it they would have been missed.
FOUND = "feed"
RECONCILED = "reconciliation"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to a feed; ``path`` begins behind the configured host."""

    method: str
    path: str = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Page:
    """What one answer told. ``cursor`` goes on behind it; ``is_more`` says that it does so now."""

    events: tuple[SourceEvent, ...]
    cursor: str = field(repr=False)
    is_more: bool


@dataclass(frozen=True, slots=True)
class Feed:
    """How one provider's feed is asked and read.

    ``ask`` is given the cursor, "" to begin, and the folder or drive of the configuration;
    ``content`` gives the path of a found version's bytes, behind ``content_base`` where that is
    another host than ``base``. ``expired`` are the statuses that say that a cursor is known no
    more; ``needs_scope`` says what to write as the scope of a feed that cannot do without.
    """

    base: str
    ask: Callable[[str, str], Ask]
    read: Callable[[JsonValue, str], Page | None]
    content: Callable[[SourceEvent], str]
    expired: frozenset[int] = frozenset({410})
    content_base: str = ""
    needs_scope: str = ""

    def url(self, told: SourceEvent, base: str) -> str:
        """Where the bytes of a found version are, for a feed that is asked at ``base``."""
        place = self.content_base if self.content_base and base == self.base else base
        return f"{place}{self.content(told)}"


def read(feed: Feed, body: bytes, cursor: str) -> Page | None:
    """What an answer told; ``None`` where it is none of this feed's."""
    document = strict_json.parse_value(body)
    return None if isinstance(document, InvalidJson) else feed.read(document, cursor)


# -- Microsoft Graph: delta of a drive; its cursor is an address, of which only the path is kept ---


def _graph_ask(cursor: str, drive: str) -> Ask:
    return Ask("GET", cursor or f"/v1.0/drives/{quote(drive, safe='!')}/root/delta")


def _graph_read(document: JsonValue, _: str) -> Page | None:
    more, last = _text(document, "/@odata.nextLink"), _text(document, "/@odata.deltaLink")
    # Whom we ask next is never an answer's to say: the host stays the configured one.
    parts = urlsplit(more or last)
    if not parts.path.startswith("/v1.0/"):
        return None
    cursor = f"{parts.path}?{parts.query}" if parts.query else parts.path
    items = [item for item in _items(document, "/value") if _at(item, "/file") is not ABSENT]
    gone = [item for item in _items(document, "/value") if _at(item, "/deleted") is not ABSENT]
    events = [
        _event(
            item,
            file_id="/id",
            version="/cTag",
            name="/name",
            size="/size",
            sha256="/file/hashes/sha256Hash",
            media_type="/file/mimeType",
            at="/lastModifiedDateTime",
            project="/parentReference/driveId",
        )
        for item in items
        if item not in gone
    ]
    events += [_event(item, file_id="/id", action="deleted") for item in gone]
    return Page(_known(events), cursor, bool(more))


# -- Google Drive: changes of a user or a shared drive --------------------------------------------

_DRIVE_FIELDS = (
    "nextPageToken,newStartPageToken,changes(fileId,removed,time,file(name,mimeType,trashed,"
    "headRevisionId,version,size,sha256Checksum,modifiedTime))"
)


def _drive_ask(cursor: str, _: str) -> Ask:
    if not cursor:
        return Ask("GET", "/drive/v3/changes/startPageToken")
    token = quote(cursor, safe="")
    query = f"pageToken={token}&includeRemoved=true&fields={quote(_DRIVE_FIELDS, safe='')}"
    return Ask("GET", f"/drive/v3/changes?{query}")


def _drive_read(document: JsonValue, _: str) -> Page | None:
    if start := _text(document, "/startPageToken"):
        return Page((), start, is_more=False)
    more, last = _text(document, "/nextPageToken"), _text(document, "/newStartPageToken")
    if not more and not last:
        return None
    events = [_drive_event(item) for item in _items(document, "/changes")]
    return Page(_known(events), more or last, bool(more))


def _drive_event(item: JsonValue) -> SourceEvent | None:
    if _at(item, "/removed") is True or _at(item, "/file/trashed") is True:
        return _event(item, file_id="/fileId", at="/time", action="deleted")
    return _event(
        item,
        file_id="/fileId",
        version="/file/headRevisionId",
        name="/file/name",
        size="/file/size",
        sha256="/file/sha256Checksum",
        media_type="/file/mimeType",
        at="/file/modifiedTime",
        order="/file/version",
    )


# -- Dropbox: a cursor for each account; a deletion names a path and no id ------------------------


def _dropbox_ask(cursor: str, folder: str) -> Ask:
    if cursor:
        body, path = {"cursor": cursor}, "/2/files/list_folder/continue"
        return Ask("POST", path, json.dumps(body).encode())
    start = {"path": folder, "recursive": True, "include_deleted": False}
    return Ask("POST", "/2/files/list_folder", json.dumps(start).encode())


def _dropbox_read(document: JsonValue, _: str) -> Page | None:
    cursor = _text(document, "/cursor")
    if not cursor:
        return None
    files = [e for e in _items(document, "/entries") if _text(e, "/.tag") == "file"]
    events = [
        _event(
            item, file_id="/id", version="/rev", name="/name", size="/size", at="/server_modified"
        )
        for item in files
    ]
    return Page(_known(events), cursor, _at(document, "/has_more") is True)


# -- Box: the events of a user --------------------------------------------------------------------

_BOX_ACTIONS: Mapping[str, Action] = {
    "ITEM_UPLOAD": "version",
    "ITEM_CREATE": "version",
    "ITEM_COPY": "version",
    "ITEM_TRASH": "deleted",
    "ITEM_UNDELETE_VIA_TRASH": "restored",
    "ITEM_RENAME": "renamed",
    "ITEM_MOVE": "renamed",
}


def _box_ask(cursor: str, _: str) -> Ask:
    return Ask("GET", f"/2.0/events?stream_type=changes&stream_position={quote(cursor or 'now')}")


def _box_read(document: JsonValue, cursor: str) -> Page | None:
    found = _at(document, "/next_stream_position")
    position = str(found) if isinstance(found, (int, str)) and not isinstance(found, bool) else ""
    if not position:
        return None
    items = [e for e in _items(document, "/entries") if _text(e, "/source/type") == "file"]
    events = [_box_event(item) for item in items]
    # The end is where the position stays the same; an empty chunk alone does not mean it.
    return Page(_known(events), position, bool(cursor) and position != cursor)


def _box_event(item: JsonValue) -> SourceEvent | None:
    action = _BOX_ACTIONS.get(_text(item, "/event_type"))
    if action is None:
        return None
    return _event(
        item,
        file_id="/source/id",
        version="/source/file_version/id",
        name="/source/name",
        size="/source/size",
        at="/created_at",
        order="/source/sequence_id",
        action=action,
    )


def _graph_content(told: SourceEvent) -> str:
    drive, item = quote(told.project, safe="!"), quote(told.file_id, safe="!")
    return f"/v1.0/drives/{drive}/items/{item}/content"


def _drive_content(told: SourceEvent) -> str:
    return f"/drive/v3/files/{quote(told.file_id, safe='')}?alt=media"


def _dropbox_content(told: SourceEvent) -> str:
    argument = json.dumps({"path": f"rev:{told.version}"}, separators=(",", ":"))
    return f"/2/files/download?arg={quote(argument, safe='')}"


def _box_content(told: SourceEvent) -> str:
    version = quote(told.version or "", safe="")
    return f"/2.0/files/{quote(told.file_id, safe='')}/content?version={version}"


FEEDS: Mapping[str, Feed] = {
    "microsoft-graph": Feed(
        "https://graph.microsoft.com",
        _graph_ask,
        _graph_read,
        _graph_content,
        needs_scope='write the id of the drive, such as scope = "b!AbC..."',
    ),
    "google-drive": Feed("https://www.googleapis.com", _drive_ask, _drive_read, _drive_content),
    "dropbox": Feed(
        "https://api.dropboxapi.com",
        _dropbox_ask,
        _dropbox_read,
        _dropbox_content,
        # 409 with "reset" is Dropbox's way to say so.
        expired=frozenset({409}),
        content_base="https://content.dropboxapi.com",
    ),
    "box": Feed("https://api.box.com", _box_ask, _box_read, _box_content),
}


def _event(
    item: JsonValue, *, file_id: str, action: Action = "version", **places: str
) -> SourceEvent | None:
    """The event that an entry tells; ``None`` where it has no file, or no version of one."""
    told = {name: _text(item, place) for name, place in places.items()}
    found_id, version, stamp = _text(item, file_id), told.get("version", ""), told.get("at", "")
    if not found_id or (action == "version" and not version):
        return None
    at = instants.instant(stamp) if stamp else None
    size = told.get("size", "")
    comparator: Comparator = "integer" if told.get("order") else "instant"
    return SourceEvent(
        # A rename keeps the version: the place in the order tells it apart.
        event_id=f"{FOUND}:{action}:{found_id}:{version}:{told.get('order') or stamp}",
        type=FOUND,
        action=action,
        file_id=found_id,
        version=version or None,
        name=told.get("name", ""),
        project=told.get("project", ""),
        size_bytes=int(size) if size.isascii() and size.isdecimal() else None,
        sha256=told.get("sha256", "").lower(),
        media_type=told.get("media_type", ""),
        occurred_at=at,
        order=told.get("order") or stamp or None,
        comparator=comparator if told.get("order") or stamp else None,
    )


def _known(events: list[SourceEvent | None]) -> tuple[SourceEvent, ...]:
    return tuple(event for event in events if event is not None)


def _at(document: JsonValue, pointer: str) -> JsonValue | canonical.Absent:
    return canonical.follow(document, canonical.tokens(pointer))


def _text(document: JsonValue, pointer: str) -> str:
    found = _at(document, pointer)
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return str(found) if is_number or isinstance(found, str) else ""


def _items(document: JsonValue, pointer: str) -> list[JsonValue]:
    found = _at(document, pointer)
    return found if isinstance(found, list) else []
