package store

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestPostsOfAnEarlierReleaseGetTheirCodes brings posts up to date that were told before
// they had codes: what was refused by trust, what a commit holds, and how it was counted.
func TestPostsOfAnEarlierReleaseGetTheirCodes(t *testing.T) {
	all, err := migrations()
	require.NoError(t, err)
	before := 0
	for all[before].ID != "0007_post_codes" {
		before++
	}
	dir := filepath.Join(t.TempDir(), "state")
	s, err := reopened(t, dir, all[:before])
	require.NoError(t, err)
	type told struct {
		description string
		code        ring.ReasonCode
		tally       string
	}
	rows := []told{
		{"rejected: Unsigned ab12cd3", ring.WhyCommitRefused, ""},
		{"rejected: Unsigned ab12cd3: commit ab12cd3 is not signed", ring.WhyCommitRefused, ""},
		{"rejected: PolicyDenied web/compose.yaml:3: it would", ring.WhyAppRefused, ""},
		{"rejected: UnknownKey: defaced is no key", ring.WhyAppRefused, ""},
		{"app web rejected: ForeignProject: web runs already", ring.WhyAppRefused, ""},
		{"web 2/4 ready", "", ""},
		{"superseded by ab12cd3", "", ""},
		{"verified by alice; plan 1~ 12+ 0-; pulling web:1", "", "plan 1~ 12+ 0-; "},
		{"the plan 2 is good; it is rejected: not so", "", ""},
	}
	for i, r := range rows {
		err := s.db.w.Exec(`INSERT INTO outbox (key, source, sha, context, state, phase, description, at, seq, said, said_state, said_description,
			sent, attempts, next_at, error, dead, created, queued, settled)
			VALUES (?, 'prod', ?, 'gitring/h', 'failure', '', ?, ?, 1, 1, '', '', 0, 0, 0, '', 0, ?, ?, ?)`,
			ring.PostKey(sha(i+1), "gitring/h"), string(sha(i+1)), r.description, ns(noon), ns(noon), ns(noon), ns(noon)).Error
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())

	s, err = reopened(t, dir, all)
	require.NoError(t, err)
	require.Empty(t, s.Notice())
	for i, r := range rows {
		var row outboxRow
		require.NoError(t, s.db.w.Raw("SELECT * FROM outbox WHERE sha = ?", string(sha(i+1))).Scan(&row).Error)
		require.Equal(t, r.code, row.post().Code, r.description)
		require.Equal(t, r.tally, row.post().Tally, r.description)
	}
	require.NoError(t, s.Close())
}
