-- What the newest night found and left of MEMORY.md (memory/versions.py, digest): it is taken back as a
-- whole, from just what it left. Empty where it changed nothing, or somebody else something in between.
ALTER TABLE nights ADD COLUMN found TEXT NOT NULL DEFAULT '';
ALTER TABLE nights ADD COLUMN left_as TEXT NOT NULL DEFAULT '';
