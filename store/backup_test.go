package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// saved is a backup of a store that runs.
func saved(t *testing.T, s *Store, folder string) string {
	t.Helper()
	file := filepath.Join(folder, "b.tar.gz")
	_, err := SaveTo(t.Context(), s.dir, file, Backup{Host: "edge-1", Gitring: "0.1.0", At: noon})
	require.NoError(t, err)
	return file
}

// files are those below a folder, with what is in each.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, "-wal") {
			return err
		}
		b, err := os.ReadFile(name)
		out[name] = string(b)
		return err
	}))
	return out
}

func ran(version, state string) ring.JobRun {
	return ring.JobRun{ID: "web/migrate", Version: ring.Version(version), State: state, Started: noon}
}

func TestABackupBringsAnEmptyHostBack(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	s.trust(t, 2)
	facts, events := record(1)
	require.NoError(t, s.Record(t.Context(), append(facts, ran("1:a", "succeeded")), events))
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "git", "prod"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "git", "prod", "HEAD"), []byte("ref"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "env.key"), []byte("key"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "seeds"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "seeds", "ab.json"), []byte("{}"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "ciphertext"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "ciphertext", "ab12.json"), []byte("{}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "ciphertext", ".tmp-7"), []byte("half"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "secrets.json"), []byte("{}"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "secrets", "ab12"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "secrets", "ab12", "pw"), []byte("in clear"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "session.key"), []byte("of sessions"), 0o600))
	file := saved(t, s, t.TempDir())
	fi, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode())
	require.Equal(t, noon, BackedUp(s.dir))

	dir := filepath.Join(t.TempDir(), "state")
	release, err := Lock(dir, "unix:///none", t.Name())
	require.NoError(t, err)
	done, err := Restore(t.Context(), dir, file, "edge-1", noon)
	require.NoError(t, err)
	release()
	require.Equal(t, []string{"prod"}, done.Taken)
	require.Equal(t, 1, done.Marks)
	require.Empty(t, done.Aside)
	require.NoDirExists(t, filepath.Join(dir, "git"), "a mirror is fetched again")
	require.FileExists(t, filepath.Join(dir, "env.key"))
	key, err := os.ReadFile(filepath.Join(dir, "session.key"))
	require.NoError(t, err)
	require.Equal(t, "of sessions", string(key), "people stay signed in")
	require.FileExists(t, filepath.Join(dir, "seeds", "ab.json"))
	require.FileExists(t, filepath.Join(dir, "ciphertext", "ab12.json"))
	require.NoFileExists(t, filepath.Join(dir, "ciphertext", ".tmp-7"), "what was half written is left out")
	require.FileExists(t, filepath.Join(dir, "secrets.json"))
	require.NoDirExists(t, filepath.Join(dir, "secrets"), "no value is in a backup")
	fi, err = os.Stat(filepath.Join(dir, "ciphertext"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())

	back := opened(t, dir)
	require.NotContains(t, back.Notice(), "damaged")
	back.trusts(t, anchored(2))
	require.NoError(t, back.CheckJournal(t.Context()))
	got, err := back.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, "succeeded", got.Jobs["web/migrate@1:a"].State)
	all, err := back.Events(t.Context(), EventQuery{})
	require.NoError(t, err)
	require.Len(t, all, 4)
	back.trust(t, 3) // and it goes on
	back.trusts(t, anchored(3))
}

func TestAnOlderBackupMovesNoAnchorBackAndForgetsNoJob(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ran("1:a", "succeeded"), ran("1:b", "started")}, nil))
	file := saved(t, s, t.TempDir())
	s.trust(t, 2)
	s.trust(t, 3)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ran("1:b", "failed"), ran("1:c", "started")}, nil))
	require.NoError(t, s.Close())

	done, err := Restore(t.Context(), s.dir, file, "edge-1", noon)
	require.NoError(t, err)
	require.Empty(t, done.Taken)
	require.Len(t, done.Kept, 1)
	require.Contains(t, done.Kept[0], sha(3).Short())
	require.FileExists(t, done.Aside)
	back := opened(t, s.dir)
	back.trusts(t, anchored(3))
	got, err := back.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, "succeeded", got.Jobs["web/migrate@1:a"].State)
	require.Equal(t, "failed", got.Jobs["web/migrate@1:b"].State, "what is known here of a run counts")
	require.Equal(t, "started", got.Jobs["web/migrate@1:c"].State, "the backup knows nothing of it, and it ran")
}

func TestAStateThatBeganAnewIsNotMovedBackByManyOlderMoves(t *testing.T) {
	s := fresh(t)
	for n := range 9 {
		s.trust(t, n+1)
	}
	file := saved(t, s, t.TempDir())
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(s.dir))
	anew := opened(t, s.dir) // its moves count from 1 again
	anew.trust(t, 20)
	require.NoError(t, anew.Close())
	_, err := Restore(t.Context(), s.dir, file, "edge-1", noon)
	require.NoError(t, err)
	opened(t, s.dir).trusts(t, anchored(20))
}

func TestABackupThatIsFurtherMovesTheAnchorForward(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	older := saved(t, s, t.TempDir())
	s.trust(t, 2)
	newer := saved(t, s, t.TempDir())
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o700))
	for _, file := range []string{older, newer, older} {
		_, err := Restore(t.Context(), s.dir, file, "edge-1", noon)
		require.NoError(t, err)
	}
	opened(t, s.dir).trusts(t, anchored(2))
}

// Whatever was trusted, saved, lost and restored in whatever order: no restore moves back.
func TestNoRestoreEverMovesAnAnchorBackOrForgetsAMark(t *testing.T) {
	restores := 0
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir, folder := filepath.Join(t.TempDir(), "state"), t.TempDir()
		at, jobs, backups := 0, 0, []string{}
		for range 10 {
			s := opened(t, dir)
			before, err := s.Anchor(t.Context(), "prod")
			require.NoError(t, err)
			marks, err := s.JobMarks()
			require.NoError(t, err)
			step := []string{"trust", "trust", "job", "save", "restore", "restore", "lose"}[r.IntN(7)]
			switch step {
			case "trust":
				at++
				s.trust(t, at)
			case "job":
				jobs++
				require.NoError(t, s.MarkJob("web", "migrate", ring.Version(fmt.Sprintf("1:%d", jobs)), "started"))
			case "save":
				backups = append(backups, filepath.Join(folder, fmt.Sprint(len(backups))))
				_, err := SaveTo(t.Context(), dir, backups[len(backups)-1], Backup{Host: "edge-1", At: noon})
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
			switch {
			case step == "lose":
				require.NoError(t, os.RemoveAll(dir))
			case step == "restore" && len(backups) > 0:
				restores++
				_, err := Restore(t.Context(), dir, backups[r.IntN(len(backups))], "edge-1", noon)
				require.NoError(t, err)
				s := opened(t, dir)
				after, err := s.Anchor(t.Context(), "prod")
				require.NoError(t, err)
				require.False(t, after.At.Before(before.At), "seed %d: from %s back to %s", seed, before.SHA.Short(), after.SHA.Short())
				left, err := s.JobMarks()
				require.NoError(t, err)
				facts, err := s.Facts(t.Context())
				require.NoError(t, err)
				for key := range marks {
					require.Contains(t, left, key)
					require.Contains(t, facts.Jobs, key)
				}
				require.NoError(t, s.Close())
			}
		}
	}
	require.Greater(t, restores, 10)
}

func TestWhatIsNoBackupOfThisHostChangesNothing(t *testing.T) {
	s := fresh(t)
	s.trust(t, 1)
	good := saved(t, s, t.TempDir())
	require.NoError(t, s.Close())
	raw, err := os.ReadFile(good)
	require.NoError(t, err)
	about := Backup{Format: 1, Host: "edge-1"}
	for name, tt := range map[string]struct {
		archive []byte
		host    string
		says    string
	}{
		"another host":         {raw, "edge-2", `it is of host "edge-1", and this one is "edge-2"`},
		"half of it":           {raw[:len(raw)/2], "edge-1", "cannot "},
		"nothing of the kind":  {[]byte("hello"), "edge-1", "it is no backup of gitring"},
		"a tar of others":      {packed(t, entry{"etc/passwd", "root"}), "edge-1", "it is no backup of gitring"},
		"a later form":         {packed(t, entry{aboutEntry, Backup{Format: 2, Host: "edge-1"}}), "edge-1", "it is a backup of form 2"},
		"no database":          {packed(t, entry{aboutEntry, about}), "edge-1", "there is none in it"},
		"a damaged database":   {packed(t, entry{aboutEntry, about}, entry{"state/gitring.db", strings.Repeat("no database", 999)}), "edge-1", "cannot use the database"},
		"a way out":            {packed(t, entry{aboutEntry, about}, entry{"state/anchors/../../x", "y"}), "edge-1", "which no backup has"},
		"an absolute way out":  {packed(t, entry{aboutEntry, about}, entry{"state//etc/passwd", "y"}), "edge-1", "which no backup has"},
		"something else of it": {packed(t, entry{aboutEntry, about}, entry{"state/lock", "1"}), "edge-1", "which no backup has"},
		"a link":               {packed(t, entry{aboutEntry, about}, entry{"state/env.key", nil}), "edge-1", "which no backup has"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "b")
			require.NoError(t, os.WriteFile(file, tt.archive, 0o600))
			before := filesIn(t, s.dir)
			_, err := Restore(t.Context(), s.dir, file, tt.host, noon)
			require.ErrorContains(t, err, tt.says)
			require.True(t, strings.HasPrefix(err.Error(), "cannot "))
			require.Equal(t, before, filesIn(t, s.dir))
		})
	}
	opened(t, s.dir).trusts(t, anchored(1))
}

type entry struct {
	name string
	body any // nil is a link
}

// packed is an archive that somebody made by hand.
func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b")
	f, err := os.Create(file)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.body == nil {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: e.name, Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}))
			continue
		}
		b, isText := e.body.(string)
		if !isText {
			raw, err := json.Marshal(e.body)
			require.NoError(t, err)
			b = string(raw)
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(b))}))
		_, err := io.WriteString(w, b)
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(w.Close(), z.Close(), f.Close()))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return raw
}

func TestABackupOfANewerDatabaseIsLeftAlone(t *testing.T) {
	s := fresh(t)
	s.sql(t, "INSERT INTO migrations (id) VALUES ('9999_later')")
	file := saved(t, s, t.TempDir())
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	_, err := Restore(t.Context(), dir, file, "edge-1", noon)
	require.ErrorContains(t, err, "a newer gitring has written it")
	require.Empty(t, filesIn(t, dir))
}

func TestABackupOfAStoreThatIsWrittenIsWhole(t *testing.T) {
	s := fresh(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			facts, events := record(n)
			if s.Record(ctx, append(facts, ran("1:"+string(rune('a'+n%20)), "started")), events) != nil {
				return
			}
		}
	})
	for range 10 {
		file := saved(t, s, t.TempDir())
		dir := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		_, err := Restore(t.Context(), dir, file, "edge-1", noon)
		require.NoError(t, err)
		back := opened(t, dir)
		require.NoError(t, back.CheckJournal(t.Context()))
	}
	stop()
	wg.Wait()
}

func TestABackupNeverReplacesAFile(t *testing.T) {
	s := fresh(t)
	file := saved(t, s, t.TempDir())
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = SaveTo(t.Context(), s.dir, file, Backup{Host: "edge-1", At: noon})
	require.ErrorContains(t, err, "it is there")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	folder := t.TempDir()
	_, err = SaveTo(t.Context(), filepath.Join(folder, "none"), filepath.Join(folder, "b"), Backup{})
	require.ErrorContains(t, err, "cannot save the database")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing half made is left")
}

func TestTheConfigurationComesBackWhereItIsNot(t *testing.T) {
	s := fresh(t)
	etc := filepath.Join(t.TempDir(), "etc")
	put := func(name, body string, mode os.FileMode) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(etc, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), []byte(body), mode))
	}
	put("config.yaml", "host: edge-1\n", 0o644)
	put("env/web.env", "PASSWORD=x\n", 0o600)
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(etc, "link")))
	file := filepath.Join(t.TempDir(), "b")
	leftOut, err := SaveTo(t.Context(), s.dir, file, Backup{Host: "edge-1", At: noon, Config: etc})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(etc, "link")}, leftOut)

	// A state below the configuration's folder is not saved twice, and neither is the archive.
	below := filepath.Join(filepath.Dir(s.dir), "b")
	_, err = SaveTo(t.Context(), s.dir, below, Backup{Host: "edge-1", At: noon, Config: filepath.Dir(s.dir)})
	require.NoError(t, err)
	a, err := openArchive(below)
	require.NoError(t, err)
	defer a.close()
	entries, err := a.entries()
	require.NoError(t, err)
	for h, err := entries.Next(); err == nil; h, err = entries.Next() {
		require.False(t, strings.HasPrefix(h.Name, "config/"), h.Name)
	}

	require.NoError(t, os.Remove(filepath.Join(etc, "env", "web.env")))
	wrote, err := RestoreConfig(file)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(etc, "env", "web.env")}, wrote)
	fi, err := os.Stat(wrote[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode())

	put("config.yaml", "host: edge-2\n", 0o644)
	require.NoError(t, os.Remove(wrote[0]))
	_, err = RestoreConfig(file)
	require.ErrorContains(t, err, "it is there and differs")
	require.NoFileExists(t, wrote[0], "nothing is written where anything differs")

	_, err = RestoreConfig(saved(t, s, t.TempDir()))
	require.ErrorContains(t, err, "does not hold it")
}
