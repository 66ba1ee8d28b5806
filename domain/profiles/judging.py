"""Judging one entry against the source's contract, field by field, without coercion."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlsplit

from domain import instants
from domain.canonical import ABSENT, Absent
from domain.profiles.places import Places
from domain.profiles.values import (
    Action,
    Comparator,
    ContractBreach,
    Profile,
    Source,
    SourceEvent,
)
from domain.strict_json import JsonValue

MAX_ID_CHARACTERS = 2048
MAX_URL_CHARACTERS = 8192
# As long as a whole path may be; what is longer is no name, and would fill every list.
MAX_TEXT_CHARACTERS = 4096
_MAX_INTEGER = 2**63 - 1
_MAX_INTEGER_DIGITS = 19
_ID = "must be a text or a whole number"
_SHA_256 = re.compile("[0-9a-fA-F]{64}")
_STAND_IN = "\N{SYMBOL FOR NULL}"
_NUMBERED: frozenset[Comparator | None] = frozenset({None, "integer", "instant"})
_FILE_ACTIONS = frozenset({"version", "deleted", "restored", "renamed"})


@dataclass(slots=True)
class Judge:
    """Reads fields and keeps the first breach: later fields are then of no interest."""

    places: Places
    profile: Profile
    breach: ContractBreach | None = None
    names: dict[str, str] = field(default_factory=dict)

    def fail(self, name: str, reason: str) -> None:
        """Note a breach, unless there is one already."""
        self.breach = self.breach or ContractBreach(self.places.named(name), reason)

    def identity(self, name: str, *, needed: bool) -> str:
        """An id as a text: integers keep every digit, nothing else is made a text."""
        found = self.places.find(name)
        is_text = isinstance(found, str)
        if isinstance(found, int) and not isinstance(found, bool) and not self._only_texts(name):
            return str(found)
        if found is ABSENT:
            if needed:
                self.fail(name, "is missing")
            return ""
        if not is_text or not found:
            self.fail(name, "must be a text" if self._only_texts(name) else _ID)
            return ""
        return self._bounded(name, str(found))

    def _only_texts(self, name: str) -> bool:
        return name == "type" or (self.profile.ids_are_texts and name != "version")

    def _bounded(self, name: str, text: str) -> str:
        if len(text) > MAX_ID_CHARACTERS:
            self.fail(name, f"is longer than {MAX_ID_CHARACTERS} characters")
        if "\0" in text:
            self.fail(name, "contains U+0000")
        return text

    def text(self, name: str) -> str:
        """A text for people; U+0000 gets a visible stand-in, since not every database holds it."""
        text = self._text(name)
        if len(text) > MAX_TEXT_CHARACTERS:
            self.fail(name, f"is longer than {MAX_TEXT_CHARACTERS} characters")
        return text

    def _text(self, name: str) -> str:
        found = self.places.find(name)
        if found is ABSENT:
            return ""
        if not isinstance(found, str):
            self.fail(name, "must be a text")
            return ""
        return found.replace("\0", _STAND_IN)

    def integer(self, name: str) -> int | None:
        """A whole number from zero up to 63 bits; in a body ``true`` and ``"3"`` are none."""
        found = self.places.find(name)
        if found is ABSENT:
            return None
        number = self._number(found, may_be_text=self._may_be_text(name))
        if number is None or not 0 <= number <= _MAX_INTEGER:
            self.fail(name, "must be a whole number")
            return None
        return number

    def _may_be_text(self, name: str) -> bool:
        # A header has no numbers, so its digits are no text that was taken for one.
        return self.profile.texts_are_numbers or self.places.is_outside(name)

    def _number(self, found: JsonValue | Absent, *, may_be_text: bool) -> int | None:
        if isinstance(found, bool):
            return None
        if isinstance(found, int):
            return found
        if isinstance(found, Decimal) and found == found.to_integral_value():
            return int(found)
        if not isinstance(found, str) or not may_be_text:
            return None
        is_number = found.isascii() and found.isdecimal() and len(found) <= _MAX_INTEGER_DIGITS
        return int(found) if is_number else None

    def time(self, name: str) -> datetime | None:
        """An instant in UTC."""
        found = self.places.find(name)
        if found is ABSENT:
            return None
        at = instants.instant(found)
        if at is None and isinstance(found, str) and self._may_be_text(name):
            at = instants.from_digits(found.partition(".")[0])
        if at is None:
            self.fail(name, "must be a time with its zone")
        return at

    def sha256(self) -> str:
        """A SHA-256 in lower-case hex."""
        text = self._text("sha256")
        if text and not _SHA_256.fullmatch(text):
            self.fail("sha256", "must be 64 hexadecimal digits")
        return text.lower()

    def url(self, *, needed: bool) -> str:
        """An absolute HTTP address without blanks."""
        text = self._text("url")
        if not text:
            if needed:
                self.fail("url", "is missing")
            return ""
        if len(text) > MAX_URL_CHARACTERS or not _is_address(text):
            self.fail("url", "must be an http or https address")
        return text


def _is_address(text: str) -> bool:
    if not text.isprintable() or " " in text or _STAND_IN in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def judge(
    source: Source, places: Places, index: int, told: Action | None = None
) -> SourceEvent | ContractBreach:
    """One entry as a source event; what no action needs is not demanded of it."""
    desk = Judge(places, source.profile)
    word = desk.identity("type", needed=source.profile.default_action != "changed")
    known = action_of(source.types, word)
    action = told or known or source.profile.default_action
    event_id = desk.identity("event_id", needed=True)
    if known is None and told is None and source.settings.unknown_types == "refuse":
        desk.fail("type", "is not a known type")
    if desk.breach is not None:
        return desk.breach
    if action not in _FILE_ACTIONS:
        return _bare(source, places, index, (event_id, word, action))
    return _full(source, desk, index, (event_id, word, action))


def action_of(types: Mapping[str, Action], word: str) -> Action | None:
    """What their word means: as it stands, else by the first pattern (``*.deleted``) it fits."""
    if word in types:
        return types[word]
    patterns = (pattern for pattern in types if "*" in pattern)
    return next((types[p] for p in patterns if fnmatch.fnmatchcase(word, p)), None)


def _bare(source: Source, places: Places, index: int, head: tuple[str, str, Action]) -> SourceEvent:
    # What starts no file work is shown with what it tells, and refused for nothing.
    def told(name: str) -> str:
        desk = Judge(places, source.profile)
        found = desk.identity(name, needed=False)
        return found if desk.breach is None else ""

    at = Judge(places, source.profile).time("occurred_at")
    names = Judge(places, source.profile)
    return SourceEvent(
        event_id=head[0],
        type=head[1],
        action=head[2],
        file_id=told("file_id"),
        version=told("version") or None,
        delivery_id=told("delivery_id"),
        name=names.text("name"),
        project=told("project"),
        occurred_at=at,
        index=index,
        item=places.value,
    )


def _full(
    source: Source, desk: Judge, index: int, head: tuple[str, str, Action]
) -> SourceEvent | ContractBreach:
    event_id, word, action = head
    file_id = desk.identity("file_id", needed=True)
    digest = desk.sha256()
    told_version = desk.identity("version", needed=False)
    version = told_version or (digest or event_id if action == "version" else None)
    desk.places.known |= {"file_id": file_id, "version": version or "", "event_id": event_id}
    sequence = desk.integer("sequence") if source.profile.comparator in _NUMBERED else None
    occurred_at = desk.time("occurred_at")
    order, comparator = _order(source, desk, told_version, sequence)
    if action == "renamed" and source.profile.needs_url and not desk.text("name"):
        desk.fail("name", "is missing")
    event = SourceEvent(
        event_id=event_id,
        type=word,
        action=action,
        file_id=file_id,
        version=version,
        delivery_id=desk.identity("delivery_id", needed=False),
        name=desk.text("name"),
        previous_name=desk.text("previous_name"),
        project=_project(desk),
        size_bytes=desk.integer("size"),
        sha256=digest,
        media_type=desk.text("media_type"),
        url=_url(source, desk, action),
        sequence=sequence,
        occurred_at=occurred_at,
        order=occurred_at.isoformat() if comparator == "instant" and occurred_at else order,
        comparator=comparator,
        index=index,
        item=desk.places.value,
    )
    return desk.breach or event


def _project(desk: Judge) -> str:
    return desk.identity("project", needed=False)


def _url(source: Source, desk: Judge, action: Action) -> str:
    if action == "deleted":
        return ""
    return desk.url(needed=action == "version" and source.profile.needs_url)


def _order(
    source: Source, desk: Judge, version: str, sequence: int | None
) -> tuple[str | None, Comparator | None]:
    comparator = source.profile.comparator
    if source.order == "time":
        return None, "instant"
    if source.order == "sequence":
        if sequence is not None:
            return str(sequence), "integer"
        found = desk.places.find("sequence")
        return (found, comparator) if isinstance(found, str) and comparator else (None, None)
    is_number = version.isascii() and version.isdecimal()
    if comparator in {None, "integer"}:
        return (version, "integer") if is_number else (None, None)
    return (version, comparator) if version else (None, None)
