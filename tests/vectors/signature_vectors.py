"""Requests of real providers with the verdict that a correct verifier gives, as tests read them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from domain import profiles
from domain.profiles import Source, SourceSettings
from domain.schemes import Request

HERE = Path(__file__).parent
Vector = dict[str, Any]

# The vectors were made for these names; a profile is named like the provider otherwise.
_PROFILE_NAMES = {"aws_sns": "aws-sns"}


def signatures() -> list[Vector]:
    found: list[Vector] = json.loads((HERE / "signatures.json").read_text())
    return found


def payloads() -> list[Vector]:
    found: list[Vector] = json.loads((HERE / "payloads.json").read_text())
    return found


def profile_name(provider: str) -> str:
    return _PROFILE_NAMES.get(provider, provider.replace("_", "-"))


def request(vector: Vector, body: bytes | None = None) -> Request:
    url = vector.get("url") or f"https://hooks.example/in/{vector['provider']}"
    parts = urlsplit(url)
    if body is None:
        body = _body(vector)
    return Request(
        method=vector["http_method"],
        url=url,
        path=parts.path,
        query=parts.query,
        headers=tuple(
            (k.lower(), v.encode().decode("latin-1")) for k, v in vector["headers"].items()
        ),
        body=body,
    )


def _body(vector: Vector) -> bytes:
    if "body_base64" in vector:
        return base64.b64decode(vector["body_base64"])
    return str(vector.get("body_utf8") or "").encode()


def now(vector: Vector) -> datetime:
    return datetime.fromtimestamp(vector["now"], UTC)


def source(vector: Vector) -> Source:
    prepared = profiles.prepare(settings(vector))
    assert isinstance(prepared, Source), prepared
    return prepared


def settings(vector: Vector) -> SourceSettings:
    return SourceSettings(
        profile=profile_name(vector["provider"]),
        secrets=_secrets(vector),
        allow=_allow(vector),
    )


def _secrets(vector: Vector) -> tuple[str, ...]:
    if "secrets" in vector:
        return tuple(secret for secret in vector["secrets"].values() if secret)
    if "certificates" in vector:
        return ()
    alternatives = vector.get("secret_alt") or []
    if isinstance(alternatives, str):
        alternatives = [alternatives]
    return (vector["secret"], *alternatives)


def _allow(vector: Vector) -> tuple[str, ...]:
    if "channel" in vector:
        return (vector["channel"]["id"],)
    return tuple(vector.get("topic_arns", ()))
