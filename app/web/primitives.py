"""What verifying needs beyond the standard library: Ed25519, and RSA under a certificate."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import load_pem_x509_certificate

from domain.schemes import Hash, Primitives


def primitives(certificate: Callable[[str], bytes | None] | None = None) -> Primitives:
    """The primitives of ``cryptography``; ``certificate(url)`` gives a PEM, or nothing."""
    return Primitives(ed25519=_is_ed25519, rsa=_is_rsa, certificate=certificate)


def _is_ed25519(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_rsa(certificate: bytes, hash_name: Hash, signature: bytes, message: bytes) -> bool:
    try:
        key = load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return False
    algorithm = _HASHES.get(hash_name)
    if not isinstance(key, RSAPublicKey) or algorithm is None:
        return False
    try:
        key.verify(signature, message, PKCS1v15(), algorithm)
    except InvalidSignature:
        return False
    return True


# Amazon's version 1 signs with SHA-1, and whoever has not switched sends nothing else.
_HASHES: dict[Hash, hashes.HashAlgorithm] = {
    "sha1": hashes.SHA1(),  # noqa: S303
    "sha256": hashes.SHA256(),
}
