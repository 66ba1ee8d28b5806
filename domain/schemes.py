"""What a signature scheme is, as data: the request it covers, its keys, its template.

What the standard library lacks comes in as functions (``Primitives``).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl

from domain import chain

Hash = Literal["sha256", "sha512", "sha1"]
Method = Literal["hmac", "suffix", "token"]
KeyForm = Literal["text", "hex", "base64", "bearer"]
Encoding = Literal["hex", "base64"]
TimeForm = Literal["any", "unix", "unix_ms", "rfc3339"]

SECRET_PREFIX, PRIVATE_PREFIX, PUBLIC_PREFIX = "whsec_", "whsk_", "whpk_"
DEFAULT_TOLERANCE_S = 300
_PLACEHOLDER = re.compile(r"\{(header:[^{}]+|body|method|url|path|query|timestamp)\}")


@dataclass(frozen=True, slots=True)
class Request:
    """A delivery as it arrived. Header names are lower case.

    Values of headers, path and query are their bytes read as Latin-1. ``url`` is the address as
    the source called it, ``query`` has no question mark.
    """

    method: str
    url: str = field(repr=False)
    path: str
    query: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        """The value of a header that came exactly once; twice is as good as missing."""
        values = [value for key, value in self.headers if key == name]
        return values[0] if len(values) == 1 else None

    def parameter(self, name: str) -> str | None:
        """The value of a query parameter that came exactly once."""
        values = [
            value for key, value in parse_qsl(self.query, keep_blank_values=True) if key == name
        ]
        return values[0] if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class Key:
    """A secret ready for use, and the short hash that names it in the audit."""

    material: bytes = field(repr=False)
    id: str
    kind: Literal["secret", "public", "private"] = "secret"


@dataclass(frozen=True, slots=True)
class InvalidSecret:
    """Why a text cannot be a secret of this scheme."""

    reason: str


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the signed time is and how far off it may be; ``None``: not limited on that side.

    ``entry`` is the label of the time inside the signature header (``t=``) where it has no
    header of its own.
    """

    header: str = ""
    entry: str = ""
    form: TimeForm = "any"
    past_s: float | None = DEFAULT_TOLERANCE_S
    future_s: float | None = DEFAULT_TOLERANCE_S


Content = Callable[[Request], "bytes | None"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a source proves that it sent these bytes.

    ``places`` are ``header:NAME``, ``header:NAME-*`` (numbered) or ``query:NAME``. A value is
    split at ``separator`` (if any) and only entries that begin with ``prefix`` count.
    ``public_prefix`` labels Ed25519 entries, which only public keys verify. ``content`` stands
    in for ``signed`` where a template cannot say it; ``required`` are headers with fixed values.
    ``headers`` are the names of all headers that have a part in it.
    ``is_paired``: where as many signatures as keys came, each belongs to its own key.
    """

    signed: str = "{body}"
    places: tuple[str, ...] = ()
    method: Method = "hmac"
    hash: Hash = "sha256"
    key_form: KeyForm = "text"
    key_prefix: str = ""
    encoding: Encoding = "hex"
    prefix: str = ""
    separator: str = ""
    public_prefix: str = ""
    clock: Clock | None = None
    required: tuple[tuple[str, str], ...] = ()
    content: Content | None = None
    is_paired: bool = False
    parts: tuple[tuple[str, str], ...] = field(init=False, repr=False, default=())
    headers: frozenset[str] = field(init=False, repr=False, default=frozenset())

    def __post_init__(self) -> None:
        """Compile the template once."""
        object.__setattr__(self, "parts", _compiled(self.signed))
        places = [text.partition(":") for text in (*self.places, *placeholders(self.signed))]
        names = frozenset(name.lower() for kind, _, name in places if kind == "header")
        object.__setattr__(self, "headers", names)


@dataclass(frozen=True, slots=True)
class Primitives:
    """Cryptography and look-ups that the standard library lacks, handed in by the shell.

    ``ed25519(public key, signature, message)`` and ``rsa(certificate PEM, hash, signature,
    message)`` say whether it verifies; ``certificate(url)`` gives a PEM or nothing.
    """

    ed25519: Callable[[bytes, bytes, bytes], bool] | None = None
    rsa: Callable[[bytes, Hash, bytes, bytes], bool] | None = None
    certificate: Callable[[str], bytes | None] | None = None


NO_PRIMITIVES = Primitives()


def key_id(material: bytes) -> str:
    """The name of a secret in the audit: it tells secrets apart and gives nothing away."""
    return hashlib.sha256(chain.framed(b"laufzettel.key-id.1", material)).hexdigest()[:8]


def load_key(text: str, scheme: Scheme) -> Key | InvalidSecret:
    """Turn a secret's text into a key of this scheme."""
    if scheme.public_prefix and text.startswith((PUBLIC_PREFIX, PRIVATE_PREFIX)):
        return _asymmetric_key(text)
    text = text.removeprefix(scheme.key_prefix)
    try:
        material = _KEY_FORMS[scheme.key_form](text)
    except ValueError:
        return InvalidSecret(f"the secret is no {scheme.key_form}")
    if not material:
        return InvalidSecret("the secret is empty")
    return Key(material, key_id(material))


def _asymmetric_key(text: str) -> Key | InvalidSecret:
    is_public = text.startswith(PUBLIC_PREFIX)
    try:
        material = _from_base64(text[len(PUBLIC_PREFIX) :])
    except ValueError:
        return InvalidSecret("the key is no base64")
    if len(material) not in ((32,) if is_public else (32, 64)):
        return InvalidSecret("an Ed25519 key has 32 bytes")
    return Key(material, key_id(material), "public" if is_public else "private")


def _from_base64(text: str) -> bytes:
    # Padding may be missing: some libraries print secrets without it.
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


_KEY_FORMS: dict[KeyForm, Callable[[str], bytes]] = {
    "text": str.encode,
    "hex": bytes.fromhex,
    "base64": _from_base64,
    # A token that already holds two words is the whole value of the header.
    "bearer": lambda text: (text if " " in text or not text else f"Bearer {text}").encode(),
}


def _compiled(template: str) -> tuple[tuple[str, str], ...]:
    pieces = _PLACEHOLDER.split(template)
    kinds = ("literal", "value")
    return tuple((kinds[n % 2], piece) for n, piece in enumerate(pieces) if piece)


def placeholders(template: str) -> tuple[str, ...]:
    """What a template takes from the request, such as ``body`` or ``header:X-Id``."""
    return tuple(piece for kind, piece in _compiled(template) if kind == "value")


def raw(text: str) -> bytes:
    """The bytes of a header's value, a path or a query as they came over the wire."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


STANDARD_SCHEME = Scheme(
    signed="{header:webhook-id}.{header:webhook-timestamp}.{body}",
    places=("header:webhook-signature",),
    key_form="base64",
    key_prefix=SECRET_PREFIX,
    encoding="base64",
    prefix="v1,",
    separator=" ",
    public_prefix="v1a,",
    clock=Clock(header="webhook-timestamp", form="unix"),
)
