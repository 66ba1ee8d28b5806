"""A file's slip for auditors: one signed document that can be checked offline."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.params import FromPath

from app.store import checkpoints, signing
from app.store.reading import slips
from app.verify.slip import KIND
from app.web.api.files import visible
from app.web.api.office import Asker, Here, at, there
from app.web.auth import needs


@get(
    "/files/{file:str}/slip",
    guards=[needs("operator")],
    sync_to_thread=True,
    summary="The file's signed slip, for auditors",
    tags=["files"],
)
def file_slip(office: Here, who: Asker, file: FromPath[str]) -> dict[str, Any]:
    """What was received, done and told, with the file's events and their place on the log."""
    stream = visible(office, who, file).id
    with office.store.snapshot() as connection:
        stands = there(checkpoints.standing(connection))
        document = {
            "kind": KIND,
            "file": stream,
            "made_at": at(office.now_ms),
            "received": slips.receipts(connection, stream),
            "artifacts": slips.artifacts(connection, stream),
            "messages": slips.messages(connection, stream),
            "events": slips.events(connection, stream),
            "checkpoint": checkpoints.checkpoint(stands, office.now_ms),
        }
    return signing.signed(stands.key, document)


HANDLERS: list[Any] = [file_slip]
