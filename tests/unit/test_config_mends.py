"""What a first try gets wrong is refused where it stands, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import Config, Invalid, load
from domain.strict_json import InvalidJson, parse

SECRET = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
SOURCE = '[sources.contracts]\nsecrets = ["env:IN"]\n'
DESTINATION = '[destinations.d]\nurl = "https://erp.example/"\n'
RECIPE = SOURCE + '[recipes.r]\nsources = ["contracts"]\n'

LINES = [
    (SOURCE + 'download = { timeout = "0s" }', 'download.timeout: is too short → write at least "'),
    (SOURCE + "download = { timeout = 10 }", 'timeout: is a whole number → write "10s"'),
    (SOURCE + 'download = { timeout = "-5s" }', 'timeout: is negative → write it like "5m"'),
    (SOURCE + 'download = { hosts = ["h:99999"] }', "hosts: holds something that is no host"),
    (SOURCE + 'download = { hosts = ["h:port"] }', "hosts: holds something that is no host"),
    (SOURCE + 'tolerance = "99999999w"', 'tolerance: is too long → write at most "366d"'),
    (SOURCE + "max_body = 1000", 'max_body: is a whole number → write "1000 B"'),
    (DESTINATION + 'timeout = "0s"', "destinations.d.timeout: is too short"),
    (DESTINATION + "timeout = 2.5", 'timeout: is a number → write "2.5s"'),
    (DESTINATION + "rate = 50", 'rate: is a whole number → write "50/s"'),
    (DESTINATION + 'breaker = { open = "0s" }', "breaker.open: is too short"),
    (DESTINATION + 'body = { a = "data" }', 'body.a: is no JSON Pointer → write it like "/data'),
    (DESTINATION + 'headers = { "a b" = "x" }', "headers.a b: is no name of a header → write it l"),
    (DESTINATION + 'delivered = { pointer = "ok", equals = 1 }', "pointer: is no JSON Pointer"),
    (
        RECIPE + 'transforms = ["text"]',
        'transforms[0]: is text, a table is wanted → write { name = "text", use = "text" }',
    ),
    ("\ufeff[laufzettel]", "laufzettel.toml: begins with a byte order mark → save it as UTF-8"),
    ("[laufzettel]\ndatabase = 1", "laufzettel.database: is a whole number → write text"),
    ("sources = 5", "sources: is a whole number, a table is wanted → write [sources]"),
]


@pytest.mark.parametrize("text, words", LINES)
def test_a_mistake_is_said_once_and_with_what_to_write(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "laufzettel.toml"
    path.write_text(text + "\n")
    invalid = load(path, {"IN": SECRET})
    assert isinstance(invalid, Invalid)
    found = [str(problem) for problem in invalid.problems]
    assert len(found) == 1
    assert words in found[0]


def test_a_dot_env_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "laufzettel.toml"
    path.write_text(SOURCE)
    (tmp_path / ".env").write_text(f"\ufeffIN={SECRET}\n")
    assert isinstance(load(path, {}), Config)


def test_no_json_is_said_in_plain_words() -> None:
    assert parse(b'{"a": "x') == InvalidJson(
        "not JSON: unterminated string starting at character 6"
    )
