"""Addresses that prove themselves, in what people and receivers are shown."""

from __future__ import annotations

import pytest

from domain.masking import masked, shown_address
from jobs.notify import NotifySettings
from jobs.notify.reading import own_secrets
from jobs.tools import Target


@pytest.mark.req("F7", "B8")
@pytest.mark.parametrize(
    "told, shown",
    [
        ("https://e.de/f?sig=1", "https://e.de/f?[masked]"),
        ("see https://u:p@e.de/f#x now", "see https://e.de/f?[masked] now"),
        ("https://e.de/f", "https://e.de/f"),
        ("what? no address", "what? no address"),
    ],
)
def test_an_address_is_shown_without_what_proves_it(told: str, shown: str) -> None:
    assert shown_address(told) == shown
    assert masked({"a": [told, 1], "b": "x"}, ["/b"]) == {"a": [shown, 1], "b": "[masked]"}


@pytest.mark.req("F7")
def test_what_a_receiver_may_say_back_of_its_settings_is_known() -> None:
    settings = NotifySettings(
        "erp",
        "https://e.de/h?key=long%2Fkey&n=1",
        headers=(("X-Api-Key", "header-secret"), ("X-Company", "acme-limited")),
        target=Target(proxy="http://me:pass%21word@proxy:1"),
    )
    words = own_secrets(settings)
    assert {"long/key", "long%2Fkey", "header-secret", "pass!word", "bWU6cGFzcyF3b3Jk"} <= {*words}
    assert "acme-limited" not in words
    assert "1" not in words
