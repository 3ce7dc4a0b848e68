-- Whose memory: one row for each chat that was searched or whose memory was changed. What refers to it
-- is derived from the memory files and the messages, and goes with it. upto: the messages of the chat
-- up to this id are in the index.
CREATE TABLE memory_scopes (
    id            INTEGER PRIMARY KEY,
    scope         TEXT NOT NULL UNIQUE,
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    upto          INTEGER NOT NULL DEFAULT 0
);

-- The memory files as they were indexed. mtime_ns 0: written so recently that it must be read again.
CREATE TABLE search_files (
    owner         INTEGER NOT NULL REFERENCES memory_scopes (id) ON DELETE CASCADE,
    name          TEXT NOT NULL,
    size          INTEGER NOT NULL,
    mtime_ns      INTEGER NOT NULL,
    hash          BLOB NOT NULL,
    lines         INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;

-- What can be found: some lines of a file or of a message, counted from 0. day: as a number of days.
CREATE TABLE search_entries (
    id            INTEGER PRIMARY KEY,
    owner         INTEGER NOT NULL REFERENCES memory_scopes (id) ON DELETE CASCADE,
    name          TEXT,
    message_id    INTEGER,
    run_id        TEXT,
    line          INTEGER NOT NULL,
    lines         INTEGER NOT NULL,
    day           INTEGER NOT NULL
);
CREATE INDEX search_entries_by_file ON search_entries (owner, name);
CREATE INDEX search_entries_by_message ON search_entries (message_id) WHERE message_id IS NOT NULL;

-- Its words, as memory/words.py makes them, with a space between them; owner: a word for whose it is.
CREATE VIRTUAL TABLE search_words USING fts5 (owner, words, tokenize = 'ascii');

CREATE TRIGGER search_words_go AFTER DELETE ON search_entries
BEGIN
    DELETE FROM search_words WHERE rowid = OLD.id;
END;

-- A message that is deleted is not found any more; ids are given anew when the newest rows go.
CREATE TRIGGER messages_leave_search AFTER DELETE ON messages
BEGIN
    DELETE FROM search_entries WHERE message_id = OLD.id;
    UPDATE memory_scopes SET upto = (SELECT COALESCE(MAX(id), 0) FROM messages)
        WHERE upto >= OLD.id AND upto > (SELECT COALESCE(MAX(id), 0) FROM messages);
END;

-- What a person had forgotten, as `normalised` gives it: nothing may bring it back but that person.
CREATE TABLE tombstones (
    scope         TEXT NOT NULL,
    hash          TEXT NOT NULL,
    words         TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (scope, hash)
) WITHOUT ROWID;

-- Who had an entry of MEMORY.md written, in which run; hash: of what it says.
CREATE TABLE memory_changes (
    id            INTEGER PRIMARY KEY,
    scope         TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('remembered', 'corrected', 'forgotten')),
    number        INTEGER NOT NULL,
    hash          TEXT NOT NULL,
    run_id        TEXT,
    person        TEXT NOT NULL,
    at            TEXT NOT NULL
);
CREATE INDEX memory_changes_by_scope ON memory_changes (scope, hash);
CREATE INDEX memory_changes_by_run ON memory_changes (run_id) WHERE run_id IS NOT NULL;

-- The memory as it stands in a session's prompt, so that a provider can cache it. The newest row counts,
-- as long as the session has the same newest boundary.
CREATE TABLE memory_snapshots (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    boundary_id   INTEGER NOT NULL,
    text          TEXT NOT NULL,
    made_at       TEXT NOT NULL
);
CREATE INDEX memory_snapshots_by_session ON memory_snapshots (session_id);

-- Whether the question is the person's own words alone: a run about a forward writes no memory.
ALTER TABLE runs ADD COLUMN own_words INTEGER NOT NULL DEFAULT 1;
CREATE INDEX runs_passed_on ON runs (session_id) WHERE NOT own_words;
