-- signed is 1 where the commit passed by a signature of its own. Of rows from before
-- it was written down the note says so: landings, vouches, first use, introductions, what
-- a person accepted and trust mode tip have notes of their own.
ALTER TABLE commits ADD COLUMN signed INTEGER NOT NULL DEFAULT 0;
UPDATE commits SET signed = 1 WHERE verified > 0 AND fingerprint <> ''
	AND note NOT LIKE 'content by %' AND note NOT LIKE 'vouched by %' AND note NOT LIKE 'first use%'
	AND note NOT LIKE 'introduction%' AND note NOT LIKE 'accepted by %' AND note NOT LIKE 'not verified%';

-- A signed content, by the hash of its payload, and the accepted commit that brought
-- it: itself, or a landing. Nothing is ever removed: what landed once may not land again.
CREATE TABLE landed (
	source  TEXT NOT NULL,
	payload TEXT NOT NULL,
	by_sha  TEXT NOT NULL,
	as_head INTEGER NOT NULL,
	PRIMARY KEY (source, payload, by_sha)
) WITHOUT ROWID;
