package gitsync

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// put writes a commit as it is, byte for byte.
func (o *origin) put(raw string) ring.SHA {
	o.t.Helper()
	file := filepath.Join(o.t.TempDir(), "raw")
	require.NoError(o.t, os.WriteFile(file, []byte(raw), 0o600))
	return ring.SHA(o.git(o.work, "hash-object", "-t", "commit", "-w", "--literally", file))
}

// offers has the remote keep a head as pull request 7 that was made by hand.
func (o *origin) offers(head ring.SHA) ring.SHA {
	o.t.Helper()
	o.git(o.work, "update-ref", "refs/heads/proposed", string(head))
	o.keep(7, head)
	return head
}

func TestASignatureIsOfItsOwnTreeAndOfItsOwnParents(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	good := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
	evil := o.proposes(anchor, func() { o.file("web/a", "evil", "evil") })
	raw := o.git(o.work, "cat-file", "commit", string(good)) + "\n"
	tree := func(sha ring.SHA) string { return o.git(o.work, "rev-parse", string(sha)+"^{tree}") }
	for name, other := range map[string]string{
		"tree":   strings.Replace(raw, "tree "+tree(good), "tree "+tree(evil), 1),
		"parent": strings.Replace(raw, "parent "+string(anchor), "parent "+string(evil), 1),
	} {
		require.NotEqual(t, raw, other, name)
		head := o.offers(o.put(other))
		got, err := propose(t, f, head)
		require.NoError(t, err, name)
		require.NotNil(t, got.Refusal, name)
		require.Contains(t, []ring.Code{ring.BadSignature, ring.Unsigned}, got.Refusal.Code, name)
		require.Nil(t, got.Commit, name)
		_, err = propose(t, f, head, fork)
		require.ErrorIs(t, err, ErrForkUnread, name)
	}
}

func TestAMergeInAHeadIsHeldToAllItsParents(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	o.git(o.work, "checkout", "-q", "-B", "side", string(anchor))
	hidden := o.file("web/hidden", "x", "unsigned")
	head := o.proposes(anchor, func() {
		o.file("web/a", "a", "add a", "-S")
		o.git(o.work, "merge", "-q", "--no-ff", "-S", "-m", "bring it in", "side")
		o.file("web/b", "b", "add b", "-S")
	})
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Equal(t, ring.Unsigned, got.Refusal.Code)
	require.Equal(t, hidden, got.Refusal.Commit)
	_, err = propose(t, f, head, fork)
	require.ErrorIs(t, err, ErrForkUnread)
}

// In forge-merge what a button made may be unsigned. Of a fork nobody knows whose
// button it was.
func TestTheHeadOfAForkIsSignedItselfAlsoUnderForgeMerge(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a, func(c *Config) { c.Trust.Mode = ForgeMerge })
	o.git(o.work, "checkout", "-q", "-B", "side", string(anchor))
	signed := o.file("web/a", "a", "add a", "-S")
	head := o.proposes(anchor, func() {
		o.git(o.work, "merge", "-q", "--no-ff", "--no-gpg-sign", "-m", "Merge pull request #3", "side")
	})
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Nil(t, got.Refusal, "as a branch it is what a button makes")
	_, err = propose(t, f, head, fork)
	require.ErrorIs(t, err, ErrForkUnread)
	o.offers(signed)
	got, err = propose(t, f, signed, fork)
	require.NoError(t, err)
	require.Equal(t, "a", got.files["web/a"])
}

func TestAHeadThatNamesSignersTakesTheRoleForIt(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a, func(c *Config) {
		inRepo(&c.Trust)
		c.Trust.Bindings = []Binding{{Signer: "alice@example.org", Roles: []Role{RoleCommit, RoleMerge}}}
	})
	key := filepath.Join(t.TempDir(), "mallory")
	line := newKey(t, key)
	head := o.proposes(anchor, func() {
		o.file(signersPath, "version: 1\nsigners:\n  - signer: mallory@example.org\n    keys: ["+strings.TrimSpace(line)+"]\n", "let her in", "-S")
	})
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Equal(t, ring.RoleNotAllowed, got.Refusal.Code)
	_, err = propose(t, f, head, fork)
	require.ErrorIs(t, err, ErrForkUnread)
}

// A remote that serves other bytes under a name is no author's fault, and nothing of
// it is handed on.
func TestAHeadWithSwappedFilesIsNotHandedOn(t *testing.T) {
	t.Parallel()
	for _, fork := range []bool{false, true} {
		o, a := newOrigin(t), &ledger{}
		f, anchor := o.trusted(a)
		head := o.proposes(anchor, func() { o.file("web/a", "good", "add a", "-S") })
		blob := o.git(o.work, "rev-parse", string(head)+":web/a")
		file := filepath.Join(o.bare, "objects", blob[:2], blob[2:])
		require.FileExists(t, file)
		require.NoError(t, os.Chmod(file, 0o600))
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := z.Write([]byte("blob 4\x00evil"))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
		called := false
		err = f.Propose(t.Context(), Proposal{Head: head, Ref: "refs/pull/7/head", Fork: fork}, func(Proposed) error {
			called = true
			return nil
		})
		require.Error(t, err)
		require.False(t, called)
		require.NoDirExists(t, f.pulls.dir)
		require.Equal(t, anchor, a.anchor.SHA)
	}
}

// Links and repositories inside of repositories are entries of a tree, and nothing is
// followed or fetched for them.
func TestLinksAndSubmodulesOfAHeadLeadNowhere(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	head := o.proposes(anchor, func() {
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(o.work, "secret")))
		require.NoError(t, os.Symlink("../../../../etc", filepath.Join(o.work, "etc")))
		o.git(o.work, "add", "secret", "etc")
		o.git(o.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("ab", 20)+",sub")
		o.file("web/a", "a", "links", "-S")
	})
	err := f.Propose(t.Context(), Proposal{Head: head, Ref: "refs/pull/7/head"}, func(p Proposed) error {
		require.Nil(t, p.Refusal)
		for _, name := range []string{"secret", "etc/passwd", "sub/x", "../etc/passwd"} {
			b, err := p.Commit.Tree.Open(name)
			if err == nil {
				text := make([]byte, 64)
				n, _ := b.Read(text)
				require.NotContains(t, string(text[:n]), "root:", name)
				b.Close()
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func TestWhatACrashLeftOfAHeadGoesAtTheNextStart(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		o, a := newOrigin(t), &ledger{}
		o.signed("one")
		f := o.follow(a, func(c *Config) { c.Pulls = asked })
		for _, dir := range []string{f.pulls.dir, f.pulls.dir + incomingEnds} {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "objects", "pack", "tmp"), []byte("x"), 0o600))
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := f.Run(ctx, func(context.Context, ring.Report) { cancel() })
		require.NoError(t, err)
		require.NoDirExists(t, f.pulls.dir, "asked for: %t", asked)
		require.NoDirExists(t, f.pulls.dir+incomingEnds, "asked for: %t", asked)
	}
}

func TestAStartTakesNothingFromWhoIsJudging(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	head := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
	err := f.Propose(t.Context(), Proposal{Head: head, Ref: "refs/pull/7/head"}, func(Proposed) error {
		ctx, cancel := context.WithCancel(t.Context())
		if err := f.Run(ctx, func(context.Context, ring.Report) { cancel() }); err != nil {
			return err
		}
		if _, err := os.Stat(f.pulls.dir); err != nil {
			return errors.New("the quarantine is gone under its reader")
		}
		return nil
	})
	require.NoError(t, err)
}
