"""What a slip says of operators' orders, and of parts that hold its work up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.ordered import numbered
from app.store import breakers
from app.store import tables as t
from domain.breaker import Breaker, BreakerPolicy, after, allows, dump, load, word
from tests.installations import Installation, event, found, installed
from tests.scenes import finish

POLICY = BreakerPolicy(consecutive=1)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path) as made:
        made.send(event())
        finish(made, dead="is encrypted")
        yield made


def shown(running: Installation, *arguments: str) -> str:
    """What a command prints about this installation, over HTTP."""
    reach = ("--url", str(running.http.base_url).rstrip("/"))
    environ = {"LAUFZETTEL_TOKEN": running.token("admin"), "COLUMNS": "220"}
    ended = CliRunner().invoke(app, [*arguments, *reach], env=environ)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.stdout + ended.stderr


def cut_off(running: Installation, scope: str) -> None:
    broken = after(Breaker(POLICY), success=False, now=running.clock.now())
    running.ledger.operate(lambda c, ms: breakers.save(c, scope, dump(broken), ms))


@pytest.mark.req("F2", "B5")
def test_the_slip_and_the_audit_tell_who_tried_what_again_and_why(running: Installation) -> None:
    (job,) = found(running, t.jobs, state="dead")
    token = running.token("admin")
    asked = {"reason": "fixed scanner"}
    assert running.api("POST", f"/jobs/{job.id}/retry", token, json=asked).status_code == 200
    assert "root tried again: fixed scanner" in shown(running, "show", "f-1")
    assert f"a.pdf  {job.id}" in shown(running, "audit")
    of_file = running.api("GET", f"/audit?file={job.stream}", token).json()["items"]
    assert [(row["type"], row["file"]) for row in of_file] == [("JobRetried", "a.pdf")]
    assert running.api("GET", "/audit?file=fil_other", token).json()["items"] == []


def test_tries_are_counted_on_over_an_order_behind_which_their_numbers_begin_again() -> None:
    tries = [{"number": number} for number in (1, 2, 3, 1, 2, 1)]
    assert numbered(tries) == [1, 2, 3, 4, 5, 6]
    # The history of the first two has run out.
    assert numbered(tries[2:]) == [3, 4, 5, 6]


@pytest.mark.req("E6", "F8")
def test_a_part_that_is_cut_off_is_named_with_its_mend_and_resume_tries_at_once(
    running: Installation,
) -> None:
    cut_off(running, "destination:erp")
    for command in (("show", "f-1"), ("messages",)):
        told = shown(running, *command)
        assert "held: erp is cut off, next try " in told
        assert "laufzettel resume destination:erp --reason … tries at once" in told
    resumed = shown(running, "resume", "destination:erp", "--reason", "it is mended")
    assert "1 done" in resumed
    with running.store.read() as connection:
        circuit = load(POLICY, breakers.load(connection, "destination:erp"))
    now = running.clock.now()
    assert (word(circuit, now), allows(circuit, now)) == ("half-open", 1)
    assert "1 done already" in shown(running, "resume", "destination:erp", "--reason", "again")


@pytest.mark.req("F2")
def test_a_paused_part_is_named_where_its_work_waits(running: Installation) -> None:
    shown(running, "pause", "destination:erp", "--reason", "upgrade")
    assert "held: erp is paused (upgrade); laufzettel resume destination:erp" in shown(
        running, "show", "f-1"
    )
