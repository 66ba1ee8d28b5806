"""Steps of the schema have a number each, and each leads on from the one before."""

from __future__ import annotations

import re

from tests.tidy import tree


def test_each_step_of_the_schema_follows_the_one_before() -> None:
    files = sorted((tree.ROOT / "migrations/versions").glob("[0-9]*.py"))
    told = [
        re.search(
            r'^revision = "(\d+)"\ndown_revision = (?:"(\d+)"|None)$', f.read_text(), re.MULTILINE
        )
        for f in files
    ]
    steps = [(found.group(1), found.group(2)) for found in told if found]
    numbers = [f"{number:04}" for number in range(1, len(files) + 1)]
    assert [file.name[:4] for file in files] == numbers
    assert steps == list(zip(numbers, [None, *numbers], strict=False))
