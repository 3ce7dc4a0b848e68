-- Where a session's context starts, newest row first. `start_id`: nothing before it goes to a model;
-- turns that begin before `brief_id` go as question and final answer only; `note` stands for what left.
-- kind 'new': a person began a new conversation; 'trim', 'compact': older turns left the context;
-- 'aggressive', 'emergency', 'reset': a provider's overflow made them leave.
CREATE TABLE boundaries_new (
    id            INTEGER PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    kind          TEXT NOT NULL
                  CHECK (kind IN ('new', 'trim', 'compact', 'aggressive', 'emergency', 'reset')),
    start_id      INTEGER NOT NULL,
    brief_id      INTEGER,
    note          TEXT,
    created_at    TEXT NOT NULL
);
INSERT INTO boundaries_new (id, session_id, kind, start_id, created_at)
    SELECT id, session_id, kind, start_id, created_at FROM boundaries;
DROP TABLE boundaries;
ALTER TABLE boundaries_new RENAME TO boundaries;
CREATE INDEX boundaries_by_session ON boundaries (session_id, id);

-- Runs that a person took out of the context (/undo, /retry). Their messages stay stored.
CREATE TABLE left_out (
    run_id        TEXT PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    at            TEXT NOT NULL
) WITHOUT ROWID;

-- The platform's time of a message: a conversation's order, also when one is delivered late.
ALTER TABLE inbox ADD COLUMN sent_at TEXT NOT NULL DEFAULT '';
UPDATE inbox SET sent_at = received_at;

-- The event of the stop that closed a message, so that its person can have it answered after all.
ALTER TABLE inbox ADD COLUMN stopped_by TEXT;
