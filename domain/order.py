"""Which of two facts is the later one, and what a file's facts say when taken together.

The view of a file - present or deleted, its current version, its name - is a function of the set
of accepted facts. Arrival decides nothing, except where a source gives no order at all: then the
view is marked as unordered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

FactKind = Literal["version", "renamed", "deleted", "restored"]
Comparator = Literal["integer", "text", "hex", "instant"]

# Where two facts carry the same place in the order (two of one second, say), the kind decides, then
# what their versions are called, then the event's id: never who came first.
_RANK = {"version": 0, "renamed": 1, "deleted": 2, "restored": 3}
_HEX_DIGITS = 64
_NUMBER = re.compile("[0-9]+")


@dataclass(frozen=True, slots=True)
class Fact:
    """One accepted statement of a source about a file.

    ``value`` is the place among versions in the source's declared order, made comparable by
    ``comparable``; None where the source did not give it. ``at_us`` is the source's own time in
    microseconds since 1970. ``event`` is the derived id of the source event. ``arrival`` counts
    the facts of the file as they came.
    """

    kind: FactKind
    event: str
    arrival: int
    version: str = ""
    value: str | None = None
    sequence: int | None = None
    at_us: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What is true of a file by its facts.

    ``current`` is the newest version, or "" where the file is deleted or has none. ``newest`` is
    the same without regard to deletion. ``named`` is the event that gave the name. ``reopened`` is
    the event that gave an older meaning back (a restore after a delete, an older version made
    current again), or "" if none did; ``generation`` is 1 and one more for each such event.
    ``is_ordered`` is false where the source's order had a gap and arrival decided.
    """

    is_present: bool = False
    current: str = ""
    newest: str = ""
    name: str = ""
    named: str = ""
    reopened: str = ""
    generation: int = 1
    is_ordered: bool = True


SortKey = tuple[int | str, ...]
KeyOf = Callable[[Fact], SortKey]


def comparable(value: str, comparator: Comparator) -> str:
    """Encode a source's version, sequence or time so that text order is its true order.

    Under ``integer``, values that are no integers sort behind all that are, as text.
    """
    if comparator == "hex":
        return value.lower().ljust(_HEX_DIGITS, "0")
    if comparator == "integer":
        return _comparable_integer(value)
    return value


def _comparable_integer(value: str) -> str:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        return "2" + value
    digits = digits.lstrip("0") or "0"
    if value.startswith("-") and digits != "0":
        inverted = digits.translate(str.maketrans("0123456789", "9876543210"))
        return f"0{99999 - len(digits):05}{inverted}"
    return f"1{len(digits):05}{digits}"


def view(facts: Sequence[Fact]) -> View:
    """The view of a file, from its facts in any order."""
    if not facts:
        return View()
    if len(facts) == 1 and facts[0].kind == "version":
        # Most files have one version for ever; the rest of this gives the same for it.
        return _view_of_one(facts[0])
    versions = [fact for fact in facts if fact.kind == "version"]
    life_key, is_life_ordered = _life_order(facts)
    version_key, is_version_ordered = _version_order(versions)
    newest = max(versions, key=version_key).version if versions else ""
    presence = [fact for fact in facts if fact.kind != "renamed"]
    is_present = bool(presence) and max(presence, key=life_key).kind != "deleted"
    named = max((fact for fact in facts if fact.name), key=life_key, default=None)
    reopenings = {
        fact.event: fact
        for fact in (*_after_deletion(presence, life_key), *_after_rollback(versions, version_key))
    }
    return View(
        is_present=is_present,
        current=newest if is_present else "",
        newest=newest,
        name=named.name if named else "",
        named=named.event if named else "",
        reopened=max(reopenings.values(), key=life_key).event if reopenings else "",
        generation=1 + len(reopenings),
        is_ordered=is_version_ordered and is_life_ordered,
    )


def _view_of_one(fact: Fact) -> View:
    return View(
        is_present=True,
        current=fact.version,
        newest=fact.version,
        name=fact.name,
        named=fact.event if fact.name else "",
    )


def ranking(facts: Iterable[Fact]) -> list[str]:
    """The known versions, oldest first."""
    versions = [fact for fact in facts if fact.kind == "version"]
    if len(versions) == 1:
        return [versions[0].version]
    key, _ = _version_order(versions)
    newest_of: dict[str, SortKey] = {}
    for fact in versions:
        newest_of[fact.version] = max(newest_of.get(fact.version, key(fact)), key(fact))
    return sorted(newest_of, key=newest_of.__getitem__)


def _version_order(versions: Sequence[Fact]) -> tuple[KeyOf, bool]:
    if all(fact.value is not None for fact in versions):
        return _by_value, True
    if all(fact.at_us is not None for fact in versions):
        return _by_time, True
    return _by_arrival, len({(fact.version, fact.name) for fact in versions}) == 1


def _life_order(facts: Sequence[Fact]) -> tuple[KeyOf, bool]:
    if all(fact.sequence is not None for fact in facts):
        return _by_sequence, True
    if all(fact.at_us is not None for fact in facts):
        return _by_time, True
    if all(fact.kind == "version" for fact in facts):
        # Nothing but versions: what orders them orders their names too.
        return _version_order(facts)
    return _by_arrival, False


def _after_deletion(presence: Sequence[Fact], key: KeyOf) -> list[Fact]:
    """The facts that made a deleted file present again."""
    reopenings: list[Fact] = []
    is_deleted = False
    for fact in sorted(presence, key=key):
        if is_deleted and fact.kind != "deleted":
            reopenings.append(fact)
        is_deleted = fact.kind == "deleted"
    return reopenings


def _after_rollback(versions: Sequence[Fact], key: KeyOf) -> list[Fact]:
    """The facts that made an older version current again."""
    reopenings: list[Fact] = []
    seen: set[str] = set()
    current = ""
    for fact in sorted(versions, key=key):
        if fact.version != current and fact.version in seen:
            reopenings.append(fact)
        current = fact.version
        seen.add(current)
    return reopenings


def _by_value(fact: Fact) -> SortKey:
    return (fact.value or "", fact.at_us or 0, _natural(fact.version), fact.event)


def _by_sequence(fact: Fact) -> SortKey:
    return (fact.sequence or 0, fact.at_us or 0, *_among_equals(fact))


def _by_time(fact: Fact) -> SortKey:
    return (fact.at_us or 0, *_among_equals(fact))


def _among_equals(fact: Fact) -> SortKey:
    return (_RANK[fact.kind], fact.value or "", _natural(fact.version), fact.event)


def _natural(version: str) -> str:
    """A version as people order them: v2 before v10."""
    return _NUMBER.sub(lambda digits: _comparable_integer(digits[0]), version)


def _by_arrival(fact: Fact) -> SortKey:
    return (fact.arrival,)
