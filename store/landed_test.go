package store

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func (s *Store) stands(t *testing.T, source string, of ring.SHA) ring.Standing {
	t.Helper()
	got, err := s.Standing(t.Context(), source, of)
	require.NoError(t, err)
	return got
}

func TestHowACommitWasAcceptedIsKeptWithTheAnchor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	_, err := s.FirstSeen(t.Context(), "prod", []ring.SHA{sha(1), sha(2), sha(3)}, noon)
	require.NoError(t, err)
	require.NoError(t, s.Trust(t.Context(), anchored(3), []ring.Verified{
		{SHA: sha(2), Signed: true, Payloads: []string{"two"}},
		{SHA: sha(3), Landed: true, Payloads: []string{"head", "half"}},
	}, nil))
	for range 2 { // and after a restart
		require.Equal(t, ring.NeverSeen, s.stands(t, "prod", sha(9)))
		require.Equal(t, ring.SeenOnly, s.stands(t, "prod", sha(1)))
		require.Equal(t, ring.OwnSignature, s.stands(t, "prod", sha(2)))
		require.Equal(t, ring.LetIn, s.stands(t, "prod", sha(3)))
		require.Equal(t, ring.NeverSeen, s.stands(t, "other", sha(2)), "two sources of one repository are apart")
		for payload, want := range map[string][]ring.Carrier{
			"two": {{By: sha(2)}}, "head": {{By: sha(3), AsHead: true}}, "half": {{By: sha(3)}}, "none": {},
		} {
			got, err := s.Carriers(t.Context(), "prod", payload)
			require.NoError(t, err)
			require.Equal(t, want, got, payload)
			got, err = s.Carriers(t.Context(), "other", payload)
			require.NoError(t, err)
			require.Empty(t, got)
		}
		require.NoError(t, s.Close())
		s = opened(t, dir)
	}
	// Judged again, by a person's word for example, it stays verified.
	require.NoError(t, s.Trust(t.Context(), anchored(2), []ring.Verified{{SHA: sha(2), Note: "accepted by root"}}, nil))
	require.Equal(t, ring.OwnSignature, s.stands(t, "prod", sha(2)))
}

func TestALandingIsRememberedWithTheAnchorOrNotAtAll(t *testing.T) {
	s := opened(t, filepath.Join(t.TempDir(), "state"))
	require.NoError(t, s.db.w.Exec(`CREATE TRIGGER broken BEFORE INSERT ON anchors BEGIN SELECT RAISE(ABORT, 'no'); END`).Error)
	require.Error(t, s.Trust(t.Context(), anchored(3), []ring.Verified{{SHA: sha(3), Landed: true, Payloads: []string{"head"}}}, nil))
	require.Equal(t, 0, s.count(t, "SELECT count(*) FROM landed"))
	require.NoError(t, s.db.w.Exec("DROP TRIGGER broken").Error)
	require.NoError(t, s.db.w.Exec(`CREATE TRIGGER broken BEFORE INSERT ON landed BEGIN SELECT RAISE(ABORT, 'no'); END`).Error)
	require.Error(t, s.Trust(t.Context(), anchored(3), []ring.Verified{{SHA: sha(3), Landed: true, Payloads: []string{"head"}}}, nil))
	require.Equal(t, 0, s.count(t, "SELECT count(*) FROM anchors"))
}

// Rows of the release before tell by their notes how they were accepted.
func TestRowsFromBeforeSayHowTheyWereAccepted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	all, err := migrations()
	require.NoError(t, err)
	var before []migration
	for _, m := range all {
		if m.ID < "0006_landed" {
			before = append(before, m)
		}
	}
	s, err := reopened(t, dir, before)
	require.NoError(t, err)
	notes := map[string]ring.Standing{
		"": ring.OwnSignature, "inside expiry_grace": ring.OwnSignature, "approved by bob: 1234567": ring.OwnSignature,
		"content by alice, landed by the forge": ring.LetIn, "vouched by bob: 1234567": ring.LetIn, "first use": ring.LetIn,
		"introduction: trusted by configuration": ring.LetIn, "accepted by root; ": ring.LetIn, "not verified: trust mode tip": ring.LetIn,
	}
	n := 0
	of := map[string]ring.SHA{}
	for note := range notes {
		n++
		of[note] = sha(n)
		require.NoError(t, s.db.w.Exec(`INSERT INTO commits (source, sha, first_seen, verified, signer, fingerprint, note)
			VALUES ('prod', ?, 1, 1, 'alice', 'SHA256:x', ?)`, string(sha(n)), note).Error)
	}
	require.NoError(t, s.db.w.Exec("INSERT INTO commits (source, sha, first_seen, verified) VALUES ('prod', ?, 1, 0)", string(sha(50))).Error)
	require.NoError(t, s.db.w.Exec("INSERT INTO commits (source, sha, first_seen, verified) VALUES ('prod', ?, 1, 1)", string(sha(51))).Error)
	require.NoError(t, s.Close())
	s = opened(t, dir)
	for note, want := range notes {
		require.Equal(t, want, s.stands(t, "prod", of[note]), note)
	}
	require.Equal(t, ring.SeenOnly, s.stands(t, "prod", sha(50)))
	require.Equal(t, ring.LetIn, s.stands(t, "prod", sha(51)), "of trust mode disabled")
}
