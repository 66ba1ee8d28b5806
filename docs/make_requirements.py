"""Make docs/requirements.md from the tests: ``python docs/make_requirements.py``."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
TESTS = DOCS.parent / "tests"


def marked(path: Path) -> Iterator[tuple[str, str]]:
    """Each requirement that a module's tests show, with the name of the test."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from ((ident, node.name) for mark in node.decorator_list for ident in ids(mark))


def ids(mark: ast.expr) -> Iterator[str]:
    """The ids in ``@pytest.mark.req("A3", …)``; none for another decorator."""
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.req":
        yield from (str(arg.value) for arg in mark.args if isinstance(arg, ast.Constant))


def page() -> str:
    """The page's text."""
    shown: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        place = path.relative_to(TESTS.parent)
        for ident, name in marked(path):
            words = name.removeprefix("test_").replace("_", " ")
            shown[ident].append(f"{words} (`{place}`)")
    lines = ["# Requirements, and the tests that show them", "", "Made by `make docs`."]
    for title, rows in tomllib.loads((DOCS / "requirements.toml").read_text()).items():
        lines += ["", f"## {title}"]
        for ident, sentence in rows.items():
            tests = sorted(set(shown[ident])) or ["no test yet"]
            lines += ["", f"**{ident}** {sentence}", "", *(f"- {test}" for test in tests)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (DOCS / "requirements.md").write_text(page(), encoding="utf-8")
