"""What events hold on to by commitments: their private parts, and the bytes of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from app.store.engine import Store
from app.store.verifying import Sealed, bodies, count_positions, erased_at, sealed
from app.verify.findings import Findings, Progress, unheard
from domain import chain
from domain.events import MessageOrder, Told
from domain.installation import EVENT_TYPES
from domain.telling import commitment

AT_ONCE = 2000
_TELLING = frozenset(name for name, kind in EVENT_TYPES.items() if issubclass(kind, Told))


class _Envelope(msgspec.Struct):
    private: dict[str, str]


class _Orders(msgspec.Struct):
    messages: tuple[MessageOrder, ...] = ()


class _Telling(msgspec.Struct):
    data: _Orders


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_TOLD = msgspec.json.Decoder(_Telling)


def verify_parts(store: Store, progress: Progress = unheard) -> Findings:
    """Check every private part and every message's bytes against their events."""
    findings = Findings()
    with store.read() as connection:
        total = count_positions(connection)
    while True:
        with store.snapshot() as connection:
            found = sealed(connection, findings.position, limit=AT_ONCE)
            if not found:
                return findings
            missing = [event for event in found if not _is_whole(findings, event)]
            _check_missing(connection, findings, missing)
            _check_bodies(connection, findings, found)
        findings.checked += len(found)
        findings.position = found[-1].position
        progress(findings.checked, max(total, findings.checked))


def _is_whole(findings: Findings, event: Sealed) -> bool:
    """Check a private part; false where one is missing that the event holds on to."""
    try:
        promised = _ENVELOPE.decode(event.body).private
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return True  # the chain says so
    if event.parts is None or event.salt is None:
        return not promised
    try:
        values: Mapping[str, Any] = msgspec.json.decode(event.parts, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        findings.at(event.position, "the private part cannot be read")
        return True
    for name in sorted(promised.keys() | values.keys()):
        if not _is_same(event.salt, name, values, promised):
            findings.at(event.position, f"the private part `{_shown(name)}` was changed")
    return True


def _is_same(
    salt: bytes, name: str, values: Mapping[str, Any], promised: Mapping[str, str]
) -> bool:
    if name not in values or name not in promised:
        return False
    return chain.commitment(salt, name, values[name]) == promised[name]


def _shown(name: str) -> str:
    return name if name.isidentifier() else "?"


def _check_missing(
    connection: sa.Connection, findings: Findings, missing: Sequence[Sealed]
) -> None:
    if not missing:
        return
    erased = erased_at(connection, {event.stream for event in missing})
    for event in missing:
        if event.revision < erased.get(event.stream, 0):
            findings.erased += 1
        else:
            findings.at(event.position, "the private part was removed without an erasure")


def _check_bodies(connection: sa.Connection, findings: Findings, events: Sequence[Sealed]) -> None:
    orders = [
        (event.position, order)
        for event in events
        if event.type in _TELLING
        for order in _orders(event.body)
    ]
    if not orders:
        return
    there = bodies(connection, [order.id for _, order in orders])
    for position, order in orders:
        salt, data = there.get(order.id, (b"", b""))
        if salt is None or data is None:
            findings.erased += 1
        elif commitment(salt, data) != order.commitment:
            findings.at(position, f"the bytes of {order.id} were changed or removed")


def _orders(body: bytes) -> tuple[MessageOrder, ...]:
    try:
        return _TOLD.decode(body).data.messages
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
