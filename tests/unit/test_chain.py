from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import chain


@pytest.mark.req("B4")
@given(st.lists(st.binary(max_size=20), min_size=2, max_size=6), st.data())
def test_a_changed_removed_or_swapped_event_changes_the_head(
    bodies: list[bytes], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(bodies) - 2))
    changed = [*bodies[:at], bodies[at] + b"!", *bodies[at + 1 :]]
    swapped = [*bodies[:at], bodies[at + 1], bodies[at], *bodies[at + 2 :]]
    assert _head(changed) != _head(bodies)
    assert _head(bodies[:at] + bodies[at + 1 :]) != _head(bodies)
    assert swapped == bodies or _head(swapped) != _head(bodies)


def _head(bodies: list[bytes]) -> bytes:
    head = chain.GENESIS
    for body in bodies:
        head = chain.link(head, body)
    return head


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_link_is_the_hash_of_its_framed_parts(previous: bytes, body: bytes) -> None:
    framed = chain.framed(b"laufzettel.chain.1", previous, body)
    assert chain.link(previous, body) == hashlib.sha256(framed).digest()


def test_the_form_of_the_chain_never_changes() -> None:
    assert chain.GENESIS.hex() == GENESIS_HEX
    assert chain.link(chain.GENESIS, b'{"a":1}').hex() == LINK_HEX


GENESIS_HEX = "6aabc415211082a650a36a1cc64eb918ee92e3485c881b3fa44b76670c0fb91e"
LINK_HEX = "bc3065e46c28c39847f9fbd18c36a42de128a14fc5379dec10fce16fc1b299f8"


@given(st.lists(st.binary(max_size=9), max_size=4), st.lists(st.binary(max_size=9), max_size=4))
def test_no_two_lists_of_parts_have_the_same_bytes(one: list[bytes], other: list[bytes]) -> None:
    assert (chain.framed(b"p", *one) == chain.framed(b"p", *other)) == (one == other)


@pytest.mark.req("B6")
def test_a_commitment_binds_salt_path_and_value() -> None:
    made = chain.commitment(b"s" * 16, "/name", "a.pdf")
    assert made == chain.commitment(b"s" * 16, "/name", "a.pdf")
    others = [
        chain.commitment(b"t" * 16, "/name", "a.pdf"),
        chain.commitment(b"s" * 16, "/url", "a.pdf"),
        chain.commitment(b"s" * 16, "/name", "b.pdf"),
        chain.commitment(b"s" * 16, "/name", None),
    ]
    assert len({made, *others}) == 5
