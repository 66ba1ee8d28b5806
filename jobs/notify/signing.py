"""The signature of an outgoing message: Standard Webhooks, v1 (HMAC) and v1a (Ed25519)."""

from __future__ import annotations

from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from domain.schemes import STANDARD_SCHEME
from domain.signatures import InvalidSecret, Key, Refused, Request, load_key, sign
from jobs.notify.values import Sign

_SEED_BYTES = 32


def signer(secrets: tuple[str, ...]) -> Sign | InvalidSecret:
    """Sign with each secret, the newest first: during a change receivers accept old or new."""
    keys: list[Key] = []
    for secret in secrets:
        key = load_key(secret, STANDARD_SCHEME)
        if isinstance(key, InvalidSecret):
            return key
        keys.append(key)
    if not keys:
        return InvalidSecret("no secret is configured to sign with")
    return _signer(tuple(keys))


def _signer(keys: tuple[Key, ...]) -> Sign:
    def signature(message_id: str, at: datetime, body: bytes) -> str:
        headers = (("webhook-id", message_id),)
        request = Request("POST", "", "/", "", headers, body)
        signed = sign(STANDARD_SCHEME, request, keys, at, _ed25519)
        if isinstance(signed, Refused):
            raise TypeError(f"loaded keys do not sign: {signed.reason}")
        return dict(signed.headers)["webhook-signature"]

    return signature


def _ed25519(key: bytes, message: bytes) -> bytes:
    # Keys are written as seed or as seed and public half, the way libsodium has them.
    return Ed25519PrivateKey.from_private_bytes(key[:_SEED_BYTES]).sign(message)
