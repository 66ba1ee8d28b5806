"""Places where files live: Box, Nextcloud, Egnyte, Frame.io, Contentful and others."""

from __future__ import annotations

from urllib.parse import quote

from domain.canonical import pointer
from domain.profiles import proofs
from domain.profiles.values import (
    Answer,
    ContractBreach,
    Entries,
    FieldMap,
    Item,
    Profile,
    Source,
)
from domain.schemes import Clock, Request, Scheme, raw
from domain.strict_json import JsonObject, JsonValue

BOX = Profile(
    name="box",
    title="Box (v2 webhooks)",
    schemes=(
        Scheme(
            signed="{body}{header:box-delivery-timestamp}",
            places=("header:box-signature-primary", "header:box-signature-secondary"),
            encoding="base64",
            # Box refuses any future time; without a few seconds a slow clock here loses all.
            clock=Clock(header="box-delivery-timestamp", form="rfc3339", past_s=600, future_s=5),
            required=(
                ("box-signature-version", "1"),
                ("box-signature-algorithm", "HmacSHA256"),
            ),
            is_paired=True,
        ),
    ),
    mapping=FieldMap(
        event_id="/id",
        delivery_id="header:box-delivery-id",
        type="/trigger",
        file_id="/source/id",
        version="/source/file_version/id",
        name="/source/name",
        sequence="/source/sequence_id",
        occurred_at="/created_at",
        size="/source/size",
        project="/source/parent/id",
        url="https://api.box.com/2.0/files/{file_id}/content?version={version}",
    ),
    types={
        "FILE.UPLOADED": "version",
        "FILE.COPIED": "version",
        "FILE.TRASHED": "deleted",
        "FILE.DELETED": "deleted",
        "FILE.RESTORED": "restored",
        "FILE.RENAMED": "renamed",
        "FILE.MOVED": "renamed",
        "WEBHOOK.DELETED": "lifecycle",
        "NO_ACTIVE_SESSION": "lifecycle",
    },
    order="sequence",
    comparator="integer",
    answer=Answer(wait_s=30.0),
    texts_are_numbers=True,
    needs_url=False,
)


def _nextcloud(source: Source, _request: Request, body: JsonValue) -> Entries:
    event = pointer(body, "/event")
    node = pointer(event, "/target") if isinstance(event, dict) and "target" in event else None
    node = node or (pointer(event, "/node") if isinstance(event, dict) else None)
    if not isinstance(event, dict) or not isinstance(body, dict) or not isinstance(node, dict):
        return ContractBreach("/event", "names no node")
    path = node.get("path")
    if not isinstance(path, str) or not path:
        return ContractBreach("/event/node/path", "is missing")
    before = pointer(event, "/source/path")
    prepared: JsonObject = {
        "class": event.get("class"),
        "id": node.get("id", f"path:{path}"),
        "name": path.rpartition("/")[2],
        "previous_name": before.rpartition("/")[2] if isinstance(before, str) else None,
        "time": body.get("time"),
        "url": _webdav(source.settings.host, path),
    }
    return [Item(prepared)]


def _webdav(host: str, path: str) -> str | None:
    # "/anna/files/Eingang/a.pdf" is Anna's "Eingang/a.pdf".
    user, _, inside = path.lstrip("/").partition("/files/")
    if not host or not inside:
        return None
    return f"https://{host}/remote.php/dav/files/{quote(user, safe='')}/{quote(inside)}"


NEXTCLOUD = Profile(
    name="nextcloud",
    title="Nextcloud (webhook_listeners)",
    schemes=(Scheme(method="token", places=("header:authorization",)),),
    mapping=FieldMap(
        event_id="{/class}:{/id}:{/time}",
        type="/class",
        file_id="/id",
        version="/time",
        name="/name",
        previous_name="/previous_name",
        occurred_at="/time",
        url="/url",
    ),
    types={
        "*\\NodeCreatedEvent": "version",
        "*\\NodeWrittenEvent": "version",
        "*\\NodeCopiedEvent": "version",
        "*\\BeforeNodeDeletedEvent": "deleted",
        "*\\NodeDeletedEvent": "deleted",
        "*\\NodeRenamedEvent": "renamed",
        "*\\NodeRestoredEvent": "restored",
    },
    order="time",
    comparator="instant",
    items=_nextcloud,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the header is a password. Deliveries come late, in any order, and are "
    "never repeated. A deletion may name only a path: listen to BeforeNodeDeletedEvent too. Two "
    "writes within one second are one version.",
)


def _egnyte(_source: Source, _request: Request, body: JsonValue) -> Entries:
    if not isinstance(body, list) or not body:
        return ContractBreach("/", "must be an array with entries")
    return [_egnyte_entry(entry) for entry in body]


def _egnyte_entry(entry: JsonValue) -> Item:
    if not isinstance(entry, dict):
        return Item(entry, ContractBreach("/", "must be an object"))
    path, before = pointer(entry, "/data/targetPath"), pointer(entry, "/data/sourcePath")
    shown: JsonObject = {
        "name": path.rpartition("/")[2] if isinstance(path, str) else None,
        "previous_name": before.rpartition("/")[2] if isinstance(before, str) else None,
    }
    is_folder = pointer(entry, "/data/isFolder") is True
    return Item({**entry, "shown": shown}, action="ignore" if is_folder else None)


EGNYTE = Profile(
    name="egnyte",
    title="Egnyte",
    schemes=(Scheme(method="token", places=("header:authorization",)),),
    mapping=FieldMap(
        event_id="{/domain}:{/eventId}",
        type="/eventType",
        file_id="/data/targetGroupId",
        version="/data/targetId",
        name="/shown/name",
        previous_name="/shown/previous_name",
        occurred_at="/timestamp",
        url="https://{host}/pubapi/v1/fs-content/ids/file/{file_id}?entry_id={version}",
    ),
    types={
        "fs:add_file": "version",
        "fs:copy_file": "version",
        "fs:move_file": "renamed",
        "fs:delete_file": "deleted",
    },
    order="time",
    comparator="instant",
    answer=Answer(status=200, conflict_status=200),
    items=_egnyte,
    is_batch=True,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the header is a password.",
)

FRAMEIO = Profile(
    name="frameio",
    title="Frame.io (V4)",
    schemes=(
        Scheme(
            signed="v0:{header:x-frameio-request-timestamp}:{body}",
            places=("header:x-frameio-signature",),
            prefix="v0=",
            clock=Clock(header="x-frameio-request-timestamp", form="unix"),
        ),
    ),
    mapping=FieldMap(
        event_id="{/type}:{/resource/id}:{header:x-frameio-request-timestamp}",
        type="/type",
        file_id="/resource/id",
        # A file's content never changes: a new one is another file on the same stack.
        version="/resource/id",
        occurred_at="",
        project="/project/id",
    ),
    types={
        "file.upload.completed": "version",
        "file.ready": "version",
        "file.deleted": "deleted",
    },
    order="time",
    answer=Answer(wait_s=5.0),
    needs_url=False,
    risk="There is neither an event id nor a time of the event: arrival decides. The download "
    "address has to be asked for.",
)

UPLOADCARE = Profile(
    name="uploadcare",
    title="Uploadcare",
    schemes=(Scheme(places=("header:x-uc-signature",), prefix="v1="),),
    mapping=FieldMap(
        event_id=(
            "{/hook/event}:{/data/uuid}:{/data/datetime_uploaded}",
            "{/hook/event}:{/data/uuid}",
        ),
        type="/hook/event",
        file_id="/data/uuid",
        # Files never change: new content is a new uuid.
        version="/data/uuid",
        name="/data/original_filename",
        occurred_at=(
            "/data/appdata/uc_clamav_virus_scan/datetime_updated",
            "/data/datetime_uploaded",
        ),
        size="/data/size",
        media_type="/data/mime_type",
        project="/hook/project_pub_key",
        url="/data/original_file_url",
    ),
    types={"file.uploaded": "version", "file.deleted": "deleted"},
    order="time",
    comparator="instant",
    needs_url=False,
    risk="There is no event id: event, file and time of upload stand for it.",
)

AUTODESK = Profile(
    name="autodesk",
    title="Autodesk Platform Services",
    schemes=(Scheme(hash="sha1", places=("header:x-adsk-signature",), prefix="sha1hash="),),
    mapping=FieldMap(
        event_id=(
            "{/hook/event}:{/resourceUrn}:{/payload/modifiedTime}",
            "{/hook/event}:{/resourceUrn}",
        ),
        delivery_id="header:x-adsk-delivery-id",
        type="/hook/event",
        file_id="/payload/lineageUrn",
        version="/payload/version",
        name="/payload/name",
        occurred_at=("/payload/modifiedTime", "/payload/createdTime"),
        size="/payload/sizeInBytes",
        project="/payload/project",
    ),
    types={
        "dm.version.added": "version",
        "dm.version.modified": "version",
        "dm.version.copied": "version",
        "dm.version.deleted": "deleted",
        "dm.version.moved": "renamed",
    },
    order="version",
    comparator="integer",
    answer=Answer(conflict_status=200),
    needs_url=False,
    risk="SHA-1, as the provider has it. The download address has to be asked for.",
)

_CLOUDINARY = Scheme(
    signed="{body}{header:x-cld-timestamp}",
    places=("header:x-cld-signature",),
    method="suffix",
    hash="sha1",
    clock=Clock(header="x-cld-timestamp", form="unix", past_s=7200, future_s=None),
)
_CLOUDINARY_SCHEMES = (
    _CLOUDINARY,
    Scheme(
        signed=_CLOUDINARY.signed,
        places=_CLOUDINARY.places,
        method="suffix",
        hash="sha256",
        clock=_CLOUDINARY.clock,
    ),
)

CLOUDINARY = Profile(
    name="cloudinary",
    title="Cloudinary",
    schemes=_CLOUDINARY_SCHEMES,
    verifier=proofs.suffix_hash,
    mapping=FieldMap(
        event_id=("/request_id", "{/notification_type}:{/batch_id}"),
        type="/notification_type",
        file_id=("/asset_id", "/public_id"),
        version="/version",
        name="{/original_filename}.{/format}",
        occurred_at="/timestamp",
        size="/bytes",
        url="/secure_url",
    ),
    types={"upload": "version", "delete": "deleted", "rename": "renamed"},
    order="version",
    comparator="integer",
    needs_url=False,
    risk="A plain hash with the secret behind the body, by the provider's design; two hours of "
    "replay.",
)


def _contentful_content(request: Request) -> bytes | None:
    # Method, path and the named headers are part of it; each header must have come once.
    names = (request.header("x-contentful-signed-headers") or "").lower().split(",")
    headers = []
    for name in sorted(name.strip() for name in names):
        value = request.header(name)
        if value is None:
            return None
        headers.append(f"{name}:{value.strip()}")
    address = request.path
    if request.query:
        address += "?" + quote(request.query, safe="-_.!~*'()")
    address = quote(address, safe=";,/?:@&=+$-_.!~*'()#")
    head = "\n".join((request.method, address, ";".join(headers)))
    return raw(head) + b"\n" + request.body


def _contentful(_source: Source, request: Request, body: JsonValue) -> Entries:
    topic = request.header("x-contentful-topic")
    if not isinstance(body, dict) or not topic:
        return ContractBreach("header:x-contentful-topic", "is missing")
    files = pointer(body, "/fields/file")
    if not isinstance(files, dict) or not files:
        return [Item({**body, "topic": topic, "file_id": _asset_id(body)})]
    return [Item(_localized(body, topic, locale, file)) for locale, file in files.items()]


def _asset_id(body: JsonValue) -> str | None:
    found = pointer(body, "/sys/id")
    return found if isinstance(found, str) else None


def _localized(body: JsonObject, topic: str, locale: str, file: JsonValue) -> JsonObject:
    url = pointer(file, "/url")
    whole = f"https:{url}" if isinstance(url, str) and url.startswith("//") else None
    told: JsonObject = {"file": file, "url": whole}
    return {**body, **told, "topic": topic, "file_id": f"{_asset_id(body)}:{locale}"}


CONTENTFUL = Profile(
    name="contentful",
    title="Contentful",
    schemes=(
        Scheme(
            places=("header:x-contentful-signature",),
            content=_contentful_content,
            clock=Clock(header="x-contentful-timestamp", form="unix_ms", past_s=30, future_s=None),
        ),
    ),
    mapping=FieldMap(
        event_id=("{/topic}:{/file_id}:{/sys/version}", "{/topic}:{/file_id}:{/sys/updatedAt}"),
        delivery_id="header:x-contentful-idempotency-key",
        type="/topic",
        file_id="/file_id",
        version="/sys/version",
        name="/file/fileName",
        occurred_at=("/sys/deletedAt", "/sys/updatedAt"),
        size="/file/details/size",
        media_type="/file/contentType",
        project="/sys/space/sys/id",
        url="/url",
    ),
    types={
        "ContentManagement.Asset.publish": "version",
        "ContentManagement.Asset.unpublish": "deleted",
        "ContentManagement.Asset.archive": "deleted",
        "ContentManagement.Asset.delete": "deleted",
    },
    order="version",
    comparator="integer",
    items=_contentful,
    is_batch=True,
    needs_url=False,
    risk="One file for each locale; a deletion names the asset without its locales. A proxy that "
    "drops or rewrites a signed header or the path breaks the signature.",
)
