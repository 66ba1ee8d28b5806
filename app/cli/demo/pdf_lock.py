"""The password of a PDF: the standard security handler, revision 3, with a key of 128 bits.

Old and weak, and what half the locked documents of the world still use: it makes a sample, it
protects nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_KEY_BYTES = 16
_PERMISSIONS = (-3904).to_bytes(4, "little", signed=True)


@dataclass(frozen=True, slots=True)
class Lock:
    """Encrypts each object of a file that opens with this password only."""

    password: str
    file_id: bytes

    def sealed(self, number: int, data: bytes) -> bytes:
        """The bytes of an object, as they stand in the file."""
        salted = self._key() + number.to_bytes(3, "little") + b"\0\0"
        return rc4(_md5(salted)[:_KEY_BYTES], data)

    def dictionary(self) -> bytes:
        """What tells a reader how to open the file."""
        owner, user = self._owner().hex(), self._user().hex()
        permissions = int.from_bytes(_PERMISSIONS, "little", signed=True)
        handler = "/Filter /Standard /V 2 /R 3 /Length 128"
        return f"<< {handler} /P {permissions} /O <{owner}> /U <{user}> >>".encode()

    def _key(self) -> bytes:
        key = _md5(_padded(self.password) + self._owner() + _PERMISSIONS + self.file_id)
        for _ in range(50):
            key = _md5(key)
        return key

    def _owner(self) -> bytes:
        key = _md5(_padded(self.password))
        for _ in range(50):
            key = _md5(key)
        return _rounds(key, _padded(self.password))

    def _user(self) -> bytes:
        return _rounds(self._key(), _md5(_PADDING + self.file_id)) + bytes(16)


def _padded(password: str) -> bytes:
    return (password.encode("latin-1") + _PADDING)[:32]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _rounds(key: bytes, data: bytes) -> bytes:
    for number in range(20):
        data = rc4(bytes(byte ^ number for byte in key), data)
    return data


def rc4(key: bytes, data: bytes) -> bytes:
    """The stream cipher RC4; the same call encrypts and decrypts."""
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
