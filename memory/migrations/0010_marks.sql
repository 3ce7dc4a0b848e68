-- The message may have the bot's mark of waiting (a reaction): set before that is sent, cleared when it
-- is taken away, so that a start after a crash takes away what is left.
ALTER TABLE inbox ADD COLUMN marked INTEGER NOT NULL DEFAULT 0;

CREATE INDEX inbox_marked ON inbox (channel) WHERE marked = 1;
