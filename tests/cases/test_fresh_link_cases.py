"""C-07 and B-08 as they are configured: a new link is asked from the source, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.config import Bearer, Config, Download, Invalid, Secret, load
from domain.outcomes import Again, Done
from jobs.download import download, settings_of
from jobs.outbound import Outbound
from jobs.tools import Tools
from tests.downloads import DATA, from_server, stored
from tests.effects import tools_in
from tests.servers import Handler, Peer, Received, Server, serving

TOKEN = Secret("env:TOKEN", "tok-secret")


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


@pytest.fixture
def http() -> Iterator[Outbound]:
    with Outbound(clock=SystemClock()) as made:
        yield made


def configured(server: Server, http: Outbound, **more: object) -> dict[str, object]:
    made = Download(
        hosts=(server.host,),
        auth=Bearer(TOKEN),
        fresh_link=server.url("/links/{file_id}?v={version}"),
        fresh_pointer="/data/link",
    )
    found = settings_of(made, http=http, clock=SystemClock())
    names = ("credentials", "fresh_link", "rewrites")
    return {name: getattr(found, name) for name in names} | more


def source(*, answer: bytes | None = None) -> Handler:
    """Links run out at once; a new one is given for each asking."""

    def handler(request: Received, peer: Peer) -> None:
        if request.target.startswith("/links/"):
            link = "http://" + request.header("host") + "/fresh?sig=2"
            peer.respond(200, answer or json.dumps({"data": {"link": link}}).encode())
        else:
            is_fresh = request.target == "/fresh?sig=2"
            peer.respond(200 if is_fresh else 403, DATA if is_fresh else b"expired")

    return handler


@pytest.mark.req("D2")
def test_c_07_the_source_is_asked_for_a_fresh_link_with_its_credentials(
    tools: Tools, http: Outbound
) -> None:
    with serving(source()) as server:
        job = from_server(server, path="/old?sig=1", **configured(server, http))
        assert stored(tools, download(job, tools)) == DATA
        old, asked, fresh = server.requests
    assert [old.target, fresh.target] == ["/old?sig=1", "/fresh?sig=2"]
    assert asked.target.startswith("/links/")
    assert asked.header("authorization") == "Bearer tok-secret"
    assert "sig=" not in repr(job)


@pytest.mark.req("D2")
@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"data":{"link":7}}', b"[" * 500])
def test_c_07_an_answer_without_a_link_is_waited_out(
    tools: Tools, http: Outbound, answer: bytes
) -> None:
    with serving(source(answer=answer)) as server:
        job = from_server(server, path="/old?sig=1", **configured(server, http))
        assert download(job, tools) == Again("the source gave no fresh link")


@pytest.mark.req("D3")
def test_c_07_a_fresh_link_to_a_host_that_is_not_listed_is_not_followed(
    tools: Tools, http: Outbound
) -> None:
    answer = b'{"data":{"link":"http://127.0.0.9:9/x"}}'
    with serving(source(answer=answer)) as server:
        job = from_server(server, path="/old?sig=1", **configured(server, http))
        assert not isinstance(download(job, tools), Done)


@pytest.mark.req("D3")
@pytest.mark.parametrize(
    "lines, key",
    [
        ('fresh_link = "https://other.example/{file_id}"', "fresh_link"),
        ('fresh_link = "https://{file_id}/link"', "fresh_link"),
        ('fresh_link = "files.example/link"', "fresh_link"),
        ('fresh_pointer = "url"', "fresh_pointer"),
        ('fresh_link = "https://files.example/{file_id}"\nrewrites = true', ""),
    ],
)
def test_a_fresh_link_is_asked_only_where_credentials_may_go(
    tmp_path: Path, lines: str, key: str
) -> None:
    path = tmp_path / "laufzettel.toml"
    path.write_text(
        '[sources.s]\nsecrets = ["env:S"]\n[sources.s.download]\n'
        f'hosts = ["files.example"]\n{lines}\n'
    )
    loaded = load(path, {"S": "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"})
    if not key:
        assert isinstance(loaded, Config)
        assert loaded.sources[0].download.rewrites
    else:
        assert isinstance(loaded, Invalid)
        assert [p.key for p in loaded.problems] == [f"sources.s.download.{key}"]
