"""That work may have become due, said from process to process: by NOTIFY, never in a transaction.

A notice may be lost or come late; whoever listens looks by itself from time to time as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy as sa

from app.store.engine import Store, translated
from app.store.errors import StoreUnavailableError

_CHANNEL = "laufzettel_work"
_CONNECT_TIMEOUT_S = 5


def notify(store: Store) -> None:
    """Tell all who listen; raises ``StoreUnavailableError``."""
    with translated(), store.writing.connect() as connection:
        # Inside a transaction it would make all that notify commit one after the other.
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        alone.exec_driver_sql(f"NOTIFY {_CHANNEL}")


@contextmanager
def listening(url: str) -> Iterator[Callable[[float], bool]]:
    """A function that waits for the next notice, at most so many seconds; whether one came.

    It needs a connection of its own for as long as it lasts, so ``url`` must lead to the database
    itself, not to a pooler. Raises ``StoreUnavailableError``, also later from the function.
    """
    address = sa.make_url(url).set(drivername="postgresql").difference_update_query(["prepared"])
    text = address.render_as_string(hide_password=False)
    try:
        with psycopg.connect(
            text, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S
        ) as connection:
            connection.execute(f"LISTEN {_CHANNEL}".encode())
            yield lambda timeout_s: _heard(connection, timeout_s)
    except psycopg.Error as error:
        raise StoreUnavailableError(str(error).split("\n", 1)[0]) from error


def _heard(connection: psycopg.Connection, timeout_s: float) -> bool:
    return any(True for _ in connection.notifies(timeout=timeout_s, stop_after=1))
