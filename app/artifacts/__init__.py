"""Bytes under their digest: created if absent, never overwritten, in a folder or in S3."""

from __future__ import annotations

from app.artifacts.blobs import Blob, Blobs
from app.artifacts.errors import BlobsAwayError, BlobsError, DamagedBlobError, MissingBlobError
from app.artifacts.notes import CHECKPOINTS, ERASURES
from app.artifacts.places import open_blobs, scratch_root
from app.artifacts.scratch import Scratch, open_scratch

__all__ = [
    "CHECKPOINTS",
    "ERASURES",
    "Blob",
    "Blobs",
    "BlobsAwayError",
    "BlobsError",
    "DamagedBlobError",
    "MissingBlobError",
    "Scratch",
    "open_blobs",
    "open_scratch",
    "scratch_root",
]
