"""What goes wrong with the store of blobs."""

from __future__ import annotations


class BlobsError(Exception):
    """Something is wrong with the store of blobs."""


class BlobsAwayError(BlobsError):
    """The store of blobs cannot be used now; later it may."""


class MissingBlobError(BlobsError):
    """A blob that was recorded is not there."""


class DamagedBlobError(BlobsError):
    """Under a digest lie bytes that cannot be its."""
