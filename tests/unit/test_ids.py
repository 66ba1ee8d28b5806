"""Derived ids: the text that they are and stay, and what a single fact says of a file."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ids import derive
from domain.order import Fact, ranking, view

KEYS = st.binary(min_size=1, max_size=64)


@pytest.mark.req("E2")
@given(KEYS, st.lists(st.text(max_size=20), max_size=4))
def test_an_id_is_the_keyed_hash_of_its_framed_parts_in_base32(
    key: bytes, parts: list[str]
) -> None:
    told = [part.encode("utf-8", "surrogatepass") for part in ("job", *parts)]
    message = b"".join(len(part).to_bytes(4, "big") + part for part in told)
    digest = hmac.digest(key, message, hashlib.sha256)
    text = base64.b32encode(digest[:20]).decode().lower()[:26]
    assert derive(key, "job", *parts) == f"job_{text}"


@given(
    st.builds(
        Fact,
        kind=st.just("version"),
        event=st.just("e"),
        arrival=st.integers(1, 3),
        version=st.sampled_from("12"),
        value=st.none() | st.sampled_from("12"),
        sequence=st.none() | st.integers(0, 3),
        at_us=st.none() | st.integers(0, 3),
        name=st.sampled_from(["", "a"]),
    )
)
def test_one_fact_says_what_it_says_when_it_is_told_twice(fact: Fact) -> None:
    assert view((fact,)) == view((fact, fact))
    assert ranking((fact,)) == ranking((fact, fact)) == [fact.version]
