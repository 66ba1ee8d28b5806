from __future__ import annotations

import ast
import re

import pytest

from tests.tidy import tree

LONGEST_FILE = 400
LONGEST_FUNCTION = 50
# Longer still; a line here goes with the commit that splits the file.
STILL_TOO_LONG: set[str] = set()
NO_NAMES = {"utils", "util", "helpers", "common", "base", "manager", "misc"}
# Written apart, so that this file does not hold them itself.
NO_WORDS = [
    "FIX" + "ME",
    "unittest" + ".mock",
    "mock" + "er.",
    "time" + ".sleep(",
    "raise " + "NotImplementedError",
    "assert" + " True",
]
# What others wrote is kept word for word; and the rules themselves name what they forbid.
# The last plays foreign code that hangs.
QUOTED = (
    "tests/cases/files/",
    "tests/vectors/",
    "LICENSE",
    ".ci/requirements.lock",
    "pyproject.toml",
    "tests/integration/sandbox_tasks.py",
)


def test_a_file_has_400_lines_at_most() -> None:
    sizes = {
        tree.dotted(path): len(path.read_text().splitlines())
        for path in tree.modules(*tree.PRODUCT, "tests", "docs")
    }
    assert {
        name: size for name, size in sizes.items() if size > LONGEST_FILE
    }.keys() <= STILL_TOO_LONG


def test_a_function_has_50_lines_at_most() -> None:
    lengths = {
        f"{tree.dotted(path)}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in tree.modules(*tree.PRODUCT)
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert {name: size for name, size in lengths.items() if size > LONGEST_FUNCTION} == {}


def test_a_name_says_what_a_module_is_for() -> None:
    names = {
        part: path for path in tree.modules(*tree.PRODUCT) for part in path.with_suffix("").parts
    }
    assert {str(names[name]) for name in names.keys() & NO_NAMES} == set()


@pytest.mark.parametrize("word", NO_WORDS)
def test_some_words_have_no_place_in_the_tree(word: str) -> None:
    found = [
        str(path.relative_to(tree.ROOT))
        for path in tree.tracked()
        if not str(path.relative_to(tree.ROOT)).startswith(QUOTED)
        and word in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert found == []


def test_a_skip_gives_its_reason() -> None:
    bare = re.compile(r"pytest\.(?:mark\.)?skip\(\)|@pytest\.mark\.skip$", re.MULTILINE)
    found = [str(path) for path in tree.modules("tests") if bare.search(path.read_text())]
    assert found == []
