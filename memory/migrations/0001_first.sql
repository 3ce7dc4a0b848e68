-- Times are ISO 8601 in UTC with microseconds, so that text order is time order. Money is in
-- micro-dollars (integers), so that sums are exact.

-- A conversation's identity. Other tables refer to the id; the key is one column, so that a group's
-- move to a new chat id is one UPDATE..
CREATE TABLE sessions (
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE,
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    thread        TEXT,
    created_at    TEXT NOT NULL
);
CREATE INDEX sessions_by_chat ON sessions (channel, account, chat);

-- The inbox is the queue of record. A message is open until its run is settled; a refused one keeps
-- its key and no text.
CREATE TABLE inbox (
    id            INTEGER PRIMARY KEY,
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    event         TEXT NOT NULL,
    session_id    INTEGER REFERENCES sessions (id),
    person        TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('turn', 'act', 'refused')),
    state         TEXT NOT NULL CHECK (state IN ('open', 'done')),
    body          TEXT,
    run_id        TEXT,
    received_at   TEXT NOT NULL,
    done_at       TEXT,
    outcome       TEXT,
    UNIQUE (channel, account, chat, event)
);
CREATE INDEX inbox_open ON inbox (session_id, id) WHERE state = 'open';
CREATE INDEX inbox_by_run ON inbox (run_id) WHERE run_id IS NOT NULL;

-- Stored history is append-only. ordinal 0 of a run is the user's message.
CREATE TABLE messages (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    run_id        TEXT NOT NULL,
    ordinal       INTEGER NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    body          TEXT NOT NULL,
    created_at    TEXT NOT NULL,
    UNIQUE (run_id, ordinal)
);
CREATE INDEX messages_by_session ON messages (session_id, id);

-- Where a session's context starts: nothing before the newest row's start goes to a model.
-- kind 'new': a person began a new conversation; 'trim': older turns left the context.
CREATE TABLE boundaries (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    kind          TEXT NOT NULL CHECK (kind IN ('new', 'trim')),
    start_id      INTEGER NOT NULL,
    created_at    TEXT NOT NULL
);
CREATE INDEX boundaries_by_session ON boundaries (session_id, id);

-- People in a group are shown to the model by name and a number within the conversation.
CREATE TABLE speakers (
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    person        TEXT NOT NULL,
    number        INTEGER NOT NULL,
    PRIMARY KEY (session_id, person),
    UNIQUE (session_id, number)
) WITHOUT ROWID;

-- One row for each model call, cancelled and broken ones too.
CREATE TABLE usage (
    run_id             TEXT NOT NULL,
    number             INTEGER NOT NULL,
    session_id         INTEGER REFERENCES sessions (id),
    person             TEXT NOT NULL,
    model              TEXT NOT NULL,
    purpose            TEXT NOT NULL,
    outcome            TEXT NOT NULL,
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    estimated          INTEGER NOT NULL,
    cost_microusd      INTEGER,
    created_at         TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
CREATE INDEX usage_by_time ON usage (created_at, cost_microusd);

CREATE TABLE owners (
    channel       TEXT NOT NULL,
    person        TEXT NOT NULL,
    added_at      TEXT NOT NULL,
    PRIMARY KEY (channel, person)
) WITHOUT ROWID;

-- One-time links by which the first owner shows who they are; only a hash of the code is kept.
CREATE TABLE owner_links (
    code_hash     TEXT PRIMARY KEY,
    channel       TEXT NOT NULL,
    expires_at    TEXT NOT NULL,
    used_at       TEXT
) WITHOUT ROWID;

-- What a chat or person was told at most once in a while.
CREATE TABLE notices (
    key           TEXT PRIMARY KEY,
    told_at       TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
    id            INTEGER PRIMARY KEY,
    at            TEXT NOT NULL,
    actor         TEXT NOT NULL,
    action        TEXT NOT NULL,
    target        TEXT NOT NULL,
    before        TEXT,
    after         TEXT
);
CREATE TRIGGER audit_is_append_only_u BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;
CREATE TRIGGER audit_is_append_only_d BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit table is append-only'); END;

-- What stands behind an error id that a chat was shown.
CREATE TABLE errors (
    id            TEXT PRIMARY KEY,
    at            TEXT NOT NULL,
    place         TEXT NOT NULL,
    trace         TEXT NOT NULL
) WITHOUT ROWID;
