"""The one way in: every command that reads or orders is a client of the API.

Over HTTP with a token (``--url``); over HTTP to the process on this machine that owns the store;
or, where none runs, to the same application inside this process, over the opened store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

from app.cli import nearby
from app.cli.nearby import Nearby
from app.cli.screen import DEFAULT_CONFIG, FAILED, WRONG, complain, config_or_exit, refuse

if TYPE_CHECKING:  # --help needs none of it
    import ssl

    import httpx

    from app.config import Config

API = "/api/v1"
NOT_FOUND = 404
MOST_A_PAGE = 200
_TIMEOUT_S = 30.0
_START_S = 5.0
_LOOK_AGAIN_S = 0.1
_TOKEN = "LAUFZETTEL_TOKEN"  # noqa: S105 - the name of the variable
# Refusals of what was asked, and refusals of how it was asked.
_WRONG_USAGE = frozenset({400, 401, 405, 413, 422})
_A_TIME = "write a time like 2026-05-04T12:00:00Z"
# The API names the parameter that it cannot take first.
_EXAMPLES = {
    "at:": f"{_A_TIME}, or a position of the log like 42",
    "after:": "write a position of the log, like 42",
    **dict.fromkeys(("since:", "until:"), _A_TIME),
    "the cursor": "take it whole, from `next` of the JSON of the page before",
}
_MENDS = {
    401: f"set {_TOKEN} to a token that is valid; make one with: laufzettel tokens create",
    403: "ask with a token of a role that may, see: laufzettel tokens list",
    404: "look for it with: laufzettel files",
    500: "what broke stands in the log that `laufzettel run` writes, under api.request.broken",
    503: "try again in some seconds",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """How an installation is reached, and in whose name."""

    config: Path = DEFAULT_CONFIG
    url: str = ""
    operator: str = ""
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What the API answered."""

    status: int
    document: Any

    @property
    def is_good(self) -> bool:
        """Whether what was asked for was done."""
        return 200 <= self.status < 300

    @property
    def words(self) -> str:
        """Why not, in the API's words."""
        told = self.document if isinstance(self.document, dict) else {}
        detail = str(told.get("detail") or "")
        return detail or str(told.get("title") or f"the API answered {self.status}")


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the API."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


class Api:
    """The API, however it is reached."""

    def __init__(self, send: Callable[[Call], Reply]) -> None:
        self._send = send

    def ask(self, call: Call) -> Reply:
        """The answer as it is, for those to whom a refusal is an answer too."""
        return self._send(call)

    def get(self, path: str, /, **query: str | int | None) -> Any:
        """The document at this path; a refusal ends the command in words."""
        told = {key: str(value) for key, value in query.items() if value not in {None, ""}}
        return document_of(self._send(Call("GET", path, told)))

    def page(
        self, path: str, /, *, limit: int, by: str = "cursor", **query: str | int | None
    ) -> dict[str, Any]:
        """Up to ``limit`` rows of a list as one document of the API's form.

        ``by`` is the parameter that takes ``next``: a log has one also behind its last row.
        """
        place = query.pop(by, "")
        rows: list[Any] = []
        while True:
            size = min(limit - len(rows), MOST_A_PAGE)
            found = self.get(path, limit=size, **{by: place}, **query)
            rows += found["items"]
            place = found.get("next")
            is_end = by != "cursor" and len(found["items"]) < size
            if place is None or is_end or len(rows) >= limit:
                return {**found, "items": rows}

    def post(self, path: str, body: Mapping[str, Any] | None = None, /) -> Any:
        """Order something; a refusal ends the command in words."""
        return document_of(self._send(Call("POST", path, body=dict(body or {}))))


def segment(text: str) -> str:
    """A value as one piece of a path."""
    return quote(text, safe="")


def document_of(reply: Reply) -> Any:
    """What was asked for; a refusal ends the command in words."""
    if not reply.is_good:
        named = (mend for word, mend in _EXAMPLES.items() if reply.words.startswith(word))
        mend = next(named, _MENDS.get(reply.status, "see: laufzettel COMMAND --help"))
        refuse(reply.words, mend, status=WRONG if reply.status in _WRONG_USAGE else FAILED)
    return reply.document


@contextmanager
def connected(reach: Reach) -> Iterator[Api]:
    """The API of the installation that is meant; ends the command where there is none."""
    if reach.url:
        if reach.operator:
            refuse("--operator has no meaning with --url", "the token says who you are: leave it")
        with _remote(reach.url) as api:
            yield api
        return
    config = config_or_exit(reach.config)
    headers = {"laufzettel-operator": quote(reach.operator or _user())}
    with _local(config, headers, writes=reach.writes) as api:
        yield api


@contextmanager
def _remote(url: str) -> Iterator[Api]:
    from app.config import process_environment

    if not url.startswith(("http://", "https://")):
        refuse("--url is no http or https address", "write it like https://files.example.org")
    token = process_environment().get(_TOKEN, "")
    if not token:
        refuse(f"{_TOKEN} is not set", "make a token there with: laufzettel tokens create")
    with _over_http(url.rstrip("/"), {"authorization": f"Bearer {token}"}) as send:
        yield Api(_spoken(send, url))


@contextmanager
def _local(config: Config, headers: dict[str, str], *, writes: bool) -> Iterator[Api]:
    """The process that owns the store if one answers, else the store itself."""
    store = config.installation.database_path
    # What composes an application is heavy to import: whoever has the store is asked first.
    if store is not None and (near := _answering(store)) is not None:
        with _process(near, headers) as api:
            yield api
        return
    from app.compose.desk import Owned, open_desk

    desk = open_desk(config, writes=writes)
    if isinstance(desk, Owned):
        if (near := _awaited(store)) is None:
            mend = "name it with --url and a token in LAUFZETTEL_TOKEN, or stop it"
            refuse("another process has the store and left no way in", mend)
        with _process(near, headers) as api:
            yield api
    elif isinstance(desk, tuple):
        complain(desk)
        raise typer.Exit(WRONG)
    else:
        try:
            with _inside(desk.web, {"authorization": f"Bearer {desk.token}"} | headers) as send:
                yield Api(send)
        finally:
            desk.close()


def _answering(store: Path) -> Nearby | None:
    """The process that left its address beside the store, if it still takes connections."""
    import socket
    from urllib.parse import urlsplit

    near = nearby.find(store)
    if near is None:
        return None
    place = urlsplit(near.url)
    try:
        socket.create_connection((place.hostname or "", place.port or 0), timeout=2).close()
    except OSError:
        return None
    return near


def _awaited(store: Path | None) -> Nearby | None:
    """The process that has the store: one that starts just now leaves its address in a moment."""
    import threading

    from app.clock import SystemClock

    clock, never = SystemClock(), threading.Event()
    ends = clock.monotonic() + _START_S
    while store is not None and clock.monotonic() < ends:
        if (near := _answering(store)) is not None:
            return near
        clock.wait(never, _LOOK_AGAIN_S)
    return None


@contextmanager
def _process(near: Nearby, headers: dict[str, str]) -> Iterator[Api]:
    told = headers | {"authorization": f"Bearer {near.token}"}
    with _over_http(near.url, told, trust=_trust(near.certificate)) as send:
        yield Api(_spoken(send, near.url))


@contextmanager
def _over_http(
    url: str, headers: Mapping[str, str], *, trust: ssl.SSLContext | None = None
) -> Iterator[Callable[[Call], Reply]]:
    import httpx

    # Nothing on this machine is asked through a proxy.
    is_near = trust is not None or url.startswith("http://127.")
    client = httpx.Client(
        base_url=url,
        headers=dict(headers),
        timeout=_TIMEOUT_S,
        verify=trust or True,
        trust_env=not is_near,
    )
    with client:
        yield lambda call: _reply(client.send(_request(client, call)))


@contextmanager
def _inside(app: Any, headers: Mapping[str, str]) -> Iterator[Callable[[Call], Reply]]:
    import asyncio

    import httpx

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    base = "http://laufzettel.invalid"
    client = httpx.AsyncClient(transport=transport, base_url=base, headers=dict(headers))
    with asyncio.Runner() as runner:
        yield lambda call: _reply(runner.run(client.send(_request(client, call))))


def _request(client: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
    return client.build_request(
        call.method, API + call.path, params=dict(call.query), json=call.body
    )


def _reply(response: httpx.Response) -> Reply:
    try:
        document = json.loads(response.content) if response.content else None
    except ValueError:
        document = None
        if response.is_success:
            return Reply(502, {"title": "what answers there is no Laufzettel"})
    return Reply(response.status_code, document)


def _spoken(send: Callable[[Call], Reply], url: str) -> Callable[[Call], Reply]:
    """The same, with what breaks on the way told in words."""
    import httpx

    def spoken(call: Call) -> Reply:
        try:
            return send(call)
        except httpx.TimeoutException:
            refuse(f"{url} did not answer in time", "look whether it runs", status=FAILED)
        except httpx.HTTPError as error:
            why = f"{url} cannot be reached ({type(error).__name__})"
            refuse(why, "look whether it runs, and at the address", status=FAILED)

    return spoken


def _trust(certificate: str) -> ssl.SSLContext | None:
    """Trust in this one certificate, whatever name it is for: it is the process's own."""
    if not certificate:
        return None
    import ssl

    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _user() -> str:
    """The name of the user of this machine."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
