"""What is played: for each file, in order, what its platform tells and waits for.

Repeats, delays, reorderings, conflicts and late old versions are all here; what must come of them
is not: that is the oracle's business.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.cli.demo.documents import Document
from app.cli.demo.platform import Broken, Busy, Mood, NotYet, Short, Slow, path_of
from app.clock import Dice
from domain.profiles import SourceEvent


@dataclass(frozen=True, slots=True)
class Tell:
    """One event, after a while, in so many deliveries."""

    event: SourceEvent
    after_s: float = 0.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Contradict:
    """The id of an event that was told, with other bytes."""

    event: SourceEvent


@dataclass(frozen=True, slots=True)
class Await:
    """Go on when the receiver has heard of this version."""

    version: str


Act = Tell | Contradict | Await


@dataclass(frozen=True, slots=True)
class Scene:
    """All about one file; scenes are played side by side."""

    document: Document
    acts: tuple[Act, ...]
    moods: tuple[tuple[str, tuple[Mood, ...]], ...] = ()


@dataclass(slots=True)
class Author:
    """Writes the scenes; the same dice write the same ones."""

    host_url: str
    began: datetime
    dice: Dice
    _minutes: int = field(default=0)

    def scenes(self, documents: tuple[Document, ...]) -> tuple[Scene, ...]:
        """One scene for each document, in a shuffled order."""
        several = [d for d in documents if len(d.versions) > 1]
        single = [d for d in documents if len(d.versions) == 1]
        written = [*self._growing(several), *self._plain(single)]
        return tuple(sorted(written, key=lambda _: self.dice.jitter()))

    def _growing(self, documents: list[Document]) -> Iterator[Scene]:
        plots = (self._late, self._grown, self._overtaken)
        for number, document in enumerate(documents):
            acts = plots[number % len(plots)](document)
            yield Scene(document, tuple(acts), self._moods(document, number))

    def _plain(self, documents: list[Document]) -> Iterator[Scene]:
        for number, document in enumerate(documents):
            acts = list(self._first(document, times=1 + number % 3))
            if number % 5 == 1:
                acts.append(Contradict(self._version(document, 1)))
            if number % 9 == 3 and not document.flaw:
                acts += [Await("1"), Tell(self._deleted(document))]
            if number % 9 == 6 and not document.flaw:
                acts += [Await("1"), Tell(self._renamed(document), times=2)]
            if number % 4 == 0:
                acts.append(Tell(self._version(document, 1), self._delay_s(4.0)))
            yield Scene(document, tuple(acts), self._moods(document, number))

    def _first(self, document: Document, *, times: int) -> Iterator[Act]:
        yield Tell(self._version(document, 1), self._delay_s(5.0), times)

    def _late(self, document: Document) -> Iterator[Act]:
        # The newest first, the old ones after it: nothing old may be told as new.
        last = len(document.versions)
        yield Tell(self._version(document, last), self._delay_s(3.0))
        for number in range(1, last):
            yield Tell(self._version(document, number), self._delay_s(2.0), times=2)

    def _grown(self, document: Document) -> Iterator[Act]:
        yield from self._first(document, times=2)
        for number in range(2, len(document.versions) + 1):
            yield Await(str(number - 1))
            yield Tell(self._version(document, number), self._delay_s(1.0))

    def _overtaken(self, document: Document) -> Iterator[Act]:
        yield from self._first(document, times=1)
        for number in range(2, len(document.versions) + 1):
            yield Tell(self._version(document, number), times=1 + number % 2)

    def _version(self, document: Document, number: int) -> SourceEvent:
        content = document.versions[number - 1]
        return SourceEvent(
            event_id=f"evt_{document.file_id}_v{number}",
            type="",
            action="version",
            file_id=document.file_id,
            version=str(number),
            name=document.name,
            project=document.project,
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            media_type=document.media_type,
            url=f"{self.host_url}{path_of(document.file_id, str(number))}",
            occurred_at=self.began + timedelta(minutes=number),
        )

    def _deleted(self, document: Document) -> SourceEvent:
        return SourceEvent(
            event_id=f"evt_{document.file_id}_deleted",
            type="",
            action="deleted",
            file_id=document.file_id,
            occurred_at=self.began + timedelta(minutes=30),
        )

    def _renamed(self, document: Document) -> SourceEvent:
        told = replace(self._deleted(document), action="renamed", name=f"Neu {document.name}")
        return replace(told, event_id=f"evt_{document.file_id}_renamed")

    def _moods(self, document: Document, number: int) -> tuple[tuple[str, tuple[Mood, ...]], ...]:
        moods: dict[int, tuple[Mood, ...]] = {
            2: (NotYet(), NotYet()),
            4: (Busy(),),
            7: (Short(),),
            8: (Broken(), Slow(0.3)),
        }
        found = moods.get(number % 11)
        return ((str(len(document.versions)), found),) if found else ()

    def _delay_s(self, upto_s: float) -> float:
        return self.dice.jitter() * upto_s
