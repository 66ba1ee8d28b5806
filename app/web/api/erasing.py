"""The certificate of an erasure: what was removed, who was told, who confirmed it."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.params import FromPath

from app.store import signing
from app.store.reading import erasures
from app.store.reading.erasures import Erasure
from app.web.api.files import visible
from app.web.api.office import Asker, Here, at, there
from app.web.auth import needs
from domain.states import File, Message


@get(
    "/files/{file:str}/certificate",
    guards=[needs("operator")],
    sync_to_thread=True,
    summary="What was erased, and who confirmed it",
    tags=["files"],
)
def file_certificate(office: Here, who: Asker, file: FromPath[str]) -> dict[str, Any]:
    """A signed statement about the file's last erasure, as things stand now."""
    found = visible(office, who, file)
    with office.store.read() as connection:
        erasure = there(erasures.last(connection, found.id))
    return signing.signed(office.ledger.book.key, _certificate(erasure, found.file))


def _certificate(erasure: Erasure, file: File) -> dict[str, Any]:
    event, cause = erasure.recorded.event, erasure.recorded.cause
    told = [m for m in file.messages.values() if m.type == "file.erased"]
    return {
        "kind": "laufzettel.erasure.1",
        "file": erasure.stream,
        "source": file.source,
        "erased_at": at(event.at_ms),
        "operator": cause.operator,
        "reason": cause.reason,
        "log": {
            "position": erasure.position,
            "revision": erasure.recorded.revision,
            "hash": erasure.hash,
        },
        "versions": len(file.versions),
        "removed": ["payloads", "private parts", "artifacts", "message bodies", "answers"],
        "kept": ["receipts", "order", "hash chain"],
        "told": [_confirmed(message) for message in told],
    }


def _confirmed(message: Message) -> dict[str, Any]:
    is_sure = message.phase == "delivered"
    return {
        "destination": message.destination,
        "message": message.id,
        "state": message.phase,
        "confirmed_at": at(message.ended_ms) if is_sure else None,
    }


HANDLERS: list[Any] = [file_certificate]
