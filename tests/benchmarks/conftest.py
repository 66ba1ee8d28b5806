"""The figures of one run, collected from all benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.figures import Figures, machine, show


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-figures",
        action="store_true",
        help="write the results to tests/benchmarks/results.json and into the page about them",
    )


@pytest.fixture(scope="session")
def figures(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Figures]:
    collected, about = Figures(), machine(tmp_path_factory.mktemp("machine"))
    yield collected
    show(collected, about)
    if request.config.getoption("--keep-figures"):
        collected.keep(about)
