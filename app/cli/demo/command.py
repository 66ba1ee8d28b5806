"""``demo``: the whole of it in a minute, with one crash in the middle, counted from outside."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.screen import FAILED, JsonOption

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import Console

    from app.cli.demo.play import Progress, Stage
    from app.cli.demo.script import Scene
    from app.cli.demo.tally import Tally

_REDRAW_S = 0.1
# What the installation says of itself at the end.
_CHECKS = ("verify", "replay")


def demo(
    *,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running, with the console open.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**31 - 1, help="Another play.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Work here, and leave everything there.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show all of it: a sample document platform, a sample ERP, and one crash in the middle.

    Documents are made on the spot and told with repeats, delays, reorderings, conflicts and late
    old versions; the only process is killed with SIGKILL. The exit status is 0 only if each file
    has one result and the ERP saw every message exactly as it should.
    """
    import tempfile

    from rich.console import Console

    console = Console(stderr=json)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        is_well = _shown(folder.absolute(), console, seed=seed, keep=keep, as_json=json)
    else:
        with tempfile.TemporaryDirectory(prefix="laufzettel-demo-") as made:
            is_well = _shown(Path(made), console, seed=seed, keep=keep, as_json=json)
    if not is_well:
        raise typer.Exit(FAILED)


def _shown(folder: Path, console: Console, *, seed: int, keep: bool, as_json: bool) -> bool:
    from app.cli.client import Reach, connected
    from app.cli.demo.documents import documents
    from app.cli.demo.inside import contradictions
    from app.cli.demo.stage import staged
    from app.cli.demo.tally import tally
    from app.config import process_environment

    console.print(f"Making documents, in {folder}", highlight=False)
    made = documents(seed=seed)
    with staged(folder, made, seed=seed, environ=process_environment()) as (stage, scenes):
        began_s = stage.clock.monotonic()
        is_whole = _played(stage, scenes, console)
        seconds = stage.clock.monotonic() - began_s
        seen = tally(scenes, folder, blobs=folder / "var" / "artifacts").deliveries
        with connected(Reach(stage.installation.config)) as api:
            inside = contradictions(api, scenes, seen)
        checks = (*inside, *_checked(stage, console))
        found = tally(scenes, folder, blobs=folder / "var" / "artifacts")
        faults = (*found.faults, *checks, *(() if is_whole else ("it did not end in time",)))
        _show(found, faults, seconds, console, as_json=as_json)
        if faults:
            _show_log(stage.installation.log, console)
        if keep:
            _keep(stage, console)
    return not faults


def _played(stage: Stage, scenes: tuple[Scene, ...], console: Console) -> bool:
    from app.cli.demo.play import Play, Progress

    if not stage.installation.start():
        return False
    progress = Progress(news=lambda text: console.print(f"  {text}", highlight=False))
    play = Play(stage, scenes, progress)
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(play.run()), name="play", daemon=True)
    thread.start()
    _follow(thread, progress, console)
    return results == [True]


def _follow(thread: threading.Thread, progress: Progress, console: Console) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        deliveries = bars.add_task("deliveries", total=progress.all_deliveries)
        messages = bars.add_task("messages received", total=progress.all_messages)
        while thread.is_alive():
            thread.join(_REDRAW_S)
            bars.update(deliveries, completed=progress.deliveries)
            bars.update(messages, completed=progress.messages)


def _checked(stage: Stage, console: Console) -> tuple[str, ...]:
    """Stop it in order, and let it examine itself; what is wrong, in words."""
    if not stage.installation.stop():
        return ("the process did not stop in order",)
    faults = []
    for command in _CHECKS:
        ended = stage.installation.command(command)
        if ended.returncode:
            faults.append(f"laufzettel {command}: {(ended.stdout + ended.stderr).strip()[-300:]}")
        else:
            console.print(f"  laufzettel {command}: nothing found", highlight=False)
    return tuple(faults)


def _show(
    found: Tally, faults: tuple[str, ...], seconds: float, console: Console, *, as_json: bool
) -> None:
    import json
    from dataclasses import asdict

    from rich.table import Table

    if as_json:
        row = {**asdict(found), "faults": faults, "seconds": round(seconds, 1)}
        print(json.dumps(row, ensure_ascii=False, indent=2))
        return
    table = Table("what", "count", title="What was seen from outside", title_justify="left")
    table.columns[1].justify = "right"
    for what, count in _rows(found):
        table.add_row(what, str(count))
    table.add_row("seconds", f"{seconds:.1f}")
    console.print(table)
    for fault in faults[:20]:
        console.print(f"[red]wrong:[/red] {fault}", highlight=False)
    verdict = "[red]Not as it should be.[/red]" if faults else "[green]As it should be.[/green]"
    console.print(verdict)


def _rows(found: Tally) -> list[tuple[str, int]]:
    deliveries = [(f"deliveries {verdict}", n) for verdict, n in found.deliveries.items()]
    return [
        ("files", found.files),
        ("versions", found.versions),
        *deliveries,
        ("downloads asked of the platform", found.downloads),
        ("artifacts", found.artifacts),
        ("blobs, each under its own hash", found.blobs),
        ("messages sent", found.sent),
        ("messages received", found.received),
        ("duplicates on the wire", found.duplicates),
        ("second artifacts", found.second_artifacts),
        ("second messages", found.second_messages),
        ("lost", found.lost),
    ]


def _show_log(path: Path, console: Console) -> None:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    console.print("The last lines of its log:")
    for line in lines[-12:]:
        console.print(f"  {line[:300]}", markup=False, highlight=False)


def _keep(stage: Stage, console: Console) -> None:
    from app.cli.stopping import stopped

    if not stage.installation.start():
        return
    place = stage.installation
    console.print(f"It runs on at {place.url} (Ctrl-C ends it). Look at it with -c {place.config}")
    ended = threading.Event()
    with stopped(ended):
        ended.wait()
    stage.installation.stop()
