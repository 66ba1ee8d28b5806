"""The cryptography that signature schemes need and the standard library lacks."""

from __future__ import annotations

from collections.abc import Callable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509 import load_pem_x509_certificate

from domain.schemes import Hash, Primitives

Certificate = Callable[[str], "bytes | None"]


def primitives(certificate: Certificate | None = None) -> Primitives:
    """What schemes are given; ``certificate`` fetches a PEM and may take its time."""
    return Primitives(ed25519=_ed25519, rsa=_rsa, certificate=certificate)


def _ed25519(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _rsa(certificate: bytes, hash_name: Hash, signature: bytes, message: bytes) -> bool:
    try:
        key = load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return False
    # SNS signs with SHA-1 under its older version, by its documentation.
    algorithm = hashes.SHA1() if hash_name == "sha1" else hashes.SHA256()  # noqa: S303
    if not isinstance(key, RSAPublicKey):
        return False
    try:
        key.verify(signature, message, PKCS1v15(), algorithm)
    except InvalidSignature:
        return False
    return True
