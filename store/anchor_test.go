package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func anchored(n int) ring.Anchor {
	return ring.Anchor{Source: "prod", SHA: sha(n), How: "verified", At: noon.Add(time.Duration(n) * time.Minute)}
}

func (s *Store) trust(t *testing.T, n int) {
	t.Helper()
	require.NoError(t, s.Trust(t.Context(), anchored(n), []ring.Verified{{SHA: sha(n), Signer: "alice@example.org"}},
		[]ring.Event{{Kind: ring.CommitAccepted, Source: "prod", Commit: sha(n)}}))
}

func (s *Store) trusts(t *testing.T, want ring.Anchor) {
	t.Helper()
	got, err := s.Anchor(t.Context(), "prod")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestTrustMovesTheAnchorInTheDatabaseAndItsFile(t *testing.T) {
	s := fresh(t)
	s.trusts(t, ring.Anchor{})
	s.trust(t, 1)
	s.trust(t, 2)
	s.trusts(t, anchored(2))
	file, err := s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, anchored(2), file)
	fi, err := os.Stat(filepath.Join(s.dir, "anchors", "prod"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())

	v, ok, err := s.Verified(t.Context(), "prod", sha(1))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ring.Verified{SHA: sha(1), Signer: "alice@example.org", FirstSeen: noon}, v)
	_, ok, err = s.Verified(t.Context(), "other", sha(1))
	require.NoError(t, err)
	require.False(t, ok)
	moves, err := s.Audit(t.Context(), "prod", 10)
	require.NoError(t, err)
	require.Equal(t, []AnchorMove{
		{Source: "prod", From: sha(1), To: sha(2), How: "verified", At: anchored(2).At},
		{Source: "prod", From: "", To: sha(1), How: "verified", At: anchored(1).At},
	}, moves)
	events, err := s.Events(t.Context(), EventQuery{})
	require.NoError(t, err)
	require.Len(t, events, 2)
	other, err := s.Anchor(t.Context(), "other")
	require.NoError(t, err)
	require.Zero(t, other)
}

func TestTrustIsOneTransaction(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	s.sql(t, "CREATE TRIGGER fault BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'fault'); END")
	require.Error(t, s.Trust(t.Context(), anchored(2), []ring.Verified{{SHA: sha(2)}}, []ring.Event{{Kind: "x"}}))
	s.trusts(t, anchored(1))
	file, err := s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, anchored(1), file)
	_, ok, err := s.Verified(t.Context(), "prod", sha(2))
	require.NoError(t, err)
	require.False(t, ok)
}

func TestACrashBetweenTheDatabaseAndTheFileIsMended(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	s.trust(t, 1)
	old, err := os.ReadFile(filepath.Join(dir, "anchors", "prod"))
	require.NoError(t, err)
	s.trust(t, 2)
	require.NoError(t, s.Close())
	for name, left := range map[string][]byte{"the file is old": old, "the file is torn": []byte("{"), "there is none": nil} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "anchors", "prod")
			require.NoError(t, os.Remove(file))
			if left != nil {
				require.NoError(t, os.WriteFile(file, left, 0o600))
			}
			s := opened(t, dir)
			require.Empty(t, s.Notice())
			s.trusts(t, anchored(2))
			got, err := s.AnchorFile("prod")
			require.NoError(t, err)
			require.Equal(t, anchored(2), got)
			require.NoError(t, s.Close())
		})
	}
}

func TestAFileThatCouldNotBeWrittenIsWrittenByTheSameCallAgain(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	anchors := filepath.Join(s.dir, "anchors")
	require.NoError(t, os.Rename(anchors, anchors+".away"))
	require.NoError(t, os.WriteFile(anchors, nil, 0o600)) // where a folder is to be
	event := []ring.Event{{Kind: ring.CommitAccepted, Commit: sha(2)}}
	require.ErrorContains(t, s.Trust(t.Context(), anchored(2), nil, event), "anchor")
	require.NoError(t, os.Remove(anchors))
	require.NoError(t, os.Rename(anchors+".away", anchors))
	again := anchored(2)
	again.At = noon.Add(time.Hour)
	require.NoError(t, s.Trust(t.Context(), again, nil, event))
	s.trusts(t, anchored(2))
	file, err := s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, anchored(2), file)
	require.Equal(t, 2, s.count(t, "SELECT count(*) FROM journal"), "it is not said twice")
	require.Equal(t, 2, s.count(t, "SELECT count(*) FROM audit"))
}

func TestAnAnchorFileThatCannotBeReadIsNoFirstTrust(t *testing.T) {
	for name, body := range map[string]string{
		"torn":           `{"source": "prod", "sha": "`,
		"empty":          "",
		"of another":     fmt.Sprintf(`{"source": "test", "sha": %q}`, sha(1)),
		"a short commit": `{"source": "prod", "sha": "ab12cd3"}`,
		"no commit":      `{"source": "prod"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			require.NoError(t, os.Mkdir(filepath.Join(s.dir, "anchors"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, "anchors", "prod"), []byte(body), 0o600))
			_, err := s.Anchor(t.Context(), "prod")
			require.Error(t, err)
			s.trust(t, 3) // a person settled it
			s.trusts(t, anchored(3))
		})
	}
}

func TestAnOlderDatabaseDoesNotTakeTrustBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	s.trust(t, 1)
	require.NoError(t, s.Close())
	old, err := os.ReadFile(filepath.Join(dir, fileName))
	require.NoError(t, err)
	s = opened(t, dir)
	s.trust(t, 2)
	back := anchored(3)
	back.At = noon.Add(-24 * time.Hour) // the clock was set back
	require.NoError(t, s.Trust(t.Context(), back, nil, nil))
	require.NoError(t, s.Close())

	require.NoError(t, os.WriteFile(filepath.Join(dir, fileName), old, 0o600))
	s = opened(t, dir)
	require.Contains(t, s.Notice(), "the database is older than the anchor files of prod")
	s.trusts(t, back)
	s.trust(t, 4)
	s.trusts(t, anchored(4))
	moves, err := s.Audit(t.Context(), "prod", 1)
	require.NoError(t, err)
	require.Equal(t, sha(3), moves[0].From)
	require.NoError(t, s.Close())
	require.Empty(t, opened(t, dir).Notice())
}

func TestASourceCannotBeAPath(t *testing.T) {
	s := fresh(t)
	for _, source := range []string{"", ".", "..", "../x", "a/b", "a\x00b", tempMark + "x"} {
		require.Error(t, s.Trust(t.Context(), ring.Anchor{Source: source, SHA: sha(1)}, nil, nil), "%q", source)
		_, err := s.Anchor(t.Context(), source)
		require.Error(t, err, "%q", source)
	}
	require.Error(t, s.Trust(t.Context(), ring.Anchor{Source: "prod", SHA: "abc"}, nil, nil))
	require.Zero(t, s.count(t, "SELECT count(*) FROM anchors"))
}

func TestWhenACommitWasFirstSeenNeverChanges(t *testing.T) {
	s := fresh(t)
	later := noon.Add(time.Hour)
	got, err := s.FirstSeen(t.Context(), "prod", []ring.SHA{sha(1), sha(2), sha(1)}, noon)
	require.NoError(t, err)
	require.Equal(t, map[ring.SHA]time.Time{sha(1): noon, sha(2): noon}, got)
	got, err = s.FirstSeen(t.Context(), "prod", []ring.SHA{sha(1), sha(3)}, later)
	require.NoError(t, err)
	require.Equal(t, map[ring.SHA]time.Time{sha(1): noon, sha(3): later}, got)
	got, err = s.FirstSeen(t.Context(), "test", []ring.SHA{sha(1)}, later)
	require.NoError(t, err)
	require.Equal(t, map[ring.SHA]time.Time{sha(1): later}, got, "another source is another store")
	got, err = s.FirstSeen(t.Context(), "prod", nil, later)
	require.NoError(t, err)
	require.Empty(t, got)

	require.NoError(t, s.Trust(t.Context(), anchored(1), []ring.Verified{{SHA: sha(1), FirstSeen: later, ClaimedAt: noon, Fingerprint: "SHA256:x", Note: "n"}}, nil))
	v, ok, err := s.Verified(t.Context(), "prod", sha(1))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ring.Verified{SHA: sha(1), FirstSeen: noon, ClaimedAt: noon, Fingerprint: "SHA256:x", Note: "n"}, v)
}

func TestALargeRangeIsSeenAtOnce(t *testing.T) {
	s := fresh(t)
	var shas []ring.SHA
	for n := range 10_000 {
		shas = append(shas, sha(n))
	}
	got, err := s.FirstSeen(t.Context(), "prod", shas, noon)
	require.NoError(t, err)
	require.Len(t, got, len(shas))
}

func TestStreaks(t *testing.T) {
	s := fresh(t)
	got, err := s.Streaks(t.Context())
	require.NoError(t, err)
	require.Empty(t, got)
	a := ring.Streak{Instance: "c1", Check: "http", Started: noon, Passing: true, Since: noon, Count: 3, Last: true, Says: "200", At: noon}
	b := ring.Streak{Instance: "c1", Check: "tcp"}
	require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{b, a}))
	a.Count = 9
	require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{a}))
	require.NoError(t, s.SaveStreaks(t.Context(), nil))
	got, err = s.Streaks(t.Context())
	require.NoError(t, err)
	require.Equal(t, []ring.Streak{a, b}, got)

	s.sql(t, "UPDATE streaks SET value = '[' WHERE name = 'http'")
	got, err = s.Streaks(t.Context())
	require.ErrorContains(t, err, `row "c1 http" of table "streaks": its value is no JSON`)
	require.Equal(t, []ring.Streak{b}, got)
}
