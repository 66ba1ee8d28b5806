"""Cases of the log: who appends when others do, who may change it, and what it says of orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from app.config import load
from app.store import tables as t
from domain.outcomes import Dead
from tests import installations
from tests import runtimes as r
from tests.installations import SUM, Installation, event, found, installed
from tests.runtimes import until
from tests.servers import answering, serving
from tests.workings import deliver, finish_job, process

WHY = {"reason": "the receiver asked for it"}
FAILS_FIVE_TIMES = """
CREATE SEQUENCE failures;
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('failures') <= 5 THEN
        RAISE EXCEPTION 'could not serialize access' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fail BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION fail();
"""


@pytest.fixture
def running(either_database: None, tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def ordered(running: Installation, path: str, token: str, **body: Any) -> Any:
    answer = running.api("POST", path, token, json=WHY | body)
    assert answer.is_success, answer.text
    return answer.json()


def log_of(running: Installation) -> list[Any]:
    return [tuple(row) for row in sorted(found(running, t.events), key=lambda row: row.id)]


@pytest.mark.req("A10", "B1")
def test_f_05_writers_of_one_file_at_one_moment_lose_and_double_nothing(
    either_database: None, side: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        folders = [tmp_path / "a"] if side == "sqlite" else [tmp_path / "a", tmp_path / "b"]
        for folder in folders:
            folder.mkdir()
        several = [stack.enter_context(installed(folder)) for folder in folders]

        def tell(number: int) -> int:
            body = event(id=f"evt-{number}", file_version=number, file_name=f"{number}.pdf")
            return several[number % len(several)].send(body).status_code

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(tell, range(1, 41)))
        (file,) = found(several[0], t.files)
        rows = found(several[0], t.events, stream=file.stream)
        reported = [row for row in rows if row.type == "VersionReported"]
    assert answers == [202] * 40
    assert len(reported) == 40
    assert sorted(row.revision for row in rows) == list(range(1, len(rows) + 1))
    assert file.current == "40"


@pytest.mark.req("A9")
@pytest.mark.parametrize("side", ["postgresql"], indirect=False)
def test_f_05_a_serialization_failure_is_tried_again_five_times_and_shows_nowhere(
    running: Installation,
) -> None:
    def fail_again() -> None:
        url = sa.make_url(installations.DATABASE).set(drivername="postgresql")
        with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
            connection.execute(b"DROP TRIGGER IF EXISTS fail ON events")
            connection.execute(b"DROP FUNCTION IF EXISTS fail")
            connection.execute(b"DROP SEQUENCE IF EXISTS failures")
            connection.execute(FAILS_FIVE_TIMES.encode())

    fail_again()
    assert running.send(event()).status_code == 202
    fail_again()
    process(running)
    jobs = found(running, t.jobs)
    assert {(job.state, job.attempts, job.error) for job in jobs} == {("done", 1, "")}
    assert Counter(row.type for row in found(running, t.events))["VersionReported"] == 1


@pytest.mark.req("B1", "B9")
def test_f_09_no_call_changes_the_log_and_erasing_is_an_event_of_its_own(
    running: Installation,
) -> None:
    admin = running.token()
    described = running.http.get("/schema/openapi.json").json()["paths"]
    log_calls = {path: set(calls) for path, calls in described.items() if "/log" in path}
    assert log_calls
    assert all(calls == {"get"} for calls in log_calls.values())
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert running.api(method, "/log", admin, json=WHY).status_code == 405
        assert running.http.request(method, "/console/log").status_code in {401, 405}

    running.send(event(file_name="Geheim.pdf"))
    stream = process(running)
    deliver(running)
    before = log_of(running)
    ordered(running, f"/files/{stream}/erase", admin)
    after = log_of(running)
    assert after[: len(before)] == before
    assert [row.type for row in found(running, t.events)].count("FileErased") == 1
    kept = [found(running, table) for table in (t.private_parts, t.payloads, t.files)]
    assert "Geheim" not in repr(kept)
    # Whoever had the file is told of what it is to be forgotten; the message about it is blank.
    completed = found(running, t.messages, type="file.version.completed")
    bodies = [row for each in completed for row in found(running, t.bodies, message=each.id)]
    assert [row.data for row in bodies] in ([], [None])
    (artifact,) = {row.sha256 for row in found(running, t.condemned)}
    assert artifact


@pytest.mark.req("B5", "F2")
def test_g_09_each_order_says_who_when_what_why_and_how_many(
    either_database: None, tmp_path: Path
) -> None:
    with installed(tmp_path) as running:
        admin = running.token()
        for number in range(3):
            running.send(event(id=f"e-{number}", file_id=f"f-{number}"))
        one, *others = found(running, t.jobs)
        for job in (one, *others):
            finish_job(running, job.id, Dead("is encrypted"))
        ordered(running, f"/jobs/{one.id}/retry", admin)
        ordered(running, f"/jobs/{one.id}/cancel", admin)
        cleared = ordered(running, "/dead-letters/discard", admin)
        ordered(running, "/destinations/erp/pause", admin)
        ordered(running, "/destinations/erp/resume", admin)
        running.send(event(id="e-9", file_id="f-9"))
        stream = process(running)
    with installed(tmp_path, steps=f"{SUM}, {SUM.replace('sum', 'again')}") as running:
        ordered(running, f"/files/{stream}/reprocess", admin)
        wanted = {
            "JobRetried": 1, "JobCancelled": 1, "JobDiscarded": 2, "Paused": 1, "Resumed": 1,
            "RunStarted": 1,
        }  # fmt: skip
        listed = until(lambda: audited(running, admin, sum(wanted.values())))
    assert cleared["done"] == 2
    assert Counter(each["type"] for each in listed) == wanted
    for each in listed:
        assert (each["cause"]["operator"], each["cause"]["reason"]) == ("root", WHY["reason"])
        assert each["at"]
        assert each["stream"]
    assert {e["stream"] for e in listed if e["type"] == "RunStarted"} == {stream}


def audited(running: Installation, token: str, number: int) -> list[Any]:
    """What the audit lists of orders, once it is all there."""
    items = running.api("GET", "/audit", token, params={"limit": 200}).json()["items"]
    orders = [item for item in items if item["cause"]["reason"] == WHY["reason"]]
    return orders if len(orders) >= number else []


@pytest.mark.req("A15", "B5")
@pytest.mark.usefixtures("either_database")
def test_g_09_a_changed_secret_is_on_the_log_by_its_key_and_never_by_value(tmp_path: Path) -> None:
    with serving(answering(200)) as source, serving(answering(204)) as erp:
        config = r.configured(tmp_path, source=source.host, destination=erp.url("/"))
        with r.running(config):
            pass
        text = config.path.read_text()
        both = text.replace('["env:SECRET"]', '["env:NEW", "env:SECRET"]', 1)
        config.path.write_text(both)
        changed = load(config.path, {"SECRET": r.SECRET, "NEW": "whsec_" + "QUJD" * 8})
        assert isinstance(changed, type(config)), changed
        with r.running(changed) as process:
            rows = r.rows(process.base.store, t.events)
    (last,) = [row for row in rows if row.type == "ConfigurationChanged"][1:]
    assert "sources.contracts.secrets" in str(bytes(last.body))
    assert r.SECRET not in str(rows)
    assert "QUJD" not in str(rows)
