"""Finding a field where the map says it is: in the body, in a header, or made from both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

from domain import canonical
from domain.canonical import ABSENT, Absent
from domain.profiles.values import FieldMap, Where
from domain.schemes import Request, raw
from domain.strict_json import JsonValue

_HOLE = re.compile(r"\{(\+?)([^{}]+)\}")


@dataclass(slots=True)
class Places:
    """One entry of a delivery, seen through the map."""

    mapping: FieldMap
    request: Request
    value: JsonValue
    host: str = ""
    known: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> JsonValue | Absent:
        """What the map finds for a field; ``null`` counts as not told."""
        for text in _alternatives(getattr(self.mapping, name)):
            found = self._at(text, is_url=name == "url")
            if found is not ABSENT and found is not None:
                return found
        return ABSENT

    def named(self, name: str) -> str:
        """How a field is called in a message to whoever has to mend it."""
        alternatives = _alternatives(getattr(self.mapping, name))
        return alternatives[0] if alternatives and "{" not in alternatives[0] else name

    def _at(self, text: str, *, is_url: bool) -> JsonValue | Absent:
        if "{" in text:
            return self._filled(text, is_url=is_url)
        kind, _, name = text.partition(":")
        if kind == "header":
            return self._header(name)
        if kind == "query":
            return _or_absent(self.request.parameter(name))
        return canonical.pointer(self.value, text)

    def _header(self, name: str) -> str | Absent:
        value = self.request.header(name.lower())
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
            if value is ABSENT:
                return ABSENT
            safe = "/" if keeps_slashes else ""
            is_host = what == "host"
            filled += [quote(value, safe=safe) if is_url and not is_host else value, literal]
        return "".join(filled)

    def _hole(self, what: str) -> str | Absent:
        if what == "host":
            return _or_absent(self.host)
        if what in self.known:
            return _or_absent(self.known[what])
        found = self._at(what, is_url=False) if what[0] == "/" or ":" in what else ABSENT
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            return ABSENT
        return _or_absent(str(found))


def _or_absent(text: str | None) -> str | Absent:
    return text or ABSENT


def _alternatives(where: Where) -> tuple[str, ...]:
    return where if isinstance(where, tuple) else (where,) if where else ()
