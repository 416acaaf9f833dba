package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// hashed is a content under the hash that a plan gives it.
func hashed(files ...ring.ContentFile) ring.Content {
	sum := sha256.New()
	for _, f := range files {
		body, err := f.Read()
		if err != nil {
			panic(err)
		}
		f.AddTo(sum, body)
	}
	return ring.Content{Hash: hex.EncodeToString(sum.Sum(nil)), Files: files}
}

const canary = "canary-value-"

// openedContent is the n-th that holds a value of the host, open: its hash is of
// what seals the value.
func openedContent(n int) ring.Content {
	sealed := file(ring.ValueFile, ring.Sealed{App: "shop", File: ".env", Name: "PASSWORD", MAC: fmt.Sprintf("%032x", n)}.String())
	sealed.Sealed = true
	c := hashed(sealed)
	c.Files[0].Read = func() ([]byte, error) { return fmt.Appendf(nil, "%s%d", canary, n), nil }
	return c
}

// holding are the files below a folder that hold a text.
func holding(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if bytes.Contains(b, []byte(text)) {
			names = append(names, p)
		}
		return err
	}))
	return names
}

func TestAContentThatHoldsAValueOfTheHostIsKnownAfterARestart(t *testing.T) {
	s := fresh(t)
	none, err := s.OpenedContents()
	require.NoError(t, err)
	require.Empty(t, none, "there is no folder yet")

	secret := openedContent(1)
	made := hashed(file(ring.ValueFile, "a text of the Compose file"))
	run := file(ring.ValueFile, "a script of the Compose file")
	run.Exec = true
	script := hashed(run)
	folder := hashed(file("a", "1"), file(ring.ValueFile, "of the commit"))
	given := file(ring.GivenFile, "a text of the Compose file for one user")
	given.As = &ring.FileOwner{UID: 70, Mode: 0o400}
	other := hashed(file("nginx.conf", "of the commit"))
	for _, c := range []ring.Content{secret, made, script, folder, hashed(given), other} {
		require.NoError(t, s.WriteContent(t.Context(), c))
	}
	for range 2 { // what was read once is not read again
		got, err := s.OpenedContents()
		require.NoError(t, err)
		require.Equal(t, map[string]bool{secret.Hash: true}, got)
	}
	again := &Store{dir: s.dir, plain: map[string]fileState{}}
	got, err := again.OpenedContents()
	require.NoError(t, err)
	require.Equal(t, map[string]bool{secret.Hash: true}, got, "the folder itself tells, whoever wrote it")

	require.NoError(t, s.RemoveContent(secret.Hash))
	require.NoError(t, s.RemoveContent(secret.Hash), "it is gone already")
	require.NoError(t, s.RemoveContent("../../etc"))
	require.Empty(t, holding(t, s.dir, canary))
	require.True(t, s.HasContent(made.Hash))
}

// A crash at any moment of writing or removing leaves a value only where the next
// start finds it: in a leftover, which Open removes, or in a content that is known.
func TestNoCrashLeavesAValueThatTheNextStartDoesNotFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	met := map[string]int{}
	for try := range 16 {
		cmd, lines := spawn(t, "rotate", dir)
		require.True(t, lines.Scan())
		require.Equal(t, "begins", lines.Text())
		time.Sleep(time.Duration(try) * 1300 * time.Microsecond) // a moment of the writing; which does not matter
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		for _, name := range holding(t, dir, canary) {
			if strings.Contains(name, tempMark) {
				met["a leftover"]++
			} else {
				met["a content"]++
			}
		}
		recovered(t, dir)
	}
	t.Logf("a value was found in %v", met)
	require.NotZero(t, met["a content"]+met["a leftover"], "no crash left anything: the test shows nothing")
}

func TestAValueThatWasHalfRemovedIsGoneAtTheNextOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	c := openedContent(1)
	require.NoError(t, s.WriteContent(t.Context(), c))
	require.NoError(t, s.Close())
	at := filepath.Join(dir, "content", c.Hash)
	require.NoError(t, os.Rename(at, filepath.Join(dir, "content", tempMark+c.Hash))) // the first step of a removal
	require.NotEmpty(t, holding(t, dir, canary))
	recovered(t, dir)
}

// recovered opens a state that was crashed into and removes what is known there.
func recovered(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(t.Context(), dir)
	require.NoError(t, err)
	all, err := s.OpenedContents()
	require.NoError(t, err)
	for hash := range all {
		require.NoError(t, s.RemoveContent(hash))
	}
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, dir, canary))
}
