-- A run: one execution of the agent loop for one turn. Its messages in the inbox carry its id.
-- 'withdrawn': it was ended before its end (a stop of the process, an outage) and will be taken up;
-- takeovers: how often it was taken up after its process had died; preview_id: the message in the
-- chat in which its answer is shown while it is written.
CREATE TABLE runs (
    run_id        TEXT PRIMARY KEY,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    state         TEXT NOT NULL CHECK (state IN ('running', 'withdrawn', 'settled')),
    outcome       TEXT CHECK (outcome IN ('answered', 'cancelled', 'failed')),
    takeovers     INTEGER NOT NULL DEFAULT 0,
    preview_id    TEXT,
    began_at      TEXT NOT NULL,
    settled_at    TEXT
) WITHOUT ROWID;
CREATE INDEX runs_open ON runs (session_id) WHERE state <> 'settled';
INSERT INTO runs (run_id, session_id, state, began_at)
    SELECT run_id, MIN(session_id), IIF(MAX(outcome IS 'withdrawn'), 'withdrawn', 'running'),
           MIN(received_at)
    FROM inbox WHERE state = 'open' AND run_id IS NOT NULL AND session_id IS NOT NULL
    GROUP BY run_id;
UPDATE inbox SET outcome = NULL WHERE state = 'open' AND outcome = 'withdrawn';

-- The outbox: each final reply is stored with its parts before the first of them is sent.
-- key: the run that it answers, or the act (`act:<inbox row>`). halted: a person stopped it.
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE,
    session_id    INTEGER NOT NULL REFERENCES sessions (id),
    private       INTEGER NOT NULL,
    reply_to      TEXT,
    language      TEXT NOT NULL,
    preview_id    TEXT,
    halted        INTEGER NOT NULL DEFAULT 0,
    state         TEXT NOT NULL CHECK (state IN ('open', 'done')),
    outcome       TEXT CHECK (outcome IN ('delivered', 'halted', 'unreachable', 'incomplete')),
    created_at    TEXT NOT NULL,
    done_at       TEXT
);
CREATE INDEX outbox_open ON outbox (session_id, id) WHERE state = 'open';
CREATE INDEX outbox_by_session ON outbox (session_id, id);

-- One message or document of a reply, rendered by its channel. 'sending': it is on its way as a new
-- message, and after a crash nobody can say whether it has arrived; 'resending': it was sent once
-- more with a note after such a crash.
CREATE TABLE outbox_parts (
    reply_id      INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
    number        INTEGER NOT NULL,
    body          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN
                  ('open', 'sending', 'resending', 'sent', 'uncertain', 'refused')),
    message_id    TEXT,
    PRIMARY KEY (reply_id, number)
) WITHOUT ROWID;
