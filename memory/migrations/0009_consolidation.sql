-- Which messages of a session are in the day files: those from first_id to last_id.
CREATE TABLE flushed (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    first_id      INTEGER NOT NULL,
    last_id       INTEGER NOT NULL,
    -- The conversation (its first message's id) that holds words of others by then, NULL for none.
    foreign_id    INTEGER,
    at            TEXT NOT NULL
);
CREATE INDEX flushed_by_session ON flushed (session_id, last_id);

-- Ids of messages are given anew when the newest rows are deleted.
CREATE TRIGGER flushed_from_the_end AFTER DELETE ON messages
WHEN OLD.id > (SELECT COALESCE(MAX(id), 0) FROM messages)
BEGIN
    UPDATE flushed SET last_id = (SELECT COALESCE(MAX(id), 0) FROM messages)
        WHERE last_id > (SELECT COALESCE(MAX(id), 0) FROM messages);
    DELETE FROM flushed WHERE first_id > last_id;
END;

-- Which day files of a scope the nights have read: the file's first bytes, and their hash.
CREATE TABLE read_days (
    scope         TEXT NOT NULL,
    day           TEXT NOT NULL,
    bytes         INTEGER NOT NULL,
    hash          TEXT NOT NULL,
    PRIMARY KEY (scope, day)
) WITHOUT ROWID;

-- The newest night of a scope: its local date and how it ended. failures: nights in a row that failed.
CREATE TABLE nights (
    scope         TEXT PRIMARY KEY,
    day           TEXT NOT NULL,
    at            TEXT NOT NULL,
    outcome       TEXT NOT NULL CHECK (outcome IN ('changed', 'same', 'refused', 'failed', 'put_off')),
    reason        TEXT NOT NULL,
    added         INTEGER NOT NULL,
    merged        INTEGER NOT NULL,
    corrected     INTEGER NOT NULL,
    dropped       INTEGER NOT NULL,
    failures      INTEGER NOT NULL,
    told          INTEGER NOT NULL
) WITHOUT ROWID;
