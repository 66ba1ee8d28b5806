"""Sources that say little more than "look again": Microsoft, Google Drive, Dropbox.

Their notices carry no content, so two equal ones are two events; what changed is asked from the
source's change feed.
"""

from __future__ import annotations

from urllib.parse import quote

from domain.canonical import pointer
from domain.profiles import greetings, proofs
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
from domain.schemes import Request, Scheme
from domain.strict_json import JsonObject, JsonValue

_MAX_ENTRIES = 1000


def _entries(body: JsonValue, path: str) -> list[JsonValue] | ContractBreach:
    found = pointer(body, path)
    if not isinstance(found, list) or not found:
        return ContractBreach(path, "must be an array with entries")
    if len(found) > _MAX_ENTRIES:
        return ContractBreach(path, f"has more than {_MAX_ENTRIES} entries")
    return found


def _graph(_source: Source, _request: Request, body: JsonValue) -> Entries:
    entries = _entries(body, "/value")
    if isinstance(entries, ContractBreach):
        return entries
    return [_graph_entry(entry) for entry in entries]


def _graph_entry(entry: JsonValue) -> Item:
    if not isinstance(entry, dict):
        return Item(entry, ContractBreach("/value", "must hold objects"))
    item: JsonObject = {key: value for key, value in entry.items() if key != "clientState"}
    if "lifecycleEvent" in entry:
        return Item(item, action="lifecycle")
    file_id, resource = pointer(entry, "/resourceData/id"), pointer(entry, "/resource")
    if not isinstance(file_id, str):
        return Item(item, action="changed")
    if isinstance(resource, str) and "/items/" in resource:
        address = f"https://graph.microsoft.com/v1.0/{quote(resource.lstrip('/'), safe='/!@')}"
        item["content"] = f"{address}/content"
    return Item(item)


MICROSOFT_GRAPH = Profile(
    name="microsoft-graph",
    title="Microsoft Graph",
    mapping=FieldMap(
        event_id=(
            "/id",
            "{/lifecycleEvent}:{/subscriptionId}:{/subscriptionExpirationDateTime}",
            "{/subscriptionId}@{now}",
        ),
        type=("/lifecycleEvent", "/changeType"),
        file_id="/resourceData/id",
        version="/resourceData/@odata.etag",
        project="/subscriptionId",
        url="/content",
    ),
    types={
        "created": "version",
        "updated": "version",
        "deleted": "deleted",
        "missed": "lifecycle",
        "subscriptionRemoved": "lifecycle",
        "reauthorizationRequired": "lifecycle",
    },
    order="time",
    answer=Answer(wait_s=3.0),
    same="json",
    verifier=proofs.client_state,
    greeting=greetings.validation_token,
    items=_graph,
    is_batch=True,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: clientState is a password in the body. There is no order.",
)


def _sharepoint(_source: Source, _request: Request, body: JsonValue) -> Entries:
    entries = _entries(body, "/value")
    if isinstance(entries, ContractBreach):
        return entries
    return [
        Item({k: v for k, v in e.items() if k != "clientState"} | {"type": "list.changed"})
        if isinstance(e, dict)
        else Item(e, ContractBreach("/value", "must hold objects"))
        for e in entries
    ]


SHAREPOINT = Profile(
    name="sharepoint",
    title="SharePoint lists",
    mapping=FieldMap(
        event_id="{/subscriptionId}:{/resource}@{now}", type="/type", project="/resource"
    ),
    types={"list.changed": "changed"},
    answer=Answer(wait_s=5.0),
    same="json",
    verifier=proofs.client_state,
    greeting=greetings.validation_token,
    items=_sharepoint,
    is_batch=True,
    needs_url=False,
    is_unsigned=True,
    risk=MICROSOFT_GRAPH.risk,
)


def _no_body(_request: Request) -> JsonValue:
    return {}


_DRIVE_MEANINGS: dict[str, Action] = {
    "add": "version",
    "update": "version",
    "remove": "deleted",
    "trash": "deleted",
    "untrash": "restored",
    "change": "changed",
}


def _google_drive(_source: Source, request: Request, _body: JsonValue) -> Entries:
    state = request.header("x-goog-resource-state") or ""
    if state == "sync":
        return []
    told: JsonObject = {
        "channel": request.header("x-goog-channel-id"),
        "state": state,
        "number": request.header("x-goog-message-number"),
    }
    # What follows the question mark says how it is asked for, not what it is.
    path = (request.header("x-goog-resource-uri") or "").partition("?")[0]
    head, _, file_id = path.rpartition("/")
    if not head.endswith("/files") or not file_id:
        return [Item(told, action="changed")]
    changed = request.header("x-goog-changed")
    is_content = changed is None or "content" in changed.split(",")
    told |= {"file_id": file_id}
    return [Item(told, action=None if state != "update" or is_content else "ignore")]


GOOGLE_DRIVE = Profile(
    name="google-drive",
    title="Google Drive push channels",
    mapping=FieldMap(
        event_id="{/channel}:{/number}",
        delivery_id="{/channel}:{/number}",
        type="/state",
        file_id="/file_id",
        sequence="/number",
        url="https://www.googleapis.com/drive/v3/files/{file_id}?alt=media",
    ),
    types=_DRIVE_MEANINGS,
    order="sequence",
    comparator="integer",
    answer=Answer(conflict_status=200),
    verifier=proofs.channel_token,
    body=_no_body,
    items=_google_drive,
    needs_url=False,
    is_unsigned=True,
    texts_are_numbers=True,
    risk="Nothing is signed: the channel's token is a password. Numbers rise within one channel "
    "only, and a renewed channel reports changes again.",
)


def _dropbox(_source: Source, _request: Request, body: JsonValue) -> Entries:
    entries = _entries(body, "/list_folder/accounts")
    if isinstance(entries, ContractBreach):
        return entries
    return [Item({"account": account, "type": "list_folder"}) for account in entries]


DROPBOX = Profile(
    name="dropbox",
    title="Dropbox",
    schemes=(Scheme(places=("header:x-dropbox-signature",)),),
    mapping=FieldMap(event_id="{/account}@{now}", type="/type", project="/account"),
    types={"list_folder": "changed"},
    answer=Answer(status=200, wait_s=10.0),
    greeting=greetings.challenge,
    items=_dropbox,
    is_batch=True,
    needs_url=False,
    risk="A notice names accounts only: what changed is asked with the account's cursor.",
)
