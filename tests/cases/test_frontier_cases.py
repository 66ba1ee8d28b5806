"""Case G-07 on PostgreSQL alone: who holds the order up is seen, before anybody asks why."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests import installations
from tests import runtimes as r
from tests.cases.test_standstill_cases import gauges
from tests.installations import event, installed
from tests.stores import Postgres


@pytest.mark.req("B1", "F8")
def test_g_07_a_stranger_who_holds_the_order_up_is_seen_in_the_numbers(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installations, "DATABASE", postgres.fresh())
    with (
        psycopg.connect(postgres.url("postgres")) as stranger,
        psycopg.connect(postgres.url("postgres")) as reader,
        installed(tmp_path) as running,
    ):
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM pg_class")
        assert gauges(running)["frontier_age_seconds"] == 0
        stranger.execute("SELECT pg_current_xact_id()")
        running.send(event())
        r.until(lambda: gauges(running)["unsequenced"] >= 1)
        assert gauges(running)["frontier_age_seconds"] > 0
        stranger.rollback()
        r.until(lambda: gauges(running)["unsequenced"] == 0)
        assert gauges(running)["frontier_age_seconds"] == 0
