"""What the installation says of itself through its API, held against the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from app.cli.client import Api
from app.cli.demo.oracle import expected
from app.cli.demo.script import Scene, Tell

_ALL = 1000
_OPEN = frozenset({"ready", "running", "waiting", "pending", "sending", "unclear", "held"})
_COUNTED = ("accepted", "duplicate", "conflict")


def contradictions(api: Api, scenes: tuple[Scene, ...], seen: dict[str, int]) -> list[str]:
    """What the API says otherwise than it was seen from outside."""
    files = {file["file_id"]: file for file in _all(api, "/files")}
    return [*_states(files, scenes), *_unfinished(api), *_deliveries(api, seen)]


def _states(files: dict[str, Any], scenes: tuple[Scene, ...]) -> Iterator[str]:
    for scene in scenes:
        document = scene.document
        found = files.get(document.file_id, {})
        is_deleted = ("file.deleted", "") in expected(scene).must
        wanted = "deleted" if is_deleted else "failed" if document.flaw else "completed"
        if found.get("state") != wanted:
            yield f"{document.file_id} is {found.get('state')} inside, and should be {wanted}"
        if wanted == "completed" and found.get("result") != _newest(scene):
            yield f"{document.file_id} shows the result of {found.get('result')}"


def _newest(scene: Scene) -> str:
    told = [act.event.version or "" for act in scene.acts if isinstance(act, Tell)]
    return max((version for version in told if version), key=int)


def _unfinished(api: Api) -> Iterator[str]:
    for path in ("/jobs", "/messages"):
        for row in _all(api, path):
            if row["state"] in _OPEN:
                yield f"{row['id']} is still {row['state']}"


def _deliveries(api: Api, seen: dict[str, int]) -> Iterator[str]:
    inside: dict[str, int] = {}
    for row in _all(api, "/deliveries"):
        inside[row["verdict"]] = inside.get(row["verdict"], 0) + row["count"]
    # What came late or was of no use is "stale" or "ignored" inside, and 202 outside.
    inside["accepted"] = sum(inside.get(v, 0) for v in ("accepted", "stale", "ignored"))
    for verdict in _COUNTED:
        # An answer that was lost with the process was recorded, and never seen.
        if inside.get(verdict, 0) < seen.get(verdict, 0):
            yield f"{inside.get(verdict, 0)} {verdict} inside, {seen.get(verdict, 0)} were answered"


def _all(api: Api, path: str) -> Iterable[Any]:
    rows: list[Any] = api.page(path, limit=_ALL)["items"]
    return rows
