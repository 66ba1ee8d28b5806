"""The tree as the tidiness tests see it: what git tracks, and the syntax of each module."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("app", "domain", "jobs", "migrations")


@cache
def tracked() -> tuple[Path, ...]:
    """All files that are, or are about to be, in version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for line in listed.splitlines() if (path := ROOT / line).is_file())


def modules(*tops: str) -> tuple[Path, ...]:
    """The Python files below these folders."""
    return tuple(
        path
        for path in tracked()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in tops
    )


@cache
def syntax(path: Path) -> ast.Module:
    """A module's syntax."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def dotted(path: Path) -> str:
    """The name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Every name that a module imports, at its top or inside a function."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(path: Path) -> Iterator[ast.Call]:
    """Every call in a module."""
    return (node for node in ast.walk(syntax(path)) if isinstance(node, ast.Call))


def first_text(call: ast.Call) -> str | None:
    """The first argument, if it is a literal text."""
    first = call.args[0] if call.args else None
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return str(first.value) if isinstance(first, ast.Constant) and is_text else None
