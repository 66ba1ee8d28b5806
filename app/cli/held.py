"""What holds open work up besides itself: a part that is cut off or paused, and how to go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.cli import words
from app.cli.client import Api

_OPEN = frozenset({"ready", "pending", "waiting"})
_CUT_OFF = frozenset({"open", "half-open"})


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why the work of a part does not begin, and since or until when."""

    part: str
    word: str
    until: str | None = None
    why: str = ""

    def told(self, moment: words.Moment) -> str:
        """``held: erp is cut off, next try 14:02:11; laufzettel resume … tries at once``."""
        name = self.part.partition(":")[2] or "all work"
        mend = f"laufzettel resume {self.part} --reason …"
        if self.word == "paused":
            return words.clean(f"held: {name} is paused ({self.why}); {mend}")
        until = words.instant(self.until)
        following = f"next try {moment.clock(until)}" if until else "the next try is due"
        return words.clean(f"held: {name} is cut off, {following}; {mend} tries at once")


Hindrances = Mapping[str, Hindrance]


def hindrances(api: Api, works: Iterable[dict[str, Any]]) -> Hindrances:
    """What holds up these jobs and messages, by part; nothing is asked where none is open."""
    return standing(api) if any(row["state"] in _OPEN for row in works) else {}


def standing(api: Api) -> Hindrances:
    """Every part that is cut off or paused."""
    found: dict[str, Hindrance] = {}
    for path, kind in (("/destinations", "destination"), ("/sources", "source")):
        for place in api.get(path)["items"]:
            if place["breaker"] in _CUT_OFF:
                part = f"{kind}:{place['name']}"
                found[part] = Hindrance(part, "cut off", until=place["breaker_until"])
    for part, pause in api.get("/status")["paused"].items():
        found[part] = Hindrance(part, "paused", why=pause["reason"])
    return found


def hindrance(work: dict[str, Any], found: Hindrances) -> Hindrance | None:
    """What holds this piece of work up, if anything does."""
    if work["state"] not in _OPEN:
        return None
    own = f"destination:{work['destination']}" if "destination" in work else ""
    if not own and work["kind"] == "transform":
        own = f"step:{work['name']}"
    source = f"source:{work['source']}"
    hit = next((found[part] for part in ("all", own, source) if part in found), None)
    is_elsewhere = hit is not None and hit.part == source and hit.word == "cut off"
    # A source's breaker is about its downloads: what was downloaded goes on.
    return None if is_elsewhere and own else hit
