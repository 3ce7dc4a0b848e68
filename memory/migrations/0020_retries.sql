-- The run whose question this one answers again: /undo takes both out of the context.
ALTER TABLE runs ADD COLUMN retry_of TEXT;
