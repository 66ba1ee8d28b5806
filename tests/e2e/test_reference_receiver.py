"""What a careful reference receiver checks, over real HTTP, with the effects read from the file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.receiving import LARGEST_BYTES, SECRET, Receiver, Reply, body_of, signed, until


def first_and_repeat(r: Receiver) -> None:
    body = body_of("first")
    first = r.send(body, **signed(body, delivery="d-1"))
    receipt = first.document["receipt"]
    digest = hashlib.sha256(body).hexdigest()
    r.holds("a first delivery is accepted", first.verdict == (202, "accepted"))
    r.holds("its answer is JSON", first.headers["content-type"] == "application/json")
    r.holds("it is told its own event id", first.document["event_id"] == "first")
    r.holds("the receipt has an id", receipt["id"].startswith("rcp_"))
    r.holds("the receipt says what was received", receipt["digest"] == f"sha256:{digest}")
    r.holds("Location leads to it", first.headers["location"].endswith(receipt["id"]))
    kept = "SELECT digest, delivery_id, key_id FROM receipts WHERE event_id = 'first'"
    ((kept_digest, delivery, key_id),) = r.rows(kept)
    r.holds("the digest is stored", kept_digest == digest)
    r.holds("the delivery id is stored", delivery == "d-1")
    r.holds("the secret is stored by its id only", len(key_id) == 8 and SECRET not in key_id)
    r.holds("the bytes are stored as they came", r.rows("SELECT body FROM payloads") == [(body,)])
    one = {"receipts": 1, "bodies": 1, "facts": 1, "files": 1, "jobs": 1}
    r.holds("it makes one effect of each kind", r.effects() == one)
    again = r.send(body, **signed(body, delivery="d-2"))
    r.holds("a repeat is known", again.verdict == (200, "duplicate"))
    r.holds("a repeat gets the first receipt", again.document["receipt"] == receipt)
    r.holds("a repeat makes no effect", r.effects() == one)
    repeats = r.rows("SELECT delivery_id FROM deliveries WHERE verdict = 'duplicate'")
    r.holds("the repeat's own delivery id is kept for the audit", repeats == [("d-2",)])


def conflict(r: Receiver) -> None:
    first, other = r.send(body_of("first")), body_of("first", file_name="other.pdf")
    before = r.effects()
    answers = [r.send(other), r.send(other)]
    r.holds(
        "other bytes under a known id are refused", answers[0].verdict == (409, "event-conflict")
    )
    r.holds("and again", answers[1].status == 409)
    r.holds(
        "a conflict changes nothing but the quarantine",
        r.effects() | {"bodies": 0} == before | {"bodies": 0},
    )
    held = r.rows(
        "SELECT digest FROM deliveries WHERE verdict = 'conflict' AND payload IS NOT NULL"
    )
    r.holds("it is quarantined once", held == [(hashlib.sha256(other).hexdigest(),)])
    name = r.rows("SELECT name FROM files WHERE file_id = 'F-first'")
    r.holds("the first stays authoritative", name == [("a.pdf",)])
    after = r.send(body_of("first")).document["receipt"]
    r.holds("and keeps its receipt", after == first.document["receipt"])


def old_receipts(r: Receiver) -> None:
    told = [
        body_of("old-1", file_id="F-old"),
        body_of("old-2", file_id="F-old", file_version=2),
        body_of("old-3", file_id="F-old", file_version=None, event="file.deleted"),
    ]
    first = [r.send(body) for body in told]
    r.holds("later versions and a deletion are accepted", [a.status for a in first] == [202] * 3)
    before = r.effects()
    again = [r.send(body) for body in told]
    r.holds("their repeats are known", [a.status for a in again] == [200] * 3)
    same = [
        a.document["receipt"] == b.document["receipt"] for a, b in zip(first, again, strict=True)
    ]
    r.holds("each with its own old receipt", all(same))
    r.holds("and nothing begins anew", r.effects() == before)
    state = r.rows("SELECT state FROM files WHERE file_id = 'F-old'")
    r.holds("the file is as the last fact says", state == [("deleted",)])


def parallel(r: Receiver) -> None:
    before, body = r.effects(), body_of("at-once")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: r.send(body), range(16)))
    statuses = sorted(answer.status for answer in answers)
    r.holds("of equal deliveries at once one is the first", statuses == [200] * 15 + [202])
    receipts = {json.dumps(answer.document["receipt"]) for answer in answers}
    r.holds("all get one receipt", len(receipts) == 1)
    r.holds("they make one effect", r.effects() == {k: n + 1 for k, n in before.items()})
    rivals = [body_of("rival", file_size=n) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(r.send, rivals))
    statuses = sorted(answer.status for answer in answers)
    r.holds("of six contents under one id one wins", statuses == [202] + [409] * 5)
    kept = r.rows("SELECT count(*) FROM receipts WHERE event_id = 'rival'")
    r.holds("and one is stored", kept == [(1,)])


def altered(r: Receiver, statement: str) -> None:
    with closing(sqlite3.connect(r.folder / "store.db")) as store:
        store.execute(statement)


def failure_before_the_commit(r: Receiver) -> None:
    body, before = body_of("later"), r.effects()
    altered(r, "ALTER TABLE payloads RENAME TO away")
    answer = r.send(body)
    altered(r, "ALTER TABLE away RENAME TO payloads")
    r.holds("what cannot be stored is 503", answer.status == 503)
    r.holds("with the time to come back", int(answer.headers["retry-after"]) > 0)
    r.holds("and leaves nothing half-done", r.effects() == before)
    r.holds("the next try is a first one", r.send(body).status == 202)
    r.holds("and makes one effect", r.effects() == {k: n + 1 for k, n in before.items()})


def lost_answer(r: Receiver) -> None:
    body, before = body_of("unheard"), r.effects()
    with r.unheard(body):
        until(lambda: r.effects() != before)
    r.holds("an unheard answer is repeated", r.send(body).verdict == (200, "duplicate"))
    r.holds("and its effect made once", r.effects() == {k: n + 1 for k, n in before.items()})


def bad_signatures(r: Receiver) -> None:
    body = body_of("forged")
    good = signed(body)
    forgeries = {
        "no signature": {"x-signature": ""},
        "another secret": signed(body, secret="another secret"),
        "a signature of other bytes": signed(body + b" "),
        "a cut signature": {"x-signature": good["x-signature"][:-1]},
        "another delivery id": good | {"x-delivery": "d-other"},
        "another time": good | {"x-timestamp": str(int(good["x-timestamp"]) + 1)},
        "a time 310 s old": signed(body, off_s=-310),
        "a time 310 s ahead": signed(body, off_s=310),
        "a time that is none": good | {"x-timestamp": "soon"},
    }
    answers: list[Reply] = []
    before = r.effects()
    for what, headers in forgeries.items():
        answers.append(r.send(body, **headers))
        r.holds(f"{what} is refused", answers[-1].verdict == (401, "authentication"))
    r.holds("nothing of it is stored", r.effects() == before)
    r.holds("all refusals read alike", len({answer.body for answer in answers}) == 1)
    refused = r.rows("SELECT count(*) FROM deliveries WHERE verdict = 'rejected'")
    r.holds("they are on record", refused[0][0] > 0)
    late = [r.send(body_of(f"at{s}"), **signed(body_of(f"at{s}"), off_s=s)) for s in (-280, 280)]
    r.holds("280 s either way are good", [a.status for a in late] == [202, 202])


def _checked(r: Receiver, body: bytes, verdict: tuple[int, str], words: str) -> None:
    answers: list[Reply] = []
    r.unchanged(words, lambda: answers.append(r.send(body)))
    r.holds(f"{words} is {verdict[0]}", answers[0].verdict == verdict)
    problem = answers[0].headers["content-type"] == "application/problem+json"
    r.holds(f"{words} is told as a problem", problem)


def strict_json(r: Receiver) -> None:
    good = body_of("json")
    for words, body in {
        "no JSON": b"{nothing",
        "an empty body": b"",
        "an array": b"[" + good + b"]",
        "something behind the object": good + b"{}",
        "a byte order mark": b"\xef\xbb\xbf" + good,
        "a key that comes twice": good.replace(b'"size": 3', b'"size": 3, "size": 4'),
        "broken UTF-8": good.replace(b"a.pdf", b"\xc3\x28.pdf"),
        "a lone surrogate": good.replace(b"a.pdf", rb"\ud800.pdf"),
        "a number that is none": good.replace(b'"size": 3', b'"size": NaN'),
        "an endless number": good.replace(b'"size": 3', b'"size": 1e999'),
        "nesting without end": b'{"x":' * 500 + b"1" + b"}" * 500,
    }.items():
        _checked(r, body, (400, "invalid-json"), words)


def contract(r: Receiver) -> None:
    for words, body in {
        "true for a number": body_of("c", file_size=True),
        "a text for a number": body_of("c", file_size="3"),
        "half a byte": body_of("c", file_size=3.5),
        "fewer than no bytes": body_of("c", file_size=-1),
        "a number for a name": body_of("c", file_name=7),
        "a list for a file": body_of("c", file_id=["F"]),
        "no file id": body_of("c", file_id=None),
        "no event id": body_of("c", id=None),
        "no kind": body_of("c", event=None),
    }.items():
        _checked(r, body, (422, "event-contract"), words)
    secret = r.send(body_of("c", file_size="a private value"))
    r.holds("the field is named", secret.document["field"] == "/data/file/size")
    r.holds("its value is not", b"private" not in secret.body)
    large = r.send(body_of("9007199254740993", file_version=9223372036854775807))
    r.holds("whole numbers keep every digit", large.status == 202)
    kept = r.rows("SELECT current FROM files WHERE file_id = 'F-9007199254740993'")
    r.holds("in the store too", kept == [("9223372036854775807",)])


def kinds_and_fields(r: Receiver) -> None:
    jobs = r.effects()["jobs"]
    unknown = r.send(body_of("kind", event="file.locked"))
    r.holds("an unknown kind is taken and ignored", unknown.verdict == (202, "ignored"))
    r.holds("it starts nothing", r.effects()["jobs"] == jobs)
    extra = body_of("extra", note="x")
    r.holds("an extra field does no harm", r.send(extra).status == 202)
    answer = r.send(extra, source="strict")
    r.holds("where it is refused it is named", answer.document.get("field") == "/note")


def sizes(r: Receiver) -> None:
    body = body_of("size")
    fits = body + b" " * (LARGEST_BYTES - len(body))
    r.holds("a body of the largest size is taken", r.send(fits).status == 202)
    answers: list[Reply] = []
    r.unchanged("a larger body", lambda: answers.append(r.send(fits + b" ")))
    r.holds("a larger body is 413", answers[0].verdict == (413, "body-too-large"))
    r.holds("an unknown source is 404", r.send(body, source="nobody").status == 404)


def restart(r: Receiver, body: bytes, receipt: object) -> None:
    again = r.send(body)
    r.holds("after a restart a repeat is known", again.verdict == (200, "duplicate"))
    r.holds("with the receipt from before", again.document["receipt"] == receipt)
    other = r.send(body_of("first", file_name="other.pdf"))
    r.holds("and a conflict is one", other.status == 409)


SECTIONS: tuple[Callable[[Receiver], None], ...] = (
    first_and_repeat,
    conflict,
    old_receipts,
    parallel,
    failure_before_the_commit,
    lost_answer,
    bad_signatures,
    strict_json,
    contract,
    kinds_and_fields,
    sizes,
)


@pytest.mark.req("A1", "A2", "A5", "A6", "A7", "A8", "A9", "A10")
def test_a_careful_reference_receiver_finds_nothing_wrong(tmp_path: Path) -> None:
    r = Receiver(tmp_path)
    body = body_of("first")
    with r.running():
        for section in SECTIONS:
            section(r)
        receipt = r.send(body).document["receipt"]
    with r.running():
        restart(r, body, receipt)
    broken = [words for words, held in r.conditions if not held]
    assert broken == [], broken
    assert len({words for words, _ in r.conditions}) == len(r.conditions) >= 55
    assert r.requests >= 35


@pytest.mark.req("A9")
@pytest.mark.parametrize(
    "point, is_kept", [("hooks.body_read", False), ("hooks.answer.before", True)]
)
def test_a_process_that_dies_before_its_answer_kept_all_or_nothing(
    tmp_path: Path, point: str, is_kept: bool
) -> None:
    r = Receiver(tmp_path)
    body = body_of("killed")
    with r.running():
        before = r.effects()
    with r.running(point=point) as process, r.unheard(body):
        process.wait(60)
    assert (r.effects() != before) is is_kept
    with r.running():
        assert r.send(body).status == (200 if is_kept else 202)
        assert r.effects() == {name: number + 1 for name, number in before.items()}
