"""Object stores: S3 through SNS or EventBridge, MinIO, Backblaze B2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote_plus

from domain import strict_json
from domain.canonical import pointer
from domain.profiles import proofs
from domain.profiles.values import (
    Action,
    Answer,
    ContractBreach,
    Entries,
    FieldMap,
    Handshake,
    Item,
    Profile,
    Source,
)
from domain.schemes import Request, Scheme
from domain.strict_json import InvalidJson, JsonObject, JsonValue

_MAX_RECORDS = 1000
_FALSE_VERSION = "null"  # what S3 calls the version where a bucket keeps none

_TYPES: dict[str, Action] = {
    "ObjectCreated:*": "version",
    "s3:ObjectCreated:*": "version",
    "Object Created": "version",
    "ObjectRemoved:*": "deleted",
    "s3:ObjectRemoved:*": "deleted",
    "LifecycleExpiration:*": "deleted",
    "s3:LifecycleExpiration:*": "deleted",
    "Object Deleted": "deleted",
    "UnsubscribeConfirmation": "lifecycle",
}


def records(source: Source, _request: Request, body: JsonValue) -> Entries:
    """The entries of whichever envelope it is: SNS, EventBridge, or bare records."""
    kind = pointer(body, "/Type")
    if isinstance(kind, str) and pointer(body, "/TopicArn"):
        return _sns(source, body, kind)
    if isinstance(pointer(body, "/detail-type"), str):
        return [_bridged(body)]
    return _bare_records(source, body)


def _sns(source: Source, body: JsonValue, kind: str) -> Entries:
    if kind == "SubscriptionConfirmation":
        url = pointer(body, "/SubscribeURL")
        if isinstance(url, str) and proofs.is_sns_address(url):
            return Handshake(visit=url)
        return ContractBreach("/SubscribeURL", "is not an address of SNS")
    if kind != "Notification":
        told = {"event_id": pointer(body, "/MessageId"), "eventName": kind}
        return [Item({key: v for key, v in told.items() if isinstance(v, str)})]
    entries = _enveloped(source, body)
    if not isinstance(entries, list):
        return entries
    sent = pointer(body, "/MessageId")
    return [_delivered(item, sent) for item in entries]


def _delivered(item: Item, sent: object) -> Item:
    if not isinstance(item.value, dict) or not isinstance(sent, str):
        return item
    return replace(item, value={**item.value, "delivery_id": sent})


def _enveloped(source: Source, body: JsonValue) -> Entries:
    message = pointer(body, "/Message")
    inner = strict_json.parse(message.encode()) if isinstance(message, str) else None
    if inner is None or isinstance(inner, InvalidJson):
        return ContractBreach("/Message", "is not a JSON object")
    if isinstance(inner.get("detail-type"), str):
        return [_bridged(inner)]
    return _bare_records(source, inner)


def _bare_records(source: Source, body: JsonValue) -> Entries:
    if pointer(body, "/Event") == "s3:TestEvent":
        return []
    found = pointer(body, "/Records")
    if not isinstance(found, list) or not found:
        return ContractBreach("/Records", "must be an array with entries")
    if len(found) > _MAX_RECORDS:
        return ContractBreach("/Records", f"has more than {_MAX_RECORDS} entries")
    return [_record(source, entry) for entry in found]


def _record(source: Source, entry: JsonValue) -> Item:
    bucket, key = pointer(entry, "/s3/bucket/name"), pointer(entry, "/s3/object/key")
    if not isinstance(bucket, str) or not isinstance(key, str):
        return Item(entry, ContractBreach("/s3/object/key", "is missing"))
    decoded = decode_key(key, source.settings.key_style or "form")
    if decoded is None:
        return Item(entry, ContractBreach("/s3/object/key", "does not decode as UTF-8"))
    told = {
        "eventName": pointer(entry, "/eventName"),
        "eventTime": pointer(entry, "/eventTime"),
        "region": pointer(entry, "/awsRegion"),
        "versionId": pointer(entry, "/s3/object/versionId"),
        "sequencer": pointer(entry, "/s3/object/sequencer"),
        "size": pointer(entry, "/s3/object/size"),
        "contentType": pointer(entry, "/s3/object/contentType"),
    }
    return Item(_object(bucket, decoded, told))


def decode_key(key: str, style: str) -> str | None:
    """An object's key, decoded once; ``None`` if it is not UTF-8 behind its encoding."""
    if style == "raw":
        return key
    try:
        return unquote_plus(key, errors="strict")
    except UnicodeDecodeError:
        return None


def _bridged(body: JsonValue) -> Item:
    bucket, key = pointer(body, "/detail/bucket/name"), pointer(body, "/detail/object/key")
    if not isinstance(bucket, str) or not isinstance(key, str):
        return Item(body, ContractBreach("/detail/object/key", "is missing"))
    told = {
        "event_id": pointer(body, "/id"),
        "eventName": pointer(body, "/detail-type"),
        "eventTime": pointer(body, "/time"),
        "region": pointer(body, "/region"),
        "versionId": pointer(body, "/detail/object/version-id"),
        "sequencer": pointer(body, "/detail/object/sequencer"),
        "size": pointer(body, "/detail/object/size"),
    }
    return Item(_object(bucket, key, told))


def _object(bucket: str, key: str, told: Mapping[str, object]) -> JsonObject:
    known: JsonObject = {
        name: value
        for name, value in told.items()
        if isinstance(value, (str, int)) and value not in {"", _FALSE_VERSION}
    }
    marks = (known.get("versionId", ""), known.get("sequencer", ""), known.get("eventName", ""))
    derived = f"{bucket}/{key}@{':'.join(map(str, marks))}"
    return {"event_id": derived, "bucket": bucket, "key": key, "path": _name(key), **known}


def _name(key: str) -> str:
    return key.rpartition("/")[2] or key


_MAP = FieldMap(
    event_id="/event_id",
    delivery_id="/delivery_id",
    type="/eventName",
    file_id="{/bucket}/{/key}",
    version=("/versionId", "/sequencer"),
    name="/path",
    sequence="/sequencer",
    occurred_at="/eventTime",
    size="/size",
    media_type="/contentType",
    project="/bucket",
    url=(
        "https://{/bucket}.s3.{/region}.amazonaws.com/{+/key}?versionId={/versionId}",
        "https://{/bucket}.s3.{/region}.amazonaws.com/{+/key}",
    ),
)

AWS_SNS = Profile(
    name="aws-sns",
    title="Amazon S3 through SNS",
    mapping=_MAP,
    types=_TYPES,
    order="sequence",
    comparator="hex",
    answer=Answer(wait_s=15.0),
    same="json",
    volatile=("/delivery_id",),
    verifier=proofs.sns_message,
    items=records,
    needs_secrets=False,
    is_batch=True,
    needs_url=False,
    risk="Any account can sign with SNS: list the topics that may speak (allow).",
)

AWS_S3 = replace(
    AWS_SNS,
    name="aws-s3",
    title="Amazon S3 through SNS or EventBridge",
    verifier=proofs.sns_or_token,
    is_unsigned=True,
    risk="What comes through EventBridge is not signed: the connection's header is a password. "
    "Any account can sign with SNS: list the topics that may speak (allow).",
)

AWS_EVENTBRIDGE = replace(
    AWS_SNS,
    name="aws-eventbridge",
    title="Amazon S3 through EventBridge",
    schemes=(Scheme(method="token", places=("header:authorization",)),),
    verifier=None,
    needs_secrets=True,
    is_unsigned=True,
    answer=Answer(wait_s=5.0),
    risk="Nothing is signed: the connection's header is a password.",
)

MINIO = replace(
    AWS_SNS,
    name="minio",
    title="MinIO",
    schemes=(Scheme(method="token", key_form="bearer", places=("header:authorization",)),),
    mapping=replace(
        _MAP,
        delivery_id="",
        url=(
            "https://{host}/{/bucket}/{+/key}?versionId={/versionId}",
            "https://{host}/{/bucket}/{+/key}",
        ),
    ),
    answer=Answer(),
    verifier=None,
    needs_secrets=True,
    is_unsigned=True,
    risk="Nothing is signed: the token is a password. Without queue_dir a failed call is lost.",
)

BACKBLAZE_B2 = Profile(
    name="backblaze-b2",
    title="Backblaze B2",
    schemes=(Scheme(places=("header:x-bz-event-notification-signature",), prefix="v1="),),
    mapping=FieldMap(
        event_id="/eventId",
        type="/eventType",
        file_id="{/bucketName}/{/objectName}",
        version="/objectVersionId",
        name="/objectName",
        occurred_at="/eventTimestamp",
        size="/objectSize",
        project="/bucketName",
        url="https://{host}/b2api/v2/b2_download_file_by_id?fileId={version}",
    ),
    types={
        "b2:ObjectCreated:Hide": "deleted",  # a hide marker means that the file is gone
        "b2:ObjectCreated:*": "version",
        "b2:ObjectDeleted:*": "deleted",
        "b2:HideMarkerCreated:*": "deleted",
    },
    batch="/events",
    order="time",
    comparator="instant",
    needs_url=False,
)
