"""The bytes of every artifact against their digest, read in pieces."""

from __future__ import annotations

import hashlib

from app.artifacts import Blobs, MissingBlobError
from app.store.engine import Store
from app.store.verifying import Recorded, artifacts, count_artifacts
from app.verify.findings import Findings, Progress, unheard

AT_ONCE = 1000


def verify_artifacts(store: Store, blobs: Blobs, progress: Progress = unheard) -> Findings:
    """Read every artifact's bytes once, in constant memory.

    Raises ``BlobsAwayError`` where the store of blobs does not answer.
    """
    findings = Findings()
    with store.read() as connection:
        total = count_artifacts(connection)
    last, verdict = Recorded("", "", 0), ""
    while True:
        with store.read() as connection:
            found = artifacts(connection, last, limit=AT_ONCE)
        for artifact in found:
            if artifact.sha256 != last.sha256:
                verdict = _judged(blobs, artifact)
            last = artifact
            findings.checked += 1
            if verdict:
                findings.add(f"artifact {artifact.id}", verdict)
            progress(findings.checked, max(total, findings.checked))
        if not found:
            return findings


def _judged(blobs: Blobs, artifact: Recorded) -> str:
    """What is wrong with an artifact's blob, "" for nothing."""
    sha256 = artifact.sha256
    digest = hashlib.sha256()
    read_bytes = 0
    try:
        for piece in blobs.stream(sha256):
            digest.update(piece)
            read_bytes += len(piece)
    except MissingBlobError:
        return f"blob {sha256} is missing"
    except ValueError:
        return "its digest is none"
    if digest.hexdigest() != sha256:
        return f"the bytes of blob {sha256} are not those of its digest"
    return (
        "" if read_bytes == artifact.size_bytes else f"blob {sha256} has another size than recorded"
    )
