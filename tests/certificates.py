"""Certificates made on the spot: good, expired, self-signed, for another name."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority of its own, and the files it writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("Test Authority")
        self.ca_file = folder / "ca.pem"
        made = _built(self._name, self._name, self._key.public_key(), days=30)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_identity(self._key), critical=False)
        signed = made.sign(self._key, hashes.SHA256())
        self.ca_file.write_bytes(signed.public_bytes(Encoding.PEM))

    def issue(self, host: str, *, days: int = 30, self_signed: bool = False) -> Path:
        """A file with key and certificate for a host; negative days: expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(host)
        signer = key if self_signed else self._key
        made = _built(subject, subject if self_signed else self._name, key.public_key(), days=days)
        made = made.add_extension(_alternative(host), critical=False)
        made = made.add_extension(_identity(key), critical=False)
        known = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        made = made.add_extension(known, critical=False)
        path = self._folder / f"{host}{days}{self_signed}.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(private + made.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def server_side(self, pem: Path, *, asks_client: bool = False) -> ssl.SSLContext:
        """A server's context with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        if asks_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca_file)
        return context


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.SubjectAlternativeName:
    try:
        return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
    except ValueError:
        return x509.SubjectAlternativeName([x509.DNSName(host)])


def _identity(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _built(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    begins, ends = now - timedelta(days=60), now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
