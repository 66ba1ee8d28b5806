from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import canonical, strict_json
from domain.canonical import ABSENT
from domain.strict_json import JsonValue

TEXTS = st.text(st.characters(codec="utf-8"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | TEXTS
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40)
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_keys_are_in_the_order_of_utf_16() -> None:
    # The example of RFC 8785, section 3.2.3.
    value: JsonValue = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical.encode(value))) == order
    assert canonical.encode_event(value) == canonical.encode(value)


def test_strings_are_written_as_rfc_8785_says() -> None:
    value = "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/\x7f\u2028"
    assert canonical.encode(value).decode() == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f\u2028"'


@pytest.mark.parametrize(
    "number, text",
    [
        ("1", "1"),
        ("1.0", "1"),
        ("1E+0", "1"),
        ("100e-2", "1"),
        ("1E+2", "100"),
        ("-0.0", "0"),
        ("0.10", "0.1"),
        ("-12.3400", "-12.34"),
        ("0.05", "0.05"),
        ("1e-40", "1e-40"),
        ("9007199254740993.0", "9007199254740993"),
        ("9007199254740993.5", "9007199254740993.5"),
    ],
)
def test_numbers_are_compared_by_value(number: str, text: str) -> None:
    assert canonical.encode(Decimal(number)).decode() == text
    assert canonical.encode([Decimal(number), Decimal("0.5")]).decode() == f"[{text},0.5]"


def test_neighbours_beyond_a_double_stay_apart() -> None:
    assert canonical.encode(9007199254740993) != canonical.encode(9007199254740992)


@given(VALUES)
def test_what_was_encoded_reads_back_and_encodes_the_same(value: JsonValue) -> None:
    encoded = canonical.encode(value)
    read = strict_json.parse_value(encoded)
    assert not isinstance(read, strict_json.InvalidJson)
    assert read == value
    assert canonical.encode(read) == encoded


@given(VALUES)
def test_the_quick_and_the_slow_way_write_the_same(value: JsonValue) -> None:
    assert canonical.encode(value) == canonical._slow(value).encode()


@given(st.dictionaries(TEXTS, st.integers(), min_size=2))
def test_the_order_of_arrival_of_keys_decides_nothing(value: dict[str, JsonValue]) -> None:
    assert canonical.encode(dict(reversed(value.items()))) == canonical.encode(value)


@pytest.mark.parametrize("value", [1.5, {"a": [0.0]}, {1: "a"}, Decimal("1.5"), b"x", {"a": {1}}])
def test_an_event_holds_no_fractions_and_nothing_but_json(value: JsonValue) -> None:
    with pytest.raises(TypeError):
        canonical.encode_event(value)


DOCUMENT: JsonValue = {"a": {"b": [10, {"c": None}]}, "m~n": 1, "x/y": 2, "": 3}


@pytest.mark.parametrize(
    "path, found",
    [
        ("/a/b/0", 10),
        ("/a/b/1/c", None),
        ("/m~0n", 1),
        ("/x~1y", 2),
        ("/", 3),
        ("", DOCUMENT),
        ("/a/b/2", ABSENT),
        ("/a/b/00", ABSENT),
        ("/a/b/-", ABSENT),
        ("/a/b/0/c", ABSENT),
        ("/a/z/c", ABSENT),
    ],
)
def test_a_pointer_leads_to_its_value_or_says_that_nothing_is_there(
    path: str, found: object
) -> None:
    assert canonical.pointer(DOCUMENT, path) == found


def test_volatile_fields_are_left_out_and_the_original_stays() -> None:
    left = canonical.without(DOCUMENT, ["/a/b/1", "/x~1y", "/not/there"])
    assert left == {"a": {"b": [10]}, "m~n": 1, "": 3}
    assert canonical.pointer(DOCUMENT, "/a/b/1/c") is None
    assert canonical.without(DOCUMENT, ["/a/b/1/c"]) == {**left, "a": {"b": [10, {}]}, "x/y": 2}  # type: ignore[dict-item]


def test_a_pointer_begins_with_a_slash() -> None:
    with pytest.raises(ValueError, match="slash"):
        canonical.pointer(DOCUMENT, "a/b")
