"""Finding a field where the map says it is: in the body, in a header, or made from both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from urllib.parse import quote

from domain import canonical
from domain.canonical import ABSENT, Absent
from domain.profiles.values import FieldMap, Source, Spot, Where
from domain.schemes import Request, raw
from domain.strict_json import JsonValue

KNOWN = frozenset({"file_id", "version", "event_id", "host", "now"})
_HOLE = re.compile(r"\{(\+?)([^{}]+)\}")


def spots(mapping: FieldMap) -> dict[str, tuple[Spot, ...]]:
    """Every field's places, taken apart once."""
    found = {f.name: alternatives(getattr(mapping, f.name)) for f in fields(mapping)}
    return {name: tuple(_spot(text) for text in texts) for name, texts in found.items()}


def holes(template: str) -> tuple[str, ...]:
    """What a text with ``{...}`` takes from elsewhere."""
    return tuple(match[2] for match in _HOLE.finditer(template))


def _spot(text: str) -> Spot:
    if "{" in text:
        return Spot("template", text)
    kind, _, name = text.partition(":")
    if kind == "header":
        return Spot("header", name.lower())
    if kind == "query":
        return Spot("query", name)
    return Spot("pointer", text, canonical.tokens(text))


@dataclass(slots=True)
class Places:
    """One entry of a delivery, seen through the source's map."""

    source: Source
    request: Request
    value: JsonValue
    known: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> JsonValue | Absent:
        """What the map finds for a field; ``null`` counts as not told."""
        for spot in self.source.spots[name]:
            found = self._at(spot, is_url=name == "url")
            if found is not ABSENT and found is not None:
                return found
        return ABSENT

    def is_outside(self, name: str) -> bool:
        """Whether what ``find`` gives is not from the body, and so can be nothing but a text."""
        for spot in self.source.spots[name]:
            if self._at(spot, is_url=name == "url") not in (ABSENT, None):
                return spot.kind != "pointer"
        return False

    def named(self, name: str) -> str:
        """How a field is called in a message to whoever has to mend it."""
        texts = alternatives(getattr(self.source.mapping, name))
        return texts[0] if texts and "{" not in texts[0] else name

    def _at(self, spot: Spot, *, is_url: bool) -> JsonValue | Absent:
        if spot.kind == "pointer":
            return canonical.follow(self.value, spot.steps)
        if spot.kind == "header":
            return self._header(spot.text)
        if spot.kind == "query":
            return _or_absent(self.request.parameter(spot.text))
        return self._filled(spot.text, is_url=is_url)

    def _header(self, name: str) -> str | Absent:
        value = self.request.header(name)
        if not value:
            return ABSENT
        try:
            return raw(value).decode()
        except UnicodeDecodeError:
            return value

    def _filled(self, template: str, *, is_url: bool) -> str | Absent:
        pieces = _HOLE.split(template)
        filled = [pieces[0]]
        for keeps_slashes, what, literal in zip(
            pieces[1::3], pieces[2::3], pieces[3::3], strict=True
        ):
            value = self._hole(what)
            if value is ABSENT or (is_url and _extends_host(filled, what, value)):
                return ABSENT
            safe = "/" if keeps_slashes else ""
            is_host = what == "host"
            filled += [quote(value, safe=safe) if is_url and not is_host else value, literal]
        return "".join(filled)

    def _hole(self, what: str) -> str | Absent:
        if what == "host":
            return _or_absent(self.source.settings.host)
        if what in self.known:
            return _or_absent(self.known[what])
        is_place = what not in KNOWN
        found = self._at(_spot(what), is_url=False) if is_place else ABSENT
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            return ABSENT
        return _or_absent(str(found))


def _extends_host(filled: list[str], what: str, value: str) -> bool:
    # Behind "https://{host}" a value that begins with no slash would make another host of it.
    is_at_host = len(filled) > 1 and filled[0].endswith("://") and "".join(filled[2:]) == ""
    return is_at_host and what != "host" and not value.startswith("/")


def _or_absent(text: str | None) -> str | Absent:
    return text or ABSENT


def needs_body(where: Where) -> bool:
    """Whether a field can be found nowhere but in the body."""
    return not any(_is_outside(text) for text in alternatives(where))


def _is_outside(text: str) -> bool:
    if "{" in text:
        return not any(hole.startswith("/") for hole in holes(text))
    return text.startswith(("header:", "query:"))


def alternatives(where: Where) -> tuple[str, ...]:
    """The places of a field as a tuple."""
    return where if isinstance(where, tuple) else (where,) if where else ()
