"""Standard Webhooks and its relatives, and the scheme of one's own."""

from __future__ import annotations

from dataclasses import replace

from domain.profiles.values import Action, Answer, FieldMap, Profile
from domain.schemes import STANDARD_SCHEME, Clock

_SVIX_SCHEME = replace(
    STANDARD_SCHEME,
    signed="{header:svix-id}.{header:svix-timestamp}.{body}",
    places=("header:svix-signature",),
    clock=Clock(header="svix-timestamp", form="unix"),
)

_TYPES: dict[str, Action] = {
    "file.version.created": "version",
    "file.deleted": "deleted",
    "file.restored": "restored",
    "file.renamed": "renamed",
}

_MAP = FieldMap(
    event_id="header:webhook-id",
    delivery_id="header:webhook-id",
    type="/type",
    file_id=("/data/file_id", "/data/id"),
    version="/data/version",
    name="/data/name",
    sequence="/data/sequence",
    occurred_at="/timestamp",
    size="/data/size",
    sha256="/data/sha256",
    media_type="/data/media_type",
    project="/data/project",
    url="/data/download_url",
    previous_name="/data/previous_name",
)

STANDARD_WEBHOOKS = Profile(
    name="standard-webhooks",
    title="Standard Webhooks",
    schemes=(STANDARD_SCHEME,),
    mapping=_MAP,
    types=_TYPES | {"document.version.created": "version"},
    order="version",
    comparator="integer",
    ids_are_texts=True,
    answer=Answer(wait_s=15.0),
    risk="Without a version the sha256 counts as one, else the event id: then every event is a "
    "new version, and two events about the same content are processed twice.",
)

SVIX = replace(
    STANDARD_WEBHOOKS,
    name="svix",
    title="Svix",
    schemes=(_SVIX_SCHEME, STANDARD_SCHEME),
    mapping=replace(
        _MAP,
        event_id=("header:svix-id", "header:webhook-id"),
        delivery_id=("header:svix-id", "header:webhook-id"),
    ),
)

HMAC = Profile(
    name="hmac",
    title="A scheme of one's own",
    types=_TYPES,
    order="version",
    comparator="integer",
    risk="Identity is only as good as what is signed: include id and time in the signed text.",
)

STANDARD_WEBHOOKS_V1A = replace(
    STANDARD_WEBHOOKS, name="standard-webhooks-v1a", title="Standard Webhooks v1a"
)
