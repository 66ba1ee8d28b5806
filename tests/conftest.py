"""Resources that tests are given: databases of both kinds, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import migrate
from app.store.engine import Store, open_store
from tests.stores import SIDES, Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store_url(side: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty store; its schema is of this program."""
    if side == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        url = server.fresh()
        yield url
        server.drop(url)
    else:
        yield f"sqlite:///{tmp_path}/laufzettel.db"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store on each backend; its schema is of this program."""
    opened = open_store(store_url)
    migrate.upgrade(opened)
    yield opened
    opened.close()
