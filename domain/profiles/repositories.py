"""Repositories: GitHub and Bitbucket, where files change by pushes and releases."""

from __future__ import annotations

from urllib.parse import quote

from domain import strict_json
from domain.canonical import pointer
from domain.profiles.forms import form_field
from domain.profiles.values import (
    Action,
    Answer,
    ContractBreach,
    Entries,
    FieldMap,
    Item,
    Profile,
    Source,
)
from domain.schemes import Request, Scheme
from domain.strict_json import InvalidJson, JsonObject, JsonValue


def _github_body(request: Request) -> JsonValue | InvalidJson:
    payload = form_field(request, "payload")
    return strict_json.parse(request.body if payload is None else payload)


def _github(_source: Source, request: Request, body: JsonValue) -> Entries:
    word = request.header("x-github-event")
    if not word:
        return ContractBreach("header:x-github-event", "is missing")
    if word == "ping":
        return []
    if word == "push":
        return _pushed(body)
    if word == "release" and pointer(body, "/action") == "published":
        return _released(body)
    action = pointer(body, "/action")
    kind = f"{word}.{action}" if isinstance(action, str) else word
    delivery = request.header("x-github-delivery")
    return [Item({"type": kind, "event_id": f"{kind}:{delivery}"}, action="ignore")]


def _pushed(body: JsonValue) -> Entries:
    repository, after = pointer(body, "/repository/full_name"), pointer(body, "/after")
    commits = pointer(body, "/commits")
    if not isinstance(repository, str) or not isinstance(after, str):
        return ContractBreach("/repository/full_name", "is missing")
    if not isinstance(commits, list):
        return ContractBreach("/commits", "must be an array")
    before, at = pointer(body, "/before"), pointer(body, "/head_commit/timestamp")
    return [
        Item(
            {
                "type": "push",
                "event_id": f"push:{repository}:{before}..{after}:{path}",
                "file_id": f"{repository}:{path}",
                "version": after,
                "name": path.rpartition("/")[2],
                "project": repository,
                "time": at if isinstance(at, str) else None,
                "url": _raw_content(repository, after, path),
            },
            action=action,
        )
        for path, action in _collapsed(commits).items()
    ]


def _raw_content(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{quote(commit)}/{quote(path)}"


def _collapsed(commits: list[JsonValue]) -> dict[str, Action]:
    # The last commit that names a path decides what the push means for it.
    found: dict[str, Action] = {}
    meanings: dict[str, Action] = {"added": "version", "modified": "version", "removed": "deleted"}
    for commit in commits:
        for key, action in meanings.items():
            paths = pointer(commit, f"/{key}")
            for path in paths if isinstance(paths, list) else []:
                if isinstance(path, str) and path:
                    found[path] = action
    return found


def _released(body: JsonValue) -> Entries:
    assets, tag = pointer(body, "/release/assets"), pointer(body, "/release/tag_name")
    if not isinstance(assets, list) or not isinstance(tag, str):
        return ContractBreach("/release/assets", "must be an array")
    shared: JsonObject = {
        "type": "release.published",
        "version": tag,
        "time": _or_none(pointer(body, "/release/published_at")),
        "project": _or_none(pointer(body, "/repository/full_name")),
    }
    return [Item(_asset(asset, shared, tag)) for asset in assets if isinstance(asset, dict)]


def _asset(asset: JsonObject, shared: JsonObject, tag: str) -> JsonObject:
    return {
        **shared,
        "event_id": f"release:{shared['project']}:{tag}:{asset.get('id')}",
        "file_id": asset.get("id"),
        "name": asset.get("name"),
        "size": asset.get("size"),
        "url": asset.get("browser_download_url"),
    }


def _or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


_PREPARED = FieldMap(
    event_id="/event_id",
    type="/type",
    file_id="/file_id",
    version="/version",
    name="/name",
    occurred_at="/time",
    size="/size",
    project="/project",
    url="/url",
)

GITHUB = Profile(
    name="github",
    title="GitHub",
    schemes=(Scheme(places=("header:x-hub-signature-256",), prefix="sha256="),),
    mapping=FieldMap(delivery_id="header:x-github-delivery").over(_PREPARED),
    types={"release.published": "version"},
    order="time",
    comparator="instant",
    answer=Answer(wait_s=10.0),
    body=_github_body,
    items=_github,
    is_batch=True,
    needs_url=False,
    risk="The delivery id is not signed, so repository, commits and path stand for the event.",
)


def _bitbucket(_source: Source, request: Request, body: JsonValue) -> Entries:
    word = request.header("x-event-key")
    if not word:
        return ContractBreach("header:x-event-key", "is missing")
    repository, changes = pointer(body, "/repository/full_name"), pointer(body, "/push/changes")
    if word != "repo:push" or not isinstance(changes, list):
        request_id = request.header("x-request-uuid")
        return [Item({"type": word, "event_id": f"{word}:{request_id}"}, action="ignore")]
    return [Item(_bitbucket_change(word, repository, change)) for change in changes]


def _bitbucket_change(word: str, repository: object, change: JsonValue) -> JsonObject:
    new, old = pointer(change, "/new/target/hash"), pointer(change, "/old/target/hash")
    return {
        "type": word,
        "event_id": f"{word}:{repository}:{old}..{new}",
        "version": _or_none(new),
        "project": _or_none(repository),
        "time": _or_none(pointer(change, "/new/target/date")),
    }


BITBUCKET = Profile(
    name="bitbucket",
    title="Bitbucket Cloud",
    schemes=(Scheme(places=("header:x-hub-signature",), prefix="sha256="),),
    mapping=FieldMap(delivery_id="header:x-request-uuid").over(_PREPARED),
    types={"repo:push": "changed"},
    order="time",
    answer=Answer(wait_s=10.0),
    items=_bitbucket,
    is_batch=True,
    needs_url=False,
    risk="A push names no files: they are asked for with the diffstat.",
)
