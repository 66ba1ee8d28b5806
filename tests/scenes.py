"""An installation where much has happened: for those who look at it."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from PIL import Image, ImageDraw

from app.clock import SettableClock
from app.store import tables as t
from domain.commands import Accepted, Stored
from domain.events import Artifact
from domain.ids import derive
from domain.outcomes import Dead, Done, Unclear
from tests.installations import Installation, event, found
from tests.workings import claimed, finish_job, finish_message, stored

STEPS = '{ name = "text", use = "text" }, { name = "preview", use = "preview", required = false }'
HOSTILE = '"><img src=x onerror=alert(1)>{{7*7}}.pdf'
_NAMES = ("Rechnung 2026-1107.pdf", "Vertrag Müller & Söhne.docx", "Lieferschein 88.pdf")


def play(running: Installation) -> None:
    """Files that are done, that failed, that wait; messages of each kind; a conflict."""
    for number, name in enumerate(_NAMES):
        running.send(event(id=f"evt-{number}", file_id=f"f-{number}", file_name=name))
        pass_time(running, 2)
        finish(running)
    running.send(event(id="evt-1", file_id="f-1", file_name="anders.docx"))
    running.send(event(id="evt-0", file_id="f-0", file_name=_NAMES[0]))
    running.send(b"{}", x_signature="sha256=00")
    running.web.flush()
    pass_time(running, 41)
    deliver_first(running)
    for number in (10, 11, 12):
        running.send(
            event(id=f"evt-{number}", file_id=f"f-{number}", file_name=f"Scan {number}.pdf")
        )
        finish(running, dead="is encrypted")
    running.send(event(id="evt-20", file_id="f-20", file_name=HOSTILE))
    finish(running, dead="<b>answered 503</b>")
    running.send(event(id="evt-30", file_id="f-30", file_name="Bericht Q3.pdf"))
    (job,) = found(running, t.jobs, state="ready")
    claimed(running, job.id, is_job=True)


def finish(running: Installation, *, dead: str = "") -> None:
    """Do what is open, or have it give up."""
    pass_time(running, 3)
    while jobs := [r for r in found(running, t.jobs) if r.state == "ready"]:
        for row in jobs:
            if dead:
                finish_job(running, row.id, Dead(dead))
                continue
            made = picture(running, row.stream) if row.name == "preview" else None
            name = "original" if row.kind == "download" else row.name
            made = made or stored(running, row.stream, name, b"Rechnung Nr. 1107\n" * 40)
            finish_job(running, row.id, Done(Stored((made,))))


def pass_time(running: Installation, seconds: float) -> None:
    """Let time go by, as it would between one thing and the next."""
    if isinstance(running.clock, SettableClock):
        running.clock.advance(seconds)


def deliver_first(running: Installation) -> None:
    """One message is taken, one is refused for good, one has no answer."""
    first, second, third = sorted(found(running, t.messages, state="pending"), key=_ordered)[:3]
    finish_message(running, first.id, Done(Accepted("ERP-4711")))
    finish_message(running, second.id, Dead("the receiver answered 422"))
    finish_message(running, third.id, Unclear("the connection was cut off, no answer came"))


def picture(running: Installation, stream: str) -> Artifact:
    """The preview of a page."""
    image = Image.new("RGB", (320, 420), "white")
    draw = ImageDraw.Draw(image)
    for y in range(60, 380, 18):
        draw.line((40, y, 280 - y % 70, y), fill="#888", width=4)
    draw.rectangle((40, 22, 150, 40), fill="#0b6b63")
    data = io.BytesIO()
    image.save(data, "PNG")
    content = data.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    path = Path(running.config.path.parent) / "picture"
    path.write_bytes(content)
    running.blobs.put_file(path, digest)
    artifact = derive(running.ledger.book.key, "art", stream, digest, "preview")
    return Artifact(artifact, "preview", digest, len(content), "image/png")


def _ordered(row: object) -> str:
    return str(row.id)  # type: ignore[attr-defined]
