from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.outbound.unpack import UnpackError, unpacker

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
    "deflate": zlib.compress,
    " Deflate": lambda data: zlib.compress(data, wbits=-15),
    "identity": lambda data: data,
    "": lambda data: data,
}


def unpacked(packing: str, packed: bytes, *, step: int) -> bytes:
    unpack = unpacker(packing)
    pieces: list[bytes] = []
    for at in range(0, len(packed), step):
        pieces += unpack.feed(packed[at : at + step])
    unpack.end()
    assert max(map(len, pieces), default=0) <= max(65536, step)
    return b"".join(pieces)


@pytest.mark.parametrize("packing", PACKERS)
@given(data=st.binary(max_size=2000), step=st.integers(1, 500), times=st.sampled_from([1, 200]))
def test_unpacking_gives_back_what_was_packed(
    packing: str, data: bytes, step: int, times: int
) -> None:
    whole = data * times
    packed = PACKERS[packing](whole)
    assert unpacked(packing, packed, step=step) == whole


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
@given(data=st.binary(min_size=1, max_size=500), cut=st.integers(1, 8))
def test_packed_bytes_cut_short_are_noticed(packing: str, data: bytes, cut: int) -> None:
    packed = PACKERS[packing](data)
    with pytest.raises(UnpackError):
        unpacked(packing, packed[:-cut], step=64)


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_bytes_that_are_not_packed_are_noticed(packing: str) -> None:
    with pytest.raises(UnpackError):
        unpacked(packing, b"\x07plain bytes, not packed at all" * 9, step=64)


def test_what_was_not_asked_for_is_not_understood() -> None:
    with pytest.raises(UnpackError):
        unpacker("br")


def test_zeros_after_the_last_member_are_padding() -> None:
    assert unpacked("gzip", gzip.compress(b"x") + b"\0" * 100, step=1000) == b"x"
