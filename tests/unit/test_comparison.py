from __future__ import annotations

import pytest

from domain import comparison

pytestmark = pytest.mark.req("A8")

ONE = b'{"id":1,"retry":0,"n":1.0}'
SPACED = b'{ "n": 1, "retry": 0, "id": 1 }'
RETRIED = b'{"id":1,"retry":1,"n":1.0}'


def test_under_bytes_every_byte_counts() -> None:
    rule = comparison.rule("bytes")
    assert comparison.comparison(ONE, rule) != comparison.comparison(SPACED, rule)
    assert comparison.comparison(ONE, rule) == comparison.comparison(bytes(ONE), rule)


def test_under_json_spacing_and_order_of_keys_do_not_count() -> None:
    rule = comparison.rule("json")
    assert comparison.comparison(ONE, rule) == comparison.comparison(SPACED, rule)
    assert comparison.comparison(ONE, rule) != comparison.comparison(RETRIED, rule)


def test_volatile_fields_do_not_count_and_a_rule_is_a_short_text() -> None:
    rule = comparison.rule("json", ["/retry"])
    assert rule == 'json["/retry"]'
    assert comparison.comparison(ONE, rule) == comparison.comparison(RETRIED, rule)


def test_volatile_fields_make_the_rule_json_whatever_else_is_set() -> None:
    assert comparison.rule("bytes", ["/b", "/a", "/b"]) == 'json["/a","/b"]'


def test_a_body_that_is_no_json_is_compared_by_its_bytes() -> None:
    assert comparison.comparison(b"\xff", "json") == comparison.comparison(b"\xff", "bytes")
    assert comparison.comparison(b"", "json") != comparison.comparison(b"x", "json")


def test_an_entry_of_a_batch_compares_as_json() -> None:
    assert comparison.comparison_of({"a": 1}, "bytes") == comparison.comparison(b'{"a":1}', "json")
    rule = comparison.rule("json", ["/retry"])
    assert comparison.comparison_of({"a": 1, "retry": 2}, rule) == comparison.comparison_of(
        {"a": 1}, rule
    )
