"""Whatever a sender writes is answered with a value: nothing that it sends may raise."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from domain import profiles
from domain.profiles import FieldMap, HmacSettings, Source, SourceSettings
from domain.schemes import Primitives, Request

NOW = datetime(2026, 11, 30, 10, 15, 30, tzinfo=UTC)
SEED = 20261130
ROUNDS = 300
KEYS = [
    "Type",
    "TopicArn",
    "Message",
    "MessageId",
    "Timestamp",
    "SignatureVersion",
    "Signature",
    "SigningCertURL",
    "Token",
    "SubscribeURL",
    "Records",
    "s3",
    "bucket",
    "name",
    "object",
    "key",
    "detail",
    "detail-type",
    "event",
    "event_time",
    "event_type",
    "event_hash",
    "value",
    "clientState",
    "resourceData",
    "id",
    "resource",
    "data",
    "url",
    "api",
    "eventType",
    "destinationUrl",
    "isFolder",
    "targetPath",
    "sourcePath",
    "node",
    "target",
    "source",
    "path",
    "file",
    "fields",
    "sys",
    "push",
    "changes",
    "new",
    "hash",
    "list_folder",
    "accounts",
    "propertyName",
    "propertyValue",
    "specversion",
    "challenge",
    "type",
    "eTag",
    "sequencer",
    "size",
    "commits",
    "added",
    "removed",
    "release",
    "assets",
    "tag_name",
    "action",
    "repository",
    "full_name",
    "after",
    "lifecycleEvent",
    "validationCode",
    "time",
    "word",
    "versionId",
    "sequence_id",
    "trigger",
    "webhook",
    "created_at",
]
LEAVES: list[Any] = [
    None, True, False, 0, -5, 10**30, 1.5, "", "x", "a" * 5000, "9" * 5000, "\u20ac", "\0", "null",
    "arn:1", "http://[x", "//[x", "https://sns.eu-central-1.amazonaws.com/a.pem", "1741944413",
    "%FF", "Notification", "SubscriptionConfirmation", "2026-11-30T10:00:00Z", "1.0",
]  # fmt: skip
ENVELOPE = {
    "TopicArn": "arn:1",
    "MessageId": "m",
    "Timestamp": "t",
    "SignatureVersion": "1",
    "SigningCertURL": "https://sns.eu-central-1.amazonaws.com/a.pem",
    "SubscribeURL": "https://sns.eu-central-1.amazonaws.com/",
    "Token": "t",
}
HEADERS = {
    "x-github-event": ["push", "release", "ping", "x"],
    "x-event-key": ["repo:push", "x"],
    "x-contentful-topic": ["t"],
    "x-shopify-topic": ["bulk_operations/finish"],
    "content-type": [
        "application/json",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
    ],
    "x-goog-resource-uri": ["http://[x", "https://a/files/1?b", ""],
    "x-goog-resource-state": ["update", "sync", "trash", "x"],
    "x-goog-channel-token": ["c2VjcmV0", "\u20ac"],
    "authorization": ["Bearer c2VjcmV0", "x"],
    "ce-id": ["1", '"'],
    "ce-x": ["%FF", "%C0%80"],
    "aeg-event-type": ["SubscriptionValidation"],
    "webhook-id": ["m"],
    "svix-id": ["m"],
    "webhook-request-origin": ["x"],
}
PRIMITIVES = Primitives(
    ed25519=lambda *_: False, rsa=lambda *_: False, certificate=lambda _: b"no certificate"
)


def hostile(dice: random.Random, depth: int = 0) -> Any:
    sort = dice.random()
    if sort < 0.3 or depth > 3:
        return dice.choice(LEAVES)
    if sort < 0.5:
        return [hostile(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {dice.choice(KEYS): hostile(dice, depth + 1) for _ in range(dice.randint(0, 6))}


def body(dice: random.Random) -> bytes:
    made = hostile(dice)
    if isinstance(made, dict) and dice.random() < 0.4:
        kind = dice.choice(["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"])
        inside = json.dumps(hostile(dice))
        made |= ENVELOPE | {
            "Type": kind,
            "Message": inside,
            "Signature": dice.choice(["\u00e9", "AAAA"]),
        }
    return json.dumps(made).encode()


def deliveries(dice: random.Random) -> Iterator[Request]:
    for _ in range(ROUNDS):
        names = dice.sample(sorted(HEADERS), dice.randint(3, len(HEADERS)))
        headers = tuple((name, dice.choice(HEADERS[name])) for name in names)
        query = dice.choice(["", "signature=a", "challenge=x", "validationToken=%FF"])
        method = dice.choice(["POST", "GET", "OPTIONS"])
        yield Request(method, f"https://h/x?{query}", "/x", query, headers, body(dice))


def source(name: str) -> Source:
    mapping = FieldMap(event_id="/id", type="/type", file_id="/data/id", url="/url")
    made = profiles.prepare(
        SourceSettings(
            profile=name,
            secrets=("c2VjcmV0",),
            allow=("arn:1",),
            hmac=HmacSettings(signature="X-S") if name == "hmac" else None,
            mapping=mapping if name == "hmac" else FieldMap(),
            host="h.example",
        )
    )
    assert isinstance(made, Source), made
    return made


@pytest.mark.req("A5")
@pytest.mark.parametrize("name", profiles.names())
def test_no_delivery_raises(name: str) -> None:
    made = source(name)
    for request in deliveries(random.Random(SEED)):
        profiles.greeting(made, request)
        profiles.verify(made, request, NOW, PRIMITIVES)
        profiles.read(made, request, NOW)
        profiles.told_ids(made, request, NOW)
