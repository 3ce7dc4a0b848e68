-- Ids of messages are given anew when the newest rows are deleted. The index then begins again after what
-- is left, also for a chat whose own newest message in the index is older than the first that went.
DROP TRIGGER messages_leave_search;
CREATE TRIGGER messages_leave_search AFTER DELETE ON messages
BEGIN
    DELETE FROM search_entries WHERE message_id = OLD.id;
END;
CREATE TRIGGER search_from_the_end AFTER DELETE ON messages
WHEN OLD.id > (SELECT COALESCE(MAX(id), 0) FROM messages)
BEGIN
    UPDATE memory_scopes SET upto = (SELECT COALESCE(MAX(id), 0) FROM messages)
        WHERE upto > (SELECT COALESCE(MAX(id), 0) FROM messages);
END;

-- A private chat in which nothing is kept for now: its conversation is a session of its own, whose key
-- ends in `:p=` and the token, and is deleted at the end. until: at the latest.
CREATE TABLE private_talks (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    token         TEXT NOT NULL,
    until         TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
) WITHOUT ROWID;

-- Memories that somebody has switched off: nothing is added, and nothing is shown to a model.
CREATE TABLE memory_off (
    scope         TEXT PRIMARY KEY,
    person        TEXT NOT NULL,
    at            TEXT NOT NULL
) WITHOUT ROWID;
