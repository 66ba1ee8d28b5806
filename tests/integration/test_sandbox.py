"""The sandbox with real children: what is refused, what is killed, what is left (nothing)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.sandbox import Answered, Crashed, Ended, Limits, Lost, Overrun, Sandbox

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MIB = 1024**2


@pytest.fixture(scope="module", params=[True, False], ids=["namespaces", "groups"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    sys.path.append(str(HERE))
    sandbox = Sandbox(slots=4, isolate=request.param)
    if request.param and not sandbox.is_isolated:
        pytest.skip("this kernel grants no namespaces")
    yield sandbox
    sandbox.close()
    sys.path.remove(str(HERE))


@pytest.fixture
def run(sandbox: Sandbox, tmp_path: Path) -> Callable[..., Ended]:
    counter = iter(range(100))

    def run(task: str, arguments: object = None, limits: Limits | None = None) -> Ended:
        given = arguments if isinstance(arguments, dict) else {}
        folder = tmp_path / f"task-{next(counter)}"
        folder.mkdir()
        return sandbox.run(f"sandbox_tasks:{task}", given, folder=folder, limits=limits or Limits())

    return run


Run = Callable[..., Ended]


def family(pid: int) -> dict[int, str]:
    """All living descendants of a process, with their command lines."""
    found = {pid: ""}
    for entry in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
        try:
            stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if int(stat[1]) in found:
            found[entry] = line
    return {key: line for key, line in found.items() if key != pid}


def sleepers() -> list[str]:
    """Every process on the machine that our tasks could have left."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in lines if "sleep 12345" in line]


def until(condition: Callable[[], object], *, limit_s: float = 10) -> bool:
    ended = time.monotonic() + limit_s
    gap = threading.Event()
    while not condition():
        if time.monotonic() > ended:
            return False
        gap.wait(0.02)
    return True


def test_a_task_answers_and_leaves_nothing(run: Run) -> None:
    assert run("echo", {"ä": [1, None]}) == Answered(value={"echo": {"ä": [1, None]}})


@pytest.mark.req("D6")
def test_a_task_inherits_neither_environment_nor_descriptors(run: Run, tmp_path: Path) -> None:
    secret_fd = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(secret_fd, True)
    try:
        ended = run("surroundings")
    finally:
        os.close(secret_fd)
    assert isinstance(ended, Answered)
    assert ended.value["environment"] == ["LC_ALL", "PATH"]
    # The answer's, and the one that lists the folder.
    assert ended.value["open"] == [0, 1, 2, 3, 4]
    assert ended.value["folder"] == str(tmp_path / "task-0")


@pytest.mark.req("D6")
@pytest.mark.parametrize(
    "task,limits,limit",
    [
        ("hang", Limits(wall_s=0.5), "wall"),
        ("spin", Limits(wall_s=10, cpu_s=1), "cpu"),
        ("eat", Limits(memory_bytes=200 * MIB), "memory"),
        ("fill", Limits(output_bytes=20 * MIB), "output"),
        ("litter", Limits(files=100), "output"),
    ],
)
def test_each_limit_ends_a_task(run: Run, task: str, limits: Limits, limit: str) -> None:
    started = time.monotonic()
    assert run(task, limits=limits) == Overrun(limit=limit)  # type: ignore[arg-type]
    assert time.monotonic() - started < 5
    assert isinstance(run("echo"), Answered)


def test_a_defect_is_told_by_its_place_and_never_by_its_words(run: Run) -> None:
    ended = run("crash")
    assert isinstance(ended, Crashed)
    assert ended.how.startswith("ZeroDivisionError at sandbox_tasks.py:")
    assert run("babble") == Crashed(how="the answer is too long")


def test_a_task_that_kills_itself_harms_nobody(run: Run) -> None:
    ended = run("die")
    assert isinstance(ended, Crashed)
    assert ended.how.startswith("signal")
    assert isinstance(run("echo"), Answered)


@pytest.mark.req("D6")
def test_d15_children_die_with_their_task(run: Run) -> None:
    arguments = {"started": "started"}
    ended = run("hang_with_family", arguments, Limits(wall_s=1))
    assert ended == Overrun(limit="wall")
    assert run("leave_stray") == Answered(value={})
    assert until(lambda: not sleepers())


def test_a_task_writes_only_in_its_own_folder(
    run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "file"
    inside = run("write_to", {"path": "file"})
    assert inside == Answered(value={"refused": ""})
    ended = run("write_to", {"path": str(outside)})
    if ended == Answered(value={"refused": ""}):
        pytest.skip("this kernel has no Landlock")
    assert not outside.exists()


def test_a_task_has_no_network(run: Run, sandbox: Sandbox) -> None:
    if not sandbox.is_isolated:
        pytest.skip("only where the kernel grants a network namespace")
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = run("connect_to", {"port": server.getsockname()[1]})
    assert isinstance(ended, Answered)
    assert ended.value["refused"]


def test_a_killed_warden_is_replaced(tmp_path: Path) -> None:
    before = family(os.getpid())
    sandbox = Sandbox(slots=1)
    try:
        assert isinstance(sandbox.run("json:loads", {}, folder=tmp_path, limits=Limits()), Crashed)
        for pid in family(os.getpid()).keys() - before.keys():
            os.kill(pid, signal.SIGKILL)

        def again() -> Ended:
            return sandbox.run("builtins:dict", {"a": 1}, folder=tmp_path, limits=Limits())

        # What was handed to the dying one is lost, and says so.
        assert until(lambda: again() == Answered(value={"a": 1}))
    finally:
        sandbox.close()


def test_a_closed_sandbox_kills_what_runs_and_takes_no_more(tmp_path: Path) -> None:
    sandbox = Sandbox(slots=2)
    ended: list[Ended] = []
    earlier = family(os.getpid())
    assert sandbox.is_isolated in {True, False}

    def work() -> None:
        ended.append(sandbox.run("time:sleep", 1000, folder=tmp_path, limits=Limits()))  # type: ignore[arg-type]

    thread = threading.Thread(target=work)
    before = len(family(os.getpid()))
    thread.start()
    assert until(lambda: len(family(os.getpid())) > before)
    sandbox.close()
    thread.join(timeout=10)
    assert ended == [Lost()]
    assert family(os.getpid()) == earlier
    assert sandbox.run("builtins:dict", {}, folder=tmp_path, limits=Limits()) == Lost()


WORKER = """
import sys
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from jobs.sandbox import Limits, Sandbox
sandbox = Sandbox(slots=1, isolate=sys.argv[4] == "namespaces")
arguments = {"started": sys.argv[3]}
sandbox.run(
    "sandbox_tasks:hang_with_family", arguments, folder=Path(sys.argv[2]), limits=Limits(wall_s=60)
)
"""


@pytest.mark.req("D6")
@pytest.mark.parametrize("mode", ["namespaces", "groups"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_d15_a_killed_worker_leaves_no_children(tmp_path: Path, number: int, mode: str) -> None:
    started = tmp_path / "started"
    path = json.dumps([str(ROOT), str(HERE)])
    argv = [sys.executable, "-c", f"import json\n{WORKER}", path, str(tmp_path), str(started), mode]
    with subprocess.Popen(argv) as worker:
        assert until(started.exists)
        assert until(lambda: len(sleepers()) == 2)
        relatives = family(worker.pid)
        worker.send_signal(number)
        worker.wait(timeout=10)
    assert until(lambda: not sleepers())
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in relatives))
