"""What goes wrong, and when: schedules by number, the same for the same seed and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar

from app.clock import SeededDice

Kind = Literal["calm", "point", "fault", "pair", "long"]
DatabaseTrouble = Literal["", "fails", "full"]
T = TypeVar("T")

_STRIDE = 1_000_003
# A life that is killed begins its work some times before it gets there.
_MOST_PASSINGS = 6
_FEWEST_LIVES, _MOST_LIVES = 3, 6
# Well inside the tolerance of signed times, which is 5 minutes.
_MOST_SKEW_S = 90.0
_LATEST_CALL = 400


@dataclass(frozen=True, slots=True)
class Life:
    """One life of the process: where it is killed or fails, and what troubles it until then.

    ``points`` is as ``LAUFZETTEL_POINT`` takes it. ``skew_s`` is what its clock is ahead of ours.
    """

    points: str = ""
    skew_s: float = 0.0
    wakeups: bool = False
    database: DatabaseTrouble = ""
    at_call: int = 0
    outside: bool = False

    @property
    def troubles(self) -> tuple[str, ...]:
        """What goes wrong in it, in words."""
        named = (
            (self.points and "=" not in self.points, f"killed at {self.points}"),
            ("=" in self.points, f"{self.points}"),
            (self.skew_s, f"clock {self.skew_s:+.1f} s"),
            (self.wakeups, "wake-ups lost, doubled, reordered"),
            (self.database == "fails", f"database failing from call {self.at_call}"),
            (self.database == "full", "database full"),
            (self.outside, "source and receivers failing"),
        )
        return tuple(words for is_so, words in named if is_so)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The lives of a process, one after the other; a calm one follows them."""

    number: int
    kind: Kind
    lives: tuple[Life, ...]

    @property
    def words(self) -> str:
        """What happens in it."""
        lives = [" and ".join(life.troubles) or "calm" for life in self.lives]
        return ", then ".join(lives)


# Its second life meets failing receivers, so that it passes what only they lead to.
CALM = Schedule(0, "calm", (Life(), Life(outside=True)))
_ONLY_IF_UNCLEAR = ("notify.ask.before", "notify.ask.after")
_ALONE = (
    Life(points="blobs.put.before:2=ENOSPC"),
    Life(points="blobs.put.before:3=EIO"),
    Life(points="blobs.fsync.after:2=EIO"),
    Life(points="download.body.begun:2=ENOSPC"),
    Life(skew_s=_MOST_SKEW_S),
    Life(skew_s=-1.5),
    Life(wakeups=True),
    Life(database="fails", at_call=40),
    Life(database="full"),
    Life(outside=True),
)


class Matrix:
    """All schedules over these points: each point, each fault, each pair, as many long ones."""

    def __init__(self, points: Sequence[str], seed: int) -> None:
        self.points = tuple(points)
        self._seed = seed
        dice = SeededDice(seed)
        pairs = tuple(product(self.points, repeat=2))
        self._plan: list[tuple[Kind, int]] = [
            *(("point", place) for place in range(len(self.points))),
            *(("fault", place) for place in range(len(_ALONE))),
        ]
        # A long one after two pairs, so that a short run has some of each.
        for place in shuffled(range(len(pairs)), dice):
            self._plan.append(("pair", place))
            if len(self._plan) % 3 == 0:
                self._plan.append(("long", place))
        self._pairs = pairs

    def __len__(self) -> int:
        """How many there are, the calm one not counted."""
        return len(self._plan)

    def schedule(self, number: int) -> Schedule:
        """The schedule of this number, from 1; 0 is the calm one."""
        if number == 0:
            return CALM
        kind, place = self._plan[number - 1]
        dice = SeededDice(self._seed * _STRIDE + number)
        match kind:
            case "point":
                name = self.points[place]
                # Twice, not three times: a job that took three workers with it is dead, rightly.
                times = (name, f"{name}:4")
                is_asked = name in _ONLY_IF_UNCLEAR
                lives: tuple[Life, ...] = tuple(Life(points=t, outside=is_asked) for t in times)
            case "fault":
                lives = (_ALONE[place],)
            case "pair":
                lives = tuple(Life(points=_counted(name, dice)) for name in self._pairs[place])
            case _:
                lives = self._long(dice)
        return Schedule(number, kind, lives)

    def _long(self, dice: SeededDice) -> tuple[Life, ...]:
        count = _FEWEST_LIVES + upto(dice, _MOST_LIVES - _FEWEST_LIVES + 1)
        skews_s = sorted(round(dice.jitter() * _MOST_SKEW_S, 1) for _ in range(count))
        return tuple(self._troubled(dice, skew_s) for skew_s in skews_s)

    def _troubled(self, dice: SeededDice, skew_s: float) -> Life:
        """Usually killed, and now and then troubled in other ways as well."""
        is_killed = dice.jitter() < 0.7
        points = _counted(pick(dice, self.points), dice) if is_killed else ""
        if not is_killed and dice.jitter() < 0.5:
            points = pick(dice, [life.points for life in _ALONE if life.points])
        # Clocks that were set back a little are as usual as those that were set forward.
        is_skewed = dice.jitter() < 0.4
        choices: tuple[DatabaseTrouble, ...] = ("", "", "", "fails", "full")
        return Life(
            points=points,
            skew_s=skew_s - (1.5 if dice.jitter() < 0.3 else 0.0) if is_skewed else skew_s,
            wakeups=dice.jitter() < 0.4,
            database=pick(dice, choices),
            at_call=upto(dice, _LATEST_CALL),
            outside=dice.jitter() < 0.3,
        )


def _counted(name: str, dice: SeededDice) -> str:
    return f"{name}:{1 + upto(dice, _MOST_PASSINGS)}"


def upto(dice: SeededDice, limit: int) -> int:
    """A number from 0 up to the limit, the limit excluded."""
    return int(dice.jitter() * limit)


def pick(dice: SeededDice, choices: Sequence[T]) -> T:
    """One of these."""
    return choices[upto(dice, len(choices))]


def shuffled(things: Sequence[T], dice: SeededDice) -> list[T]:
    """All of these, in an order of the dice."""
    return sorted(things, key=lambda _: dice.jitter())
