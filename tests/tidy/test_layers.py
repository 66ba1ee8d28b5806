"""What lint-imports cannot say: who alone may use which library, and modules that nobody uses."""

from __future__ import annotations

import pytest

from tests.tidy import tree

# A library, and the modules that may import it (each with all below it).
ONLY = {
    "sqlalchemy": (
        "app.store",
        "migrations",
        "app.ledger",
        "app.replay",
        "app.verify",
    ),  # pass connections on
    "psycopg": ("app.store", "migrations"),
    "sqlite3": ("app.store", "migrations"),
    "alembic": ("app.store", "migrations"),
    "dramatiq": ("jobs.worker", "jobs.actors", "jobs.relay", "jobs.courier", "jobs.broker"),
    "litestar": ("app.web", "app.compose"),
    "obstore": ("app.artifacts",),
    "httpx": ("jobs.outbound", "jobs.download", "jobs.notify", "app.cli"),
    "structlog": ("app.telemetry",),
    "opentelemetry": ("app.telemetry.traces",),  # inside functions: it may not be installed
    "prometheus_client": ("app.telemetry",),
    "pypdfium2": ("jobs.steps",),
    "app.store.event_log": ("app.store", "app.ledger", "app.replay"),
}
# An effect holds no database.
BELOW_THE_RUNNER = (
    "jobs.download",
    "jobs.transform",
    "jobs.notify",
    "jobs.steps",
    "jobs.sandbox",
    "jobs.outbound",
    "jobs.tools",
)
# Nobody imports these: the command line, the server and the broker start them, or alembic.
STARTED = ("app.cli", "app.compose", "jobs.worker", "migrations")
# Written ahead of who will use them; each line goes with the commit that does.
AHEAD = {
    "app.store.queue": "claimed from by jobs.runner and jobs.relay",
}


def is_within(name: str, tops: tuple[str, ...]) -> bool:
    return any(name == top or name.startswith(f"{top}.") for top in tops)


@pytest.mark.parametrize("library, users", ONLY.items())
def test_a_library_has_its_place(library: str, users: tuple[str, ...]) -> None:
    strangers = {
        tree.dotted(path)
        for path in tree.modules(*tree.PRODUCT)
        for name in tree.imports(path)
        if is_within(name, (library,)) and not is_within(tree.dotted(path), users)
    }
    assert strangers == set()


def test_an_effect_holds_no_database() -> None:
    guilty = {
        (tree.dotted(path), name)
        for path in tree.modules("jobs")
        if is_within(tree.dotted(path), BELOW_THE_RUNNER)
        for name in tree.imports(path)
        if is_within(name, ("app.ledger", "app.store", "app.replay"))
    }
    assert guilty == set()


def test_no_module_is_dead() -> None:
    used = {
        name for path in tree.modules(*tree.PRODUCT, "tests", "docs") for name in tree.imports(path)
    }
    texts = [path.read_text() for path in tree.modules("jobs")]
    unused = {
        name
        for path in tree.modules(*tree.PRODUCT)
        if path.name != "__init__.py"
        and (name := tree.dotted(path)) not in used
        and not is_within(name, STARTED)
        and name not in AHEAD
        and not any(f"from {name} import" in text for text in texts)  # inside a child's program
    }
    assert unused == set()
