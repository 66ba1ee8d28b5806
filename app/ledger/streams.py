"""Which streams a request is about: what it loads, and what must be locked for it."""

from __future__ import annotations

from typing import assert_never

from app.ledger.requests import Accept, Control, Finish, Note, Order, Request


def streams_of(request: Request) -> tuple[str, ...]:
    """Every stream that a request may append to: what must be locked for it."""
    match request:
        case Accept(source=source, control=control):
            # The event's own stream: a conflict is recorded there, and two deliveries of one event
            # about two files wait for each other.
            notice = f"source:{source}" if control is not None else ""
            return tuple(s for s in (file_stream(request), request.event, notice) if s)
        case Control(stream=stream):
            return (stream,)
        case Finish() | Order():
            return (file_stream(request),)
        case Note():
            return ()
        case _:
            assert_never(request)


def file_stream(request: Request) -> str:
    """The stream of the file that a request is about; "" where it is about none."""
    match request:
        case Accept(command=command):
            return command.stream if command is not None else ""
        case Finish(command=command) | Order(command=command):
            return command.stream
        case Control() | Note():
            return ""
        case _:
            assert_never(request)
