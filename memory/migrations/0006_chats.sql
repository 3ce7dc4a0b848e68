-- A chat that has moved to another id (a group that became a supergroup): what names `old` means
-- `chat`. A row stands from the moment the move is known, and what is stored follows at each start
-- as well.
CREATE TABLE moved_chats (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    old           TEXT NOT NULL,
    chat          TEXT NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (channel, account, old)
) WITHOUT ROWID;

-- A chat that the bot cannot reach since `at`; the row goes with the next message from there. removed:
-- the platform says that the bot was removed, blocked or uninstalled, so that the chat is erased
-- later. An empty chat stands for all of the account.
CREATE TABLE gone_chats (
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL,
    chat          TEXT NOT NULL,
    removed       INTEGER NOT NULL,
    at            TEXT NOT NULL,
    PRIMARY KEY (channel, account, chat)
) WITHOUT ROWID;

CREATE INDEX inbox_by_session ON inbox (session_id);
CREATE INDEX usage_by_session ON usage (session_id);
