"""Long simulations: ``python -m tests.simulation --steps 1000000 [--first SEED]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count

from tests.simulation.verdict import Figures, judged

SHARE = 20
COLUMNS = 100


def runs(first: int, processes: int) -> Iterator[Figures]:
    """The seeds from this one on, without end."""
    with ProcessPoolExecutor(processes) as pool:
        for start in count(first, SHARE * processes):
            yield from pool.map(judged, range(start, start + SHARE * processes), chunksize=SHARE)


def main() -> int:
    """Run at least so many steps; 1 if a law was broken, and the seeds that break it again."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--steps", type=int, default=1_000_000)
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--processes", type=int, default=2)
    given = asked.parse_args()
    began = time.monotonic()
    done: list[Figures] = []
    steps = 0
    for figures in runs(given.first, given.processes):
        done.append(figures)
        steps += figures.steps
        for fault in figures.faults:
            print(f"\nseed {figures.seed}: {fault}")
        if sys.stdout.isatty():
            print(f"\r{steps:,} of {given.steps:,} steps".ljust(COLUMNS), end="", flush=True)
        if steps >= given.steps:
            break
    print(summary(done, time.monotonic() - began))
    return int(any(figures.faults for figures in done))


def summary(done: list[Figures], took_s: float) -> str:
    """What was run, in one line a figure."""
    faults = [fault for figures in done for fault in figures.faults]
    rows = {
        "steps": sum(f.steps for f in done),
        "seeds": len(done),
        "virtual days": round(sum(f.days for f in done)),
        "events on the logs": sum(f.events for f in done),
        "messages": sum(f.messages for f in done),
        "sent more than once": sum(f.repeats for f in done),
        "lost": sum("lost" in fault for fault in faults),
        "doubled": sum("doubled" in fault for fault in faults),
        "other faults": sum("lost" not in f and "doubled" not in f for f in faults),
    }
    told = "\n".join(f"{name:<20} {value:>12,}" for name, value in rows.items())
    return f"\n{told}\n{'seconds':<20} {took_s:>12,.1f}"


if __name__ == "__main__":
    raise SystemExit(main())
