"""The source's side of ``send``: serves files, announces them, and looks what becomes of them."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from rich.console import Console
from rich.live import Live
from rich.text import Text

from app.cli import nearby
from app.cli.client import Api, segment
from app.cli.demo.sender import Answer, Sender
from app.cli.demo.serving import Exchange, LoopbackServer
from app.cli.screen import FAILED, refuse
from app.clock import SystemClock
from app.config import Config, Source
from domain import profiles
from domain.addresses import is_loopback
from domain.profiles import SourceEvent

_LOOK_AGAIN_S = 0.15
_FETCH_S = 15.0
_UNPROVEN = 401
_ENDS = frozenset({"processed", "failed", "ignored", "stale", "discarded"})
_BAD_ENDS = frozenset({"failed", "discarded"})


@dataclass(slots=True)
class Course:
    """How far one file is. ``state`` is the API's word for its event, ``why`` what is wrong."""

    name: str
    event_id: str
    answers: list[int] = field(default_factory=list)
    receipt: str = ""
    state: str = ""
    why: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return not self.receipt or self.state in _ENDS

    @property
    def is_well(self) -> bool:
        """Whether it was taken, and ended well if it ended."""
        return bool(self.receipt) and self.state not in _BAD_ENDS


class Desk:
    """Offers files on one server and announces them through one sender."""

    def __init__(self, sender: Sender, host: str) -> None:
        self._sender, self._host = sender, host
        self._offered: dict[str, Path] = {}
        self._wanted: set[str] = set()
        self._fetched = threading.Condition()

    def deliver(self, path: Path, *, version: str, times: int) -> Course:
        """Announce a file, so many times; what was answered."""
        place = f"/{quote(path.name)}"
        event = _event(path, f"http://{self._host}{place}", version=version)
        course = Course(path.name, event.event_id)
        self._offered[place] = path
        for _ in range(times):
            self._note(course, self._sender.once(event), place)
        return course

    def respond(self, exchange: Exchange) -> None:
        """Serve one of the files."""
        place = urlsplit(exchange.target).path
        path = self._offered.get(place)
        if path is None:
            exchange.answer(404)
            return
        exchange.answer_file(path, {"content-type": _media_type(path)})
        with self._fetched:
            self._wanted.discard(place)
            self._fetched.notify_all()

    def await_fetched(self) -> None:
        """Wait until each file that was new has been fetched, for a while."""
        with self._fetched:
            self._fetched.wait_for(lambda: not self._wanted, _FETCH_S)

    def _note(self, course: Course, answer: Answer, place: str) -> None:
        course.answers.append(answer.status)
        course.receipt = course.receipt or answer.receipt_id
        if answer.status == 202:
            self._wanted.add(place)
        if not answer.receipt_id:
            course.why = _why(answer)


def _why(answer: Answer) -> str:
    if not answer.status:
        return answer.reason
    told = answer.body.get("detail") or answer.body.get("title") or "no reason given"
    # A sender is never told why its proof fails; whoever runs the installation is.
    look = "; laufzettel listen says why" if answer.status == _UNPROVEN else ""
    return f"{told}{look}"


def source_or_exit(config: Config, name: str, *, profile: str) -> Source:
    """The source, signing in another provider's way if one is named."""
    source = config.source(name)
    if source is None:
        known = ", ".join(each.name for each in config.sources) or "none is configured"
        refuse(f"there is no source {name}", f"name one of: {known}")
    if not profile:
        return source
    settings = replace(source.ready.settings, profile=profile, hmac=None)
    ready = profiles.prepare(settings)
    if not isinstance(ready, profiles.Source):
        refuse("; ".join(f"{e.key} {e.reason}" for e in ready), ready[0].mend)
    return replace(source, ready=ready)


def address_or_exit(config: Config) -> str:
    """Where the installation listens: the process beside the store, else as it is configured."""
    place = config.installation
    if place.database_path is None:
        return place.base_url.rstrip("/")
    near = nearby.find(place.database_path)
    if near is None:
        refuse(
            "it does not run here", "start it: laufzettel run, or name it by --url", status=FAILED
        )
    return near.url


@contextmanager
def announcing(source: Source, url: str, *, public_url: str) -> Iterator[Desk]:
    """A desk whose files can be fetched while it is open."""
    port = _local_port(source.download.hosts)
    if port is None:
        refuse(
            f"no host of {source.name} is on this machine",
            'write a loopback entry with a port into its hosts, such as "127.0.0.1:9001"',
        )
    hook = f"/hooks/{source.name}"
    signed_url = f"{public_url.rstrip('/')}{hook}" if public_url else ""
    # The first of several secrets signs; acceptance takes them all.
    ready = replace(source.ready, keys=source.ready.keys[:1])
    sender = Sender(ready, f"{url}{hook}", clock=SystemClock(), signed_url=signed_url)
    desk = Desk(sender, f"127.0.0.1:{port}")
    server = _server(desk, port)
    try:
        yield desk
    finally:
        sender.close()
        server.stop()


def _server(desk: Desk, port: int) -> LoopbackServer:
    try:
        return LoopbackServer(desk.respond, port=port).start()
    except OSError as error:
        refuse(f"port {port} cannot be had ({error.strerror})", "end who has it")


def _local_port(hosts: tuple[str, ...]) -> int | None:
    parts = (urlsplit(f"//{host}") for host in hosts)
    return next((p.port or 80 for p in parts if is_loopback(p.hostname or "")), None)


def _event(path: Path, url: str, *, version: str) -> SourceEvent:
    try:
        size, digest = path.stat().st_size, _digest(path)
        changed = path.stat().st_mtime
    except OSError as error:
        refuse(f"{path} cannot be read ({error.strerror})", "name a file")
    told = version or digest
    identity = hashlib.sha256(f"{path.name}\n{told}".encode()).hexdigest()[:24]
    return SourceEvent(
        event_id=f"evt_{identity}",
        type="",
        action="version",
        file_id=path.name,
        version=told,
        name=path.name,
        size_bytes=size,
        sha256=digest,
        media_type=_media_type(path),
        url=url,
        # A repeat has to be the same bytes, so its time is the file's and not the moment's.
        occurred_at=_instant(changed),
    )


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _media_type(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def follow(api: Api, courses: list[Course], *, is_shown: bool) -> None:
    """Look until each has come to its end; Ctrl-C stops looking and nothing else."""
    clock, never = SystemClock(), threading.Event()
    console = Console(quiet=not is_shown, stderr=True)
    with Live(console=console, transient=True, auto_refresh=False) as live:
        while not all(course.is_over for course in courses):
            for course in courses:
                _look(api, course)
            live.update(Text("\n".join(_line(course) for course in courses)), refresh=True)
            clock.wait(never, _LOOK_AGAIN_S)


def _look(api: Api, course: Course) -> None:
    if course.is_over:
        return
    receipt = api.get(f"/receipts/{segment(course.receipt)}")
    course.state = str(receipt["state"])
    if course.state in _BAD_ENDS:
        found = api.get("/source-events", event_id=course.event_id)
        course.why = next((str(item["error"]) for item in found["items"]), "")


def report(courses: list[Course], *, as_json: bool) -> None:
    """Say how each ended."""
    for course in courses:
        print(json.dumps(asdict(course), ensure_ascii=False) if as_json else _line(course))


def _line(course: Course) -> str:
    answers = ", ".join(_ANSWERS.get(status, str(status)) for status in course.answers)
    parts = [f"{course.name}: {answers}", course.state, course.why]
    return " → ".join(part for part in parts if part)


_ANSWERS = {202: "accepted", 200: "duplicate", 409: "conflict", 401: "refused", 0: "not sent"}
