"""Examples of every transition: given these acts, when this happens, the phase is that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domain import commands as c
from domain.outcomes import Again, Dead, Unclear
from domain.schedule import RetryPolicy
from tests.unit.world import (
    ERP,
    FIVE_TRIES,
    INVOICES,
    INVOICES_2,
    OPERATOR,
    STREAM,
    World,
    deleted,
    renamed,
    restored,
    version,
)

Act = Callable[[World], object]
ORDER: dict[str, Any] = {"stream": STREAM, "cause": OPERATOR}
ONE_TRY = RetryPolicy(attempts=1)
PDF_ONLY = replace(INVOICES, name_pattern="*.pdf")
HOLDING = replace(ERP, unclear="hold")


def v1(name: str = "invoice.pdf") -> Act:
    return lambda w: w.tell(version("1", sequence=1, name=name))


def newer(w: World) -> None:
    w.tell(version("2", sequence=5))


def delete(w: World) -> None:
    w.tell(deleted(7))


def restore(w: World) -> None:
    w.tell(restored(8))


def drain(w: World) -> None:
    w.work()


def jobs_done(w: World) -> None:
    w.work_jobs()


def job(name: str, outcome: Any = None, *, retry: RetryPolicy = FIVE_TRIES) -> Act:
    def act(w: World) -> None:
        w.claim(w.job(name).id)
        w.end_job(w.job(name).id, outcome, retry=retry)

    return act


def claim(name: str) -> Act:
    return lambda w: w.claim(w.job(name).id)


def end(name: str, outcome: Any = None) -> Act:
    return lambda w: w.end_job(w.job(name).id, outcome)


def retry(name: str) -> Act:
    return lambda w: w.given(c.RetryJob(job=w.job(name).id, **ORDER))


def cancel(name: str) -> Act:
    return lambda w: w.given(c.CancelJob(job=w.job(name).id, **ORDER))


def discard(name: str) -> Act:
    return lambda w: w.given(c.DiscardJob(job=w.job(name).id, **ORDER))


def message(outcome: Any = None, *, retry: RetryPolicy = FIVE_TRIES) -> Act:
    def act(w: World) -> None:
        last = w.messages()[-1].id
        w.claim(last)
        w.end_message(last, outcome, retry=retry)

    return act


def resolve(outcome: Any, *, force: bool = False) -> Act:
    return lambda w: w.given(
        c.ResolveMessage(message=w.messages()[0].id, outcome=outcome, force=force, **ORDER)
    )


def reprocess(w: World) -> None:
    w.recipes = (INVOICES_2,)
    w.given(c.Reprocess(version="1", **ORDER))


def holding(w: World) -> None:
    w.destinations = (HOLDING,)


BUSY = Again("busy")
BROKEN = Dead("broken")
SILENT = Unclear("no answer")
DOWNLOADING: list[Act] = [v1(), job("download", BUSY)]
TRANSFORMING: list[Act] = [v1(), job("download")]
NOTIFYING: list[Act] = [v1(), jobs_done]
COMPLETED: list[Act] = [v1(), drain]
FAILED: list[Act] = [v1(), job("download"), job("text", BROKEN), job("preview")]
NO_DOWNLOAD: list[Act] = [v1(), job("download", BROKEN)]
NOT_TOLD: list[Act] = [*NOTIFYING, message(BROKEN)]
SUPERSEDED: list[Act] = [v1(), newer]
IGNORED: list[Act] = [v1("notes.txt")]
DELETED: list[Act] = [v1(), delete]
DISCARDED: list[Act] = [v1(), job("download"), cancel("text"), job("preview")]
OPTIONAL_DEAD: list[Act] = [v1(), job("download"), job("preview", BROKEN), job("text")]

VERSION_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("received", [v1()], job("download", BUSY), "downloading"),
    ("received", [v1()], job("download"), "transforming"),
    ("received", [v1()], job("download", BROKEN), "failed"),
    ("received", [v1()], newer, "superseded"),
    ("received", [v1()], delete, "deleted"),
    ("received", [v1()], cancel("download"), "discarded"),
    ("received", [v1(), claim("download"), delete, restore], end("download"), "transforming"),
    ("downloading", DOWNLOADING, reprocess, "received"),
    ("downloading", DOWNLOADING, job("download", BUSY), "downloading"),
    ("downloading", DOWNLOADING, job("download"), "transforming"),
    ("downloading", DOWNLOADING, job("download", BUSY, retry=ONE_TRY), "failed"),
    ("downloading", DOWNLOADING, newer, "superseded"),
    ("downloading", DOWNLOADING, delete, "deleted"),
    ("downloading", DOWNLOADING, cancel("download"), "discarded"),
    ("transforming", TRANSFORMING, job("text", BUSY), "transforming"),
    ("transforming", TRANSFORMING, jobs_done, "notifying"),
    ("transforming", [*TRANSFORMING, job("preview")], job("text", BROKEN), "failed"),
    ("transforming", [*TRANSFORMING, job("text")], job("preview", BROKEN), "notifying"),
    ("transforming", [*TRANSFORMING, job("text")], cancel("preview"), "notifying"),
    ("transforming", TRANSFORMING, cancel("text"), "transforming"),
    ("transforming", [*TRANSFORMING, job("preview")], cancel("text"), "discarded"),
    ("transforming", TRANSFORMING, newer, "superseded"),
    ("transforming", TRANSFORMING, delete, "deleted"),
    ("notifying", NOTIFYING, message(), "completed"),
    ("notifying", NOTIFYING, message(BUSY), "notifying"),
    ("notifying", NOTIFYING, message(SILENT), "notifying"),
    ("notifying", NOTIFYING, message(BROKEN), "failed"),
    ("notifying", NOTIFYING, resolve("discard"), "completed"),
    ("notifying", NOTIFYING, newer, "superseded"),
    ("notifying", NOTIFYING, delete, "deleted"),
    ("notifying", OPTIONAL_DEAD, retry("preview"), "transforming"),
    ("completed", COMPLETED, newer, "completed"),
    ("completed", COMPLETED, delete, "deleted"),
    ("completed", COMPLETED, resolve("resend"), "completed"),
    ("completed", [*OPTIONAL_DEAD, message()], retry("preview"), "transforming"),
    ("failed", NO_DOWNLOAD, retry("download"), "downloading"),
    ("failed", NO_DOWNLOAD, discard("download"), "discarded"),
    ("failed", FAILED, retry("text"), "transforming"),
    ("failed", FAILED, discard("text"), "discarded"),
    ("failed", FAILED, newer, "failed"),
    ("failed", FAILED, delete, "deleted"),
    ("failed", NOT_TOLD, resolve("resend"), "notifying"),
    ("failed", NOT_TOLD, resolve("delivered"), "completed"),
    ("failed", NOT_TOLD, resolve("discard"), "completed"),
    ("superseded", SUPERSEDED, delete, "deleted"),
    (
        "superseded",
        SUPERSEDED,
        lambda w: w.tell(version("1", value="00009", sequence=6, event="again")),
        "received",
    ),
    ("ignored", IGNORED, delete, "deleted"),
    ("ignored", IGNORED, lambda w: w.tell(renamed(3, "notes.pdf")), "received"),
    ("ignored", IGNORED, lambda w: w.tell(renamed(3, "notes.doc")), "ignored"),
    ("deleted", DELETED, restore, "received"),
    ("deleted", [*IGNORED, delete], restore, "ignored"),
    ("deleted", [*SUPERSEDED, delete], restore, "superseded"),
    ("deleted", [*COMPLETED, newer, delete], restore, "completed"),
    ("discarded", DISCARDED, retry("text"), "transforming"),
    ("discarded", [v1(), cancel("download")], retry("download"), "downloading"),
    ("discarded", DISCARDED, newer, "discarded"),
    ("discarded", DISCARDED, delete, "deleted"),
]

# A run that finds the bytes goes on to the steps within the same command.
IN_ONE_COMMAND: list[tuple[str, list[Act], Act, str]] = [
    ("transforming", TRANSFORMING, reprocess, "transforming"),
    ("notifying", NOTIFYING, reprocess, "transforming"),
    ("completed", COMPLETED, reprocess, "transforming"),
    ("failed", FAILED, reprocess, "transforming"),
    ("discarded", DISCARDED, reprocess, "transforming"),
    ("deleted", [*COMPLETED, delete, drain], restore, "notifying"),
]

JOB_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("ready", [v1()], job("download", BUSY), "waiting"),
    ("ready", [v1()], job("download", c.Lost()), "waiting"),
    ("ready", [v1()], job("download"), "done"),
    ("ready", [v1()], job("download", BROKEN), "dead"),
    ("ready", [v1()], cancel("download"), "cancelled"),
    ("ready", [v1()], newer, "cancelled"),
    ("ready", [v1(), claim("download")], delete, "ready"),
    ("ready", [v1(), claim("download"), delete], end("download"), "cancelled"),
    ("waiting", DOWNLOADING, retry("download"), "ready"),
    ("waiting", DOWNLOADING, job("download", BUSY), "waiting"),
    ("waiting", DOWNLOADING, job("download"), "done"),
    ("waiting", DOWNLOADING, job("download", BUSY, retry=ONE_TRY), "dead"),
    ("waiting", DOWNLOADING, delete, "cancelled"),
    ("dead", NO_DOWNLOAD, retry("download"), "ready"),
    ("dead", NO_DOWNLOAD, discard("download"), "discarded"),
    ("cancelled", [v1(), cancel("download")], retry("download"), "ready"),
    ("discarded", [*NO_DOWNLOAD, discard("download")], retry("download"), "ready"),
]

WAITING: list[Act] = [*NOTIFYING, message(BUSY)]
UNCLEAR: list[Act] = [*NOTIFYING, message(SILENT)]
HELD: list[Act] = [holding, *NOTIFYING, message(SILENT)]


def hold_now(outcome: Any) -> Act:
    def act(w: World) -> None:
        holding(w)
        message(outcome)(w)

    return act


MESSAGE_ROWS: list[tuple[str, list[Act], Act, str]] = [
    ("pending", NOTIFYING, message(BUSY), "waiting"),
    ("pending", NOTIFYING, message(SILENT), "unclear"),
    ("pending", NOTIFYING, message(c.Lost()), "unclear"),
    ("pending", NOTIFYING, hold_now(SILENT), "held"),
    ("pending", NOTIFYING, message(), "delivered"),
    ("pending", NOTIFYING, message(BROKEN), "dead"),
    ("pending", NOTIFYING, newer, "skipped"),
    ("pending", NOTIFYING, resolve("discard"), "discarded"),
    ("waiting", WAITING, resolve("resend"), "pending"),
    ("waiting", WAITING, message(BUSY), "waiting"),
    ("waiting", WAITING, message(SILENT), "unclear"),
    ("waiting", WAITING, hold_now(SILENT), "held"),
    ("waiting", WAITING, message(), "delivered"),
    ("waiting", WAITING, message(BUSY, retry=ONE_TRY), "dead"),
    ("waiting", WAITING, delete, "skipped"),
    ("waiting", WAITING, resolve("discard"), "discarded"),
    ("unclear", UNCLEAR, resolve("resend"), "pending"),
    ("unclear", UNCLEAR, message(BUSY), "waiting"),
    ("unclear", UNCLEAR, message(SILENT), "unclear"),
    ("unclear", UNCLEAR, hold_now(SILENT), "held"),
    ("unclear", UNCLEAR, resolve("delivered"), "delivered"),
    ("unclear", UNCLEAR, message(SILENT, retry=ONE_TRY), "dead"),
    ("unclear", UNCLEAR, newer, "skipped"),
    ("unclear", UNCLEAR, resolve("discard"), "discarded"),
    ("held", HELD, resolve("resend"), "pending"),
    ("held", HELD, resolve("delivered"), "delivered"),
    ("held", HELD, newer, "skipped"),
    ("held", HELD, resolve("discard"), "discarded"),
    ("delivered", COMPLETED, resolve("resend"), "pending"),
    ("dead", NOT_TOLD, resolve("resend"), "pending"),
    ("dead", NOT_TOLD, resolve("delivered"), "delivered"),
    ("dead", NOT_TOLD, resolve("discard"), "discarded"),
    ("skipped", [*NOTIFYING, reprocess], resolve("resend", force=True), "pending"),
    ("discarded", [*NOTIFYING, resolve("discard")], resolve("resend"), "pending"),
]
