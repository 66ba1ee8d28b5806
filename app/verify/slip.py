"""An auditor's slip, checked without a server or a database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.store import signing
from domain import chain

KIND = "laufzettel.slip.1"


def slip_faults(document: Mapping[str, Any], *, key: str = "") -> list[str]:
    """What is wrong with a slip; nothing if it says what its installation signed.

    ``key`` is the public key that the auditor was told; without it any true signature will do.
    """
    signer = signing.signer_of(document)
    if document.get("kind") != KIND or signer is None:
        return ["the signature is not true: the slip was changed, or is none"]
    faults = [] if key in {"", signer} else ["the slip is signed by another installation"]
    try:
        faults += _event_faults(document["events"])
        checkpoint = document["checkpoint"]
        if signing.signer_of(checkpoint) != signer:
            faults.append("the checkpoint is not signed by the same installation")
        last = max((event["position"] for event in document["events"]), default=0)
        if checkpoint["position"] < last:
            faults.append("the checkpoint lies before the last event")
    except (KeyError, TypeError, ValueError) as error:
        faults.append(f"the slip cannot be read ({type(error).__name__})")
    return faults


def _event_faults(events: list[dict[str, Any]]) -> list[str]:
    faults = []
    for number, event in enumerate(events, start=1):
        body = event["body"].encode()
        told = json.loads(body)
        if chain.link(bytes.fromhex(event["previous"]), body).hex() != event["hash"]:
            faults.append(f"revision {number}: its hash is not that of its place on the log")
        if told["revision"] != number:
            faults.append(f"revision {number} is missing")
        for name, value in event["private"].items():
            salt = bytes.fromhex(event["salt"])
            if chain.commitment(salt, name, value) != told["private"].get(name):
                faults.append(f"revision {number}: the value of {name} is not the one committed to")
    return faults
