"""Lists in pages: ordered by a key, continued behind the last row that was seen."""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

MOST_ROWS = 200
Key = tuple[int | str, ...]
T = TypeVar("T")
U = TypeVar("U")
_UNSTORABLE = re.compile("[\\0\\ud800-\\udfff]")


class CursorError(ValueError):
    """A cursor that no answer of ours has given."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of a list, and the cursor of what follows; ``None`` at its end."""

    items: list[T]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Which part of a list is wanted."""

    limit: int = 50
    cursor: str = ""

    def after(self, *kinds: type) -> Key | None:
        """The key to continue behind; raises ``CursorError`` for a foreign one."""
        return decode_cursor(self.cursor, *kinds) if self.cursor else None

    @property
    def rows(self) -> int:
        """How many are given at most."""
        return max(1, min(self.limit, MOST_ROWS))


def encode_cursor(key: Key) -> str:
    """A key as a text for clients, who are not to look inside."""
    return urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def decode_cursor(text: str, *kinds: type) -> Key:
    """The inverse; raises ``CursorError`` for what does not hold values of these kinds."""
    try:
        key = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise CursorError("the cursor is not one of ours") from None
    is_ours = isinstance(key, list) and [type(part) for part in key] == list(kinds)
    if not (is_ours and all(_is_storable(part) for part in key)):
        raise CursorError("the cursor is not one of ours")
    return tuple(key)


def _is_storable(part: int | str) -> bool:
    # What no column can hold would be an error of the store's instead of the client's.
    if isinstance(part, int):
        return -(2**63) <= part < 2**63
    return not _UNSTORABLE.search(part)


def select_page(
    connection: sa.Connection,
    query: sa.Select[Any],
    keys: Sequence[sa.ColumnElement[Any]],
    ask: Ask,
) -> Page[Any]:
    """The rows of a query in falling order of the keys, behind the cursor."""
    kinds = [int if isinstance(key.type, sa.Integer) else str for key in keys]
    if (behind := ask.after(*kinds)) is not None:
        query = query.where(sa.tuple_(*keys) < sa.tuple_(*(sa.literal(part) for part in behind)))
    query = query.order_by(*(key.desc() for key in keys)).limit(ask.rows + 1)
    rows = list(connection.execute(query))
    if len(rows) <= ask.rows:
        return Page(rows)
    last = rows[ask.rows - 1]._mapping  # noqa: SLF001 - SQLAlchemy's public way to a row's mapping
    return Page(rows[: ask.rows], encode_cursor(tuple(last[key] for key in keys)))
