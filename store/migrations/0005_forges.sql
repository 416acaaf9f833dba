-- What a state means where a forge has a word of its own for it, and what the
-- forge calls the row: its deployment, or the pipeline of its status.
ALTER TABLE outbox ADD COLUMN phase TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN said_phase TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN remote TEXT NOT NULL DEFAULT '';
