"""The play: every scene against a real installation, which is killed in the middle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from app.cli.demo.installation import Installation
from app.cli.demo.oracle import Heard, expected
from app.cli.demo.receiver import Arrival, Behaviour, Receiver
from app.cli.demo.script import Act, Await, Contradict, Scene, Tell
from app.cli.demo.sender import Sender
from app.clock import Clock
from domain.profiles import SourceEvent

_SIDE_BY_SIDE = 24
_PATIENCE_S = 60.0
_LOOK_AGAIN_S = 0.05
_QUIET_S = 1.5
_KILL_AT, _DROP_AT, _FAIL_AT = 0.35, 0.15, 0.6  # shares of the messages that must come
_FINISHED = frozenset({"file.version.completed", "file.version.failed"})


class Board:
    """What the receiver has heard so far; scenes wait on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard: dict[str, set[Heard]] = {}
        self._changed = threading.Condition()
        self._last_s = clock.monotonic()
        self.received = 0
        self.closed = threading.Event()

    def close(self) -> None:
        """Let go of whoever waits: there will be no more."""
        self.closed.set()
        with self._changed:
            self._changed.notify_all()

    def arrived(self, arrival: Arrival) -> None:
        """Note what the receiver judged."""
        with self._changed:
            self._last_s = self._clock.monotonic()
            if arrival.verdict in {"new", "repeat", "old"}:
                self.received += arrival.verdict == "new"
                self._heard.setdefault(arrival.file_id, set()).add(heard(arrival))
            self._changed.notify_all()

    def has_heard(self, file_id: str, wanted: frozenset[Heard]) -> bool:
        """Whether all of these came."""
        with self._changed:
            return wanted <= self._heard.get(file_id, set())

    def await_version(self, file_id: str, version: str) -> bool:
        """Wait until the version was told of; whether it was, in time."""
        wanted = {(kind, version) for kind in _FINISHED}
        with self._changed:
            self._changed.wait_for(
                lambda: wanted & self._heard.get(file_id, set()) or self.closed.is_set(),
                _PATIENCE_S,
            )
            return bool(wanted & self._heard.get(file_id, set()))

    def quiet_s(self) -> float:
        """For how long nothing came."""
        with self._changed:
            return self._clock.monotonic() - self._last_s


def heard(arrival: Arrival) -> Heard:
    """What a message is about, as the oracle says it."""
    return (arrival.type, arrival.version if arrival.type in _FINISHED else "")


@dataclass(frozen=True, slots=True)
class Stage:
    """What the play needs; ``forger`` signs with a secret of its own."""

    installation: Installation
    receiver: Receiver
    board: Board
    sender: Sender
    forger: Sender
    clock: Clock


@dataclass(slots=True)
class Progress:
    """How far it is; read by whoever shows it."""

    deliveries: int = 0
    all_deliveries: int = 0
    messages: int = 0
    all_messages: int = 0
    news: Callable[[str], None] = lambda _: None


class Play:
    """Plays the scenes side by side, and the faults in between."""

    def __init__(self, stage: Stage, scenes: tuple[Scene, ...], progress: Progress) -> None:
        self._stage, self._scenes, self._progress = stage, scenes, progress
        self._lock = threading.Lock()
        self._must = {s.document.file_id: expected(s).must for s in scenes}
        progress.all_deliveries = sum(_deliveries(act) for s in scenes for act in s.acts)
        progress.all_messages = sum(len(must) for must in self._must.values())

    def run(self) -> bool:
        """Play to the end; whether everything that must come came in time."""
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "platform") as pool:
            played = [pool.submit(self._scene, scene) for scene in self._scenes]
            self._forge()
            self._faults()
            is_whole = all(future.result() for future in played)
        is_whole = self._await(self._all_came) and is_whole
        self._await(lambda: self._stage.board.quiet_s() > _QUIET_S)
        return is_whole

    def _scene(self, scene: Scene) -> bool:
        return all(self._act(scene.document.file_id, act) for act in scene.acts)

    def _act(self, file_id: str, act: Act) -> bool:
        match act:
            case Tell(event=event, after_s=after_s, times=times):
                self._stage.clock.wait(self._stage.board.closed, after_s)
                return all(self._told(event) in {200, 202} for _ in range(times))
            case Contradict(event=event):
                other = replace(event, name=f"{event.name} (2)", size_bytes=1)
                return self._told(other) == 409
            case Await(version=version):
                return self._stage.board.await_version(file_id, version)

    def _told(self, event: SourceEvent) -> int:
        status = self._stage.sender.until_answered(event).status
        with self._lock:
            self._progress.deliveries += 1
        return status

    def _forge(self) -> None:
        for scene in self._scenes[:2]:
            tell = next(act for act in scene.acts if isinstance(act, Tell))
            status = self._stage.forger.until_answered(tell.event).status
            self._progress.news(f"a forged delivery was answered with {status}")

    def _faults(self) -> None:
        stage, news = self._stage, self._progress.news
        self._await_share(_DROP_AT)
        stage.receiver.misbehave(Behaviour(drop_answer=True, times=2))
        news("the ERP takes two messages and does not answer")
        self._await_share(_KILL_AT)
        stage.installation.kill()
        began_s = stage.clock.monotonic()
        news("the only process was killed with SIGKILL")
        if not stage.installation.start():
            news("it did not start again")
            return
        news(f"it runs again after {stage.clock.monotonic() - began_s:.1f} s")
        self._await_share(_FAIL_AT)
        stage.receiver.misbehave(Behaviour(fail=503, times=3))
        news("the ERP answers three messages with 503")

    def _await_share(self, share: float) -> None:
        wanted = int(self._progress.all_messages * share)
        self._await(lambda: self._came() >= wanted)

    def _await(self, is_so: Callable[[], bool]) -> bool:
        ends = self._stage.clock.monotonic() + _PATIENCE_S
        while not is_so():
            is_late = self._stage.clock.monotonic() > ends
            if is_late or self._stage.clock.wait(self._stage.board.closed, _LOOK_AGAIN_S):
                return False
        return True

    def _came(self) -> int:
        self._progress.messages = self._stage.board.received
        return self._progress.messages

    def _all_came(self) -> bool:
        self._came()
        return all(self._stage.board.has_heard(name, must) for name, must in self._must.items())


def _deliveries(act: Act) -> int:
    return act.times if isinstance(act, Tell) else isinstance(act, Contradict)
