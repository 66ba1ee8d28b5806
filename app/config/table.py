"""A table of the file, read key by key: every complaint is collected, nothing is guessed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from app.config.environment import Missing, dereference, is_reference
from app.config.secret import Secret
from domain import units

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=str)

LONGEST_S = 36500 * 86400.0  # a century: beyond it no date can be reckoned
SHORTEST_S = 0.001

_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where, and what mends it; never a value that may be secret."""

    file: str
    key: str
    what: str
    mend: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.key}" if self.key else self.file
        return f"{place}: {self.what} → {self.mend}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of one file: where it stands, what its references lead to, what is wrong."""

    file: str
    folder: Path
    environ: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def report(self, key: str, what: str, mend: str) -> None:
        """Add an error; reading goes on, so that one start names them all."""
        problem = Problem(self.file, key, what, mend)
        if problem not in self.problems:  # a key may be read twice, and is wrong once
            self.problems.append(problem)

    def resolve(self, key: str, text: str) -> str | None:
        """The text, or what its reference leads to; ``None`` after reporting a dead end."""
        if not is_reference(text):
            return text
        found = dereference(text, environ=self.environ, folder=self.folder)
        if isinstance(found, Missing):
            self.report(key, found.why, found.mend)
            return None
        return found

    def secret(self, key: str, reference: str) -> Secret | None:
        """The secret that a reference leads to; a literal one is refused and not repeated."""
        if not is_reference(reference):
            what = "a secret stands in the file itself"
            mend = 'move it to the .env beside the file and write "env:NAME" here'
            self.report(key, what, mend)
            return None
        value = self.resolve(key, reference)
        return None if value is None else Secret(reference, value)


@dataclass(frozen=True, slots=True)
class _Measure(Generic[T]):
    """How a measure is read, an example of it, and the unit that a bare number lacks."""

    read: Callable[[str], T | None]
    example: str
    unit: str


_DURATION = _Measure(units.seconds, "5m", "s")
_SIZE = _Measure(units.size_bytes, "1 MiB", " B")
_SPEED = _Measure(units.bytes_per_second, "16 KiB/s", " B/s")
_RATE = _Measure(units.per_second, "50/s", "/s")


class Table:
    """One table under its path. Whoever has read all its keys calls ``finish``."""

    def __init__(self, raw: object, *, path: str, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self._raw: Mapping[str, object] = {}
        self._asked: set[str] = set()
        if isinstance(raw, dict):
            self._raw = raw
        else:
            reading.report(path, f"is {_kind(raw)}, a table is wanted", f"write [{path}]")

    def has(self, key: str) -> bool:
        """Whether the key stands there; to have asked makes it a known one."""
        return self.raw(key) is not None

    def key(self, key: str) -> str:
        """The full name of a key, as it is shown."""
        return f"{self.path}.{key}" if self.path else key

    def complain(self, key: str, what: str, mend: str) -> None:
        """Report what is wrong with a key of this table."""
        self.reading.report(self.key(key), what, mend)

    def finish(self) -> None:
        """Report every key that nobody asked for, with the nearest one that exists."""
        for key in self._raw.keys() - self._asked:
            near = difflib.get_close_matches(key, self._asked, n=1, cutoff=0.6)
            known = ", ".join(sorted(self._asked)) or "none"
            mend = f"did you mean {near[0]}?" if near else f"remove it; known keys: {known}"
            self.complain(key, "is not known", mend)

    def raw(self, key: str) -> object:
        """The value as TOML gave it; ``None`` if absent."""
        self._asked.add(key)
        return self._raw.get(key)

    def names(self) -> tuple[str, ...]:
        """All keys, in the order of the file; to ask for them all is up to the caller."""
        return tuple(self._raw)

    def of_kind(self, key: str, kind: type[T]) -> T | None:
        """The value if it is of the kind; ``None`` if absent or, after a complaint, another."""
        value = self.raw(key)
        if value is None:
            return None
        is_number = kind is not bool and isinstance(value, bool)
        if is_number or not isinstance(value, kind):
            self.complain(key, f"is {_kind(value)}", f"write {_KINDS[kind]}")
            return None
        return value

    def text(self, key: str, default: str = "") -> str:
        """A text; a reference is followed."""
        value = self.of_kind(key, str)
        if value is None:
            return default
        resolved = self.reading.resolve(self.key(key), value)
        return default if resolved is None else resolved

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.of_kind(key, bool)
        return default if value is None else value

    def integer(self, key: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
        """A whole number within its bounds."""
        value = self.of_kind(key, int)
        if value is None:
            return default
        if not least <= value <= most:
            self.complain(key, f"is {value}", f"write a number from {least} to {most}")
            return default
        return value

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        """A number within its bounds, whole or not."""
        raw = self.raw(key)
        if isinstance(raw, int) and not isinstance(raw, bool):
            raw = float(raw)
        if raw is None:
            return default
        if not isinstance(raw, float):
            self.complain(key, f"is {_kind(raw)}", "write a number")
            return default
        if not least <= raw <= most:
            self.complain(key, f"is {raw:g}", f"write a number from {least:g} to {most:g}")
            return default
        return raw

    def choice(self, key: str, options: tuple[ChoiceT, ...], default: ChoiceT) -> ChoiceT:
        """One of the words that are allowed."""
        value = self.text(key, default)
        for option in options:
            if option == value:
                return option
        near = difflib.get_close_matches(value, options, n=1)
        hint = f"did you mean {near[0]}?" if near else f"write one of: {', '.join(options)}"
        self.complain(key, "is none of the words allowed here", hint)
        return default

    def seconds(
        self, key: str, default: float, *, least: float = 0.0, most: float = LONGEST_S
    ) -> float:
        """A duration within its bounds."""
        value = self._measured(key, _DURATION, default)
        if value < least and self.has(key):
            self.complain(key, "is too short", f'write at least "{least * 1000:g}ms"')
        if value > most:
            self.complain(key, "is too long", f'write at most "{most / 86400:g}d"')
            return default
        return value

    def size_bytes(self, key: str, default: int) -> int:
        """A size."""
        return self._measured(key, _SIZE, default)

    def bytes_per_second(self, key: str, default: int) -> int:
        """A speed."""
        return self._measured(key, _SPEED, default)

    def per_second(self, key: str) -> float | None:
        """A rate; ``None`` for no limit."""
        return self._measured(key, _RATE, 0.0) or None

    def _measured(self, key: str, measure: _Measure[T], default: T) -> T:
        raw = self.raw(key)
        if isinstance(raw, (int, float)) and not isinstance(raw, bool) and raw >= 0:
            self.complain(key, f"is {_kind(raw)}", f'write "{raw}{measure.unit}"')
            return default
        text = self.text(key)
        if not text:
            return default
        value = measure.read(text)
        if value is None:
            what = "is negative" if text.lstrip().startswith("-") else "cannot be read"
            self.complain(key, what, f'write it like "{measure.example}"')
            return default
        return value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; references are followed."""
        resolved = (
            self.reading.resolve(self.key(key), item) for item in self._strings(key, default)
        )
        return tuple(item for item in resolved if item is not None)

    def secrets(self, key: str) -> tuple[Secret, ...]:
        """A list of secrets, each by reference, none twice."""
        references = self._strings(key, ())
        if len(set(references)) < len(references):
            self.complain(key, "names a secret twice", "name each once")
        found = (self.reading.secret(self.key(key), reference) for reference in references)
        return tuple(secret for secret in found if secret is not None)

    def secret(self, key: str) -> Secret | None:
        """One secret, by reference; ``None`` if absent."""
        reference = self.of_kind(key, str)
        return None if reference is None else self.reading.secret(self.key(key), reference)

    def _strings(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        items = self.of_kind(key, list)
        if items is None:
            return default
        if not all(isinstance(item, str) for item in items):
            self.complain(key, "holds something other than texts", 'write ["…", "…"]')
        return tuple(item for item in items if isinstance(item, str))

    def table(self, key: str) -> Table:
        """A table inside this one; an absent one is empty."""
        raw = self.raw(key)
        return Table({} if raw is None else raw, path=self.key(key), reading=self.reading)

    def tables(self, key: str) -> tuple[tuple[str, Table], ...]:
        """The named tables inside a table, in the order of the file."""
        parent = self.table(key)
        return tuple((name, parent.table(name)) for name in parent.names())

    def text_pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table whose values are all texts."""
        inner = self.table(key)
        return tuple((name, inner.text(name)) for name in inner.names())


def _kind(value: object) -> str:
    return next((word for kind, word in _KINDS.items() if type(value) is kind), "a date or time")
