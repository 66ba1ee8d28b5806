"""``migrate``, ``replay`` and ``verify``: the store's schema, its rows, its truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.meter import meter
from app.cli.screen import (
    DEFAULT_CONFIG,
    FAILED,
    WRONG,
    ConfigOption,
    JsonOption,
    config_or_exit,
    refuse,
)

if TYPE_CHECKING:  # --help needs none of it
    from app.config import Config
    from app.replay import Outcome
    from app.store.engine import Store
    from app.verify import Findings


def migrate(
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the statements, change nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Bring the schema to this version; a SQLite store is copied into backup/ before."""
    from app.store import migrate as schema

    with opened(config_or_exit(config), may_be_new=True) as store:
        steps = schema.pending(store)
        if dry_run:
            said = {"steps": [_fields(step) for step in steps], "statements": _statements(store)}
            print(_document(said) if json else said["statements"] or "nothing to do")
            return
        done = schema.upgrade(store)
        if json:
            print(_document({**_fields(done), "steps": [_fields(step) for step in steps]}))
            return
        for step in steps:
            print(f"{step.revision}  {step.title}")
        copied = f"; the former store is {done.copy}" if done.copy else ""
        beyond = (
            "" if done.after == schema.newest() else ", a newer program's, which this one can use"
        )
        print(f"the schema is of version {done.after}{beyond}{copied}")


def replay(
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    swap: Annotated[
        bool, typer.Option("--swap", help="Replace the rows that differ by what the log makes.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compute every row again from the log and compare it with the live one. Sends nothing.

    Exit status: 0 all rows are as the log makes them, 1 some differed or could not be judged.
    """
    from app.replay import replay as replay_log

    with opened(config_or_exit(config)) as store, meter("events") as progress:
        if swap:
            with _operating(store) as operate:
                outcome = replay_log(store, progress=progress, swap=operate)
        else:
            outcome = replay_log(store, progress=progress)
    print(_document(_outcome(outcome))) if json else _tell_outcome(outcome)
    if outcome.aside or (outcome.differing and not swap):
        raise typer.Exit(FAILED)


def verify(config: ConfigOption = DEFAULT_CONFIG, *, json: JsonOption = False) -> None:
    """Check the log's hash chain, all that it holds on to, and every artifact's bytes.

    Exit status: 0 all is as it was written, 1 something is not.
    """
    from app.artifacts import BlobsError, open_blobs
    from app.verify import verify_artifacts, verify_chain, verify_checkpoints, verify_parts

    loaded = config_or_exit(config)
    with opened(loaded) as store:
        with meter("chain") as progress:
            chain = verify_chain(store, progress)
        with meter("private parts and messages") as progress:
            parts = verify_parts(store, progress)
        try:
            with meter("artifacts") as progress:
                blobs = open_blobs(loaded.installation.artifacts_url)
                artifacts = verify_artifacts(store, blobs, progress)
            checkpoints = verify_checkpoints(store, blobs)
        except (BlobsError, OSError) as error:
            refuse(f"the artifacts cannot be read: {error}", "mend their place", status=FAILED)
    found = {"chain": chain, "parts": parts, "artifacts": artifacts, "checkpoints": checkpoints}
    print(_document(_findings(found))) if json else _tell_findings(found)
    if not all(part.is_sound for part in found.values()):
        raise typer.Exit(FAILED)


# -- the store ------------------------------------------------------------------------------------


@contextmanager
def opened(config: Config, *, may_be_new: bool = False) -> Iterator[Store]:
    """The store, of this program's version unless it may be new; an error ends the command."""
    from app.store import migrate as schema
    from app.store.engine import open_store
    from app.store.errors import SchemaError, StoreError

    path = config.installation.database_path
    if path is not None and not path.exists() and not may_be_new:
        refuse(f"there is no store at {path}", "laufzettel migrate, or laufzettel run, makes one")
    try:
        store = open_store(config.installation.database_url)
        try:
            if not may_be_new:
                schema.check(store)
            yield store
        finally:
            store.close()
    except StoreError as error:
        what, _, mend = str(error).partition("; ")
        status = WRONG if isinstance(error, SchemaError) else FAILED
        refuse(what, mend or "see that the database answers and has room", status=status)


@contextmanager
def _operating(store: Store) -> Iterator[Any]:
    """The way to write on a store: through a Ledger of its own."""
    from app.clock import SystemClock, SystemDice
    from app.ledger import Ledger
    from app.ledger.book import Book

    # It decides nothing here, so it needs no key and no configuration.
    ledger = Ledger(store, Book(key=b"", incarnation=0), SystemClock(), SystemDice())
    ledger.start()
    try:
        yield ledger.operate
    finally:
        ledger.close()


def _statements(store: Store) -> str:
    from app.store import migrate as schema

    return schema.statements(store)


# -- what is said ---------------------------------------------------------------------------------


def _outcome(outcome: Outcome) -> dict[str, object]:
    return {
        "equal": outcome.is_equal,
        "streams": outcome.streams,
        "events": outcome.events,
        "differing": outcome.differing,
        "swapped": outcome.swapped,
        "unknown": dict(outcome.unknown),
        "set_aside": [_fields(each) for each in outcome.aside],
        "differences": [_fields(each) for each in outcome.differences],
    }


def _tell_outcome(outcome: Outcome) -> None:
    for difference in outcome.differences:
        column = f".{difference.column}" if difference.column else ""
        print(
            f"{difference.table}{column} {difference.key}: "
            f"live {difference.live}, by the log {difference.folded}"
        )
    if outcome.differing > len(outcome.differences):
        print(f"and {outcome.differing - len(outcome.differences)} more")
    for aside in outcome.aside:
        print(f"set aside {aside.stream}, revision {aside.revision} {aside.type}: {aside.reason}")
    for kind, count in sorted(outcome.unknown.items()):
        print(f"passed over {count} events of the unknown type {kind}")
    swapped = f", {outcome.swapped} streams written anew" if outcome.swapped else ""
    print(
        f"{outcome.events} events in {outcome.streams} streams: "
        f"{outcome.differing or 'no'} differences{swapped}"
    )


def _findings(found: dict[str, Findings]) -> dict[str, object]:
    chain = found["chain"]
    parts = {
        name: {
            "checked": part.checked,
            "erased": part.erased,
            "faults": part.count,
            "listed": [_fields(fault) for fault in part.faults],
        }
        for name, part in found.items()
    }
    return {
        "sound": all(part.is_sound for part in found.values()),
        "head": {"position": chain.position, "hash": chain.head.hex()},
        **parts,
    }


def _tell_findings(found: dict[str, Findings]) -> None:
    for part in found.values():
        for fault in part.faults:
            print(f"{fault.where}: {fault.what}")
        if part.count > len(part.faults):
            print(f"and {part.count - len(part.faults)} more")
    chain, parts, artifacts = found["chain"], found["parts"], found["artifacts"]
    print(f"{chain.checked} events, head {chain.position} {chain.head.hex()}")
    print(f"{parts.erased} private parts and messages erased, {artifacts.checked} artifacts read")
    count = sum(part.count for part in found.values())
    plural = "" if count == 1 else "s"
    print(f"{count} fault{plural}" if count else "all is as it was written")


def _fields(value: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(value)


def _document(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
