"""What the framework does not know: the intake addresses and the messages, for the description."""

from __future__ import annotations

from typing import get_args

from litestar.openapi.spec import (
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    PathItem,
    Reference,
    RequestBody,
    Schema,
)

from domain.events import MessageType

_TEXT = Schema(type=OpenAPIType.STRING)
_PROBLEM = {
    "application/problem+json": OpenAPIMediaType(
        schema=Schema(
            type=OpenAPIType.OBJECT,
            properties={"type": _TEXT, "title": _TEXT, "detail": _TEXT},
        )
    )
}
_RECEIPT = Schema(
    type=OpenAPIType.OBJECT,
    required=["id", "accepted_at", "digest"],
    properties={"id": _TEXT, "accepted_at": _TEXT, "digest": _TEXT},
)
_ACCEPTED = Schema(
    type=OpenAPIType.OBJECT,
    required=["status"],
    properties={"status": _TEXT, "event_id": _TEXT, "receipt": _RECEIPT},
)
_ANSWERS = {
    "200": "Known: the receipt of the first delivery, word for word",
    "202": "Accepted and durable, or ignored and durable",
    "400": "Not the JSON that strictness demands, or not whole",
    "401": "Not proven: the same answer for every cause",
    "404": "No source of that name",
    "409": "Known under other content: the first stays, this is in quarantine",
    "413": "Larger than the source's limit",
    "422": "JSON that breaks the source's contract; the field is named",
    "503": "Not known to be stored: come again after Retry-After",
}


def intake() -> PathItem:
    """The address of a source's deliveries."""
    source = Parameter(name="source", param_in="path", required=True, schema=_TEXT)
    responses: dict[str, OpenAPIResponse | Reference] = {
        status: OpenAPIResponse(
            description=words,
            content={"application/json": OpenAPIMediaType(schema=_ACCEPTED)}
            if status in {"200", "202"}
            else _PROBLEM,
        )
        for status, words in _ANSWERS.items()
    }
    body = RequestBody(
        content={"application/json": OpenAPIMediaType(schema=Schema(type=OpenAPIType.OBJECT))},
        description="what the source's profile reads, signed as it demands",
    )
    post = Operation(
        tags=["intake"],
        summary="A delivery of a source",
        operation_id="Deliver",
        parameters=[source],
        request_body=body,
        responses=responses,
        security=[],
    )
    return PathItem(post=post)


def messages() -> dict[str, PathItem]:
    """Each message that destinations are sent, under its type."""
    return {kind: _message(kind) for kind in get_args(MessageType)}


def _message(kind: str) -> PathItem:
    headers: list[Parameter | Reference] = [
        Parameter(name=name, param_in="header", required=True, schema=_TEXT)
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "idempotency-key")
    ]
    data = Schema(type=OpenAPIType.OBJECT)
    schema = Schema(
        type=OpenAPIType.OBJECT,
        required=["type", "timestamp", "data"],
        properties={"type": Schema(const=kind), "timestamp": _TEXT, "data": data},
    )
    taken = OpenAPIResponse(description="Taken; any 2xx says so")
    post = Operation(
        tags=["messages"],
        summary=kind,
        operation_id=f"Message {kind}",
        parameters=headers,
        request_body=RequestBody(content={"application/json": OpenAPIMediaType(schema=schema)}),
        responses={"2XX": taken},
        security=[],
    )
    return PathItem(post=post)
