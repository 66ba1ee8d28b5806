"""The log against its signed ends, as they were left beside the artifacts."""

from __future__ import annotations

from app.artifacts import CHECKPOINTS, Blobs
from app.store.checkpoints import contradiction
from app.store.engine import Store
from app.verify.findings import Findings, Progress, unheard


def verify_checkpoints(store: Store, blobs: Blobs, progress: Progress = unheard) -> Findings:
    """Compare every checkpoint with the log: one that was cut or written anew does not agree.

    Raises ``BlobsAwayError`` where the store of blobs does not answer.
    """
    findings = Findings()
    for name, data in blobs.notes.all(CHECKPOINTS):
        with store.read() as connection:
            said = contradiction(connection, data)
        findings.checked += 1
        if said:
            findings.add(f"checkpoint {name}", said)
        progress(findings.checked, findings.checked)
    return findings
