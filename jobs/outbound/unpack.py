"""Bodies packed in transfer, unpacked in small pieces: a bomb meets its limit, not our memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_PIECE_BYTES = 65_536
_GZIP_WINDOW = 31
_ZLIB_WINDOW = 15
_RAW_WINDOW = -15
_ZLIB_METHOD = 8


class UnpackError(ValueError):
    """The packed bytes are damaged, cut short, or of a kind we do not read."""


class Plain:
    """Nothing is packed."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The data as it came."""
        yield data

    def end(self) -> None:
        """All that came is whole."""


class Packed:
    """gzip or deflate."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._inflate = zlib.decompressobj(_GZIP_WINDOW) if is_gzip else None
        self._is_begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The unpacked bytes in pieces of at most 64 KiB."""
        while data:
            if self._inflate is None:
                self._inflate = zlib.decompressobj(self._window(data))
            try:
                piece = self._inflate.decompress(data, _PIECE_BYTES)
            except zlib.error:
                raise UnpackError("the packed body is damaged") from None
            self._is_begun = True
            if piece:
                yield piece
            data = self._rest(piece)

    def end(self) -> None:
        """Raise if the packed bytes stopped before their end."""
        if self._is_begun and self._inflate is not None and not self._inflate.eof:
            raise UnpackError("the packed body is cut short")

    def _rest(self, piece: bytes) -> bytes:
        assert self._inflate is not None  # noqa: S101 set by feed
        if not self._inflate.eof:
            # A full piece may leave output behind although all input is taken.
            return self._inflate.unconsumed_tail if piece else b""
        rest = self._inflate.unused_data
        if rest and self._is_gzip and rest.strip(b"\0"):
            # gzip may hold several members, one after the other.
            self._inflate = zlib.decompressobj(_GZIP_WINDOW)
            return rest
        return b""

    @staticmethod
    def _window(data: bytes) -> int:
        # "deflate" should mean zlib's wrapping, and some servers send it raw.
        return _ZLIB_WINDOW if data[0] & 0x0F == _ZLIB_METHOD else _RAW_WINDOW


def unpacker(content_encoding: str) -> Plain | Packed:
    """What unpacks a Content-Encoding; raises for kinds that were never asked for."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return Plain()
        case "gzip" | "x-gzip":
            return Packed(is_gzip=True)
        case "deflate":
            return Packed(is_gzip=False)
        case _:
            raise UnpackError("packed in a way that was not asked for")
