"""Frames between worker and warden: a length, JSON, and file descriptors beside it."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

LENGTH = struct.Struct(">I")
FRAME_LIMIT_BYTES = 4 * 1024 * 1024
DESCRIPTORS_LIMIT = 4


class FrameError(ValueError):
    """The other side sent what is no frame."""


def send(link: socket.socket, value: Mapping[str, Any], *, fds: Sequence[int] = ()) -> None:
    """Send one frame whole; descriptors travel with its length."""
    body = json.dumps(value).encode()
    if len(body) > FRAME_LIMIT_BYTES:
        raise FrameError(f"a frame of {len(body)} bytes")
    if fds:
        socket.send_fds(link, [LENGTH.pack(len(body))], list(fds))
    else:
        link.sendall(LENGTH.pack(len(body)))
    link.sendall(body)


def receive(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next frame, or ``None`` if the other side is gone, in whatever way."""
    try:
        header, fds = _header(link)
        if len(header) < LENGTH.size:
            return None
        (size_bytes,) = LENGTH.unpack(header)
        if size_bytes > FRAME_LIMIT_BYTES:
            raise FrameError(f"a frame of {size_bytes} bytes")
        body = _exactly(link, size_bytes)
    except (ConnectionError, BrokenPipeError):
        return None
    return (json.loads(body), fds) if len(body) == size_bytes else None


def _header(link: socket.socket) -> tuple[bytes, list[int]]:
    # The kernel never glues bytes across descriptors, so those that come here belong here.
    header, fds, _, _ = socket.recv_fds(link, LENGTH.size, DESCRIPTORS_LIMIT)
    if 0 < len(header) < LENGTH.size:
        header += _exactly(link, LENGTH.size - len(header))
    return header, fds


def _exactly(link: socket.socket, size_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < size_bytes and (part := link.recv(size_bytes - len(parts))):
        parts += part
    return bytes(parts)
