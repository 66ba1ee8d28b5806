"""The event log, and everything that is computed from it or works for it.

Times are milliseconds since 1970. A number that is a key is the row's own number on SQLite.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

TYPES = {
    "sqlite": {"NUMBER": "INTEGER", "BYTES": "BLOB"},
    "postgresql": {"NUMBER": "BIGINT", "BYTES": "BYTEA"},
}

TRUTH = """
CREATE TABLE installation (
    id NUMBER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    key BYTES NOT NULL,
    incarnation NUMBER NOT NULL,
    created_ms NUMBER NOT NULL
);
CREATE TABLE events (
    id NUMBER NOT NULL PRIMARY KEY,
    stream TEXT NOT NULL,
    revision NUMBER NOT NULL,
    type TEXT NOT NULL,
    body BYTES NOT NULL,
    CONSTRAINT events_stream_revision UNIQUE (stream, revision)
);
CREATE TABLE positions (
    position NUMBER NOT NULL PRIMARY KEY,
    event NUMBER NOT NULL,
    hash BYTES NOT NULL,
    CONSTRAINT positions_event UNIQUE (event)
);
CREATE TABLE private_parts (
    event NUMBER NOT NULL PRIMARY KEY,
    salt BYTES NOT NULL,
    parts BYTES NOT NULL
);
CREATE TABLE payloads (
    id NUMBER NOT NULL PRIMARY KEY,
    received_ms NUMBER NOT NULL,
    body BYTES
);
CREATE TABLE bodies (
    message TEXT NOT NULL PRIMARY KEY,
    made_ms NUMBER NOT NULL,
    salt BYTES,
    data BYTES
);
CREATE TABLE receipts (
    event TEXT NOT NULL PRIMARY KEY,
    id NUMBER NOT NULL,
    source TEXT NOT NULL,
    stream TEXT NOT NULL,
    verdict TEXT NOT NULL,
    digest TEXT NOT NULL,
    comparison TEXT NOT NULL,
    rule TEXT NOT NULL,
    accepted_ms NUMBER NOT NULL,
    type TEXT NOT NULL,
    event_id TEXT,
    delivery_id TEXT,
    key_id TEXT NOT NULL,
    payload NUMBER NOT NULL
);
CREATE UNIQUE INDEX receipts_id ON receipts (id);
CREATE INDEX receipts_source ON receipts (source, id);
CREATE INDEX receipts_stream ON receipts (stream);
CREATE TABLE recipes (
    digest TEXT NOT NULL PRIMARY KEY,
    form BYTES NOT NULL
);
"""

HISTORY = """
CREATE TABLE deliveries (
    id NUMBER NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    verdict TEXT NOT NULL,
    received_ms NUMBER NOT NULL,
    reason TEXT NOT NULL,
    event TEXT,
    event_id TEXT,
    delivery_id TEXT,
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    payload NUMBER,
    settled TEXT NOT NULL,
    count NUMBER NOT NULL
);
CREATE INDEX deliveries_event ON deliveries (event);
CREATE INDEX deliveries_source ON deliveries (source, verdict, id);
CREATE TABLE attempts (
    id NUMBER NOT NULL PRIMARY KEY,
    work TEXT NOT NULL,
    stream TEXT NOT NULL,
    number NUMBER NOT NULL,
    epoch NUMBER NOT NULL,
    owner TEXT NOT NULL,
    started_ms NUMBER NOT NULL,
    ended_ms NUMBER,
    outcome TEXT NOT NULL,
    error TEXT NOT NULL,
    scope TEXT NOT NULL,
    exchange BYTES
);
CREATE INDEX attempts_scope ON attempts (scope, id);
CREATE INDEX attempts_work ON attempts (work, id);
"""

OPERATIONAL = """
CREATE TABLE leases (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    stream TEXT NOT NULL,
    scope TEXT NOT NULL,
    incarnation NUMBER NOT NULL,
    epoch NUMBER NOT NULL,
    owner TEXT NOT NULL,
    started_ms NUMBER NOT NULL,
    until_ms NUMBER NOT NULL,
    done NUMBER NOT NULL,
    total NUMBER,
    attempt NUMBER NOT NULL
);
CREATE INDEX leases_scope ON leases (scope);
CREATE INDEX leases_stream ON leases (stream);
CREATE INDEX leases_until ON leases (until_ms);
CREATE TABLE breakers (
    scope TEXT NOT NULL PRIMARY KEY,
    state BYTES NOT NULL,
    changed_ms NUMBER NOT NULL
);
CREATE TABLE not_before (
    scope TEXT NOT NULL PRIMARY KEY,
    until_ms NUMBER NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE batches (
    id TEXT NOT NULL PRIMARY KEY,
    at_ms NUMBER NOT NULL,
    outcomes BYTES NOT NULL
);
CREATE INDEX batches_at ON batches (at_ms);
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_ms NUMBER NOT NULL,
    expires_ms NUMBER NOT NULL,
    revoked_ms NUMBER,
    used_ms NUMBER,
    CONSTRAINT tokens_hash UNIQUE (hash)
);
CREATE TABLE idempotency (
    key TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL,
    at_ms NUMBER NOT NULL,
    answer BYTES
);
CREATE TABLE cursors (
    name TEXT NOT NULL PRIMARY KEY,
    value BYTES NOT NULL,
    changed_ms NUMBER NOT NULL
);
CREATE TABLE condemned (
    sha256 TEXT NOT NULL PRIMARY KEY,
    since_ms NUMBER NOT NULL,
    due_ms NUMBER NOT NULL
);
CREATE INDEX condemned_due ON condemned (due_ms);
CREATE TABLE workers (
    owner TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    started_ms NUMBER NOT NULL,
    seen_ms NUMBER NOT NULL
);
"""

PROJECTIONS = """
CREATE TABLE files (
    stream TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    file_id TEXT NOT NULL,
    name TEXT NOT NULL,
    folded_name TEXT NOT NULL,
    project TEXT NOT NULL,
    state TEXT NOT NULL,
    current TEXT NOT NULL,
    result TEXT NOT NULL,
    recipe TEXT NOT NULL,
    revision NUMBER NOT NULL,
    opened_ms NUMBER NOT NULL,
    changed_ms NUMBER NOT NULL,
    body BYTES NOT NULL
);
CREATE INDEX files_changed ON files (changed_ms, stream);
CREATE INDEX files_file_id ON files (file_id);
CREATE INDEX files_name ON files (folded_name);
CREATE INDEX files_state ON files (state, changed_ms, stream);
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    stream TEXT NOT NULL,
    source TEXT NOT NULL,
    version TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    recipe TEXT NOT NULL,
    state TEXT NOT NULL,
    ordered_ms NUMBER NOT NULL,
    due_ms NUMBER NOT NULL,
    ended_ms NUMBER NOT NULL,
    attempts NUMBER NOT NULL,
    losses NUMBER NOT NULL,
    epoch NUMBER NOT NULL,
    run NUMBER NOT NULL,
    required BOOLEAN NOT NULL,
    asked BOOLEAN NOT NULL,
    error TEXT NOT NULL
);
CREATE INDEX jobs_due ON jobs (kind, source, due_ms) WHERE state IN ('ready', 'waiting');
CREATE INDEX jobs_state ON jobs (state, ended_ms);
CREATE INDEX jobs_stream ON jobs (stream);
CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    stream TEXT NOT NULL,
    source TEXT NOT NULL,
    destination TEXT NOT NULL,
    type TEXT NOT NULL,
    version TEXT NOT NULL,
    sequence NUMBER NOT NULL,
    state TEXT NOT NULL,
    ordered_ms NUMBER NOT NULL,
    due_ms NUMBER NOT NULL,
    ended_ms NUMBER NOT NULL,
    attempts NUMBER NOT NULL,
    epoch NUMBER NOT NULL,
    run NUMBER NOT NULL,
    error TEXT NOT NULL,
    reference TEXT NOT NULL
);
CREATE INDEX messages_due ON messages (destination, due_ms)
    WHERE state IN ('pending', 'waiting', 'unclear');
CREATE INDEX messages_state ON messages (state, ended_ms);
CREATE INDEX messages_stream ON messages (stream, destination, sequence);
CREATE TABLE artifacts (
    id TEXT NOT NULL PRIMARY KEY,
    stream TEXT NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes NUMBER NOT NULL,
    media_type TEXT NOT NULL,
    note TEXT NOT NULL
);
CREATE INDEX artifacts_sha256 ON artifacts (sha256);
CREATE INDEX artifacts_stream ON artifacts (stream);
CREATE TABLE controls (
    what TEXT NOT NULL PRIMARY KEY,
    reason TEXT NOT NULL,
    operator TEXT NOT NULL,
    since_ms NUMBER NOT NULL
);
"""

# Writers hand their events to the sequencer here; xid8 never leaves the server.
SHARED = """
CREATE SEQUENCE numbers AS BIGINT;
CREATE TABLE unsequenced (
    event NUMBER NOT NULL PRIMARY KEY,
    xid XID8 NOT NULL
);
CREATE TABLE sequencer (
    id NUMBER NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    term NUMBER NOT NULL,
    until_ms NUMBER NOT NULL
);
"""

# Rows that change all the time keep room beside them for their next form, and dead rows of small
# hot tables are removed before they slow a claim. The log only grows: it is frozen as it does, so
# that no vacuum ever has to read it whole.
SETTINGS = """
ALTER TABLE files SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE jobs SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE messages SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0);
ALTER TABLE leases SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE unsequenced SET (autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE batches SET (autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE sequencer SET (fillfactor = 50);
ALTER TABLE events SET (autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_freeze_min_age = 0);
ALTER TABLE positions SET (autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_freeze_min_age = 0)
"""

APPEND_ONLY = ("events", "positions")

SQLITE_GUARD = """
CREATE TRIGGER {table}_{when} BEFORE {what} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only: {what} is refused'); END
"""
# INSERT OR REPLACE removes the row that is in the way without asking the DELETE trigger.
SQLITE_NO_REPLACE = {
    "events": "id = NEW.id OR (stream = NEW.stream AND revision = NEW.revision)",
    "positions": "position = NEW.position OR event = NEW.event",
}
SQLITE_REPLACE_GUARD = """
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {clash})
BEGIN SELECT RAISE(ABORT, 'UNIQUE constraint failed: {table} is append-only'); END
"""
POSTGRESQL_REFUSE = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$
"""
# ALWAYS: also where triggers are switched off for a session (session_replication_role).
POSTGRESQL_GUARD = """
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only
"""


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    for part in (TRUTH, HISTORY, OPERATIONAL, PROJECTIONS):
        _run(part, dialect)
    if dialect == "sqlite":
        _guard_sqlite()
    else:
        _run(SHARED, dialect)
        _run(SETTINGS, dialect)
        op.execute(POSTGRESQL_REFUSE)
        for table in APPEND_ONLY:
            _run(POSTGRESQL_GUARD.format(table=table), dialect)


def _guard_sqlite() -> None:
    for table in APPEND_ONLY:
        for what in ("UPDATE", "DELETE"):
            op.execute(SQLITE_GUARD.format(table=table, when=f"no_{what.lower()}", what=what))
        op.execute(SQLITE_REPLACE_GUARD.format(table=table, clash=SQLITE_NO_REPLACE[table]))


def _run(statements: str, dialect: str) -> None:
    for name, kind in TYPES[dialect].items():
        statements = statements.replace(f" {name}", f" {kind}")
    for statement in statements.split(";"):
        if statement.strip():
            op.execute(statement)
