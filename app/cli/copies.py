"""``backup``, ``restore``, ``move``: the store as one file, and from one database to another."""

from __future__ import annotations

import json as js
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from app.cli.upkeep import opened

if TYPE_CHECKING:  # --help needs none of it
    from app.compose.copies import Restored
    from app.config import Config
    from app.store.engine import Store

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]


def backup(
    file: FileArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    artifacts: Annotated[
        bool, typer.Option("--artifacts", help="With the bytes of all artifacts.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write the whole store, as it is at one moment, into a file that only you can read."""
    from app.artifacts import open_blobs
    from app.clock import SystemClock
    from app.compose import copies

    loaded = config_or_exit(config)
    if file.exists():
        refuse(f"{file} is there already", "name a new file", status=WRONG)
    blobs = open_blobs(loaded.installation.artifacts_url) if artifacts else None
    now_ms = int(SystemClock().now().timestamp() * 1000)
    with _failing(), opened(loaded) as store, meter("tables") as progress:
        manifest = copies.backup(store, file, now_ms=now_ms, blobs=blobs, progress=progress)
    head = manifest["checkpoint"]
    if json:
        print(js.dumps(manifest, indent=2))
        return
    rows = sum(table["rows"] for table in manifest["tables"].values())
    print(f"{file}: {rows} rows, the log up to position {head['position']} {head['hash']}")
    if not artifacts:
        print("without artifacts: back their place up by its own means, or say --artifacts")


def restore(
    file: FileArgument, config: ConfigOption = DEFAULT_CONFIG, *, json: JsonOption = False
) -> None:
    """Bring a backup back into an empty database, and say what is left to do."""
    from app.artifacts import open_blobs
    from app.clock import SystemClock, SystemDice
    from app.compose import copies
    from app.compose.keeping import keeping

    loaded = config_or_exit(config)
    clock = SystemClock()
    mark = copies.Mark(int(clock.now().timestamp() * 1000), SystemDice().salt())
    blobs = open_blobs(loaded.installation.artifacts_url)
    with _failing(), _empty(loaded.installation.database_url) as store:
        with meter("tables") as progress:
            done = copies.restore(store, blobs, file, mark=mark, progress=progress)
        with keeping(loaded, store, clock) as kept:
            done.erased = copies.erase_again(store, kept.ledger, kept.blobs)
        copies.end(store)
    _tell(done, loaded, as_json=json)


def move(
    to: Annotated[str, typer.Option("--to", metavar="URL", help="An empty database.")],
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    json: JsonOption = False,
) -> None:
    """Copy the store into another database: the same hashes, receipts and ids.

    Nothing may be at work on it. Afterwards set `database` to the new place, and go on from there.
    """
    from app.compose import copies

    loaded = config_or_exit(config)
    with _failing(), opened(loaded) as source, _empty(to) as target, meter("tables") as progress:
        counts = copies.move(source, target, progress=progress)
    if json:
        print(js.dumps(counts, indent=2))
        return
    print(f"{sum(counts.values())} rows, {counts['events']} of them events, are in the new place")
    print("set database in the configuration to it before anything starts again; keep the old one")


@contextmanager
def _empty(url: str) -> Iterator[Store]:
    from app.store import migrate
    from app.store.engine import open_store

    store = open_store(url)
    try:
        migrate.upgrade(store)
        yield store
    finally:
        store.close()


@contextmanager
def _failing() -> Iterator[None]:
    from app.artifacts import BlobsError
    from app.store.errors import SchemaError, StoreError

    try:
        yield
    except StoreError as error:
        what, _, mend = str(error).partition("; ")
        status = WRONG if isinstance(error, SchemaError) else FAILED
        refuse(what, mend or "nothing was changed", status=status)
    except (BlobsError, OSError) as error:
        refuse(str(error), "see that the place can be reached and has room", status=FAILED)


def _tell(done: Restored, config: Config, *, as_json: bool) -> None:
    from domain.telling import instant

    made = instant(done.made_ms * 1000)
    configured = {source.name for source in config.sources}
    asked = {
        name: instant(done.sources[name] * 1000) if name in done.sources else None
        for name in sorted({*configured, *done.sources})
    }
    document = {
        "incarnation": done.incarnation,
        "position": done.position,
        "made_at": made,
        "rows": done.rows,
        "artifacts": done.artifacts,
        "missing_artifacts": done.missing,
        "erased_again": done.erased,
        "ask_again": asked,
        "not_configured": sorted(done.sources.keys() - configured),
    }
    if as_json:
        print(js.dumps(document, indent=2))
        return
    print(f"restored up to position {done.position}, as of {made}; incarnation {done.incarnation}")
    print("what came since then is not in it: ask these sources to tell it again")
    for name, last in asked.items():
        told = f"the last that is known of it came at {last}" if last else "never heard"
        print(f"  {name}: {told}")
    for name in document["not_configured"]:  # type: ignore[attr-defined]
        print(f"  {name} is not in the configuration: bring it back, with its secret")
    print(f"{len(done.erased)} files erased again, {done.artifacts} artifacts brought back")
    if done.missing:
        print(f"{len(done.missing)} artifacts have no bytes; laufzettel verify names them")
