-- What a chat's people used, by the chat's own days. A row is written with the call that it counts.
-- began_at: when the day began in the chat's zone of then; day: its local date. tokens: read and
-- written together.
CREATE TABLE usage_days (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    began_at      TEXT NOT NULL,
    person        TEXT NOT NULL,
    day           TEXT NOT NULL,
    calls         INTEGER NOT NULL,
    tokens        INTEGER NOT NULL,
    cost_microusd INTEGER NOT NULL,
    PRIMARY KEY (channel, account, chat, began_at, person)
) WITHOUT ROWID;
INSERT INTO usage_days
    SELECT s.channel, s.account, s.chat, substr(u.created_at, 1, 10) || 'T00:00:00.000000+00:00',
           u.person, substr(u.created_at, 1, 10), COUNT(*),
           SUM(u.input_tokens + u.output_tokens + u.cache_read_tokens + u.cache_write_tokens),
           COALESCE(SUM(u.cost_microusd), 0)
    FROM usage u JOIN sessions s ON s.id = u.session_id
    GROUP BY s.channel, s.account, s.chat, substr(u.created_at, 1, 10), u.person;

-- The day of usage_days in which a call is counted. Its outcome is 'reserved' while it runs: what it
-- will read is counted already.
ALTER TABLE usage ADD COLUMN day_began TEXT;
CREATE INDEX usage_reserved ON usage (run_id) WHERE outcome = 'reserved';

-- How many questions a person has asked in a chat within a time.
CREATE INDEX inbox_by_person ON inbox (channel, account, chat, person, sent_at) WHERE kind = 'turn';

-- The last good text of each chat's file (topic '' for the chat itself), and how often it changed.
CREATE TABLE policies (
    channel       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    topic         TEXT NOT NULL,
    text          TEXT NOT NULL,
    revision      INTEGER NOT NULL,
    changed_at    TEXT NOT NULL,
    PRIMARY KEY (channel, chat, topic)
) WITHOUT ROWID;
