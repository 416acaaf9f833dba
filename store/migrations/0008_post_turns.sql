-- turns is how often a failure that other hosts wait on was taken back.
ALTER TABLE outbox ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
