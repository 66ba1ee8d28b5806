from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import strict_json
from domain.strict_json import InvalidJson

pytestmark = pytest.mark.req("A5")

REFUSED = [
    (b"", "empty body"),
    (b" \n\t", "empty body"),
    (b"\xef\xbb\xbf{}", "byte order mark"),
    (b'{"a":1,"a":1}', "duplicate key"),
    (b'{"a":{"b":1,"b":2}}', "duplicate key"),
    (b'{"a":1,"\\u0061":1}', "duplicate key"),
    (b'{"a":NaN}', "NaN is no JSON"),
    (b'{"a":Infinity}', "Infinity is no JSON"),
    (b'{"a":-Infinity}', "-Infinity is no JSON"),
    (b'{"a":1e999}', "number out of range"),
    (b'{"a":-1e999}', "number out of range"),
    (b'{"a":1e-99999999999999999999}', "number out of range"),
    (b'{"a":"\xfc"}', "not UTF-8"),
    (b'{"a":"\xed\xa0\xbd"}', "not UTF-8"),
    (b'{"a":"\\ud83d"}', "lone surrogate"),
    (b'{"\\ude00":1}', "lone surrogate"),
    (b'{"a":["\\ude00\\ud83d"]}', "lone surrogate"),
    (b"[1]", "not an object"),
    (b"null", "not an object"),
    (b'"text"', "not an object"),
    (b"\xff\xfe{\x00}\x00", "not UTF-8"),
]


@pytest.mark.parametrize("body, reason", REFUSED)
def test_what_two_readers_could_read_differently_is_refused(body: bytes, reason: str) -> None:
    assert strict_json.parse(body) == InvalidJson(reason)


@pytest.mark.parametrize(
    "body", [b"{", b'{"a":01}', b'{"a":+1}', b'{"a":.5}', b"{'a':1}", b'{"a":1,}', b'{"a":1}x']
)
def test_broken_json_is_refused_without_repeating_it(body: bytes) -> None:
    found = strict_json.parse(body)
    assert isinstance(found, InvalidJson)
    assert found.reason.startswith("not JSON: ")
    assert body.decode() not in found.reason


@pytest.mark.parametrize("depth", [101, 200, 20_000, 500_000])
@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused_quickly(depth: int, opening: bytes, closing: bytes) -> None:
    began = time.process_time()
    found = strict_json.parse(opening * depth + b"1" + closing * depth)
    assert found == InvalidJson("nested deeper than 100 levels")
    assert time.process_time() - began < 1


def test_brackets_in_strings_do_not_nest() -> None:
    body = json.dumps({"a": "[" * 1000, "b": '"' + "{" * 1000 + "\\"}).encode()
    assert isinstance(strict_json.parse(body), dict)


def test_the_deepest_allowed_value_is_read() -> None:
    assert isinstance(strict_json.parse_value(b"[" * 100 + b"]" * 100), list)


def test_integers_keep_every_digit_and_fractions_are_exact() -> None:
    body = b'{"a":9007199254740993,"b":1152921506151679042,"c":0.1,"d":1E+2,"e":-0}'
    found = strict_json.parse(body)
    assert found == {
        "a": 9007199254740993,
        "b": 1152921506151679042,
        "c": Decimal("0.1"),
        "d": Decimal(100),
        "e": 0,
    }


@pytest.mark.parametrize("digits", ["9" * 4301, "0." + "1" * 4300])
def test_a_number_has_a_longest_length(digits: str) -> None:
    found = strict_json.parse(b'{"a":' + digits.encode() + b"}")
    assert found == InvalidJson("number too long")


def test_a_surrogate_pair_is_one_letter() -> None:
    assert strict_json.parse(b'{"a":"\\ud83d\\ude00 \\\\ud83d"}') == {"a": "\U0001f600 \\ud83d"}


TEXTS = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans())
def test_every_object_that_python_writes_is_read_back(
    value: dict[str, object], escaped: bool
) -> None:
    assert strict_json.parse(json.dumps(value, ensure_ascii=escaped).encode()) == value


@given(st.binary(max_size=200))
def test_no_bytes_raise(body: bytes) -> None:
    strict_json.parse_value(body)
