"""What goes wrong in a store."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot do what was asked; the message says why and what to do."""


class StoreUnavailableError(StoreError):
    """The database is down, full, locked or too slow: not known to be stored."""


class StoreOwnedError(StoreError):
    """Another process owns this SQLite store."""


class SchemaError(StoreError):
    """The schema is older or newer than this program."""


class BrokenLogError(StoreError):
    """The log does not hold what the program wrote: a defect or a tampering."""
