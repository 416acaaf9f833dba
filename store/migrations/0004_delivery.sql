-- Receivers of notifications: how far each has read the journal, and what it
-- knows besides.
CREATE TABLE receivers (
	name   TEXT PRIMARY KEY,
	cursor INTEGER NOT NULL,
	state  TEXT NOT NULL,
	at     INTEGER NOT NULL
);

-- A row waits while settled = 0. line orders what one look said.
CREATE TABLE deliveries (
	id       TEXT PRIMARY KEY,
	receiver TEXT NOT NULL,
	line     INTEGER NOT NULL,
	kind     TEXT NOT NULL,
	subject  TEXT NOT NULL,
	body     TEXT NOT NULL,
	queued   INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	next_at  INTEGER NOT NULL,
	error    TEXT NOT NULL,
	dead     INTEGER NOT NULL,
	settled  INTEGER NOT NULL
);
CREATE INDEX deliveries_waiting ON deliveries (receiver, line) WHERE settled = 0;
CREATE INDEX deliveries_settled ON deliveries (settled);
