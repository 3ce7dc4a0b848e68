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
