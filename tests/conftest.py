"""Resources that tests are given: databases of both kinds, fresh for each test, and the log."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from app.clock import SettableClock
from app.store import migrate
from app.store.engine import Store, open_store
from app.telemetry import configure_logs
from tests import installations, runtimes
from tests.brokers import valkey_server
from tests.buckets import bucket_or_skip
from tests.crash.places import Embedded, Place, Services, shared
from tests.crash.zygotes import Zygote, shared_zygote
from tests.stores import SIDES, Postgres

# The laws run the same examples every time; `--hypothesis-profile=long` looks for new ones, longer,
# and prints how to run a failing one again.
settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("long", deadline=None, print_blob=True)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-pairs",
        action="store_true",
        help="the long runs at full size: every pair of points, 5,000 files, a million events",
    )


@pytest.fixture(scope="session")
def zygote() -> Zygote:
    """Starts processes of the program within a moment."""
    return shared_zygote()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def services(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """What several processes share, all of it from wheels."""
    with (
        valkey_server(tmp_path_factory.mktemp("valkey")) as valkey,
        bucket_or_skip(tmp_path_factory.mktemp("s3")) as bucket,
    ):
        yield Services(postgres, valkey, bucket)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where an installation keeps its things: by itself, or with others (``tests.crash.places``)."""
    if request.param == "embedded":
        return Embedded(tmp_path)
    return shared(tmp_path, request.getfixturevalue("services"))


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


@pytest.fixture
def either_database(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the test configures has its store on each backend in turn."""
    monkeypatch.setattr(runtimes, "DATABASE", store_url)
    monkeypatch.setattr(installations, "DATABASE", store_url)


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """What is logged from here on, as JSON lines at noon; afterwards all is as before."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    configure_logs(stream, clock=SettableClock(noon), as_json=True)
    yield stream
    root.handlers[:], root.level = before
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
