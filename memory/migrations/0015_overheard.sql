-- Whether a run was shown what others had said in the chat and not to the bot. Those words are stored
-- nowhere; the answers may repeat them, and are nobody's own words then.
ALTER TABLE runs ADD COLUMN overheard INTEGER NOT NULL DEFAULT 0;
