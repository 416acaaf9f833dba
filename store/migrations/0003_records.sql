-- What is kept for people, and no decision reads: crashes, runs of jobs, and
-- what checks answered. subject is the service, as app/service.
CREATE TABLE records (
	kind      TEXT NOT NULL,
	key       TEXT NOT NULL,
	subject   TEXT NOT NULL,
	at        INTEGER NOT NULL,
	value     TEXT NOT NULL,
	log       TEXT NOT NULL,
	PRIMARY KEY (kind, key)
);
CREATE INDEX records_by_age ON records (kind, subject, at);

-- Equal answers in a row are one line, from the first of them to the last.
CREATE TABLE results (
	instance TEXT NOT NULL,
	name     TEXT NOT NULL,
	first    INTEGER NOT NULL,
	last     INTEGER NOT NULL,
	value    TEXT NOT NULL,
	PRIMARY KEY (instance, name, first)
);
CREATE INDEX results_by_age ON results (last);
