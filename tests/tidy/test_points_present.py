"""Code that touches the outside passes a point, so that the crash suite can kill it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy import tree

# What a commit, a rename, a put into a store and a call over the network look like.
TOUCHES = {
    "commit",
    "rename",
    "create_connection",
    "http.open",
    "writing.begin",
    "obstore.put",
    "obstore.delete",
    "os.link",
    "os.replace",
}
# Where a touch is covered by a point of another function, or harms nobody.
WITHOUT = {
    "app.artifacts.places._link": "inside blobs.put.before and blobs.fsync.after",
    "app.artifacts.places._copy": "inside blobs.put.before and blobs.fsync.after",
    "app.artifacts.places.put": "inside blobs.put.before and blobs.put.after",
    "app.artifacts.places.delete": "inside blobs.delete.before and blobs.delete.after",
    "app.cli.client._answering": "asks whether a process is there",
    "app.web.server._is_listening": "asks whether we are there ourselves",
    "app.compose.serving._fetcher": "outbound.connect: reads a document, changes nothing",
    "app.compose.serving.fetch": "the same",
    "app.compose.preparing.identity_of": "one row once, before anything is served",
    "app.ledger._operated": "claims and renewals: runner.claim.after",
    "app.ledger.sequencing._lead": "takes a term, which another takes after its end",
    "app.ledger.sequencing._resign": "gives a term up, which would end by itself",
    "app.store.locks.alone": "holds a lock and writes nothing",
    "app.store.migrate._upgrade_beside_others": "holds a lock and writes nothing",
    "app.store.migrate._copied": "a copy is whole when it has its name; migrate.commit.before",
    "jobs.outbound.credentials._asked": "outbound.connect: asks for a token, changes nothing",
    "jobs.outbound.wire._connected": "inside outbound.connect.before and outbound.connect.after",
    "jobs.steps.posting.__call__": "outbound.connect: a repeat has the same key",
    "jobs.runner.effects.open": "passes calls on to what has points",
}


def touches(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = getattr(node.func.value, "attr", getattr(node.func.value, "id", ""))
            yield from {node.func.attr, f"{owner.removeprefix('_')}.{node.func.attr}"} & TOUCHES


def passes_a_point(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call) and getattr(node.func, "id", "") == "point"
        for node in ast.walk(function)
    )


def bare() -> set[str]:
    return {
        f"{tree.dotted(path)}.{node.name}"
        for path in tree.modules("app", "jobs")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and any(touches(node))
        and not passes_a_point(node)
    }


def test_what_touches_the_outside_passes_a_point() -> None:
    assert bare() - WITHOUT.keys() == set()


def test_every_exception_is_still_one() -> None:
    assert WITHOUT.keys() - bare() == set()
