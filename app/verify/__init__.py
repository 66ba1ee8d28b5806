"""Is all as it was written? The chain of the log, what its events hold on to, the artifacts."""

from __future__ import annotations

from app.verify.artifacts import verify_artifacts
from app.verify.chain import verify_chain
from app.verify.checkpoints import verify_checkpoints
from app.verify.findings import Fault, Findings, Progress
from app.verify.parts import verify_parts

__all__ = [
    "Fault",
    "Findings",
    "Progress",
    "verify_artifacts",
    "verify_chain",
    "verify_checkpoints",
    "verify_parts",
]
