"""What was measured: printed as a table, and kept with the machine and the commit if wanted."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs/explanation/performance.md"
_MARKED = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line: what it costs, and what it was to cost."""

    what: str
    value: str
    goal: str = ""
    is_met: bool | None = None
    more: str = ""


@dataclass(slots=True)
class Figures:
    """All that one run measured."""

    lines: list[Figure] = field(default_factory=list)

    def add(self, what: str, value: str, *, more: str = "", **goal: Any) -> None:
        """Note a figure; ``goal`` in words and ``is_met`` if there is one."""
        self.lines.append(Figure(what, value, more=more, **goal))

    @property
    def table(self) -> str:
        """The figures as Markdown."""
        rows = [f"| {f.what} | {f.value} | {_verdict(f)} | {f.more} |" for f in self.lines]
        return "\n".join(["| what | figure | goal | |", "| --- | --- | --- | --- |", *rows])

    def keep(self, about: dict[str, Any]) -> None:
        """Write them down for the next who looks."""
        document = {**about, "figures": [asdict(line) for line in self.lines]}
        KEPT.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        made = f"\n{_sentence(about)}\n\n{self.table}\n\n"
        PAGE.write_text(_MARKED.sub(lambda _: made, PAGE.read_text()))


def _verdict(figure: Figure) -> str:
    if not figure.goal:
        return ""
    return f"{figure.goal}: {'met' if figure.is_met else '**missed**'}"


def middle(values: Iterable[float]) -> float:
    """The median."""
    return statistics.median(values)


def machine(folder: Path) -> dict[str, Any]:
    """Where and when this was measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "load_before": round(os.getloadavg()[0], 1),
        "sync_ms": round(_sync_ms(folder), 2),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
    }


def _sentence(about: dict[str, Any]) -> str:
    return (
        f"Measured {about['at']} at {about['commit']}: {about['cores']} cores of "
        f"{about['processor']}, {about['memory_gb']} GB, {about['system']}, "
        f"Python {about['python']}, SQLite {about['sqlite']}; a write with fsync takes "
        f"{about['sync_ms']} ms; load average before: {about['load_before']}."
    )


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return platform.processor()
    return next((ln.partition(":")[2].strip() for ln in lines if ln.startswith("model name")), "")


def _sync_ms(folder: Path) -> float:
    """What a commit costs at least: a small write that is forced to the disk."""
    took_s = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(20):
            began_s = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            took_s.append(time.perf_counter() - began_s)
    return middle(took_s) * 1000


def show(figures: Figures, about: dict[str, Any]) -> None:
    """Print the table, past whatever captures the output."""
    print(f"\n{_sentence(about)}\n\n{figures.table}\n", file=sys.__stdout__, flush=True)
