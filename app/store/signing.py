"""The installation's own signature, on what leaves it: checkpoints, certificates, slips.

The Ed25519 key comes from the installation's key, so it is in every backup and the same for ever.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from domain import canonical

_PURPOSE = b"laufzettel.signing.1"
_FIELD = "signature"


def public_key(key: bytes) -> str:
    """The public half, as it stands in signed documents and is told to auditors."""
    return _text(_private(key).public_key().public_bytes_raw())


def signed(key: bytes, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a signature over its canonical form."""
    data = canonical.encode(dict(document))
    return {
        **document,
        _FIELD: {
            "algorithm": "ed25519",
            "public_key": public_key(key),
            "value": _text(_private(key).sign(data)),
        },
    }


def signer_of(document: Mapping[str, Any]) -> str | None:
    """The public key whose signature this is; ``None`` if the signature is not true."""
    rest = {name: value for name, value in document.items() if name != _FIELD}
    try:
        told = document[_FIELD]
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(told["public_key"]))
        key.verify(base64.b64decode(told["value"]), canonical.encode(rest))
        return str(told["public_key"])
    except (KeyError, TypeError, ValueError, InvalidSignature):
        return None


def _private(key: bytes) -> Ed25519PrivateKey:
    seed = hmac.digest(key, _PURPOSE, hashlib.sha256)
    return Ed25519PrivateKey.from_private_bytes(seed)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
