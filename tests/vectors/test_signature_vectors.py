from __future__ import annotations

import pytest

from domain import profiles
from domain.profiles import Refused, Verified
from domain.schemes import Hash, Primitives
from tests.vectors import signature_vectors as vectors
from tests.vectors.signature_vectors import Vector

READY = vectors.signatures()


def _ed25519(public: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _rsa(certificate: bytes, hash_name: Hash, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509 import load_pem_x509_certificate

    key = load_pem_x509_certificate(certificate).public_key()
    assert isinstance(key, RSAPublicKey)
    algorithm = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256()}[hash_name]  # noqa: S303
    try:
        key.verify(signature, message, PKCS1v15(), algorithm)
    except InvalidSignature:
        return False
    return True


def primitives(vector: Vector) -> Primitives:
    def certificate(url: str) -> bytes | None:
        found = vector.get("certificates", {}).get(url)
        return str(vector["secret"]).encode() if found else None

    return Primitives(ed25519=_ed25519, rsa=_rsa, certificate=certificate)


@pytest.mark.req("A1")
@pytest.mark.req("A2")
@pytest.mark.parametrize("vector", READY, ids=lambda v: v["id"])
def test_every_published_vector_gets_its_verdict(vector: Vector) -> None:
    source = vectors.source(vector)
    verdict = profiles.verify(
        source, vectors.request(vector), vectors.now(vector), primitives(vector)
    )
    wanted = Verified if vector["expect"] == "valid" else Refused
    # Where the providers' own libraries disagree, either verdict is right.
    assert isinstance(verdict, wanted) or vector.get("optional"), verdict


@pytest.mark.req("F7")
@pytest.mark.parametrize("vector", READY, ids=lambda v: v["id"])
def test_a_reason_never_repeats_a_secret_or_a_body(vector: Vector) -> None:
    source = vectors.source(vector)
    request = vectors.request(vector)
    verdict = profiles.verify(source, request, vectors.now(vector), primitives(vector))
    shown = f"{verdict!r} {source!r} {request!r}"
    assert str(vector["secret"]) not in shown
    assert len(request.body) < 12 or request.body.decode("latin-1") not in shown
