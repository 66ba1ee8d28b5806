"""What goes wrong in the core: only defects, for everything expected is a value."""

from __future__ import annotations


class IllegalTransitionError(Exception):
    """An event asks for a transition that the table does not have."""

    def __init__(self, what: str, current: str, to: str) -> None:
        super().__init__(f"a {what} cannot go from {current} to {to}")
