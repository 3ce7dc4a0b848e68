-- What is to be done at a time: one row for each kind of job and scope ('' for the whole bot).
-- cron, zone: the plan that it comes by, NULL for a job that comes once. due_at: UTC, NULL when it will
-- not come any more; it may be later than planned when a try has failed. day: the local date that
-- due_at stands for; last_day: the newest one that is over, so that no date comes twice.
-- tries: how often it was begun for this date. began_at: set while it runs.
CREATE TABLE jobs (
    kind          TEXT NOT NULL,
    scope         TEXT NOT NULL,
    cron          TEXT,
    zone          TEXT,
    due_at        TEXT,
    day           TEXT,
    last_day      TEXT,
    tries         INTEGER NOT NULL DEFAULT 0,
    began_at      TEXT,
    last_at       TEXT,
    outcome       TEXT CHECK (outcome IN ('done', 'failed', 'too_long', 'interrupted')),
    detail        TEXT,
    PRIMARY KEY (kind, scope)
) WITHOUT ROWID;
CREATE INDEX jobs_by_due ON jobs (kind, due_at) WHERE due_at IS NOT NULL;

-- Ids of messages are given anew when the newest rows are deleted. A boundary that begins after them
-- (a conversation that is empty since /new) begins after what is left, so that no later message stands
-- before it.
CREATE TRIGGER messages_from_the_end AFTER DELETE ON messages
WHEN OLD.id > (SELECT COALESCE(MAX(id), 0) FROM messages)
BEGIN
    UPDATE boundaries SET
        start_id = MIN(start_id, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages)),
        brief_id = MIN(brief_id, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages))
    WHERE start_id > (SELECT COALESCE(MAX(id), 0) + 1 FROM messages)
        OR brief_id > (SELECT COALESCE(MAX(id), 0) + 1 FROM messages);
END;
