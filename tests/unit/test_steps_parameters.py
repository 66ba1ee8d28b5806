"""A recipe's transforms table, checked: what is pinned, and what is wrong in words."""

from __future__ import annotations

import pytest

from jobs.steps import STEPS, parse_parameters


@pytest.mark.req("D5")
def test_defaults_and_units_are_pinned_sorted_by_name() -> None:
    table = {"name": "ocr", "use": "command", "run": ["ocr", "{input}"], "memory": "2 GiB"}
    assert parse_parameters("command", {**table, "timeout": "5m"}) == (
        ("memory_bytes", 2 * 1024**3),
        ("permanent", ()),
        ("produces", ""),
        ("run", ("ocr", "{input}")),
        ("timeout_s", 300),
        ("types", ("*/*",)),
    )
    assert parse_parameters("preview", {}) == (("pages", 1), ("width", 640))


@pytest.mark.parametrize(
    "use,table,words",
    [
        ("preview", {"widht": 3}, "widht: unknown for the step 'preview'; did you mean 'width'?"),
        ("metadata", {"zzz": 3}, "zzz: unknown for the step 'metadata'; it takes: none"),
        ("preview", {"width": True}, "width: expected a number, not bool"),
        ("preview", {"width": "640"}, "width: expected a number, not str"),
        ("preview", {"width": 1}, "width: expected at least 16"),
        ("preview", {"width": 10**6}, "width: expected at most 4096"),
        ("command", {}, "run: the step 'command' needs it"),
        ("command", {"run": []}, "run: expected at least one entry"),
        ("command", {"run": ["a\0b"]}, "run: a NUL character can't be passed on"),
        ("command", {"run": [1]}, "run: expected a list, not list"),
        ("command", {"run": ["x"], "timeout": "soon"}, 'timeout: expected a duration like "5m"'),
        ("command", {"run": ["x"], "memory": "1 MB B"}, 'memory: expected a size like "1 MiB"'),
        ("checksum", {"algorithms": ["crc"]}, "algorithms: expected one of sha256, sha512"),
        ("shred", {}, "use: no step is called 'shred'; there are: archive, checksum"),
    ],
)
def test_what_is_wrong_is_said_in_words(use: str, table: dict[str, object], words: str) -> None:
    said = parse_parameters(use, table)
    assert isinstance(said, str)
    assert said.startswith(words)


def test_every_kind_is_found_by_its_own_name() -> None:
    assert all(kind.use == use and kind.release >= 1 for use, kind in STEPS.items())
