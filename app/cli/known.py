"""The values that a filter knows: a name that is none of them is a mistake, not an empty list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from app.cli import words
from app.cli.screen import refuse

if TYPE_CHECKING:  # --help needs none of it
    from app.cli.client import Api


def source_or_exit(api: Api, name: str) -> None:
    """End the command where no source has this name."""
    _known_or_exit("source", name, _names(api, "/sources"))


def filters_or_exit(api: Api, found: dict[str, Any], what: str, **told: str) -> None:
    """End the command where nothing was found since a filter has a value that does not exist.

    What was found counts: rows outlive the source or destination that they are from.
    """
    for key, value in told.items():
        if value and not found["items"]:
            _known_or_exit(key, value, _values(api, what, key))


def _known_or_exit(key: str, value: str, known: tuple[str, ...]) -> None:
    if known and value not in known:
        refuse(f"there is no {key} {words.clean(value)}", f"name one of: {', '.join(known)}")


def _values(api: Api, what: str, key: str) -> tuple[str, ...]:
    if key in {"source", "destination"}:
        return _names(api, f"/{key}s")
    return _words(what, key)


def _names(api: Api, path: str) -> tuple[str, ...]:
    return tuple(words.clean(item["name"]) for item in api.get(path)["items"])


def _words(what: str, key: str) -> tuple[str, ...]:
    from app.store.deliveries import Verdict
    from domain.work import JobKind, JobPhase, MessagePhase, VersionPhase

    found = {
        ("files", "state"): ("waiting", *get_args(VersionPhase)),
        ("jobs", "state"): ("running", *get_args(JobPhase)),
        ("jobs", "kind"): get_args(JobKind),
        ("messages", "state"): ("sending", *get_args(MessagePhase)),
        ("deliveries", "verdict"): get_args(Verdict),
    }
    return found.get((what, key), ())
