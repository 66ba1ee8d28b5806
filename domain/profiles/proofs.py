"""Proofs that are no signature of the whole body: a token in it, or named fields that are signed.

Only the named fields are read, from a bounded body and strictly; nothing else is believed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from datetime import datetime
from urllib.parse import urlsplit

from domain import signatures, strict_json
from domain.canonical import pointer
from domain.profiles.forms import form_field
from domain.profiles.values import Source
from domain.schemes import Hash, Key, Primitives, Request, raw
from domain.signatures import Refused, Verified
from domain.strict_json import InvalidJson, JsonObject, JsonValue

_NO_MATCH = Refused("the token does not match")
_SNS_HOST = re.compile(r"sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?")
_SNS_HASHES: dict[str, Hash] = {"1": "sha1", "2": "sha256"}
_SNS_NOTICE = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")
_SNS_CONFIRMATION = (
    "Message",
    "MessageId",
    "SubscribeURL",
    "Timestamp",
    "Token",
    "TopicArn",
    "Type",
)
_SNS_FIELDS = {
    "Notification": _SNS_NOTICE,
    "SubscriptionConfirmation": _SNS_CONFIRMATION,
    "UnsubscribeConfirmation": _SNS_CONFIRMATION,
}


def matching_key(keys: tuple[Key, ...], token: str) -> Key | None:
    """The key whose material is the token; every key is compared in full."""
    given = raw(token)
    return next((key for key in keys if hmac.compare_digest(key.material, given)), None)


def client_state(
    source: Source, request: Request, _now: datetime, _primitives: Primitives
) -> Verified | Refused:
    """Microsoft: every entry of ``value`` carries the secret that the subscription was given."""
    body = strict_json.parse(request.body)
    entries = pointer(body, "/value") if not isinstance(body, InvalidJson) else None
    if not isinstance(entries, list) or not entries:
        return Refused("no entries to prove the sender")
    proven: set[str] = set()
    for entry in entries:
        told = pointer(entry, "/clientState")
        key = matching_key(source.keys, told) if isinstance(told, str) and told else None
        if key is None:
            return Refused("an entry's clientState is missing or does not match")
        proven.add(key.id)
    return Verified(min(proven))


def channel_token(
    source: Source, request: Request, _now: datetime, _primitives: Primitives
) -> Verified | Refused:
    """Google: the channel's token, and the channel itself where the source lists its channels."""
    token = request.header("x-goog-channel-token")
    if not token:
        return Refused("token missing: header x-goog-channel-token")
    key = matching_key(source.keys, token)
    if key is None:
        return _NO_MATCH
    channel = request.header("x-goog-channel-id") or ""
    if source.sender and channel not in source.sender:
        return Refused("the channel is not one of the source's")
    return Verified(key.id)


def event_hash(
    source: Source, request: Request, _now: datetime, _primitives: Primitives
) -> Verified | Refused:
    """Dropbox Sign: a hash over the event's time and type, inside the event."""
    body = form_json(request)
    if isinstance(body, InvalidJson):
        return Refused("the event cannot be read")
    time, word, given = (pointer(body, f"/event/event_{n}") for n in ("time", "type", "hash"))
    if isinstance(time, int) and not isinstance(time, bool):
        time = str(time)
    if not (isinstance(time, str) and isinstance(word, str) and isinstance(given, str)):
        return Refused("event_time, event_type or event_hash is missing")
    message = f"{time}{word}".encode()
    for key in source.keys:
        wanted = hmac.digest(key.material, message, "sha256").hex().encode()
        if hmac.compare_digest(wanted, raw(given)):
            return Verified(key.id)
    return Refused("event_hash does not match")


def form_json(request: Request) -> JsonValue | InvalidJson:
    """The JSON of a form's field ``json``, or of the body itself."""
    field = form_field(request, "json")
    return strict_json.parse(request.body if field is None else field)


def sns_message(
    source: Source, request: Request, _now: datetime, primitives: Primitives
) -> Verified | Refused:
    """Amazon SNS: named fields signed with a certificate from Amazon, about a topic of ours.

    The time in it is that of publishing, not of the attempt, so it is no window.
    """
    body = strict_json.parse(request.body)
    if isinstance(body, InvalidJson):
        return Refused("the message cannot be read")
    if pointer(body, "/TopicArn") not in source.sender:
        return Refused("the topic is not one of the source's (allow)")
    message = sns_text(body)
    hash_name = _SNS_HASHES.get(_text(body, "SignatureVersion"))
    if message is None or hash_name is None:
        return Refused("a signed field is missing, or the signature's version is unknown")
    url = _text(body, "SigningCertURL")
    if not is_sns_address(url) or not urlsplit(url).path.endswith(".pem"):
        return Refused("the certificate's address is not Amazon's")
    return _certified(primitives, url, hash_name, _text(body, "Signature"), message)


def _certified(
    primitives: Primitives, url: str, hash_name: Hash, signature: str, message: bytes
) -> Verified | Refused:
    try:
        given = base64.b64decode(signature, validate=True)
    except ValueError:
        given = b""
    if not given:
        return Refused("the signature is missing or no base64")
    certificate = primitives.certificate(url) if primitives.certificate else None
    if certificate is None or primitives.rsa is None:
        return Refused("the certificate could not be had")
    if not primitives.rsa(certificate, hash_name, given, message):
        return Refused("the signature does not match")
    return Verified(hashlib.sha256(certificate).hexdigest()[:8])


def sns_text(body: JsonObject) -> bytes | None:
    """What SNS signs: names and decoded values, a line each; ``None`` if one is missing."""
    names = _SNS_FIELDS.get(_text(body, "Type"))
    if names is None:
        return None
    lines = []
    for name in names:
        value = body.get(name)
        if value is None and name == "Subject":
            continue
        if not isinstance(value, str):
            return None
        lines += [name, value]
    return "".join(f"{line}\n" for line in lines).encode()


def is_sns_address(url: str) -> bool:
    """Whether an address is Amazon SNS itself: https, its host, no user, no odd port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_host = _SNS_HOST.fullmatch(parts.hostname or "") is not None
    return parts.scheme == "https" and is_host and "@" not in parts.netloc and port in {None, 443}


def _text(body: JsonObject, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def sns_or_token(
    source: Source, request: Request, now: datetime, primitives: Primitives
) -> Verified | Refused:
    """S3's two ways: through SNS, or through EventBridge with a token of the connection."""
    if request.header("x-amz-sns-message-type") is not None or not request.header("authorization"):
        return sns_message(source, request, now, primitives)
    key = matching_key(source.keys, request.header("authorization") or "")
    return _NO_MATCH if key is None else Verified(key.id)


def suffix_hash(
    source: Source, request: Request, now: datetime, primitives: Primitives
) -> Verified | Refused:
    """Cloudinary: SHA-1 or SHA-256 as the account is set; the length tells which it was."""
    given = request.header("x-cld-signature") or ""
    is_long = len(given) == 2 * hashlib.sha256().digest_size
    scheme = next(s for s in source.schemes if (s.hash == "sha256") == is_long)
    return signatures.verify(scheme, request, source.keys, now, primitives)
