"""What any release ever stored is still read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest

from app.store.codec import UPCASTERS, UnknownEventError, decode_event, encode_event
from domain import chain
from domain.events import private_fields
from domain.installation import EVENT_TYPES
from tests.goldens import CAUSE, Golden, goldens, sample

GOLDENS = goldens()


@pytest.mark.req("B7")
def test_every_event_has_a_stored_body_of_each_schema() -> None:
    wanted = {
        f"{name}.{schema}"
        for name, kind in EVENT_TYPES.items()
        for schema in range(1, kind.schema + 1)
    }
    assert {golden.name for golden in GOLDENS} >= wanted, "run python -m tests.goldens"


@pytest.mark.req("B7")
def test_every_older_schema_has_its_upcaster() -> None:
    wanted = {
        (name, schema) for name, kind in EVENT_TYPES.items() for schema in range(1, kind.schema)
    }
    assert set(UPCASTERS) == wanted


@pytest.mark.req("B7")
@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_a_stored_body_is_read_as_it_was_meant(golden: Golden) -> None:
    recorded = decode_event(golden.body, golden.parts or None)
    kind = EVENT_TYPES[golden.type]
    assert (recorded.stream, recorded.revision, recorded.cause) == ("fil_golden", 7, CAUSE)
    if golden.schema == kind.schema:
        assert recorded.event == sample(kind)
        stored = encode_event(
            recorded.event, stream="fil_golden", revision=7, cause=CAUSE, salt=golden.salt
        )
        assert stored.body == golden.body
        assert stored.parts == golden.parts


@pytest.mark.req("B6", "B9")
@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_an_erased_event_is_read_without_its_private_part(golden: Golden) -> None:
    whole = decode_event(golden.body, golden.parts).event
    erased = decode_event(golden.body, None)
    private = private_fields(type(whole))
    blank: dict[str, Any] = dict.fromkeys(private, "")
    assert erased.event == replace(whole, **blank)
    assert (erased.cause.operator, erased.cause.reason) == ("", "")
    for name in private:
        assert getattr(whole, name)


@pytest.mark.req("B4", "B6")
@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_a_private_value_is_in_the_body_only_as_a_commitment(golden: Golden) -> None:
    promised = msgspec.json.decode(golden.body)["private"]
    values = msgspec.json.decode(golden.parts)
    assert promised == {name: chain.commitment(golden.salt, name, v) for name, v in values.items()}
    for value in values.values():
        assert str(value).encode() not in golden.body


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=lambda kind: kind.__name__)
def test_a_sample_leaves_no_field_at_its_default(kind: type) -> None:
    event = sample(kind)
    assert [f.name for f in fields(kind) if getattr(event, f.name) == f.default] == []


@pytest.mark.req("B7")
def test_what_a_newer_program_wrote_is_unknown_not_broken() -> None:
    golden = next(each for each in GOLDENS if each.type == "FileHeld")
    for newer in (b'"type":"FileBlessed"', b'"schema":2'):
        name = newer.split(b":")[0]
        old = b'"type":"FileHeld"' if name == b'"type"' else b'"schema":1'
        with pytest.raises(UnknownEventError):
            decode_event(golden.body.replace(old, newer), golden.parts)
