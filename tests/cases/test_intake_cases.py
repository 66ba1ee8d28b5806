"""Cases of acceptance that the pure core can show: each test is named after its case."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain import instants, profiles
from domain.profiles import (
    ContractBreach,
    FieldMap,
    HmacSettings,
    Mapped,
    Refused,
    Rejected,
    Source,
    SourceEvent,
    SourceSettings,
    Verified,
)
from domain.schemes import Request
from domain.strict_json import InvalidJson

FILES = Path(__file__).parent / "files"
DELIVERIES = FILES / "deliveries"
TABLE: dict[str, Any] = json.loads((DELIVERIES / "vectors.json").read_text())
NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
STAMP = TABLE["unix_timestamp"]
MAPPING = FieldMap(
    event_id="/id",
    type="/type",
    file_id="/file/id",
    version="/file/version",
    name="/file/name",
    size="/file/size",
    occurred_at="/occurred_at",
    url="https://dms.example/files/{file_id}/content?v={version}",
)
SCHEMES = {
    "body_hex_sha256": HmacSettings(signature="header:X-Signature", prefix="sha256="),
    "body_then_timestamp_base64": HmacSettings(
        signature="header:X-Signature",
        encoding="base64",
        signed="{body}{header:X-Timestamp}",
        timestamp="header:X-Timestamp",
    ),
    "timestamp_dot_body_hex": HmacSettings(
        signature="header:X-Signature",
        prefix="v1=",
        separator=",",
        signed="{timestamp}.{body}",
        timestamp="entry:t=",
    ),
    "id_dot_timestamp_dot_body_base64": HmacSettings(
        signature="header:X-Signature",
        encoding="base64",
        prefix="v1,",
        separator=" ",
        signed="{header:X-Id}.{header:X-Timestamp}.{body}",
        timestamp="header:X-Timestamp",
    ),
}


def source(scheme: str = "body_hex_sha256", **changes: Any) -> Source:
    settings: dict[str, Any] = {"secrets": (TABLE["secret_1"],), "mapping": MAPPING} | changes
    prepared = profiles.prepare(
        SourceSettings(
            profile="hmac",
            hmac=SCHEMES[scheme],
            types=(("file.uploaded", "version"),),
            **settings,
        )
    )
    assert isinstance(prepared, Source), prepared
    return prepared


def delivery(body: bytes, signature: str, **headers: str) -> Request:
    # The two-key scheme signs the time in RFC 3339, the others in seconds.
    sent = {"x-timestamp": STAMP, "x-id": TABLE["message_id"], "x-signature": signature} | headers
    return Request(
        "POST", "https://hooks.example/hooks/s", "/hooks/s", "", tuple(sent.items()), body
    )


def vector(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(v for v in TABLE["vectors"] if v["file"] == name)
    return found


def body_of(name: str) -> bytes:
    return (DELIVERIES / name).read_bytes()


def read(name: str, prepared: Source | None = None) -> profiles.Reading:
    request = delivery(body_of(name), vector(name)["body_hex_sha256"])
    return profiles.read(prepared or source(), request, NOW)


def only(reading: profiles.Reading) -> SourceEvent:
    assert isinstance(reading, Mapped), reading
    (event,) = reading.events
    assert isinstance(event, SourceEvent), event
    return event


@pytest.mark.req("A1")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", [v["file"] for v in TABLE["vectors"]])
def test_a_04_the_signature_is_over_the_bytes_received(scheme: str, name: str) -> None:
    stamp = TABLE["rfc3339_timestamp"] if "then_timestamp" in scheme else STAMP
    headers = {"x-timestamp": stamp}
    signature = vector(name)[scheme]
    prepared = source(scheme)
    good = delivery(body_of(name), signature, **headers)
    assert isinstance(profiles.verify(prepared, good, NOW), Verified)
    changed = delivery(body_of(name) + b" ", signature, **headers)
    assert isinstance(profiles.verify(prepared, changed, NOW), Refused)


@pytest.mark.req("A1")
@pytest.mark.parametrize(
    "signature",
    [
        "",
        vector("ok-odd-spacing.json")["body_hex_sha256"],
        "sha256=" + "0" * 64,
        vector("ok-compact.json")["body_hex_sha256"][:-1],
        "sha256=",
        "x" * 10_000,
        "sha256=\xe9" + "0" * 63,
        "sha256=\x00",
        "sha256=\u20ac",
        vector("ok-compact.json")["body_hex_sha256"].upper(),
    ],
    ids=lambda s: repr(s)[:20],
)
def test_a_05_a_broken_signature_header_is_refused_and_never_an_error(signature: str) -> None:
    request = delivery(body_of("ok-compact.json"), signature)
    assert isinstance(profiles.verify(source(), request, NOW), Refused)


@pytest.mark.req("A1")
@pytest.mark.parametrize("times", [0, 2])
def test_a_05_a_signature_that_is_missing_or_came_twice_is_refused(times: int) -> None:
    good = ("x-signature", vector("ok-compact.json")["body_hex_sha256"])
    request = Request("POST", "", "", "", (good,) * times, body_of("ok-compact.json"))
    assert isinstance(profiles.verify(source(), request, NOW), Refused)


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    "off_s, wanted",
    [(299, Verified), (-299, Verified), (300, Verified), (301, Refused), (-301, Refused)],
)
def test_a_06_the_clock_window_holds_on_both_sides(off_s: int, wanted: type[object]) -> None:
    name = "timestamp_dot_body_hex"
    request = delivery(body_of("ok-compact.json"), vector("ok-compact.json")[name])
    verdict = profiles.verify(source(name), request, NOW + timedelta(seconds=off_s))
    assert isinstance(verdict, wanted)
    if isinstance(verdict, Refused):
        assert f"clock off by {off_s} s" in verdict.reason


@pytest.mark.req("A2")
def test_a_06_a_stamp_that_is_no_number_is_refused() -> None:
    request = delivery(b"{}", "t=soon,v1=" + "0" * 64)
    verdict = profiles.verify(source("timestamp_dot_body_hex"), request, NOW)
    assert verdict == Refused("the timestamp is not in the source's form")


@pytest.mark.req("A15")
def test_a_07_old_and_new_secret_verify_during_a_change_and_each_has_its_key_id() -> None:
    scheme = "body_then_timestamp_base64"
    both = source(scheme, secrets=(TABLE["secret_2"], TABLE["secret_1"]))
    found = vector("ok-compact.json")
    stamp = {"x-timestamp": TABLE["rfc3339_timestamp"]}
    old = delivery(body_of("ok-compact.json"), found[scheme], **stamp)
    new = delivery(body_of("ok-compact.json"), found[f"{scheme}_secret2"], **stamp)
    verdicts = [profiles.verify(both, request, NOW) for request in (old, new)]
    assert [getattr(v, "key_id", "") for v in verdicts] == [both.keys[1].id, both.keys[0].id]
    retired = source(scheme, secrets=(TABLE["secret_2"],))
    assert isinstance(profiles.verify(retired, old, NOW), Refused)


@pytest.mark.req("A15")
@pytest.mark.parametrize("secrets", [(), ("",)])
def test_a_08_a_source_without_a_secret_is_not_made_ready(secrets: tuple[str, ...]) -> None:
    prepared = profiles.prepare(
        SourceSettings(profile="hmac", hmac=SCHEMES["body_hex_sha256"], secrets=secrets)
    )
    assert isinstance(prepared, tuple)
    assert [error.key for error in prepared] == ["secrets"]
    assert all(error.mend for error in prepared)


@pytest.mark.req("A5")
@pytest.mark.parametrize(
    "name, reason",
    [
        ("bom.json", "byte order mark"),
        ("duplicate-keys.json", "duplicate key"),
        ("nan.json", "NaN is no JSON"),
        ("infinity.json", "number out of range"),
        ("array-instead-of-object.json", "not an object"),
        ("empty.bin", "empty body"),
        ("lone-surrogate-name.json", "lone surrogate"),
        ("invalid-utf8.bin", "not UTF-8"),
    ],
)
def test_a_11_a_12_a_15_a_16_json_that_is_not_strict_is_refused(name: str, reason: str) -> None:
    assert read(name) == InvalidJson(reason)


@pytest.mark.req("A6")
@pytest.mark.parametrize("size", ['"1872"', "true", "-1", "1.5", "1e30", "[]"])
def test_a_12_a_size_that_is_no_whole_number_names_the_field_and_not_its_value(size: str) -> None:
    body = body_of("ok-compact.json").replace(b"1872", size.encode())
    reading = profiles.read(source(), delivery(body, ""), NOW)
    assert reading == ContractBreach("/file/size", "must be a whole number")


@pytest.mark.req("A5")
def test_a_13_big_whole_numbers_keep_every_digit() -> None:
    event = only(read("big-int-ids.json"))
    told = {event.event_id, event.file_id, event.version}
    assert told == {"9007199254740993", "1152921506151679042", "9223372036854775807"}


@pytest.mark.req("A4")
@pytest.mark.parametrize("name", ["deep-20000.json", "deep-200-in-extra.json"])
def test_a_14_deep_nesting_is_refused_in_under_100_ms(name: str) -> None:
    began = time.process_time()
    assert read(name) == InvalidJson("nested deeper than 100 levels")
    assert time.process_time() - began < 0.1


@pytest.mark.req("A5")
def test_a_15_a_nul_in_a_name_gets_a_visible_stand_in() -> None:
    event = only(read("nul-in-name.json"))
    assert "\0" not in event.name
    assert "\u2400" in event.name


@pytest.mark.req("A8")
def test_a_18_a_batch_keeps_its_good_entries_and_names_the_bad_one() -> None:
    reading = read("batch-3-one-bad.json", source(batch="/events"))
    assert isinstance(reading, Mapped)
    assert reading.is_batch
    first, bad, last = reading.events
    assert isinstance(first, SourceEvent)
    assert isinstance(last, SourceEvent)
    assert (first.event_id, last.event_id, last.index) == ("evt-0015", "evt-0017", 2)
    assert isinstance(bad, Rejected)
    assert (bad.index, bad.breach) == (1, ContractBreach("/file/id", "is missing"))


@pytest.mark.req("A6")
def test_a_18_without_a_batch_the_same_body_is_refused_whole() -> None:
    assert isinstance(read("batch-3-one-bad.json"), ContractBreach)


@pytest.mark.req("A6")
def test_a_19_an_unknown_event_kind_is_kept_and_starts_nothing() -> None:
    event = only(read("unknown-type.json"))
    assert (event.action, event.type, event.file_id) == ("ignore", "file.previewed", "f-100")
    strict = read("unknown-type.json", source(unknown_types="refuse"))
    assert strict == ContractBreach("/type", "is not a known type")


TIMES: list[dict[str, Any]] = json.loads((FILES / "timestamps.json").read_text())


@pytest.mark.req("C4")
@pytest.mark.parametrize("row", TIMES, ids=lambda row: str(row["in"]))
def test_a_23_a_time_is_an_instant_or_refused(row: dict[str, Any]) -> None:
    wanted = datetime.fromisoformat(row["utc"]) if row["utc"] else None
    assert instants.instant(row["in"]) == wanted
    body = json.loads(body_of("ok-compact.json")) | {"occurred_at": row["in"]}
    reading = profiles.read(source(), delivery(json.dumps(body).encode(), ""), NOW)
    if wanted is None:
        assert reading == ContractBreach("/occurred_at", "must be a time with its zone")
    else:
        assert only(reading).occurred_at == wanted
