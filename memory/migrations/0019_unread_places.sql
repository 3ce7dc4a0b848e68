-- Where the platform's history is still to be read, and from when on: messages that came meanwhile must not
-- hide from the next start what was missed before them. `thread` is '' outside of threads.
CREATE TABLE unread_places (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    thread        TEXT NOT NULL,
    since         TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat, thread)
) WITHOUT ROWID;
