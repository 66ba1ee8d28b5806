"""Retention, and blobs that nothing refers to: forgotten in small steps that hold up nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from app.artifacts import CHECKPOINTS, ERASURES, Blob, Blobs, BlobsError
from app.clock import Clock
from app.config import Config, Retention
from app.ledger import Ledger
from app.ledger.requests import Order, Recorded
from app.store import checkpoints, condemned, expiry, locks, projections
from app.store.engine import Connection, Store
from app.store.errors import StoreUnavailableError
from app.store.expiry import Kept, KeptFile
from app.store.reading import erasures
from app.telemetry import log
from domain.commands import Cause, ExpireContent, Refusal
from domain.decider import decide
from domain.recipes import Recipe
from domain.retention import Class, RetentionPolicy, due_before_ms, is_due

AT_ONCE = 200
_DAY_MS = 86_400_000
_LOOK_S = 60.0
_CAUSE = Cause("system", "sweep")


@dataclass(slots=True)
class Swept:
    """What a sweep forgot, or would forget."""

    payloads: int = 0
    deliveries: int = 0
    attempts: int = 0
    files: int = 0
    condemned: int = 0
    blobs: int = 0

    def count(self, what: str, number: int) -> None:
        """Add to one of the counts."""
        setattr(self, what, getattr(self, what) + number)


class Policies:
    """How long things are kept: by the recipe where it differs, else by the source."""

    def __init__(self, config: Config, recipes: Mapping[str, Recipe]) -> None:
        self._rest = _policy(config.retention)
        self._sources = {
            name: _policy(source.retention)
            for source in config.sources
            for name in (source.name, *source.was)
        }
        named = {
            name: _policy(found.retention)
            for found in config.recipes
            for name in (found.recipe.name, *found.was)
            if found.retention != config.retention
        }
        self._recipes = {d: named[r.name] for d, r in recipes.items() if r.name in named}

    def of(self, source: str, recipe: str) -> RetentionPolicy:
        """The policy for what belongs to this source and this pinned recipe."""
        return self._recipes.get(recipe) or self._sources.get(source, self._rest)

    def latest_ms(self, kind: Class, now_ms: int) -> int | None:
        """What is newer than this is due under no policy; ``None`` if nothing ever is."""
        all_of_them = (self._rest, *self._sources.values(), *self._recipes.values())
        moments = [due_before_ms(kind, now_ms=now_ms, policy=policy) for policy in all_of_them]
        return max((m for m in moments if m is not None), default=None)


def _policy(retention: Retention) -> RetentionPolicy:
    return RetentionPolicy(
        payloads_s=retention.payloads_s,
        deliveries_s=retention.deliveries_s,
        messages_s=retention.messages_s,
        deleted_s=retention.deleted_s,
        artifacts_s=retention.artifacts_s,
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """What a sweep works with."""

    config: Config
    store: Store
    ledger: Ledger
    blobs: Blobs
    clock: Clock
    digests: Digests

    @property
    def now_ms(self) -> int:
        """The present in milliseconds since 1970."""
        return int(self.clock.now().timestamp() * 1000)


class Digests:
    """The lock of a digest: held to store a blob that is condemned, and to remove one."""

    def __init__(self, ledger: Ledger, store: Store) -> None:
        self._ledger = ledger
        self._store = store
        self._here = threading.Lock()

    @contextmanager
    def alone(self, sha256: str) -> Iterator[None]:
        """While inside, nobody else stores or removes the blob of this digest."""
        with self._here, locks.alone(self._store, f"blob:{sha256}"):
            yield

    @contextmanager
    def spared(self, sha256: str) -> Iterator[None]:
        """What is stored while inside is not removed because of a mark from before.

        A mark that comes after the look waits for the work that is under way, this one's too.
        """
        with self._store.read() as connection:
            is_condemned = bool(condemned.marked(connection, [sha256]))
        if not is_condemned:
            yield
            return
        with self.alone(sha256):
            self._ledger.operate(lambda connection, _: condemned.spare(connection, sha256))
            yield


class Sweep:
    """One sweep; a dry one only counts."""

    def __init__(self, parts: Parts, *, is_dry: bool = False) -> None:
        self._parts = parts
        self._is_dry = is_dry
        self._now_ms = parts.now_ms
        self._policies = Policies(parts.config, parts.ledger.book.recipes)
        self._seen: set[str] = set()
        self.swept = Swept()

    def run(self, stopping: threading.Event | None = None) -> Swept:
        """Forget all that is due, a step at a time; stops between two steps if told so."""
        for step in self._steps():
            if stopping is not None and stopping.is_set():
                break
            step()
        return self.swept

    def _steps(self) -> Iterator[Callable[[], None]]:
        yield self._note_erasures
        yield self._note_head
        yield from self._history()
        yield from self._content()
        yield from self._condemn()
        yield from self._remove()

    # -- history ----------------------------------------------------------------------------------

    def _history(self) -> Iterator[Callable[[], None]]:
        classes: tuple[tuple[str, Class, _Read, _Forget], ...] = (
            ("payloads", "payloads", expiry.payloads, expiry.blank_payloads),
            ("deliveries", "deliveries", expiry.deliveries, expiry.remove_deliveries),
            ("attempts", "deliveries", expiry.attempts, expiry.remove_attempts),
        )
        for name, kind, read, forget in classes:
            before_ms = self._policies.latest_ms(kind, self._now_ms)
            if before_ms is not None:
                yield from self._walk(name, kind, (read, forget), before_ms)

    def _walk(
        self, name: str, kind: Class, how: tuple[_Read, _Forget], before_ms: int
    ) -> Iterator[Callable[[], None]]:
        """By number; what lies before the first that is kept is not looked at again."""
        read, forget = how
        with self._parts.store.read() as connection:
            after = expiry.place(connection, name)
        is_whole = True
        while True:
            with self._parts.store.read() as connection:
                found = read(connection, after, before_ms=before_ms, limit=AT_ONCE)
            if not found:
                return
            due = [each for each in found if self._is_due(kind, each)]
            is_whole = is_whole and len(due) == len(found)
            after = found[-1].id
            self.swept.count(name, len(due))
            if not self._is_dry:
                yield self._forgetting(forget, due, (name, after) if is_whole else None)

    def _forgetting(
        self, forget: _Forget, due: Sequence[Kept], place: tuple[str, int] | None
    ) -> Callable[[], None]:
        def act(connection: Connection, now_ms: int) -> None:
            if due:
                forget(connection, due)
            if place is not None:
                expiry.keep_place(connection, *place, now_ms)

        return lambda: self._parts.ledger.operate(act)

    def _is_due(self, kind: Class, kept: Kept) -> bool:
        policy = self._policies.of(kept.source, kept.recipe)
        return is_due(kind, since_ms=kept.since_ms, now_ms=self._now_ms, policy=policy)

    # -- artifacts and the bytes of messages ------------------------------------------------------

    def _content(self) -> Iterator[Callable[[], None]]:
        kinds: tuple[tuple[Class, _ReadFiles], ...] = (
            ("messages", expiry.told),
            ("deleted", expiry.deleted),
            ("artifacts", expiry.stored),
        )
        for kind, read in kinds:
            before_ms = self._policies.latest_ms(kind, self._now_ms)
            after = ""
            while before_ms is not None:
                with self._parts.store.read() as connection:
                    found = read(connection, after, before_ms=before_ms, limit=AT_ONCE)
                if not found:
                    break
                after = found[-1].stream
                yield from (self._expiring(file) for file in found)

    def _expiring(self, file: KeptFile) -> Callable[[], None]:
        policy = self._policies.of(file.source, file.recipe)
        command = ExpireContent(
            stream=file.stream,
            cause=_CAUSE,
            deleted_before_ms=due_before_ms("deleted", now_ms=self._now_ms, policy=policy),
            artifacts_before_ms=due_before_ms("artifacts", now_ms=self._now_ms, policy=policy),
            messages_before_ms=due_before_ms("messages", now_ms=self._now_ms, policy=policy),
        )
        return lambda: self._expire(command)

    def _expire(self, command: ExpireContent) -> None:
        """Ask the Ledger only for what would lead to something: most files are not due."""
        with self._parts.store.read() as connection:
            file = projections.load(connection, [command.stream])[command.stream]
        context = self._parts.ledger.book.context(
            now_ms=self._now_ms, salt=b"", jitter=0.0, in_flight=frozenset()
        )
        if isinstance(decide(file, command, context), Refusal):
            return
        if not self._is_dry:
            answer = self._parts.ledger.submit(Order(command)).result()[0]
            self.swept.files += isinstance(answer, Recorded)
        elif command.stream not in self._seen:
            self._seen.add(command.stream)
            self.swept.files += 1

    def _note_erasures(self) -> None:
        """Erasures that no note was left of, as the store of blobs did not answer."""
        store, ledger = self._parts.store, self._parts.ledger
        with store.read() as connection:
            after = expiry.place(connection, "erasures")
        while not self._is_dry:
            with store.read() as connection:
                found = erasures.after(connection, after, limit=AT_ONCE)
            if not found:
                return
            for erasure in found:
                name, data = erasures.note(erasure.stream, erasure.recorded.event.at_ms)
                self._parts.blobs.notes.put(ERASURES, name, data)
            after = place = found[-1].position
            ledger.operate(lambda c, now: expiry.keep_place(c, "erasures", place, now))  # noqa: B023

    def _note_head(self) -> None:
        """Leave the signed end of the log where whoever changes the database does not reach."""
        with self._parts.store.read() as connection:
            stands = checkpoints.standing(connection)
        if stands is not None and not self._is_dry:
            self._parts.blobs.notes.put(CHECKPOINTS, *checkpoints.note(stands, self._now_ms))

    # -- blobs ------------------------------------------------------------------------------------

    def _condemn(self) -> Iterator[Callable[[], None]]:
        """Mark what nothing refers to; it goes a day later, if it is still so."""
        blobs = self._parts.blobs.list()
        while some := list(islice(blobs, AT_ONCE)):
            yield self._condemning(some)

    def _condemning(self, some: list[Blob]) -> Callable[[], None]:
        def step() -> None:
            with self._parts.store.read() as connection:
                loose = condemned.unreferenced(connection, (blob.sha256 for blob in some))
                loose -= condemned.marked(connection, loose)
            self.swept.condemned += len(loose)
            if loose and not self._is_dry:
                self._parts.ledger.operate(lambda c, now_ms: _mark(c, loose, now_ms))

        return step

    def _remove(self) -> Iterator[Callable[[], None]]:
        after = ""
        while True:
            with self._parts.store.read() as connection:
                marks = condemned.due(connection, self._now_ms, after=after, limit=AT_ONCE)
            if not marks:
                return
            after = marks[-1].sha256
            yield from (self._removing(mark.sha256) for mark in marks)

    def _removing(self, sha256: str) -> Callable[[], None]:
        def step() -> None:
            if self._is_dry or remove_if_due(self._parts, sha256):
                self.swept.blobs += 1

        return step


def remove_if_due(parts: Parts, sha256: str) -> bool:
    """Remove a condemned blob if its date has come and nobody wants it; whether that was so."""
    with parts.digests.alone(sha256):
        if not parts.ledger.operate(lambda c, now_ms: condemned.is_forfeit(c, sha256, now_ms)):
            return False
        parts.blobs.delete(sha256)
        # Last: one who stores the same bytes and sees no mark must find the blob already gone.
        parts.ledger.operate(lambda c, _: condemned.spare(c, sha256))
        return True


_Read = Callable[..., list[Kept]]
_ReadFiles = Callable[..., list[KeptFile]]
_Forget = Callable[[Connection, Sequence[Kept]], None]


def _mark(connection: Connection, digests: set[str], now_ms: int) -> None:
    # One that was recorded meanwhile is found out when its date has come.
    condemned.mark(connection, digests, since_ms=now_ms, due_ms=now_ms + _DAY_MS)


class Sweeper:
    """Sweeps once a day; of several processes one does it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin to look whether a sweep is due."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a sweep under way ends with its present step."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._parts.clock.wait(self._stopping, _LOOK_S):
            try:
                self._round()
            except (StoreUnavailableError, BlobsError, OSError) as error:
                log.warning("sweep.interrupted", reason=type(error).__name__)

    def _round(self) -> None:
        # What was erased does not wait for the next day.
        for mark in self._due():
            remove_if_due(self._parts, mark)
        if self._parts.ledger.operate(lambda c, now_ms: expiry.take_turn(c, now_ms, _DAY_MS)):
            swept = Sweep(self._parts).run(self._stopping)
            log.info("sweep.finished", files=swept.files, blobs=swept.blobs)

    def _due(self) -> list[str]:
        with self._parts.store.read() as connection:
            found = condemned.due(connection, self._parts.now_ms, after="", limit=AT_ONCE)
        return [mark.sha256 for mark in found]
