from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.clock import SystemClock
from domain.outcomes import Again, Done
from jobs.download import download
from jobs.notify import notify
from jobs.outbound import ClientCredentials, Fixed, Grant, Outbound, Resolver, refusal, shown
from jobs.tools import (
    AddressRefused,
    Limits,
    Request,
    SignInFailed,
    Stopped,
    Target,
    TimedOut,
    Tools,
    Trouble,
    Whole,
)
from tests.certificates import Authority
from tests.effects import download_job, notify_job, tools_in
from tests.servers import Handler, Peer, Received, answering, serving

LOCAL = Target(private_hosts=("127.0.0.1",))
SHORT = Limits(total_s=5.0, span_s=5.0)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tools_in(tmp_path) as made:
        yield made


@pytest.fixture
def http() -> Iterator[Outbound]:
    with Outbound(clock=SystemClock()) as made:
        yield made


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def resolving(**addresses: str) -> Resolver:
    """A resolver that knows these names, dots written as underscores, and no others."""
    known = {name.replace("_", "."): (address,) for name, address in addresses.items()}

    def resolve(host: str, port: int) -> tuple[str, ...]:
        if host not in known:
            raise OSError("unknown name")
        return known[host]

    return Resolver(resolve)


def got(
    http: Outbound,
    url: str,
    *,
    target: Target = LOCAL,
    limits: Limits = SHORT,
    pulse: Callable[[], bool] = lambda: True,
) -> tuple[object, bytes]:
    body = bytearray()
    with http.open(Request("GET", url), target=target, limits=limits, pulse=pulse) as answer:
        if isinstance(answer, Trouble):
            return answer, b""
        ended = answer.pour(body.extend, limit_bytes=1 << 20)
        return (answer.status if isinstance(ended, Whole) else ended), bytes(body)


PRIVATE = [
    "http://127.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::1]/",
    "http://[fd00::1]/",
    "http://[fe80::1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:a00:1::]/",
    "http://169.254.169.254/",
    "http://100.64.0.1/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://168.63.129.16/",
    "http://localhost./",
    "http://localhost/",
    "ftp://x/",
    "http://user:pw@host/",
    "http://user@host/",
    "//host/",
    "http:///x",
    "http://a b/",
    "http://[::1",
    "http://x:99999/",
]


@pytest.mark.req("E11")
@pytest.mark.parametrize("url", PRIVATE)
def test_e_12_private_destinations_are_refused_on_saving_and_on_sending(
    http: Outbound, url: str
) -> None:
    assert isinstance(refusal(url, Target()), AddressRefused)
    result, _ = got(http, url, target=Target())
    assert isinstance(result, AddressRefused)
    assert "pw" not in repr(result)


@pytest.mark.req("E11")
def test_e_12_a_name_is_as_private_as_the_address_behind_it() -> None:
    resolver = resolving(inside_example="10.0.0.1", outside_example="93.184.216.34")

    def known(host: str, port: int) -> tuple[str, ...]:
        return resolver.addresses(host, port, timeout_s=1)

    assert refusal("https://inside.example/", Target(), resolve=known)
    assert refusal("https://outside.example/", Target(), resolve=known) is None
    assert refusal("https://not-known.example/", Target(), resolve=known) is None
    with Outbound(clock=SystemClock(), resolver=resolver) as http:
        result, _ = got(http, "http://inside.example/", target=Target())
    assert isinstance(result, AddressRefused)


def test_one_private_address_among_several_refuses_the_name() -> None:
    resolve: Callable[[str, int], tuple[str, ...]] = lambda host, port: (  # noqa: E731 a value
        "93.184.216.34",
        "10.0.0.1",
    )
    assert refusal("http://mixed.example/", Target(), resolve=resolve)


@pytest.mark.req("E11")
def test_a_list_opens_single_hosts_and_ports() -> None:
    def is_open(url: str, *hosts: str) -> bool:
        return refusal(url, Target(private_hosts=hosts)) is None

    assert is_open("http://127.0.0.1:9001/", "127.0.0.1:9001")
    assert not is_open("http://127.0.0.1:9002/", "127.0.0.1:9001")
    assert is_open("http://127.0.0.1:9002/", "127.0.0.1")
    assert is_open("http://[::1]:9002/", "[::1]:9002")
    assert not is_open("http://localhost/", "127.0.0.1")
    assert not is_open("http://2130706433/", "2130706433")


def test_a_listed_name_never_leads_to_a_metadata_service() -> None:
    def known(host: str, port: int) -> tuple[str, ...]:
        return ("169.254.169.254",)

    listed = Target(private_hosts=("erp.internal", "169.254.169.254"))
    assert refusal("http://erp.internal/", listed, resolve=known)
    assert refusal("http://169.254.169.254/", listed) is None


@pytest.mark.req("D3")
def test_the_checked_address_is_the_one_that_is_dialled() -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return ("127.0.0.1",) if len(asked) == 1 else ("10.255.255.1",)

    with serving(answering(200, b"ok")) as server:
        url = f"http://files.example:{server.port}/"
        with Outbound(clock=SystemClock(), resolver=Resolver(rebinding)) as http:
            result, body = got(http, url, target=Target(private_hosts=("files.example",)))
        assert server.requests[0].header("host") == f"files.example:{server.port}"
    assert (result, body, asked) == (200, b"ok", ["files.example"])


def test_a_resolver_that_hangs_costs_its_limit_only() -> None:
    release = threading.Event()

    def hanging(host: str, port: int) -> tuple[str, ...]:
        release.wait(30)
        return ()

    resolver = Resolver(hanging, at_once=1)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            resolver.addresses("slow.example", 80, timeout_s=0.1)
    release.set()


@pytest.mark.req("E11")
@pytest.mark.parametrize("kind", ["expired", "self-signed", "wrong name"])
def test_c_18_a_bad_certificate_gets_neither_token_nor_body(
    tools: Tools, authority: Authority, kind: str
) -> None:
    pem = {
        "expired": authority.issue("127.0.0.1", days=-1),
        "self-signed": authority.issue("127.0.0.1", self_signed=True),
        "wrong name": authority.issue("other.example"),
    }[kind]
    target = Target(("127.0.0.1",), ca_file=str(authority.ca_file))
    with serving(answering(200, b"x"), tls=authority.server_side(pem)) as server:
        job = download_job(server.url(), server.host, target=target)
        for outcome in (
            download(job, tools),
            notify(notify_job(server.url(), target=target), tools)[1],
        ):
            assert isinstance(outcome, Again)
            assert outcome.reason.startswith("certificate")
            assert outcome.trouble
        assert server.requests == []


def test_a_good_certificate_is_verified_by_name(tools: Tools, authority: Authority) -> None:
    target = Target(("127.0.0.1",), ca_file=str(authority.ca_file))
    tls = authority.server_side(authority.issue("127.0.0.1"))
    with serving(answering(200, b"x"), tls=tls) as server:
        outcome = notify(notify_job(server.url(), target=target), tools)[1]
        unknown = notify(notify_job(server.url()), tools)[1]
    assert isinstance(outcome, Done)
    assert isinstance(unknown, Again)


@pytest.mark.req("E13")
def test_mutual_tls_shows_our_certificate(tools: Tools, authority: Authority) -> None:
    tls = authority.server_side(authority.issue("127.0.0.1"), asks_client=True)
    ca, own = str(authority.ca_file), str(authority.issue("client.example"))
    with serving(answering(200), tls=tls) as server:
        known = Target(("127.0.0.1",), ca_file=ca, client_cert_file=own)
        stranger = Target(("127.0.0.1",), ca_file=ca)
        missing = Target(("127.0.0.1",), ca_file=ca, client_cert_file="/nowhere.pem")
        outcomes = [
            notify(notify_job(server.url(), target=target), tools)[1]
            for target in (known, stranger, missing)
        ]
        assert len(server.requests) == 1
    assert isinstance(outcomes[0], Done)
    assert not isinstance(outcomes[1], Done)
    assert isinstance(outcomes[2], Again)


@pytest.mark.req("E13")
def test_a_proxy_is_asked_for_the_name_and_literal_addresses_stay_refused(tools: Tools) -> None:
    with serving(answering(200, b"{}")) as proxy:
        target = Target(proxy=proxy.url())
        outcome = notify(notify_job("http://erp.example/hooks", target=target), tools)[1]
        refused = notify(notify_job("http://10.0.0.1/hooks", target=target), tools)[1]
        local = notify(notify_job("http://localhost/hooks", target=target), tools)[1]
        assert [r.target for r in proxy.requests] == ["http://erp.example/hooks"]
    assert isinstance(outcome, Done)
    for each in (refused, local):
        assert isinstance(each, Again)
        assert each.reason.startswith("address not allowed")


@pytest.mark.req("E13")
def test_a_proxy_carries_tls_to_the_named_host(http: Outbound, authority: Authority) -> None:
    tls = authority.server_side(authority.issue("erp.example"))
    with serving(answering(200, b"ok"), tls=tls) as server:

        def tunnel(request: Received, peer: Peer) -> None:
            peer.send(b"HTTP/1.1 200 X\r\n\r\n")
            peer.relay(server.port)

        with serving(tunnel) as proxy:
            given = f"http://user:pw@{proxy.host}"
            target = Target(ca_file=str(authority.ca_file), proxy=given)
            result = got(http, "https://erp.example/hooks", target=target)
        asked = proxy.requests[0]
    assert result == (200, b"ok")
    assert (asked.method, asked.target) == ("CONNECT", "erp.example:443")
    assert asked.header("proxy-authorization") == "Basic dXNlcjpwdw=="
    assert server.requests[0].header("proxy-authorization") == ""
    assert "pw" not in repr(target)


def token_service(life_s: int = 3600) -> Handler:
    count = iter(range(1, 1000))

    def handle(request: Received, peer: Peer) -> None:
        answer = {"access_token": f"t{next(count)}", "expires_in": life_s}
        peer.respond(200, json.dumps(answer).encode())

    return handle


def signing_in(url: str, http: Outbound) -> ClientCredentials:
    grant = Grant(url, "client", "s3cret:+", scope="files", target=LOCAL)
    return ClientCredentials(grant, http=http, clock=SystemClock())


@pytest.mark.req("E13")
def test_c_16_twenty_jobs_with_a_stale_token_renew_it_once(http: Outbound) -> None:
    with serving(token_service()) as server:
        credentials = signing_in(server.url("/token"), http)
        stale = credentials.headers()
        assert stale == (("authorization", "Bearer t1"),)
        with ThreadPoolExecutor(20) as pool:
            renewed = set(pool.map(lambda _: credentials.renewed(stale), range(20)))
        assert renewed == {(("authorization", "Bearer t2"),)}
        assert credentials.headers() == (("authorization", "Bearer t2"),)
        assert len(server.requests) == 2
        request = server.requests[0]
    assert request.body == b"grant_type=client_credentials&scope=files"
    assert request.header("authorization") == "Basic Y2xpZW50OnMzY3JldCUzQSUyQg=="
    assert "s3cret" not in repr((credentials, stale, Fixed(stale)))


@pytest.mark.parametrize(
    "handler", [answering(500), answering(200, b"{}"), answering(200, b"["), answering(302)]
)
def test_a_token_service_that_fails_is_said_so(http: Outbound, handler: Handler) -> None:
    with serving(handler) as server:
        credentials = signing_in(server.url(), http)
        failed = credentials.headers()
        assert credentials.headers() == credentials.renewed(()) == failed
        assert len(server.requests) == 1
    assert isinstance(failed, SignInFailed)
    assert failed.reason.startswith("sign-in needed")


def test_a_pulse_that_says_stop_ends_a_silent_exchange(http: Outbound) -> None:
    beats: list[int] = []

    def pulse() -> bool:
        beats.append(1)
        return len(beats) < 2

    with serving(lambda request, peer: peer.hang()) as server:
        result, _ = got(http, server.url(), pulse=pulse)
    assert (result, len(beats)) == (Stopped(), 2)


def test_a_body_that_stalls_is_cut_after_its_span(http: Outbound) -> None:
    def stalling(request: Received, peer: Peer) -> None:
        peer.send(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf")
        peer.hang()

    with serving(stalling) as server:
        limits = Limits(total_s=None, span_s=0.3)
        result, body = got(http, server.url(), limits=limits)
    assert (result, body) == (TimedOut(sent=True), b"half")


def test_many_threads_share_the_client_without_sharing_budgets(http: Outbound) -> None:
    def handle(request: Received, peer: Peer) -> None:
        if request.target == "/slow":
            peer.hang()
        peer.respond(200, request.target.encode())

    with serving(handle) as server, ThreadPoolExecutor(16) as pool:
        paths = ["/slow" if n % 8 == 0 else f"/{n}" for n in range(64)]
        limits = Limits(total_s=3.0, span_s=3.0)
        results = list(pool.map(lambda p: got(http, server.url(p), limits=limits), paths))
    for path, (result, body) in zip(paths, results, strict=True):
        assert (result, body) == (
            (TimedOut(sent=True), b"") if path == "/slow" else (200, path.encode())
        )


@pytest.mark.parametrize(
    "url, seen",
    [
        ("https://user:pw@host/p?token=1#x", "https://host/p"),
        ("http://[::1]:80/a?b", "http://[::1]/a"),
        ("http://h:81", "http://h:81/"),
        ("http://h:port/", "(no valid address)"),
    ],
)
def test_g_03_addresses_are_shown_without_user_and_query(url: str, seen: str) -> None:
    assert shown(url) == seen


def test_header_names_are_in_lower_case(http: Outbound) -> None:
    with (
        serving(answering(200, b"x", X_A="1")) as server,
        http.open(
            Request("GET", server.url()), target=LOCAL, limits=SHORT, pulse=lambda: True
        ) as answer,
    ):
        assert not isinstance(answer, Trouble)
        assert ("x-a", "1") in answer.headers
