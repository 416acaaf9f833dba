-- code is of the reason that a post tells, tally how many services its commit changes. Of
-- posts from before they were written down the sentence says both: a commit that was not
-- trusted is named by seven hex digits right after the code of the refusal.
ALTER TABLE outbox ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN tally TEXT NOT NULL DEFAULT '';
UPDATE outbox SET code = 'CommitRefused' WHERE description GLOB 'rejected: [A-Z]*'
	AND substr(description, 11 + instr(substr(description, 11), ' ') - 2, 1) <> ':'
	AND (substr(description, 11 + instr(substr(description, 11), ' '), 8) GLOB
			'[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'
		OR substr(description, 11 + instr(substr(description, 11), ' '), 8) GLOB
			'[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][: ]');
UPDATE outbox SET code = 'AppRefused' WHERE code = ''
	AND (description GLOB 'rejected: [A-Z]*' OR description GLOB 'app * rejected: [A-Z]*');
UPDATE outbox SET tally = substr(description, instr(description, 'plan '),
		instr(substr(description, instr(description, 'plan ')), '; ') + 1)
	WHERE description GLOB '*plan [0-9]*~ [0-9]*+ [0-9]*-; *';
