"""CloudEvents over HTTP in its three modes, and Azure Event Grid in both of its schemas."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from domain.canonical import pointer
from domain.profiles import greetings
from domain.profiles.values import (
    Action,
    Answer,
    ContractBreach,
    Entries,
    FieldMap,
    Item,
    Profile,
    Source,
)
from domain.schemes import Request, Scheme, raw
from domain.strict_json import JsonObject, JsonValue

_BATCH, _STRUCTURED = "application/cloudevents-batch", "application/cloudevents"
_PREFIX = "ce-"
_MAX_EVENTS = 1000


def _cloudevents(_source: Source, request: Request, body: JsonValue) -> Entries:
    media_type = (request.header("content-type") or "").lower()
    if media_type.startswith(_BATCH):
        return _listed(body)
    if media_type.startswith(_STRUCTURED) or pointer(body, "/specversion") == "1.0":
        return [Item(body)]
    attributes = _attributes(request)
    if isinstance(attributes, ContractBreach):
        return attributes
    return [Item({**attributes, "data": body})]


def _listed(body: JsonValue) -> Entries:
    if not isinstance(body, list) or not body:
        return ContractBreach("/", "must be an array with entries")
    if len(body) > _MAX_EVENTS:
        return ContractBreach("/", f"has more than {_MAX_EVENTS} entries")
    return [Item(event) for event in body]


def _attributes(request: Request) -> JsonObject | ContractBreach:
    found: JsonObject = {}
    for name, value in request.headers:
        if not name.startswith(_PREFIX):
            continue
        attribute = name.removeprefix(_PREFIX)
        text = _decoded(value)
        if text is None or attribute in found or attribute == "datacontenttype":
            return ContractBreach(f"header:{name}", "is not a CloudEvents attribute")
        found[attribute] = text
    if "id" not in found:
        return ContractBreach("header:ce-id", "is missing")
    return found


def _decoded(value: str) -> str | None:
    # One round of percent-decoding; quotes around the whole are undone, overlong UTF-8 is refused.
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    try:
        return unquote(raw(value).decode(), errors="strict")
    except UnicodeDecodeError:
        return None


_BEARER = Scheme(method="token", key_form="bearer", places=("header:authorization",))

CLOUDEVENTS = Profile(
    name="cloudevents",
    title="CloudEvents 1.0 over HTTP",
    schemes=(_BEARER,),
    mapping=FieldMap(
        event_id="{/source}|{/id}",
        type="/type",
        file_id=("/data/file_id", "/data/fileId", "/data/id", "/subject"),
        version="/data/version",
        name=("/data/name", "/data/fileName", "/subject"),
        sequence="/sequence",
        occurred_at="/time",
        size="/data/size",
        sha256="/data/sha256",
        media_type=("/data/media_type", "/data/mediaType"),
        project="/data/project",
        url=("/data/download_url", "/data/downloadUrl", "/data/href", "/data/url"),
    ),
    types={
        "*.created": "version",
        "*.updated": "version",
        "*.uploaded": "version",
        "*.deleted": "deleted",
        "*.restored": "restored",
        "*.renamed": "renamed",
    },
    order="sequence",
    comparator="text",
    greeting=greetings.abuse_protection,
    items=_cloudevents,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the token is a password. sequence orders within one event source.",
)


def _event_grid(_source: Source, _request: Request, body: JsonValue) -> Entries:
    if isinstance(body, dict):
        body = [body]
    listed = _listed(body)
    if not isinstance(listed, list):
        return listed
    return [_blob(item.value) for item in listed]


def _blob(entry: JsonValue) -> Item:
    if not isinstance(entry, dict):
        return Item(entry, ContractBreach("/", "must hold objects"))
    word = entry.get("eventType", entry.get("type"))
    url = pointer(entry, "/data/destinationUrl") or None
    address = url if isinstance(url, str) else pointer(entry, "/data/url")
    told: JsonObject = {"word": word, "time": entry.get("eventTime", entry.get("time"))}
    if isinstance(address, str):
        account, path = _located(address)
        told |= {
            "file_id": f"{account}{path}" or None,
            "name": path.rpartition("/")[2],
            "url": address,
        }
    # On hierarchical accounts a file is announced empty; its content comes with FlushWithClose.
    api = pointer(entry, "/data/api")
    is_hollow = isinstance(api, str) and api in {"CreateFile", "SftpCreate"}
    return Item({**entry, **told}, action="ignore" if is_hollow else None)


def _located(address: str) -> tuple[str, str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    return (parts.hostname or "").partition(".")[0], unquote(parts.path)


_BLOB_TYPES: dict[str, Action] = {
    "Microsoft.Storage.BlobCreated": "version",
    "Microsoft.Storage.BlobDeleted": "deleted",
    "Microsoft.Storage.BlobRenamed": "renamed",
    "Microsoft.EventGrid.SubscriptionDeletedEvent": "lifecycle",
}

AZURE_EVENT_GRID = Profile(
    name="azure-event-grid",
    title="Azure Event Grid (Blob Storage)",
    schemes=(Scheme(method="token", places=("header:x-laufzettel-key",)),),
    mapping=FieldMap(
        event_id="/id",
        type="/word",
        file_id="/file_id",
        version="/data/eTag",
        name="/name",
        sequence="/data/sequencer",
        occurred_at="/time",
        size="/data/contentLength",
        media_type="/data/contentType",
        url="/url",
    ),
    types=_BLOB_TYPES,
    order="sequence",
    comparator="text",
    answer=Answer(status=200, wait_s=30.0),
    greeting=greetings.event_grid,
    items=_event_grid,
    is_batch=True,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the delivery property X-Laufzettel-Key is a password. Event Grid "
    "gives up an event at once on 400, 401, 403 and 413.",
)
