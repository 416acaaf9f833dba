package gitsync

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestADamagedMirrorIsBuiltAnewAndNothingIsLost(t *testing.T) {
	t.Parallel()
	onePack := func(t *testing.T, f *Follower, ending string) string {
		names, err := f.mirror.packNames()
		require.NoError(t, err)
		require.NotEmpty(t, names)
		return filepath.Join(f.mirror.packDir(), names[0]+ending)
	}
	for name, damage := range map[string]func(*testing.T, *Follower){
		"a pack is cut short": func(t *testing.T, f *Follower) {
			require.NoError(t, os.Truncate(onePack(t, f, ".pack"), 40))
		},
		"a pack is gone": func(t *testing.T, f *Follower) {
			require.NoError(t, os.Remove(onePack(t, f, ".pack")))
		},
		"an index is gone": func(t *testing.T, f *Follower) {
			require.NoError(t, os.Remove(onePack(t, f, ".idx")))
		},
		"an index is garbage": func(t *testing.T, f *Follower) {
			file := onePack(t, f, ".idx")
			require.NoError(t, os.Chmod(file, 0o600))
			require.NoError(t, os.WriteFile(file, []byte("garbage"), 0o600))
		},
		"a pack is garbage": func(t *testing.T, f *Follower) {
			file := onePack(t, f, ".pack")
			require.NoError(t, os.Chmod(file, 0o600))
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			copy(b[12:], bytes.Repeat([]byte{0xff}, len(b)-32))
			require.NoError(t, os.WriteFile(file, b, 0o600))
		},
		"it is gone": func(t *testing.T, f *Follower) {
			require.NoError(t, os.RemoveAll(f.mirror.dir))
		},
		"it is a file": func(t *testing.T, f *Follower) {
			require.NoError(t, os.RemoveAll(f.mirror.dir))
			require.NoError(t, os.WriteFile(f.mirror.dir, []byte("x"), 0o600))
		},
		"a crash came between the renames of a swap": func(t *testing.T, f *Follower) {
			require.NoError(t, os.Rename(f.mirror.dir, f.mirror.dir+".old"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, a := newOrigin(t), &ledger{}
			one := o.signed("one")
			o.git(o.bare, "repack", "-qad") // loose objects would be copied as they are
			f := o.follow(a)
			old := lookAt(t, f).must().Commit
			damage(t, f)

			two := o.signed("two")
			w := lookAt(t, o.follow(a, func(c *Config) { c.Dir = f.cfg.Dir })) // a restart
			var r ring.Report
			for range 2 { // a damage that shows only when a file is read costs one look more
				r = w.must()
				require.Equal(t, two, r.Commit.SHA)
				require.Nil(t, r.Refusal)
				_, _ = fs.ReadFile(r.Commit.Tree, "compose.yaml")
			}
			b, err := fs.ReadFile(r.Commit.Tree, "compose.yaml")
			require.NoError(t, err)
			require.Equal(t, "two", string(b))
			require.Equal(t, two, a.anchor.SHA)
			require.NotNil(t, old)
			_, err = w.Commit(t.Context(), one)
			require.NoError(t, err, "the history is not whole")
			require.NoDirExists(t, f.mirror.dir+".new")
			require.NoDirExists(t, f.mirror.dir+".old")
		})
	}
}

func TestATreeThatFindsADamagedStoreHasItBuiltAnew(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	blob := o.git(o.work, "rev-parse", "HEAD:compose.yaml")
	f := o.follow(a)
	w := lookAt(t, f)
	c := w.must().Commit

	// Somebody puts another object's bytes under the file's name.
	object := filepath.Join(f.mirror.dir, "objects", blob[:2], blob[2:])
	other := o.git(o.work, "hash-object", "-w", "--stdin")
	evil, err := os.ReadFile(filepath.Join(o.work, ".git", "objects", other[:2], other[2:]))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(object, evil, 0o600))

	_, err = fs.ReadFile(c.Tree, "compose.yaml")
	require.ErrorIs(t, err, errDamaged)
	w.must()
	b, err := fs.ReadFile(c.Tree, "compose.yaml") // of the commit that was handed out before
	require.NoError(t, err)
	require.Equal(t, "one", string(b))
}

func TestACommitWhoseBytesWereExchangedIsFetchedAnewNotRefused(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	two := o.signed("two")
	other := o.git(o.work, "rev-parse", "HEAD~1")
	f := o.follow(a, func(c *Config) { c.Trust.MinCommit = "" })
	w := lookAt(t, f)
	// Between fetch and verification the tip's object becomes another commit.
	object := filepath.Join(f.mirror.dir, "objects", string(two[:2]), string(two[2:]))
	require.NoError(t, w.see(t.Context(), a.anchor.At))
	b, err := os.ReadFile(filepath.Join(o.work, ".git", "objects", other[:2], other[2:]))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(object, b, 0o600))
	f.mirror.rest()
	r := w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, two, r.Commit.SHA)
}

func TestPacksArePutTogetherBeforeTheyPileUp(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("0")
	f := o.follow(a, func(c *Config) { c.Limits.Packs = 4 })
	w := lookAt(t, f)
	first := w.must().Commit
	for i := range 9 {
		sha := o.signed(fmt.Sprint(i + 1))
		require.Equal(t, sha, w.must().Commit.SHA)
		names, err := f.mirror.packNames()
		require.NoError(t, err)
		require.Less(t, len(names), 4)
	}
	b, err := fs.ReadFile(first.Tree, "compose.yaml")
	require.NoError(t, err)
	require.Equal(t, "0", string(b))
	require.Equal(t, "10", o.git(f.cfg.Dir, "rev-list", "--count", "refs/gitring/prod"))
	o.git(f.cfg.Dir, "fsck", "--strict")
}

func TestAMirrorThatCannotBePackedTogetherIsClonedAnew(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("0")
	f := o.follow(a, func(c *Config) { c.Limits.Packs = 3 })
	w := lookAt(t, f)
	w.must()
	for i := range 2 {
		o.signed(fmt.Sprint(i + 1))
		w.must()
	}
	names, err := f.mirror.packNames()
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(f.mirror.packDir(), names[0]+".idx"), 30))
	sha := o.signed("last")
	require.Equal(t, sha, w.must().Commit.SHA)
	o.git(f.cfg.Dir, "fsck", "--strict")
}

func TestAFetchCutShortLeavesNothing(t *testing.T) {
	m := newMirror(filepath.Join(t.TempDir(), "m"), "prod", Limits{}.withDefaults())
	t.Cleanup(m.rest)
	ctx, cancel := context.WithCancel(t.Context())
	err := m.addPack(ctx, func(w io.Writer) error {
		_, err := w.Write([]byte("PACK"))
		require.NoError(t, err)
		cancel()
		_, err = w.Write([]byte("more"))
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	for name, bytes := range map[string]string{"nothing": "", "no pack": "hello", "a header alone": "PACK\x00\x00\x00\x02\x00\x00\x00\x01"} {
		err := m.addPack(t.Context(), func(w io.Writer) error { _, err := io.WriteString(w, bytes); return err })
		if name == "nothing" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "cannot store pack", name)
	}
	left, err := os.ReadDir(m.packDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAPackThatInflatesBeyondMeasureIsRefusedBeforeItIsHeld(t *testing.T) {
	t.Parallel()
	lim := Limits{Object: 1 << 20}.withDefaults()
	sto := memory.NewStorage()
	blob := sto.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	w, err := blob.Writer()
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 2<<20))
	require.NoError(t, err)
	sha, err := sto.SetEncodedObject(blob)
	require.NoError(t, err)
	var pack bytes.Buffer
	_, err = packfile.NewEncoder(&pack, sto, false).Encode([]plumbing.Hash{sha}, 0)
	require.NoError(t, err)
	require.Less(t, pack.Len(), 10<<10)

	m := newMirror(filepath.Join(t.TempDir(), "m"), "prod", lim)
	t.Cleanup(m.rest)
	err = m.addPack(t.Context(), func(w io.Writer) error { _, err := w.Write(pack.Bytes()); return err })
	require.ErrorIs(t, err, errLimit)
	require.False(t, m.has(sha))

	var begin first
	_, err = begin.Write([]byte{0x80, 0x01, 0x80, 0x80, 0x80, 0x04, 'x'}) // a delta of 128 bytes to 8 MiB
	require.NoError(t, err)
	require.EqualValues(t, 8<<20, begin.target())
}

func TestAFileRemoteIsReadHoweverItKeepsItsObjects(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	o.git(o.work, "tag", "-a", "-m", "v1", "v1")
	sha := o.signed("two")
	dir := t.TempDir()
	for name, make := range map[string]func(string) string{
		"loose and bare":       func(string) string { return o.bare },
		"with a work tree":     func(string) string { return o.work },
		"a linked work tree":   func(d string) string { o.git(o.work, "worktree", "add", "-q", d, "HEAD"); return d },
		"packed, packed refs":  func(d string) string { o.git("", "clone", "-q", "--bare", o.bare, d); o.git(d, "gc", "-q"); return d },
		"borrowing from other": func(d string) string { o.git("", "clone", "-q", "--bare", "--shared", o.bare, d); return d },
	} {
		t.Run(name, func(t *testing.T) {
			path := make(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")))
			for _, careful := range []bool{false, true} {
				f := o.follow(&ledger{}, at("file://"+path))
				f.mirror.careful = careful
				r := lookAt(t, f).must()
				require.Equal(t, sha, r.Commit.SHA)
				b, err := fs.ReadFile(r.Commit.Tree, "compose.yaml")
				require.NoError(t, err)
				require.Equal(t, "two", string(b))
				require.Equal(t, "2", o.git(f.cfg.Dir, "rev-list", "--count", "refs/gitring/prod"))
			}
		})
	}
}

func TestReadersGoOnWhileTheMirrorIsExchanged(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	f := o.follow(a)
	w := lookAt(t, f)
	c := w.must().Commit
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			for range 200 {
				if _, err := fs.ReadFile(c.Tree, "compose.yaml"); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 3 {
		require.NoError(t, w.rebuild(t.Context(), errGrown))
		f.mirror.rest()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
}
