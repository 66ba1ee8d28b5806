"""``sweep``: what was kept for its time is forgotten, and blobs that nothing refers to."""

from __future__ import annotations

import json as js
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.screen import DEFAULT_CONFIG, FAILED, ConfigOption, JsonOption, config_or_exit, refuse
from app.cli.upkeep import opened

_WORDS = {
    "payloads": "bodies of deliveries",
    "deliveries": "deliveries in the history",
    "attempts": "attempts in the history",
    "files": "files whose artifacts or messages' bytes",
    "condemned": "blobs without a reference, newly marked,",
    "blobs": "blobs marked before",
}


def sweep(
    config: ConfigOption = DEFAULT_CONFIG,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what is due, forget nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Apply [retention], and remove blobs that nothing refers to, a day after they were marked.

    A running process does it by itself once a day.
    """
    from app.artifacts import BlobsError
    from app.compose.keeping import keeping
    from jobs.sweep import Sweep

    loaded = config_or_exit(config)
    try:
        with opened(loaded) as store, keeping(loaded, store) as kept:
            swept = Sweep(kept.sweep_parts, is_dry=dry_run).run()
    except (BlobsError, OSError) as error:
        refuse(f"the artifacts cannot be reached: {error}", "mend their place", status=FAILED)
    counts = asdict(swept)
    if json:
        print(js.dumps({"dry_run": dry_run, **counts}, indent=2))
        return
    done = "would be dealt with" if dry_run else "dealt with"
    for name, count in counts.items():
        if count:
            print(f"{count} {_WORDS[name]} {done}")
    if not any(counts.values()):
        print("nothing is due")
