from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from app.clock import SettableClock
from app.telemetry import METRICS, Metrics, configure_logs, log

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
Records = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def records(log_lines: io.StringIO) -> Records:
    return lambda: [json.loads(line) for line in log_lines.getvalue().split("\n") if line]


def test_a_record_is_data_with_a_name(records: Records) -> None:
    log.info("job.finished", job_id="job_1", attempt=2, outcome="done")
    assert records() == [
        {
            "at": "2026-11-30T12:00:00.000Z",
            "level": "info",
            "event": "job.finished",
            "job_id": "job_1",
            "attempt": 2,
            "outcome": "done",
        }
    ]


@pytest.mark.req("F8")
@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_in_a_value_begins_a_second_line(log_lines: io.StringIO, as_json: bool) -> None:
    stream = io.StringIO()
    configure_logs(stream, clock=SettableClock(NOON), as_json=as_json)
    hostile = 'a\nb\r\tc\x1b[31m\x85\u2028\u202e"} {"event":"forged"'
    log.warning("delivery.refused", reason=hostile, headers={"x\ny": hostile})
    logging.getLogger("some.package").warning("%s", hostile)
    text = stream.getvalue()
    assert text.count("\n") == 2
    assert text.isascii()
    assert all(char.isprintable() for char in text.replace("\n", ""))


@pytest.mark.req("F7")
def test_no_secret_reaches_a_line(records: Records) -> None:
    url = "https://me:s3cret@erp.example/hooks?sig=s3cret#s3cret"
    log.info(
        "message.failed",
        url=url,
        reason=f"cannot reach {url}, gave up",
        authorization="Bearer s3cret",
        headers={"webhook-signature": "v1,s3cret", "x-token": "s3cret"},
        secrets=["s3cret"],
        body=b"s3cret",
        attempts=[{"url": url}],
    )
    logging.getLogger("some.package").warning("GET %s failed", url)
    first, second = records()
    assert "s3cret" not in json.dumps([first, second])
    assert first["url"] == "https://erp.example/hooks"
    assert first["reason"] == "cannot reach https://erp.example/hooks gave up"
    assert second["library"] == "some.package"


def test_an_error_is_told_by_type_and_place_only(records: Records) -> None:
    try:
        int("s3cret")
    except ValueError as error:
        log.exception("ledger.failed", exc_info=error)
        log.exception("ledger.failed")
        logging.getLogger("lib").exception("it broke")
    for record in records():
        assert record["error"] == "ValueError"
        assert "test_an_error_is_told" in record["error_at"][-1]
    assert "s3cret" not in json.dumps(records())


def test_a_long_value_is_cut(records: Records) -> None:
    log.info("delivery.refused", reason="x" * 5000)
    assert len(records()[0]["reason"]) == 2001


def test_what_is_below_the_level_is_not_written(records: Records) -> None:
    log.debug("job.claimed")
    assert records() == []


def test_context_is_part_of_each_record(records: Records) -> None:
    structlog.contextvars.bind_contextvars(trace_id="t1")
    log.info("job.finished")
    assert records()[0]["trace_id"] == "t1"


def test_metrics_are_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.count("deliveries", source="contracts", verdict="accepted")
    metrics.set("commands_waiting", 3)
    metrics.observe("commit_seconds", 0.002)
    page = metrics.page().decode()
    assert 'laufzettel_deliveries_total{source="contracts",verdict="accepted"} 1.0' in page
    assert "laufzettel_commands_waiting 3.0" in page
    assert 'laufzettel_commit_seconds_bucket{le="0.0025"} 1.0' in page


def test_a_metric_that_is_not_declared_is_a_defect() -> None:
    with pytest.raises(KeyError):
        Metrics().count("surprises")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
