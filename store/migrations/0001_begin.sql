-- Times are Unix nanoseconds in UTC; 0 is none.

-- One row per ring.Fact, replaced whole.
CREATE TABLE facts (
	kind  TEXT NOT NULL,
	key   TEXT NOT NULL,
	value TEXT NOT NULL,
	at    INTEGER NOT NULL,
	PRIMARY KEY (kind, key)
);

-- moves counts how often an anchor was set, here and in its file: whichever
-- counted further is the later one, whatever the clock did.
CREATE TABLE anchors (
	source TEXT PRIMARY KEY,
	sha    TEXT NOT NULL,
	how    TEXT NOT NULL,
	at     INTEGER NOT NULL,
	moves  INTEGER NOT NULL
);

CREATE TABLE audit (
	id       INTEGER PRIMARY KEY,
	source   TEXT NOT NULL,
	from_sha TEXT NOT NULL,
	to_sha   TEXT NOT NULL,
	how      TEXT NOT NULL,
	at       INTEGER NOT NULL
);

-- verified is 0 until the commit passed every rule.
CREATE TABLE commits (
	source      TEXT NOT NULL,
	sha         TEXT NOT NULL,
	first_seen  INTEGER NOT NULL,
	verified    INTEGER NOT NULL DEFAULT 0,
	signer      TEXT NOT NULL DEFAULT '',
	fingerprint TEXT NOT NULL DEFAULT '',
	claimed     INTEGER NOT NULL DEFAULT 0,
	note        TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (source, sha)
);
CREATE INDEX commits_by_age ON commits (verified, first_seen);

CREATE TABLE streaks (
	instance TEXT NOT NULL,
	name     TEXT NOT NULL,
	value    TEXT NOT NULL,
	at       INTEGER NOT NULL,
	PRIMARY KEY (instance, name)
);

-- A row is due while said < seq. said_* is what the forge heard last.
CREATE TABLE outbox (
	key              TEXT PRIMARY KEY,
	source           TEXT NOT NULL,
	sha              TEXT NOT NULL,
	context          TEXT NOT NULL,
	state            TEXT NOT NULL,
	description      TEXT NOT NULL,
	at               INTEGER NOT NULL,
	seq              INTEGER NOT NULL,
	said             INTEGER NOT NULL,
	said_state       TEXT NOT NULL,
	said_description TEXT NOT NULL,
	sent             INTEGER NOT NULL,
	attempts         INTEGER NOT NULL,
	next_at          INTEGER NOT NULL,
	error            TEXT NOT NULL,
	dead             INTEGER NOT NULL,
	created          INTEGER NOT NULL,
	queued           INTEGER NOT NULL,
	settled          INTEGER NOT NULL
);
CREATE INDEX outbox_by_sha ON outbox (sha);
CREATE INDEX outbox_due ON outbox (next_at) WHERE said < seq AND dead = 0;

-- hash is over prev and body, the event as JSON.
CREATE TABLE journal (
	seq  INTEGER PRIMARY KEY,
	at   INTEGER NOT NULL,
	prev BLOB NOT NULL,
	hash BLOB NOT NULL,
	body TEXT NOT NULL,
	app  TEXT GENERATED ALWAYS AS (body ->> '$.app') VIRTUAL
);
CREATE INDEX journal_by_app ON journal (app, seq);

-- The two ends of the chain. base is the last line that was let go: what the
-- first line left must follow on. Lines cut off at the other end miss from head.
CREATE TABLE chain (
	id        INTEGER PRIMARY KEY CHECK (id = 1),
	base_seq  INTEGER NOT NULL,
	base_hash BLOB NOT NULL,
	head_seq  INTEGER NOT NULL,
	head_hash BLOB NOT NULL
);
INSERT INTO chain VALUES (1, 0, zeroblob(32), 0, zeroblob(32));

CREATE TRIGGER journal_follows BEFORE INSERT ON journal
WHEN NOT EXISTS (SELECT 1 FROM chain WHERE head_seq + 1 = NEW.seq AND head_hash = NEW.prev)
BEGIN
	SELECT RAISE(ABORT, 'the journal is append-only: this line does not follow the last one');
END;

CREATE TRIGGER journal_head AFTER INSERT ON journal
BEGIN
	UPDATE chain SET head_seq = NEW.seq, head_hash = NEW.hash;
END;

CREATE TRIGGER journal_stays BEFORE UPDATE ON journal
BEGIN
	SELECT RAISE(ABORT, 'the journal is append-only: a line is never changed');
END;

CREATE TRIGGER journal_kept BEFORE DELETE ON journal
WHEN NOT EXISTS (SELECT 1 FROM chain WHERE OLD.seq <= base_seq)
BEGIN
	SELECT RAISE(ABORT, 'the journal is append-only: only lines before the base go');
END;

CREATE TRIGGER chain_base BEFORE UPDATE OF base_seq, base_hash ON chain
WHEN NOT EXISTS (SELECT 1 FROM journal WHERE seq = NEW.base_seq AND hash = NEW.base_hash AND seq > OLD.base_seq)
BEGIN
	SELECT RAISE(ABORT, 'the base of the journal moves forward to one of its lines');
END;
