"""Signing services and document archives: DocuSign, Adobe, Dropbox Sign, PandaDoc, Paperless."""

from __future__ import annotations

from domain import strict_json
from domain.canonical import pointer
from domain.profiles import greetings, proofs
from domain.profiles.forms import form_fields
from domain.profiles.values import (
    Answer,
    Entries,
    FieldMap,
    Handshake,
    Item,
    Profile,
    Source,
)
from domain.schemes import Request, Scheme
from domain.strict_json import InvalidJson, JsonValue

DOCUSIGN = Profile(
    name="docusign",
    title="DocuSign Connect",
    schemes=(Scheme(places=("header:x-docusign-signature-*",), encoding="base64"),),
    mapping=FieldMap(
        event_id=(
            "{/data/envelopeId}:{/event}:{/data/envelopeSummary/statusChangedDateTime}",
            "{/data/envelopeId}:{/event}:{/generatedDateTime}",
        ),
        type="/event",
        file_id="/data/envelopeId",
        version="/data/envelopeSummary/statusChangedDateTime",
        name="/data/envelopeSummary/emailSubject",
        occurred_at=("/data/envelopeSummary/statusChangedDateTime", "/generatedDateTime"),
        project="/data/accountId",
        url="https://{host}{+/uri}/documents/combined",
    ),
    types={
        "envelope-completed": "version",
        "envelope-voided": "deleted",
        "envelope-deleted": "deleted",
        "envelope-purge": "deleted",
    },
    order="time",
    comparator="instant",
    same="json",
    volatile=("/retryCount", "/generatedDateTime"),
    needs_url=False,
    risk="There is no event id: envelope, event and time stand for it. Aggregate mode tells the "
    "state at sending and may skip states.",
)

ADOBE_SIGN = Profile(
    name="adobe-sign",
    title="Adobe Acrobat Sign",
    schemes=(Scheme(method="token", places=("header:x-adobesign-clientid",)),),
    mapping=FieldMap(
        event_id="/webhookNotificationId",
        delivery_id="/webhookNotificationId",
        type="/event",
        file_id="/agreement/id",
        name="/agreement/name",
        occurred_at="/eventDate",
        url="https://{host}/api/rest/v6/agreements/{file_id}/combinedDocument",
    ),
    types={
        "AGREEMENT_WORKFLOW_COMPLETED": "version",
        "AGREEMENT_RECALLED": "deleted",
        "AGREEMENT_DOCUMENTS_DELETED": "deleted",
    },
    order="time",
    comparator="instant",
    # A failed answer blocks all notices behind it, and success without the echo is a failure.
    answer=Answer(status=200, echo="x-adobesign-clientid", wait_s=5.0, conflict_status=200),
    greeting=greetings.client_id,
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the client id is a weak password. Use mutual TLS where you can.",
)

_DROPBOX_SIGN_ANSWER = b"Hello API Event Received"
_DROPBOX_SIGN_HEADERS = (("content-type", "text/plain"),)


def _dropbox_sign(_source: Source, _request: Request, body: JsonValue) -> Entries:
    if pointer(body, "/event/event_type") == "callback_test":
        return Handshake(headers=_DROPBOX_SIGN_HEADERS, body=_DROPBOX_SIGN_ANSWER)
    return [Item(body)]


DROPBOX_SIGN = Profile(
    name="dropbox-sign",
    title="Dropbox Sign",
    mapping=FieldMap(
        event_id=(
            (
                "{/event/event_type}:{/event/event_time}:{/signature_request/signature_request_id}"
                ":{/event/event_metadata/related_signature_id}"
            ),
            "{/event/event_type}:{/event/event_time}:{/signature_request/signature_request_id}",
            "{/event/event_type}:{/event/event_time}",
        ),
        type="/event/event_type",
        file_id="/signature_request/signature_request_id",
        name="/signature_request/title",
        occurred_at="/event/event_time",
        project="/account_guid",
        url="https://api.hellosign.com/v3/signature_request/files/{file_id}",
    ),
    types={
        "signature_request_downloadable": "version",
        "signature_request_canceled": "deleted",
    },
    order="time",
    comparator="instant",
    answer=Answer(
        status=200,
        body=_DROPBOX_SIGN_ANSWER,
        headers=_DROPBOX_SIGN_HEADERS,
        conflict_status=200,
    ),
    same="json",
    # One event may be told to the account and to the app, each naming itself.
    volatile=(
        "/event/event_metadata/reported_for_account_id",
        "/event/event_metadata/reported_for_app_id",
    ),
    verifier=proofs.event_hash,
    body=proofs.form_json,
    items=_dropbox_sign,
    is_batch=True,  # a form's boundary changes with each attempt: its content counts
    needs_url=False,
    texts_are_numbers=True,
    has_signed_id=False,
    risk="Only type and time are signed: the ids are hints, fetched from the API and nowhere else.",
)

PANDADOC = Profile(
    name="pandadoc",
    title="PandaDoc",
    schemes=(Scheme(places=("query:signature",)),),
    mapping=FieldMap(
        event_id="{/event}:{/data/id}:{/data/date_modified}",
        delivery_id="header:x-pandadoc-webhook-event-id",
        type="/event",
        file_id="/data/id",
        version="/data/version",
        name="/data/name",
        occurred_at="/data/date_modified",
        url="https://api.pandadoc.com/public/v1/documents/{file_id}/download",
    ),
    types={"document_completed_pdf_ready": "version", "document_deleted": "deleted"},
    batch="",
    order="time",
    comparator="instant",
    answer=Answer(status=200, wait_s=20.0),
    needs_url=False,
    risk="The signature stands in the address: access logs must not keep it.",
)


def _paperless_body(request: Request) -> JsonValue | InvalidJson:
    # With "include document" the fields come as a form and the document as an attached file.
    fields = form_fields(request)
    if fields is None:
        return strict_json.parse(request.body)
    try:
        return {name: value.decode() for name, value in fields.items()}
    except UnicodeDecodeError:
        return InvalidJson("not UTF-8")


PAPERLESS_NGX = Profile(
    name="paperless-ngx",
    title="Paperless-ngx",
    schemes=(Scheme(method="token", places=("header:x-laufzettel-key",)),),
    mapping=FieldMap(
        event_id=("{/trigger}:{/doc_id}:{/added}", "{/trigger}:{/doc_id}"),
        type="/trigger",
        file_id="/doc_id",
        name="/title",
        occurred_at="/added",
        url="https://{host}/api/documents/{file_id}/download/",
    ),
    types={"document_added": "version", "document_updated": "version"},
    order="time",
    comparator="instant",
    answer=Answer(wait_s=5.0),
    body=_paperless_body,
    is_batch=True,  # a form's boundary changes with each attempt: its content counts
    needs_url=False,
    is_unsigned=True,
    risk="Nothing is signed: the header is a password. The body is free: set doc_id, trigger, "
    "added and title in the workflow. Two updates of one document look alike.",
)
