-- Notes that a night has passed over, since nothing came of them night after night; and how many of them
-- nobody has been told of.
ALTER TABLE nights ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nights ADD COLUMN passed_owed INTEGER NOT NULL DEFAULT 0;
