"""Every table as data, and which of the four classes it belongs to.

*truth* is what cannot be computed again; *history* may expire; *operational* is never rebuilt;
*projections* are computed from the log and compared with it column by column. Times are integers:
milliseconds since 1970 (UTC). ``private`` columns hold what can be erased: no report may show it.
"""

from __future__ import annotations

import sqlalchemy as sa

from app.store import columns
from app.store.columns import TableClass
from app.store.columns import flag as _flag
from app.store.columns import number as _number
from app.store.columns import partial_index as _open
from app.store.columns import some_bytes as _bytes
from app.store.columns import table as _table
from app.store.columns import text as _text
from app.store.rare import IS_IGNORED, IS_RARE

metadata = columns.metadata

# -- truth ---------------------------------------------------------------------------------------

installation = _table(
    "installation",
    "truth",
    _number("id", key=True),
    _text("name"),
    _bytes("key"),
    _number("incarnation"),
    _number("created_ms"),
)

# ``id`` is the insertion ordinal: it rises in each transaction, but not over transactions.
events = _table(
    "events",
    "truth",
    _number("id", key=True),
    _text("stream"),
    _number("revision"),
    _text("type"),
    _bytes("body"),
    sa.UniqueConstraint("stream", "revision", name="events_stream_revision"),
    sa.Index("events_rare", "type", "id", sqlite_where=IS_RARE, postgresql_where=IS_RARE),
)

positions = _table(
    "positions",
    "truth",
    _number("position", key=True),
    _number("event"),
    _bytes("hash"),
    sa.UniqueConstraint("event", name="positions_event"),
)

private_parts = _table(
    "private_parts", "truth", _number("event", key=True), _bytes("salt"), _bytes("parts")
)

payloads = _table(
    "payloads", "truth", _number("id", key=True), _number("received_ms"), _bytes("body", null=True)
)

bodies = _table(
    "bodies",
    "truth",
    _text("message", key=True),
    _number("made_ms"),
    _bytes("salt", null=True),
    _bytes("data", null=True),
)

# The receipt is also the record of the first delivery. ``event`` is the derived id of the source
# event; the plain ids are private and are blanked by erasure.
receipts = _table(
    "receipts",
    "truth",
    _text("event", key=True),
    _number("id"),
    _text("source"),
    _text("stream"),
    _text("verdict"),
    _text("digest"),
    _text("comparison"),
    _text("rule"),
    _number("accepted_ms"),
    _text("type"),
    _text("event_id", null=True),
    _text("delivery_id", null=True),
    _text("key_id"),
    _number("payload"),
    sa.Index("receipts_key", "source", "key_id", "accepted_ms"),
    sa.Index("receipts_lately", "source", "accepted_ms", "verdict"),
    sa.Index(
        "receipts_ignored", "source", "type", sqlite_where=IS_IGNORED, postgresql_where=IS_IGNORED
    ),
    sa.Index("receipts_id", "id", unique=True),
    sa.Index("receipts_source", "source", "id"),
    sa.Index("receipts_stream", "stream"),
)

recipes = _table("recipes", "truth", _text("digest", key=True), _bytes("form"))

# -- history -------------------------------------------------------------------------------------

# Repeats, conflicts and refusals; the first delivery of each event is its receipt.
deliveries = _table(
    "deliveries",
    "history",
    _number("id", key=True),
    _text("source"),
    _text("verdict"),
    _number("received_ms"),
    _text("reason"),
    _text("event", null=True),
    _text("event_id", null=True),
    _text("delivery_id", null=True),
    _text("digest"),
    _text("key_id"),
    _number("payload", null=True),
    _text("settled"),
    _number("count"),
    sa.Index("deliveries_source", "source", "verdict", "id"),
    sa.Index("deliveries_event", "event"),
)

attempts = _table(
    "attempts",
    "history",
    _number("id", key=True),
    _text("work"),
    _text("stream"),
    _number("number"),
    _number("epoch"),
    _text("owner"),
    _number("started_ms"),
    _number("ended_ms", null=True),
    _text("outcome"),
    _text("error"),
    _text("scope"),
    _bytes("exchange", null=True),
    sa.Index("attempts_lately", "scope", "started_ms", "outcome", "ended_ms"),
    sa.Index("attempts_work", "work", "id"),
    sa.Index("attempts_scope", "scope", "id"),
)

# -- operational ---------------------------------------------------------------------------------

leases = _table(
    "leases",
    "operational",
    _text("id", key=True),
    _text("kind"),
    _text("stream"),
    _text("scope"),
    _number("incarnation"),
    _number("epoch"),
    _text("owner"),
    _number("started_ms"),
    _number("until_ms"),
    _number("done"),
    _number("total", null=True),
    _number("attempt"),
    sa.Index("leases_until", "until_ms"),
    sa.Index("leases_scope", "scope"),
    sa.Index("leases_stream", "stream"),
)

breakers = _table(
    "breakers", "operational", _text("scope", key=True), _bytes("state"), _number("changed_ms")
)

not_before = _table(
    "not_before", "operational", _text("scope", key=True), _number("until_ms"), _text("reason")
)

_ALERT_TEXTS = (_text("what"), _text("name"), _text("reason", private=True), _text("told"))
_ALERT_NUMBERS = map(_number, ("count", "opened_ms", "seen_ms", "closed_ms", "due_ms"))
alerts = _table("alerts", "operational", _text("key", key=True), *_ALERT_TEXTS, *_ALERT_NUMBERS)

batches = _table(
    "batches",
    "operational",
    _text("id", key=True),
    _number("at_ms"),
    _bytes("outcomes"),
    sa.Index("batches_at", "at_ms"),
)

tokens = _table(
    "tokens",
    "operational",
    _text("id", key=True),
    _text("hash"),
    _text("name"),
    _text("role"),
    _text("scope"),
    _number("created_ms"),
    _number("expires_ms"),
    _number("revoked_ms", null=True),
    _number("used_ms", null=True),
    sa.UniqueConstraint("hash", name="tokens_hash"),
)

idempotency = _table(
    "idempotency",
    "operational",
    _text("key", key=True),
    _text("digest"),
    _number("at_ms"),
    _bytes("answer", null=True),
)

cursors = _table(
    "cursors", "operational", _text("name", key=True), _bytes("value"), _number("changed_ms")
)

# One row for each source whose change feed is walked, by the source's first name: how far it was
# read, who walks it now, how many notices asked for it and how many of them a walk has answered.
walks = _table(
    "walks",
    "operational",
    _text("source", key=True),
    _text("cursor", private=True),
    _text("owner"),
    *map(_number, ("epoch", "until_ms", "asked", "answered", "missed_ms", "due_ms")),
    *map(_number, ("not_before_ms", "walked_ms", "failures")),
    _text("error"),
    _number("reconciled"),
)

# Blobs that nothing refers to any more, since when, and from when on they may be removed.
condemned = _table(
    "condemned",
    "operational",
    _text("sha256", key=True),
    _number("since_ms"),
    _number("due_ms"),
    sa.Index("condemned_due", "due_ms"),
)

# What operators ordered about many messages at once, and each message that it is about, in order.
campaigns = _table(
    "campaigns",
    "operational",
    _text("id", key=True),
    _text("state"),
    _text("operator", private=True),
    _text("reason", private=True),
    _bytes("plan", private=True),
    *map(_number, ("made_ms", "changed_ms", "next_ms", "gathered", "gathered_ms")),
    _text("gathered_id"),
    *map(_number, ("restarted", "forgiven", "is_held", "until_ms")),
    _text("owner"),
)

campaign_messages = _table(
    "campaign_messages",
    "operational",
    _text("campaign", key=True),
    _number("place", key=True),
    _text("message"),
    _text("stream"),
    _text("destination"),
    _text("fate"),
    _text("why"),
    sa.Index("campaign_messages_fate", "campaign", "fate", "destination", "place"),
)

# When work of a destination with a rate began lately, whoever began it.
rates = _table("rates", "operational", _text("scope", key=True), _text("began"))

_LIVED = map(_number, ("started_ms", "seen_ms"))
workers = _table("workers", "operational", _text("owner", key=True), _text("kind"), *_LIVED)

# One row: the version of the schema whose program is the oldest that works on these tables.
reach = _table("reach", "operational", _number("id", key=True), _text("oldest"))

# -- projections ---------------------------------------------------------------------------------

files = _table(
    "files",
    "projection",
    _text("stream", key=True),
    _text("source"),
    _text("file_id", private=True),
    _text("name", private=True),
    _text("folded_name", private=True),
    _text("project", private=True),
    _text("state"),
    _text("current"),
    _text("result"),
    _text("recipe"),
    _number("revision"),
    _number("opened_ms"),
    _number("changed_ms"),
    _bytes("body", private=True),
    sa.Index("files_changed", "changed_ms", "stream"),
    sa.Index("files_state", "state", "changed_ms", "stream"),
    sa.Index("files_file_id", "file_id"),
    sa.Index("files_name", "folded_name"),
)

OPEN_JOBS = sa.text("state IN ('ready', 'waiting')")
OPEN_MESSAGES = sa.text("state IN ('pending', 'waiting', 'unclear')")

jobs = _table(
    "jobs",
    "projection",
    _text("id", key=True),
    _text("stream"),
    _text("source"),
    _text("version"),
    _text("kind"),
    _text("name"),
    _text("recipe"),
    _text("state"),
    *map(_number, ("ordered_ms", "due_ms", "ended_ms", "attempts", "losses", "epoch", "run")),
    _flag("required"),
    _flag("asked"),
    _text("error", private=True),
    _open("jobs_due", OPEN_JOBS, "kind", "source", "due_ms"),
    sa.Index("jobs_ordered", "ordered_ms", "id"),
    sa.Index("jobs_state", "state", "ended_ms"),
    sa.Index("jobs_stream", "stream"),
)

messages = _table(
    "messages",
    "projection",
    _text("id", key=True),
    _text("stream"),
    _text("source"),
    _text("destination"),
    _text("type"),
    _text("version"),
    _number("sequence"),
    _text("state"),
    *map(_number, ("ordered_ms", "due_ms", "ended_ms", "attempts", "epoch", "run")),
    _text("error", private=True),
    _text("reference", private=True),
    _open("messages_due", OPEN_MESSAGES, "destination", "due_ms"),
    sa.Index("messages_destination", "destination", "state"),
    sa.Index("messages_ordered", "ordered_ms", "id"),
    sa.Index("messages_state", "state", "ended_ms"),
    sa.Index("messages_stream", "stream", "destination", "sequence"),
)

artifacts = _table(
    "artifacts",
    "projection",
    _text("id", key=True),
    _text("stream"),
    _text("name"),
    _text("sha256"),
    _number("size_bytes"),
    _text("media_type"),
    _text("note"),
    sa.Index("artifacts_sha256", "sha256"),
    sa.Index("artifacts_stream", "stream"),
)

controls = _table(
    "controls",
    "projection",
    _text("what", key=True),
    _text("reason", private=True),
    _text("operator", private=True),
    _number("since_ms"),
)

PROJECTED_BY_STREAM = (files, jobs, messages, artifacts)
PROJECTED_BY_CONTROL = (recipes, controls)
APPEND_ONLY = (events, positions)


def of_class(kind: TableClass) -> tuple[sa.Table, ...]:
    """The tables of one class."""
    return tuple(t for t in metadata.sorted_tables if t.info["class"] == kind)
