-- What somebody is in the midst of choosing by buttons: for some minutes, also over a restart. `awaits`
-- is the bot's message to which a reply of that person belongs here; `body` is the bridge's.
CREATE TABLE dialogues (
    id INTEGER PRIMARY KEY,
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    person TEXT NOT NULL,
    awaits TEXT,
    body TEXT NOT NULL,
    until TEXT NOT NULL
);
CREATE INDEX dialogues_awaits ON dialogues (channel, account, chat, awaits) WHERE awaits IS NOT NULL;
