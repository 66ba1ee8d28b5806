from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import comparison, profiles
from domain.profiles import (
    ContractBreach,
    FieldMap,
    HmacSettings,
    Mapped,
    Rejected,
    SettingsError,
    Source,
    SourceEvent,
    SourceSettings,
)
from domain.strict_json import InvalidJson
from tests.readings import CREATED, NOW, SECRET, changed, only, prepared, read, request, without


def test_every_field_of_the_standard_body_is_read() -> None:
    event = only(read(CREATED))
    assert replace(event, item=None) == SourceEvent(
        event_id="msg_1",
        delivery_id="msg_1",
        type="file.version.created",
        action="version",
        file_id="F-17",
        version="3",
        name="invoice.pdf",
        project="P-9",
        size_bytes=48211,
        sha256="ab" * 32,
        media_type="application/pdf",
        url="https://files.example/F-17/3",
        sequence=42,
        occurred_at=datetime(2026, 11, 30, 10, tzinfo=UTC),
        order="3",
        comparator="integer",
    )


@pytest.mark.req("A6")
@pytest.mark.parametrize(
    "body, field, reason",
    [
        (without("file_id"), "/data/file_id", "is missing"),
        (changed(file_id=None), "/data/file_id", "is missing"),
        (changed(file_id=17), "/data/file_id", "must be a text"),
        (changed(file_id=""), "/data/file_id", "must be a text"),
        (changed(file_id="a\0b"), "/data/file_id", "contains U+0000"),
        (changed(file_id="x" * 3000), "/data/file_id", "is longer than 2048 characters"),
        (changed(version=True), "/data/version", "must be a text or a whole number"),
        (changed(version=1.5), "/data/version", "must be a text or a whole number"),
        (changed(version=[]), "/data/version", "must be a text or a whole number"),
        (changed(sequence="42"), "/data/sequence", "must be a whole number"),
        (changed(sequence=2**63), "/data/sequence", "must be a whole number"),
        (changed(size=-1), "/data/size", "must be a whole number"),
        (changed(name=7), "/data/name", "must be a text"),
        (changed(sha256="abc"), "/data/sha256", "must be 64 hexadecimal digits"),
        (changed(project={"id": 1}), "/data/project", "must be a text"),
        (without("download_url"), "/data/download_url", "is missing"),
        (changed(download_url="ftp://x/y"), "/data/download_url", "must be an http or https address"),
        (changed(download_url="https:///x"), "/data/download_url", "must be an http or https address"),
        (changed(download_url="https://x/ y"), "/data/download_url", "must be an http or https address"),
        (changed(download_url="https://[x/"), "/data/download_url", "must be an http or https address"),
        (CREATED | {"timestamp": "yesterday"}, "/timestamp", "must be a time with its zone"),
        (CREATED | {"type": 5}, "/type", "must be a text"),
        ({}, "/type", "is missing"),
    ],
    ids=str,
)  # fmt: skip
def test_a_breach_names_the_field_and_never_its_value(body: Any, field: str, reason: str) -> None:
    assert read(body) == ContractBreach(field, reason)


def test_a_version_that_is_not_told_is_the_hash_else_the_event_id() -> None:
    assert only(read(without("version"))).version == "ab" * 32
    event = only(read(without("version", "sha256")))
    assert (event.version, event.order, event.comparator) == ("msg_1", None, None)


def test_a_whole_number_may_be_written_with_an_exponent() -> None:
    body = json.dumps(CREATED).replace("48211", "4.8E+4").encode()
    assert only(read(body)).size_bytes == 48000


@pytest.mark.req("C6")
def test_delete_restore_and_rename_need_no_address() -> None:
    for word, action in [
        ("file.deleted", "deleted"),
        ("file.restored", "restored"),
        ("file.renamed", "renamed"),
    ]:
        event = only(read(without("download_url", "version") | {"type": word}))
        assert (event.action, event.version, event.file_id) == (action, None, "F-17")
    assert read(without("name") | {"type": "file.renamed"}) == ContractBreach(
        "/data/name", "is missing"
    )


@pytest.mark.req("A6")
def test_what_starts_nothing_is_not_judged_by_what_it_does_not_need() -> None:
    event = only(read(changed(file_id=5, size="x", name=[]) | {"type": "file.seen"}))
    assert (event.action, event.file_id, event.name) == ("ignore", "", "")


@pytest.mark.req("A6")
def test_unknown_fields_are_kept_or_refused_by_name() -> None:
    body = changed(colour="red")
    assert only(read(body)).file_id == "F-17"
    strict = prepared(unknown_fields="refuse")
    assert read(body, strict) == ContractBreach("/data/colour", "is not known")
    assert only(read(CREATED, strict)).file_id == "F-17"


def test_the_configuration_says_what_their_words_mean() -> None:
    source = prepared(types=(("file.scanned", "version"), ("file.*", "deleted")))
    assert only(read(CREATED | {"type": "file.scanned"}, source)).action == "version"
    assert only(read(CREATED | {"type": "file.burnt"}, source)).action == "deleted"
    assert only(read(CREATED | {"type": "file.restored"}, source)).action == "restored"


@pytest.mark.parametrize(
    "order, wanted",
    [
        ("version", ("3", "integer")),
        ("sequence", ("42", "integer")),
        ("time", ("2026-11-30T10:00:00+00:00", "instant")),
    ],
)
def test_the_declared_order_is_what_orders(order: Any, wanted: tuple[str, str]) -> None:
    event = only(read(CREATED, prepared(order=order)))
    assert (event.order, event.comparator) == wanted


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 5000, "\u0663", "-1", "1.0", ""])
def test_a_number_written_as_a_text_is_bounded_where_a_source_writes_such(digits: str) -> None:
    body = {"id": "e", "trigger": "FILE.UPLOADED", "source": {"id": "1", "sequence_id": digits}}
    assert read(body, prepared("box")) == ContractBreach(
        "/source/sequence_id", "must be a whole number"
    )


def test_an_order_that_is_not_told_is_none() -> None:
    assert only(read(changed(version="3b"))).order is None
    assert only(read(without("sequence"), prepared(order="sequence"))).order is None


def own(**changes: Any) -> Source:
    mapping = FieldMap(event_id="/id", type="/t", file_id="/f", version="/v", url="/u")
    scheme = HmacSettings(signature="header:X-Sig")
    return prepared("hmac", **({"hmac": scheme, "mapping": mapping} | changes))


@given(st.text(min_size=1, max_size=20), st.integers(0, 2**70))
def test_an_address_template_encodes_what_it_is_given(file_id: str, version: int) -> None:
    mapping = FieldMap(
        event_id="/id",
        type="/t",
        file_id="/f",
        version="/v",
        url="https://dms.example/files/{file_id}/content?v={version}",
    )
    source = own(mapping=mapping, types=(("up", "version"),))
    body = {"id": 1, "t": "up", "f": file_id, "v": version}
    reading = read(body, source)
    if "\0" in file_id or not file_id.isprintable() or "\ud800" <= file_id <= "\udfff":
        return
    if isinstance(reading, Mapped):
        url = only(reading).url
        assert url.startswith("https://dms.example/files/")
        assert url.endswith(f"/content?v={version}")
        assert url.count("/") == 5
        assert " " not in url


def test_ids_keep_every_digit_and_headers_may_hold_values() -> None:
    mapping = FieldMap(
        event_id="header:X-Event",
        type="/t",
        file_id="/f",
        version="/v",
        url="/u",
        name="header:X-Name",
    )
    source = own(mapping=mapping, types=(("up", "version"),))
    body = b'{"t":"up","f":9007199254740993,"v":1152921506151679042,"u":"https://a/b"}'
    name = "M\u00fcller.pdf".encode().decode("latin-1")
    event = only(read(body, source, ("x-event", "e1"), ("x-name", name)))
    assert (event.event_id, event.file_id, event.version, event.name) == (
        "e1",
        "9007199254740993",
        "1152921506151679042",
        "M\u00fcller.pdf",
    )


def told_by_headers() -> Source:
    mapping = FieldMap(
        event_id="header:X-Event",
        type="header:X-Type",
        file_id="{header:X-Folder}/{header:X-File}",
        version="header:X-Version",
        size="header:X-Size",
        sequence="header:X-Sequence",
        occurred_at="header:X-At",
        url="https://dms.example/files/{file_id}",
    )
    return own(mapping=mapping, types=(("up", "version"),))


NOTICE = (
    ("x-event", "e1"),
    ("x-type", "up"),
    ("x-folder", "F"),
    ("x-file", "7"),
    ("x-version", "3"),
    ("x-size", "48211"),
    ("x-sequence", "42"),
    ("x-at", "1796032800"),
)


def test_a_notice_of_headers_alone_may_have_an_empty_body() -> None:
    event = only(read(b"", told_by_headers(), *NOTICE))
    assert (event.event_id, event.file_id, event.version) == ("e1", "F/7", "3")
    # Digits in a header are a number: it has no other way to tell one.
    assert (event.size_bytes, event.sequence) == (48211, 42)
    assert event.occurred_at == datetime(2026, 11, 30, 10, 0, tzinfo=UTC)


def test_a_blank_body_is_no_empty_one_and_needs_its_json() -> None:
    assert isinstance(read(b" ", told_by_headers(), *NOTICE), InvalidJson)
    assert isinstance(read(b"", own(), *NOTICE), InvalidJson)


@pytest.mark.parametrize("size", ["", "x", "-1", "1.5", "9" * 20])
def test_a_header_that_is_no_number_breaks_the_contract(size: str) -> None:
    told = [(name, size if name == "x-size" else value) for name, value in NOTICE]
    reading = read(b"", told_by_headers(), *told)
    if size:
        assert reading == ContractBreach("header:X-Size", "must be a whole number")
    else:
        assert only(reading).size_bytes is None


@pytest.mark.req("A8")
def test_a_batch_is_bounded_and_not_empty() -> None:
    source = own(batch="/events")
    assert read({"events": []}, source) == ContractBreach(
        "/events", "must be an array with entries"
    )
    assert read({"events": {}}, source) == ContractBreach(
        "/events", "must be an array with entries"
    )
    many = read({"events": [{}] * 1001}, source)
    assert many == ContractBreach("/events", "has more than 1000 entries")
    reading = read({"events": [{}] * 1000}, source)
    assert isinstance(reading, Mapped)
    assert {type(event) for event in reading.events} == {Rejected}


def test_one_entry_of_a_batch_is_still_a_batch() -> None:
    reading = read({"events": [{"id": 1, "t": "x"}]}, own(batch="/events"))
    assert isinstance(reading, Mapped)
    assert reading.is_batch


def errors(**settings: Any) -> list[str]:
    made = profiles.prepare(SourceSettings(**({"secrets": (SECRET,)} | settings)))
    assert isinstance(made, tuple), made
    assert all(isinstance(error, SettingsError) for error in made)
    assert SECRET not in repr(made)
    return [error.key for error in made]


@pytest.mark.parametrize(
    "settings, keys",
    [
        ({"profile": "no-such"}, ["profile"]),
        ({"secrets": ("whsec_%%",)}, ["secrets"]),
        ({"profile": "hmac"}, ["signature"]),
        ({"profile": "hmac", "hmac": HmacSettings()}, ["signature"]),
        ({"hmac": HmacSettings()}, ["algorithm"]),
        ({"profile": "hmac", "hmac": HmacSettings(signature="X-S", signed="x")}, ["signed"]),
        ({"profile": "hmac", "hmac": HmacSettings(signature="X-S", signed="{body}{bdoy}")}, ["signed"]),
        ({"profile": "hmac", "hmac": HmacSettings(signature="X-S", timestamp="body:t")}, ["timestamp"]),
        ({"mapping": FieldMap(name="data/name")}, ["map.name"]),
        ({"mapping": FieldMap(url="https://x/{fileid}")}, ["map.url"]),
        ({"batch": "value"}, ["batch"]),
        ({"types": (("x", "explode"),)}, ["types.x"]),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_settings_are_told_with_their_key(settings: dict[str, Any], keys: list[str]) -> None:
    assert errors(**settings) == keys


@pytest.mark.req("A7")
def test_identity_from_unsigned_bytes_is_told() -> None:
    mapping = FieldMap(event_id="header:X-Id", type="/t", file_id="query:f", url="/u")
    loose = own(mapping=mapping)
    assert profiles.unsigned_identity(loose) == ("event_id", "file_id")
    scheme = HmacSettings(
        signature="X-Sig", signed="{header:x-id}.{header:x-time}.{query}.{body}", timestamp="X-Time"
    )
    tight = own(mapping=mapping, hmac=scheme)
    assert profiles.unsigned_identity(tight) == ()
    assert profiles.warnings(tight) == ()
    assert len(profiles.warnings(loose)) == 2
    weak = own(hmac=HmacSettings(signature="X-Sig", algorithm="sha1"))
    assert any("sha1" in text for text in profiles.warnings(weak))
    assert profiles.warnings(prepared()) == ()
    assert "password" in profiles.warnings(prepared("minio"))[0]
    assert profiles.unsigned_identity(prepared("shopify")) == ("event_id",)


@pytest.mark.req("A8")
def test_a_source_has_one_rule_for_what_counts_as_the_same() -> None:
    assert prepared().rule == comparison.BYTES_RULE
    assert prepared(same="json").rule == "json"
    assert prepared(volatile=("/n",)).rule == 'json["/n"]'
    assert prepared("hubspot", volatile=("/x",)).rule == 'json["/attemptNumber","/x"]'


@pytest.mark.req("A7")
def test_notices_that_only_say_look_again_are_told_apart_by_when_they_came() -> None:
    source = prepared("dropbox")
    body = request({"list_folder": {"accounts": ["dbid:1"]}})
    first = only(profiles.read(source, body, NOW))
    later = only(profiles.read(source, body, NOW.replace(second=31)))
    assert first.event_id != later.event_id
    assert (first.action, first.project, first.file_id) == ("changed", "dbid:1", "")
