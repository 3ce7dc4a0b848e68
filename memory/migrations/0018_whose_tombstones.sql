-- Whose saying was forgotten: names, one a line; empty: whoever says it.
ALTER TABLE tombstones ADD COLUMN whose TEXT NOT NULL DEFAULT '';
-- 1: only taken back. No night adds it, and nothing else is different.
ALTER TABLE tombstones ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;

-- What nights have changed and nobody was told yet: numbers of added, merged, corrected, dropped, as JSON.
ALTER TABLE nights ADD COLUMN owed TEXT NOT NULL DEFAULT '';
-- The newest night that changed something: found and left_as are of that one.
ALTER TABLE nights ADD COLUMN changed_day TEXT NOT NULL DEFAULT '';
ALTER TABLE nights ADD COLUMN changed_at TEXT NOT NULL DEFAULT '';
UPDATE nights SET changed_day = day, changed_at = at WHERE outcome = 'changed';
UPDATE nights SET owed = json_array(added, merged, corrected, dropped) WHERE told = 0;
