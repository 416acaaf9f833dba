-- Where trust in a source began goes along with its anchor, and so do the highest
-- trust_version and whether it was told that a key of the anchor was revoked.
ALTER TABLE anchors ADD COLUMN began_sha TEXT NOT NULL DEFAULT '';
ALTER TABLE anchors ADD COLUMN began_how TEXT NOT NULL DEFAULT '';
ALTER TABLE anchors ADD COLUMN began_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE anchors ADD COLUMN trust_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE anchors ADD COLUMN degraded INTEGER NOT NULL DEFAULT 0;

-- The audit knows: a person's last word, or else the first move.
UPDATE anchors SET (began_sha, began_how, began_at) = (
	SELECT to_sha, how, at FROM audit WHERE audit.source = anchors.source
	ORDER BY how LIKE 'accepted by %' DESC, CASE WHEN how LIKE 'accepted by %' THEN -id ELSE id END LIMIT 1
) WHERE EXISTS (SELECT 1 FROM audit WHERE audit.source = anchors.source);

-- The print of the trust set under which a commit passed.
ALTER TABLE commits ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
