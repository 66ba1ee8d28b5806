"""Applications that mention files among other things: Slack, Shopify, HubSpot and more."""

from __future__ import annotations

import re

from domain.canonical import pointer
from domain.profiles import greetings
from domain.profiles.values import (
    Answer,
    ContractBreach,
    Entries,
    FieldMap,
    Item,
    Profile,
    Source,
)
from domain.schemes import Clock, Request, Scheme, raw
from domain.strict_json import JsonValue

STRIPE = Profile(
    name="stripe",
    title="Stripe",
    schemes=(
        Scheme(
            signed="{timestamp}.{body}",
            places=("header:stripe-signature",),
            prefix="v1=",
            separator=",",
            clock=Clock(entry="t=", form="unix"),
        ),
    ),
    mapping=FieldMap(
        event_id="/id",
        type="/type",
        file_id="/data/object/id",
        version="/data/object/id",
        name="/data/object/filename",
        occurred_at="/created",
        size="/data/object/size",
        url="/data/object/url",
    ),
    types={"file.created": "version"},
    order="time",
    comparator="instant",
    needs_url=False,
)


def _slack(_source: Source, _request: Request, body: JsonValue) -> Entries:
    text = pointer(body, "/challenge")
    if pointer(body, "/type") == "url_verification" and isinstance(text, str):
        return greetings.plain(text)
    if not isinstance(body, dict):
        return ContractBreach("/", "must be an object")
    # An upload is told as created and as shared: both are about the file's first content.
    is_change = pointer(body, "/event/type") == "file_change"
    version = pointer(body, "/event/event_ts" if is_change else "/event/file_id")
    return [Item({**body, "version": version if isinstance(version, str) else None})]


SLACK = Profile(
    name="slack",
    title="Slack",
    schemes=(
        Scheme(
            signed="v0:{header:x-slack-request-timestamp}:{body}",
            places=("header:x-slack-signature",),
            prefix="v0=",
            clock=Clock(header="x-slack-request-timestamp", form="unix"),
        ),
    ),
    mapping=FieldMap(
        event_id="/event_id",
        type=("/event/type", "/type"),
        file_id="/event/file_id",
        version="/version",
        project="/team_id",
        occurred_at=("/event/event_ts", "/event_time"),
    ),
    types={
        "file_shared": "version",
        "file_created": "version",
        "file_change": "version",
        "file_deleted": "deleted",
    },
    order="time",
    comparator="instant",
    answer=Answer(status=200, wait_s=3.0),
    items=_slack,
    needs_url=False,
    texts_are_numbers=True,
    risk="The download address has to be asked for (files.info).",
)

SHOPIFY = Profile(
    name="shopify",
    title="Shopify",
    schemes=(Scheme(places=("header:x-shopify-hmac-sha256",), encoding="base64"),),
    mapping=FieldMap(
        event_id=(
            "{header:x-shopify-topic}:{/admin_graphql_api_id}:{/completed_at}",
            "{header:x-shopify-topic}:{/admin_graphql_api_id}:{/updated_at}",
            "header:x-shopify-event-id",
        ),
        delivery_id="header:x-shopify-webhook-id",
        type="header:x-shopify-topic",
        file_id="/admin_graphql_api_id",
        occurred_at=("/completed_at", "/updated_at", "header:x-shopify-triggered-at"),
        project="header:x-shopify-shop-domain",
    ),
    types={"bulk_operations/finish": "version"},
    order="time",
    comparator="instant",
    # Shopify removes a subscription that keeps failing.
    answer=Answer(wait_s=5.0, conflict_status=200),
    needs_url=False,
    has_signed_id=False,
    risk="Topic, shop and ids in headers are not signed.",
)

ZENDESK = Profile(
    name="zendesk",
    title="Zendesk",
    schemes=(
        Scheme(
            signed="{header:x-zendesk-webhook-signature-timestamp}{body}",
            places=("header:x-zendesk-webhook-signature",),
            encoding="base64",
            clock=Clock(header="x-zendesk-webhook-signature-timestamp", form="rfc3339"),
        ),
    ),
    mapping=FieldMap(
        event_id="/id",
        delivery_id="header:x-zendesk-webhook-invocation-id",
        type="/type",
        file_id="/event/attachment/id",
        # An attachment never changes.
        version="/event/attachment/id",
        name="/event/attachment/filename",
        occurred_at="/time",
        media_type="/event/attachment/content_type",
        project="/subject",
        url="/event/attachment/content_url",
    ),
    types={
        "zen:event-type:ticket.attachment_linked_to_comment": "version",
        "zen:event-type:ticket.attachment_redacted_from_comment": "deleted",
    },
    order="time",
    comparator="instant",
    # Zendesk repeats on 409, so a conflict is answered as taken.
    answer=Answer(wait_s=12.0, conflict_status=200),
    needs_url=False,
    risk="Webhooks fired by triggers carry free JSON without an id: map them with hmac.",
)

_HUBSPOT_DECODED = re.compile("%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)


def _hubspot_content(request: Request) -> bytes | None:
    stamp = request.header("x-hubspot-request-timestamp")
    if stamp is None:
        return None
    address = _HUBSPOT_DECODED.sub(lambda match: chr(int(match[1], 16)), request.url)
    return raw(request.method + address) + request.body + raw(stamp)


def _hubspot(source: Source, _request: Request, body: JsonValue) -> Entries:
    if not isinstance(body, list) or not body:
        return ContractBreach("/", "must be an array with entries")
    return [_hubspot_entry(source, entry) for entry in body]


def _hubspot_entry(source: Source, entry: JsonValue) -> Item:
    name, value = pointer(entry, "/propertyName"), pointer(entry, "/propertyValue")
    is_wanted = not source.sender or (isinstance(name, str) and name in source.sender)
    is_file = isinstance(value, str) and value.isascii() and value.isdecimal() and is_wanted
    return Item(entry, action=None if is_file else "ignore")


HUBSPOT = Profile(
    name="hubspot",
    title="HubSpot (v3 signature)",
    schemes=(
        Scheme(
            places=("header:x-hubspot-signature-v3",),
            encoding="base64",
            content=_hubspot_content,
            clock=Clock(header="x-hubspot-request-timestamp", form="unix_ms"),
        ),
    ),
    mapping=FieldMap(
        event_id="{/portalId}:{/appId}:{/subscriptionId}:{/eventId}",
        type="/subscriptionType",
        file_id="/propertyValue",
        occurred_at="/occurredAt",
        project="/portalId",
        url="https://api.hubapi.com/files/v3/files/{file_id}/signed-url",
    ),
    types={"*.propertyChange": "version"},
    order="time",
    comparator="instant",
    answer=Answer(wait_s=5.0),
    same="json",
    volatile=("/attemptNumber",),
    items=_hubspot,
    is_batch=True,
    needs_url=False,
    risk="There is no file event: files hang on properties. List their names (allow), else every "
    "changed property with a number is taken for a file.",
)

BROADNET = Profile(
    name="broadnet",
    title="BroadNet",
    schemes=(
        Scheme(
            signed="{header:webhook-id}.{header:webhook-timestamp}.{body}",
            places=("header:webhook-signature",),
            prefix="v1,",
            separator=" ",
            clock=Clock(header="webhook-timestamp", form="unix"),
        ),
    ),
    mapping=FieldMap(
        event_id="header:webhook-id",
        delivery_id="header:webhook-id",
        type="/event",
        file_id="/file/id",
        version="/file/version",
        name="/file/name",
        occurred_at="/occurred_at",
        size="/file/size",
        sha256="/file/sha256",
        url="/file/url",
    ),
    types={
        "file.version.created": "version",
        "file.deleted": "deleted",
        "file.restored": "restored",
        "file.renamed": "renamed",
    },
    order="version",
    comparator="integer",
    needs_url=False,
    risk="No public document was found: signed text and key form are assumed.",
)
