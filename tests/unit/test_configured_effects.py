from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from app.clock import SystemClock
from app.config import Basic, Bearer, Destination, Download, HeaderAuth, OAuth2
from app.config import Secret as Configured
from domain.signatures import InvalidSecret
from jobs import download, notify
from jobs.outbound import ClientCredentials, Fixed, Outbound, credentials_of
from jobs.tools import Target

KEY = Configured("env:KEY", "whsec_" + base64.b64encode(b"k" * 32).decode())


@pytest.fixture
def http() -> Iterator[Outbound]:
    with Outbound(clock=SystemClock()) as made:
        yield made


@pytest.mark.req("E13")
def test_auth_of_the_configuration_becomes_headers(http: Outbound) -> None:
    secret = Configured("env:TOKEN", "pässword")

    def of(auth: Bearer | Basic | HeaderAuth | OAuth2 | None) -> object:
        return credentials_of(auth, http=http, clock=SystemClock(), target=Target())

    assert of(None) == Fixed()
    assert of(Bearer(secret)) == Fixed((("authorization", "Bearer pässword"),))
    basic = base64.b64encode("u:pässword".encode()).decode()
    assert of(Basic("u", secret)) == Fixed((("authorization", f"Basic {basic}"),))
    assert of(HeaderAuth("X-Key", secret)) == Fixed((("x-key", "pässword"),))
    assert isinstance(of(OAuth2("https://t.example/", "id", secret)), ClientCredentials)


@pytest.mark.req("E11")
def test_private_opens_the_destinations_own_host_and_no_other(http: Outbound) -> None:
    url = "http://10.1.2.3:9002/hooks"
    asked = "http://10.1.2.3/messages/{message_id}"
    open_ = Destination("erp", url, secrets=(KEY,), private=True, ask=asked)
    closed = Destination("erp", url, secrets=(KEY,))
    made = notify.settings_of(open_, http=http, clock=SystemClock())
    assert isinstance(made, notify.NotifySettings)
    assert made.target.private_hosts == ("10.1.2.3:9002", "10.1.2.3:80")
    assert notify.target_of(closed).private_hosts == ()
    assert made.sign is not None
    assert "whsec_" not in repr(made)
    assert url not in repr(made)


def test_a_secret_that_cannot_sign_is_said_so_and_without_one_nothing_is_signed(
    http: Outbound,
) -> None:
    wrong = Destination("erp", "https://e.example", secrets=(Configured("env:X", "whsec_!"),))
    assert isinstance(notify.settings_of(wrong, http=http, clock=SystemClock()), InvalidSecret)
    none = Destination("erp", "https://e.example")
    made = notify.settings_of(none, http=http, clock=SystemClock())
    assert isinstance(made, notify.NotifySettings)
    assert made.sign is None


def test_download_settings_are_those_of_the_source(http: Outbound) -> None:
    configured = Download(hosts=("127.0.0.1:9001", "*.example"), max_size_bytes=7, total_s=3.0)
    made = download.settings_of(configured, http=http, clock=SystemClock())
    assert made.hosts == ("127.0.0.1:9001", "*.example")
    assert (made.max_size_bytes, made.total_s, made.timeout_s) == (7, 3.0, 60.0)
