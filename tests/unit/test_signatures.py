from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook
from svix.webhooks import Webhook as SvixWebhook

from domain import profiles, signatures
from domain.profiles import HmacSettings, Source, SourceSettings
from domain.schemes import STANDARD_SCHEME, Clock, InvalidSecret, Key, Primitives, Request, Scheme
from domain.signatures import Refused, Signed, Verified

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret of some length").decode()


def key(secret: str = SECRET, scheme: Scheme = STANDARD_SCHEME) -> Key:
    loaded = signatures.load_key(secret, scheme)
    assert isinstance(loaded, Key), loaded
    return loaded


def post(body: bytes, *headers: tuple[str, str], query: str = "") -> Request:
    url = "https://hooks.example/hooks/s" + (f"?{query}" if query else "")
    return Request("POST", url, "/hooks/s", query, headers, body)


def ed25519_sign(private: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private[:32]).sign(message)


def ed25519_verify(public: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.req("E3")
@pytest.mark.parametrize("verifier", [Webhook, SvixWebhook])
def test_foreign_verifiers_accept_what_we_sign(verifier: type[Webhook]) -> None:
    body = '{"name":"Müller.pdf"}'
    now = datetime.now(UTC)
    headers = signatures.standard_headers("msg_1", body.encode(), (key(OTHER), key()), now)
    assert not isinstance(headers, Refused)
    verifier(SECRET).verify(body, dict(headers))
    verifier(OTHER).verify(body, dict(headers))
    with pytest.raises(Exception, match="matching signature"):
        verifier(SECRET).verify(body + " ", dict(headers))


@pytest.mark.req("E3")
def test_what_foreign_libraries_sign_is_accepted() -> None:
    signature = Webhook(SECRET).sign("msg_1", NOW, '{"a":1}')
    stamp = str(int(NOW.timestamp()))
    request = post(
        b'{"a":1}',
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", stamp),
        ("webhook-signature", signature),
    )
    verdict = signatures.verify(STANDARD_SCHEME, request, (key(OTHER), key()), NOW)
    assert verdict == Verified(key().id, NOW)


@pytest.mark.req("E3")
def test_an_asymmetric_key_signs_beside_a_secret_and_each_is_verified_by_its_own() -> None:
    private = Ed25519PrivateKey.generate()
    seed = base64.b64encode(private.private_bytes_raw()).decode()
    public = base64.b64encode(private.public_key().public_bytes_raw()).decode()
    keys = (key(), key(f"whsk_{seed}"))
    headers = signatures.standard_headers("msg_1", b"{}", keys, NOW, ed25519_sign)
    assert not isinstance(headers, Refused)
    labels = [entry.split(",")[0] for entry in dict(headers)["webhook-signature"].split(" ")]
    assert labels == ["v1", "v1a"]
    request = post(b"{}", *headers)
    primitives = Primitives(ed25519=ed25519_verify)
    for known in (key(), key(f"whpk_{public}")):
        verdict = signatures.verify(STANDARD_SCHEME, request, (known,), NOW, primitives)
        assert verdict == Verified(known.id, NOW)
    changed = post(b"[]", *headers)
    stranger = (key(f"whpk_{public}"),)
    verdict = signatures.verify(STANDARD_SCHEME, changed, stranger, NOW, primitives)
    assert isinstance(verdict, Refused)


def test_without_ed25519_an_asymmetric_key_is_a_reason_and_no_error() -> None:
    seed = base64.b64encode(bytes(32)).decode()
    refused = signatures.standard_headers("msg_1", b"", (key(f"whsk_{seed}"),), NOW)
    assert refused == Refused("no Ed25519 is at hand")


def signing_sources() -> list[Source]:
    found = []
    for name in profiles.names():
        profile = profiles.profile(name)
        hmac = None
        if name == "hmac":
            hmac = HmacSettings(
                algorithm="sha512",
                signature="header:X-Signature",
                signed="v1\n{method}\n{path}\n{query}\n{header:X-Delivery}\n{header:X-Time}\n{body}",
                timestamp="header:X-Time",
            )
        source = profiles.prepare(SourceSettings(profile=name, secrets=(SECRET,), hmac=hmac))
        assert isinstance(source, Source), source
        if profile and source.schemes and profile.name != "contentful":
            found.append(source)
    return found


@pytest.mark.parametrize("source", signing_sources(), ids=lambda s: s.profile.name)
@settings(max_examples=10)
@given(body=st.binary(max_size=60), shift_s=st.integers(0, 200))
def test_every_scheme_verifies_what_it_signs_and_nothing_else(
    source: Source, body: bytes, shift_s: int
) -> None:
    scheme = source.schemes[0]
    ids = (("webhook-id", "m1"), ("svix-id", "m1"), ("x-delivery", "d1"))
    request = post(body, *ids)
    signed = signatures.sign(scheme, request, source.keys, NOW)
    assert isinstance(signed, Signed), signed
    query = "&".join(f"{name}={value}" for name, value in signed.query)
    sent = post(body, *ids, *signed.headers, query=query)
    now = NOW if source.profile.name == "contentful" else NOW + timedelta(seconds=shift_s)
    assert isinstance(signatures.verify(scheme, sent, source.keys, now), Verified)
    if scheme.method != "token":
        changed = post(body + b"!", *ids, *signed.headers, query=query)
        assert isinstance(signatures.verify(scheme, changed, source.keys, now), Refused)
    stranger = key("d2hvZXZlciB0aGlzIGlz", scheme)
    assert isinstance(signatures.verify(scheme, sent, (stranger,), now), Refused)


TEMPLATE = "demo-webhook-v1\n{header:X-Delivery}\n{header:X-Time}\n{body}"


@pytest.mark.req("A1")
def test_a_part_cannot_be_shifted_over_its_separator() -> None:
    scheme = Scheme(signed="{header:X-Id}.{body}", places=("header:x-sig",))
    good = signatures.sign(scheme, post(b"b.c", ("x-id", "a")), (key(scheme=scheme),), NOW)
    assert isinstance(good, Signed)
    shifted = post(b"c", ("x-id", "a.b"), *good.headers)
    verdict = signatures.verify(scheme, shifted, (key(scheme=scheme),), NOW)
    assert verdict == Refused("signed header X-Id contains the separator")


@pytest.mark.req("A2")
@pytest.mark.parametrize("written", ["1796033730", "1796033730123", "2026-11-30T11:15:30.5+01:00"])
def test_a_stamp_is_read_in_seconds_milliseconds_or_rfc_3339(written: str) -> None:
    scheme = Scheme(signed=TEMPLATE, places=("header:x-sig",), clock=Clock(header="x-time"))
    loaded = key(scheme=scheme)
    message = f"demo-webhook-v1\nd\n{written}\n{{}}".encode()
    made = signatures.expected(scheme, loaded, message).decode()
    sent = post(b"{}", ("x-delivery", "d"), ("x-time", written), ("x-sig", made))
    assert isinstance(signatures.verify(scheme, sent, (loaded,), NOW), Verified)


def test_a_stamp_in_an_entry_may_stand_anywhere_but_only_once() -> None:
    scheme = Scheme(
        signed="{timestamp}.{body}",
        places=("header:x-sig",),
        prefix="v1=",
        separator=",",
        clock=Clock(entry="t="),
    )
    loaded = key(scheme=scheme)
    signed = signatures.sign(scheme, post(b"{}"), (loaded,), NOW)
    assert isinstance(signed, Signed)
    (name, value) = signed.headers[0]
    stamp, made = value.split(",")
    for text, wanted in [
        (f"{made}, {stamp}", Verified),
        (f"{stamp},{stamp},{made}", Refused),
        (made, Refused),
    ]:
        verdict = signatures.verify(scheme, post(b"{}", (name, text)), (loaded,), NOW)
        assert isinstance(verdict, wanted), text


def test_a_flood_of_signatures_is_refused() -> None:
    headers = (("webhook-id", "m"), ("webhook-timestamp", str(int(NOW.timestamp()))))
    flood = ("webhook-signature", " ".join(["v1,AAAA"] * 500))
    verdict = signatures.verify(STANDARD_SCHEME, post(b"", *headers, flood), (key(),), NOW)
    assert verdict == Refused("too many signatures")


@pytest.mark.parametrize(
    "secret, form",
    [("", "text"), ("xyz", "hex"), ("", "hex"), ("%%%", "base64"), ("", "base64"), ("", "bearer")],
)
def test_a_text_that_is_no_secret_of_the_scheme_is_a_reason(secret: str, form: str) -> None:
    scheme = Scheme(key_form=form)  # type: ignore[arg-type]
    assert isinstance(signatures.load_key(secret, scheme), InvalidSecret)


@pytest.mark.parametrize("text", ["whpk_AAAA", "whsk_%%%", "whpk_" + "A" * 86 + "=="])
def test_an_asymmetric_key_has_its_length(text: str) -> None:
    assert isinstance(signatures.load_key(text, STANDARD_SCHEME), InvalidSecret)


@pytest.mark.req("A15")
def test_a_key_id_names_a_secret_and_gives_nothing_away() -> None:
    assert key().id == key(SECRET.removeprefix("whsec_")).id
    assert len(key().id) == 8
    assert key().id != key(OTHER).id
    assert "material" not in repr(key())


def test_the_query_is_signed_by_the_bytes_that_came() -> None:
    scheme = Scheme(signed="{method} {path}?{query}\n{body}", places=("header:x-sig",))
    loaded = key(scheme=scheme)
    came = "q=M\u00fc".encode().decode("latin-1")
    made = signatures.expected(scheme, loaded, "POST /hooks/s?q=M\u00fc\n".encode()).decode()
    sent = post(b"", ("x-sig", made), query=came)
    assert isinstance(signatures.verify(scheme, sent, (loaded,), NOW), Verified)


ANY_TEXT = st.text(st.characters(), max_size=40)  # lone surrogates too


@given(ANY_TEXT, ANY_TEXT, st.binary(max_size=40))
def test_no_header_raises(signature: str, stamp: str, body: bytes) -> None:
    headers = (
        ("webhook-id", signature),
        ("webhook-timestamp", stamp),
        ("webhook-signature", signature),
    )
    verdict = signatures.verify(STANDARD_SCHEME, post(body, *headers), (key(),), NOW)
    assert isinstance(verdict, Refused)
