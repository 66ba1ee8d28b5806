"""The hash chain: any event that was changed, removed, inserted or moved, and where.

After a fault the walk goes on from the hash that is stored, so that one change is told once.
"""

from __future__ import annotations

import msgspec

from app.store.engine import Store
from app.store.verifying import Link, count_positions, links, revisions_before, unplaced
from app.verify.findings import MOST_LISTED, Findings, Progress, unheard
from domain import chain

AT_ONCE = 5000
# Beyond this many streams their revisions are looked up again instead of remembered.
MOST_STREAMS = 500_000


class _Envelope(msgspec.Struct):
    stream: str
    revision: int
    type: str


_ENVELOPE = msgspec.json.Decoder(_Envelope)


def verify_chain(
    store: Store, progress: Progress = unheard, *, most_streams: int = MOST_STREAMS
) -> Findings:
    """Walk the log by position, in chunks of a short read each."""
    walk = _Walk()
    with store.read() as connection:
        total = count_positions(connection)
    while True:
        with store.snapshot() as connection:
            found = links(connection, walk.findings.position, limit=AT_ONCE)
            unknown = {
                link.stream for link in found if link.stream is not None
            } - walk.revisions.keys()
            if unknown and walk.is_forgetful:
                walk.revisions |= revisions_before(connection, unknown, walk.findings.position)
        if not found:
            break
        for link in found:
            walk.step(link)
        walk.forget(most_streams)
        progress(walk.findings.checked, max(total, walk.findings.checked))
    _check_unplaced(store, walk.findings)
    return walk.findings


def _check_unplaced(store: Store, findings: Findings) -> None:
    with store.snapshot() as connection:
        for event in unplaced(connection, limit=MOST_LISTED):
            findings.add(
                f"event {event}", "has no position: it was inserted, or its position removed"
            )


class _Walk:
    """Where the walk is: the last position, its hash, and the last revision of each stream."""

    def __init__(self) -> None:
        self.findings = Findings(head=chain.GENESIS)
        self.revisions: dict[str, int] = {}
        self.is_forgetful = False
        self._previous: bytes | None = chain.GENESIS

    def forget(self, most_streams: int) -> None:
        """Keep the memory bounded."""
        if len(self.revisions) > most_streams:
            self.revisions.clear()
            self.is_forgetful = True

    def step(self, link: Link) -> None:
        """Check one position against the one before it."""
        findings = self.findings
        findings.checked += 1
        if link.position != findings.position + 1:
            self._gap(link.position)
        self._check_hash(link)
        findings.position = link.position

    def _check_hash(self, link: Link) -> None:
        body, stored = link.body, link.hash
        previous, self._previous = self._previous, None
        if not isinstance(stored, bytes):
            self.findings.at(link.position, "the hash is not made of bytes")
            return
        self.findings.head = self._previous = stored
        if link.stream is None:
            self.findings.at(link.position, f"event {link.event} was removed")
        elif not isinstance(body, bytes):
            self.findings.at(link.position, "the event is not made of bytes")
        else:
            if previous is not None and chain.link(previous, body) != stored:
                self.findings.at(link.position, _CHANGED)
            self._check_columns(link, body)

    def _gap(self, position: int) -> None:
        first, last = self.findings.position + 1, position - 1
        which = f"position {first}" if first == last else f"positions {first} to {last}"
        self.findings.at(first, f"{which} removed")
        # What the next hash was made over is not there any more.
        self._previous = None

    def _check_columns(self, link: Link, body: bytes) -> None:
        """The columns are not hashed, but repeat what the hashed body says."""
        try:
            said = _ENVELOPE.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.findings.at(link.position, "the event cannot be read")
            return
        if (said.stream, said.revision, said.type) != (link.stream, link.revision, link.type):
            self.findings.at(link.position, "stream, revision or type are not those of the event")
        last = self.revisions.get(said.stream, 0)
        if said.revision != last + 1:
            self.findings.at(
                link.position,
                f"revision {said.revision} of {said.stream} comes after revision {last}",
            )
        self.revisions[said.stream] = said.revision


_CHANGED = "the event or its hash was changed, or it stands where another stood"
