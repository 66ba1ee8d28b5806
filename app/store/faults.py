"""Trouble on purpose: a SQLite store that fails as disks and locks make it fail.

``torture`` alone arms it, in a process of its own and on a store in a scratch area.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from sqlalchemy import event

from app.store.engine import Store

# The database is asked whether it may go on each time it has done so many steps of a statement.
STEPS_A_CALL = 50
_ROOM_PAGES = 4
_NO_LIMIT_PAGES = 2**30


@dataclass(frozen=True, slots=True)
class Trouble:
    """From call ``fails_from`` on, ``fails_for`` calls fail; so many connections find it full."""

    fails_from: int = 0
    fails_for: int = 0
    full_times: int = 0


def trouble(store: Store, plan: Trouble) -> None:
    """Let this SQLite store fail as planned; it recovers by itself."""
    state = _State(plan)
    for engine in (store.reading, store.writing):
        event.listen(engine, "checkout", state.watch)
    event.listen(store.writing, "checkout", state.narrow)


@dataclass(slots=True)
class _State:
    plan: Trouble
    calls: int = 0
    writers: int = field(default=0)

    def watch(self, connection: sqlite3.Connection, _: object, __: object) -> None:
        """Fail in the middle of a statement, wherever its count falls."""
        if self.plan.fails_for:
            connection.set_progress_handler(self._is_to_fail, STEPS_A_CALL)

    def narrow(self, connection: sqlite3.Connection, _: object, __: object) -> None:
        """Leave the database room for a few pages, then as much as it wants."""
        if not self.plan.full_times:
            return
        self.writers += 1
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        is_full = self.writers <= self.plan.full_times
        most = pages + _ROOM_PAGES if is_full else _NO_LIMIT_PAGES
        connection.execute(f"PRAGMA max_page_count = {most}")

    def _is_to_fail(self) -> bool:
        self.calls += 1
        begins = self.plan.fails_from
        return begins <= self.calls < begins + self.plan.fails_for
