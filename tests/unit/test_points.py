from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.points import POINTS, PointError, arm, point

SCRIPT = """
from app.points import point
for _ in range(3):
    point("blobs.put.before")
    print("passed", flush=True)
"""


def run(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environ,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("F11")
def test_an_armed_point_kills_at_its_count(tmp_path: Path) -> None:
    environ = {"LAUFZETTEL_POINT": "blobs.put.before:2", "LAUFZETTEL_SCRATCH": str(tmp_path)}
    died = run(environ)
    assert (died.returncode, died.stdout) == (-9, "passed\n")


@pytest.mark.req("F11")
def test_without_a_scratch_area_nothing_is_armed() -> None:
    lived = run({"LAUFZETTEL_POINT": "blobs.put.before"})
    assert (lived.returncode, lived.stdout) == (0, "passed\n" * 3)


@pytest.mark.req("F11")
def test_an_armed_point_may_fail_as_the_machine_does(
    tmp_path: Path, no_kill: Callable[[], None]
) -> None:
    environ = {"LAUFZETTEL_POINT": "blobs.put.before:2=ENOSPC"}
    armed = arm({**environ, "LAUFZETTEL_SCRATCH": str(tmp_path)}, kill=no_kill)
    assert armed
    armed.passed("blobs.put.before")
    with pytest.raises(OSError, match=r"(?i)no space"):
        armed.passed("blobs.put.before")
    armed.passed("blobs.put.before")
    with pytest.raises(PointError, match="no errno"):
        arm({"LAUFZETTEL_POINT": "blobs.put.before=E", "LAUFZETTEL_SCRATCH": "."}, kill=no_kill)


def test_the_trace_names_every_passed_point(tmp_path: Path) -> None:
    run({"LAUFZETTEL_TRACE": "1", "LAUFZETTEL_SCRATCH": str(tmp_path)})
    lines = (tmp_path / "points.trace").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["blobs.put.before"] * 3


def test_undeclared_names_are_refused(tmp_path: Path, no_kill: Callable[[], None]) -> None:
    with pytest.raises(PointError, match=r"no\.such\.point"):
        point("no.such.point")
    environ = {"LAUFZETTEL_POINT": "no.such.point", "LAUFZETTEL_SCRATCH": str(tmp_path)}
    with pytest.raises(PointError, match=r"no\.such\.point"):
        arm(environ, kill=no_kill)


def test_names_are_declared_once() -> None:
    assert len(POINTS) == len(set(POINTS))


@pytest.fixture
def no_kill() -> Callable[[], None]:
    def kill() -> None:
        raise AssertionError("killed")

    return kill
