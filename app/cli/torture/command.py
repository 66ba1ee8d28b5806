"""``torture``: one's own configuration under crashes and trouble, counted from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.screen import DEFAULT_CONFIG, FAILED, ConfigOption, JsonOption, config_or_exit, refuse

if TYPE_CHECKING:  # --help needs none of it
    from rich.console import Console

    from app.cli.torture.run import Report, Run, Wanted
    from app.config import Config

_DEFAULT = "2m"
_MOST_SHOWN = 20


def torture(
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    lasting: Annotated[
        str, typer.Option("--for", metavar="2m", help="Begin no schedule after so long.")
    ] = _DEFAULT,
    everything: Annotated[
        bool, typer.Option("--all", help="Every point, fault and pair, however long it takes.")
    ] = False,
    schedule: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=2**31 - 1, help="Only this one.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31 - 1, help="Other schedules.")
    ] = 1,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Work here, and leave failed runs there.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Kill and trouble this configuration in a scratch area; count what is lost or doubled.

    Nothing real is reached: sources, receivers, store, broker and artifacts have stand-ins on this
    machine. Your own `command` steps do run. The exit status is 0 only if nothing was lost,
    doubled or otherwise wrong; for each failure, one command repeats it.
    """
    import tempfile

    from app.cli.torture.run import Wanted
    from domain.units import seconds

    lasting_s = seconds(lasting)
    if lasting_s is None:
        refuse(f"--for {lasting} is no duration", 'write it like "2m"')
    loaded = config_or_exit(config)
    wanted = Wanted(seed, None if everything else lasting_s, schedule)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        report = _tortured(loaded, folder.absolute(), wanted, as_json=json)
    else:
        with tempfile.TemporaryDirectory(prefix="laufzettel-torture-") as made:
            report = _tortured(loaded, Path(made), wanted, as_json=json)
    _show(report, loaded, as_json=json)
    if report.failures:
        raise typer.Exit(FAILED)


def _tortured(config: Config, folder: Path, wanted: Wanted, *, as_json: bool) -> Report:
    import threading

    from rich.console import Console

    from app.cli.stopping import stopped
    from app.cli.torture.outside import UnplayableError
    from app.cli.torture.run import Run

    console = Console(stderr=as_json)
    ended = threading.Event()
    with stopped(ended):
        try:
            run = Run(config, folder, wanted, ended)
            for note in run.notes:
                _say(console, f"  stand-in: {note}")
            return _followed(run, console)
        except UnplayableError as error:
            refuse(str(error), "mend the configuration; laufzettel check says more")


def _followed(run: Run, console: Console) -> Report:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task("a calm run", total=1.0)
        for step in run.steps():
            words = f"{step.schedule.number}: {step.schedule.words}"
            bars.update(task, completed=step.share, description=words[:60])
            for fault in step.faults[:_MOST_SHOWN]:
                _say(console, f"  {step.schedule.number}: {fault}")
    return run.report


def _say(console: Console, line: str) -> None:
    """A line for copying: as it is, and not broken at the terminal's width."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show(report: Report, config: Config, *, as_json: bool) -> None:
    import json as js
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    repeat = {each.schedule: _repeats(report, config, each.schedule) for each in report.failures}
    if as_json:
        row = asdict(report)
        for failure in row["failures"]:
            failure["repeat"] = repeat[failure["schedule"]]
        print(js.dumps(row, ensure_ascii=False, indent=2))
        return
    console = Console()
    title = f"{len(report.points)} points x {report.schedules} schedules"
    table = Table("what", "count", title=title, title_justify="left")
    table.columns[1].justify = "right"
    for what, count in _rows(report):
        table.add_row(what, str(count))
    console.print(table)
    for failure in report.failures:
        console.print(f"schedule {failure.schedule}: {failure.words}", style="red")
        for fault in failure.faults[:_MOST_SHOWN]:
            _say(console, f"  {fault}")
        _say(console, f"  again: {repeat[failure.schedule]}")
    console.print("Not as it should be." if report.failures else "As it should be.")


def _rows(report: Report) -> list[tuple[str, int | str]]:
    return [
        ("schedules of the whole matrix", report.of),
        ("points killed at", f"{len(report.killed_at)} of {len(report.points)}"),
        ("kills", report.kills),
        ("schedules with other trouble", report.troubled),
        ("deliveries", report.deliveries),
        ("messages received", report.messages),
        ("duplicates on the wire", report.repeats),
        ("given up, for an operator", report.given_up),
        ("lost", report.lost),
        ("doubled", report.doubled),
        ("otherwise wrong", report.wrong),
        ("seed", report.seed),
        ("seconds", f"{report.seconds:.1f}"),
    ]


def _repeats(report: Report, config: Config, schedule: int) -> str:
    import shlex

    path = shlex.quote(str(config.path))
    return f"laufzettel torture -c {path} --seed {report.seed} --schedule {schedule}"
