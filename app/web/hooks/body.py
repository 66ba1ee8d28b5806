"""A delivery's body, read whole or not at all, and never more of it than the limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Literal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

Unread = Literal["too-large", "broken", "cut-off"]


def declared_bytes(headers: Iterable[tuple[str, str]]) -> int | None:
    """What ``content-length`` says; ``None`` without one, -1 where it says nothing usable."""
    values = {value for name, value in headers if name == "content-length"}
    if not values:
        return None
    value = values.pop()
    is_number = not values and value.isascii() and value.isdecimal() and len(value) < len("1" * 19)
    return int(value) if is_number else -1


async def read_body(
    receive: Receive, *, limit_bytes: int, length_bytes: int | None
) -> bytes | Unread:
    """The body; ``too-large`` as soon as that is known, ``cut-off`` where it never came whole."""
    if length_bytes is not None and length_bytes > limit_bytes:
        return "too-large"
    pieces: list[bytes] = []
    size_bytes = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            # The server says so of a sender that is gone and of one whose chunks are no chunks.
            return "cut-off"
        piece = message.get("body", b"")
        size_bytes += len(piece)
        if size_bytes > limit_bytes:
            return "too-large"
        pieces.append(piece)
        if not message.get("more_body", False):
            break
    if length_bytes is not None and size_bytes != length_bytes:
        return "broken"
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
