package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func begun(n int) ring.Anchor {
	a := anchored(n)
	a.Began = ring.Beginning{SHA: sha(1), How: ring.ByFirstUse, At: anchored(1).At}
	a.TrustVersion = 7
	return a
}

func TestWhatGoesAlongWithAnAnchorIsInTheDatabaseAndItsFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	require.NoError(t, s.Trust(t.Context(), begun(2), []ring.Verified{{SHA: sha(2), Epoch: "0123456789ab"}}, nil))
	s.trusts(t, begun(2))
	file, err := s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, begun(2), file)
	v, ok, err := s.Verified(t.Context(), "prod", sha(2))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "0123456789ab", v.Epoch)

	// Of the same commit something else is known: told, and no move in the audit.
	known := begun(2)
	known.Degraded, known.TrustVersion = true, 8
	require.NoError(t, s.Trust(t.Context(), known, nil, []ring.Event{{Kind: ring.TrustIsDegraded}}))
	s.trusts(t, known)
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM audit"))
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM journal"))

	// A person's word about the very commit is a line of the audit.
	word := known
	word.How = "accepted by root (uid 0): I know this one"
	require.NoError(t, s.Trust(t.Context(), word, nil, nil))
	moves, err := s.Audit(t.Context(), "prod", 1)
	require.NoError(t, err)
	require.Equal(t, AnchorMove{Source: "prod", From: sha(2), To: sha(2), How: word.How, At: word.At}, moves[0])
	require.NoError(t, s.Close())

	// All of it outlives the database.
	require.NoError(t, os.Remove(filepath.Join(dir, fileName)))
	s = opened(t, dir)
	s.trusts(t, word)
}

// The file and the database after every fault, and which of them counts.
func TestWhichOfFileAndDatabaseCounts(t *testing.T) {
	const keep, none, torn = -1, 0, -2
	for _, c := range []struct {
		name     string
		db, file int // the state as of that move; keep is the last, 3
		want     int // 0 is an error
	}{
		{"both of now", keep, keep, 3},
		{"an older file", keep, 1, 3},
		{"no file", keep, none, 3},
		{"a torn file", keep, torn, 3},
		{"an older database", 1, keep, 3},
		{"both older, the file further", 1, 2, 2},
		{"both older, the database further", 2, 1, 2},
		{"no database", none, keep, 3},
		{"no database and an older file", none, 1, 1},
		{"no database and a torn file", none, torn, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			anchor, db := filepath.Join(dir, "anchors", "prod"), filepath.Join(dir, fileName)
			files, dbs := map[int][]byte{}, map[int][]byte{}
			for n := 1; n <= 3; n++ {
				s := opened(t, dir)
				s.trust(t, n)
				require.NoError(t, s.Close())
				var err error
				files[n], err = os.ReadFile(anchor)
				require.NoError(t, err)
				dbs[n], err = os.ReadFile(db)
				require.NoError(t, err)
			}
			files[torn] = files[3][:20]
			for name, at := range map[string]int{anchor: c.file, db: c.db} {
				if at == keep {
					continue
				}
				require.NoError(t, os.Remove(name))
				if at == none {
					continue
				}
				body := dbs[at]
				if name == anchor {
					body = files[at]
				}
				require.NoError(t, os.WriteFile(name, body, 0o600))
			}
			s := opened(t, dir)
			if c.want == 0 {
				_, err := s.Anchor(t.Context(), "prod")
				require.ErrorContains(t, err, "bring it back from a backup, or remove it")
				return
			}
			s.trusts(t, anchored(c.want))
		})
	}
}

// Two stories of the same length: the database tells its own, and the file's is
// there to be asked for, by who can tell which commit descends from which.
func TestAFileOfAnotherStoryIsKeptUntilTheNextMove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	s.trust(t, 1)
	require.NoError(t, s.Close())
	other, err := json.Marshal(anchorRow{Anchor: anchored(9), Moves: 1})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "anchors", "prod"), other, 0o600))
	s = opened(t, dir)
	s.trusts(t, anchored(1))
	file, err := s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, sha(9), file.SHA)
	s.trust(t, 2)
	file, err = s.AnchorFile("prod")
	require.NoError(t, err)
	require.Equal(t, sha(2), file.SHA)
}

func TestTheMigrationTakesFromTheAuditWhereTrustBegan(t *testing.T) {
	all, err := migrations()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		hows []string
		want ring.Beginning
	}{
		"first use, and what came after": {[]string{"first use", "verified", "verified"}, ring.Beginning{SHA: sha(0), How: "first use", At: noon}},
		"a person's last word": {
			[]string{"first use", "accepted by root: a", "verified", "accepted by root: b", "verified"},
			ring.Beginning{SHA: sha(3), How: "accepted by root: b", At: noon.Add(3 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			require.NoError(t, os.Mkdir(dir, 0o700))
			h, _, err := tryDatabase(t.Context(), filepath.Join(dir, fileName), all[:1])
			require.NoError(t, err)
			s := &Store{db: h}
			for n, how := range c.hows {
				at := ns(noon.Add(time.Duration(n) * time.Minute))
				s.sql(t, "INSERT INTO audit (source, from_sha, to_sha, how, at) VALUES ('prod', '', ?, ?, ?)", string(sha(n)), how, at)
			}
			s.sql(t, "INSERT INTO anchors (source, sha, how, at, moves) VALUES ('prod', ?, 'verified', 1, 9), ('lab', ?, 'verified', 1, 1)", string(sha(9)), string(sha(8)))
			require.NoError(t, h.close())
			s, err = reopened(t, dir, all)
			require.NoError(t, err)
			got, err := s.Anchor(t.Context(), "prod")
			require.NoError(t, err)
			require.Equal(t, c.want, got.Began)
			got, err = s.Anchor(t.Context(), "lab")
			require.NoError(t, err)
			require.Zero(t, got.Began, "nothing is known of it")
		})
	}
}
