-- Whether the snapshot is of the memory that groups share: a group that is taken out of the list sees
-- its own again.
ALTER TABLE memory_snapshots ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
