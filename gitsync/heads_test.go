package gitsync

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func merging(c *Config) { c.Trust.Mode = ForgeMerge }

// file writes one file and commits it; flags go to git commit.
func (o *origin) file(name, content, message string, flags ...string) ring.SHA {
	o.t.Helper()
	o.write(name, content)
	o.git(o.work, "add", "-A")
	o.git(o.work, append([]string{"commit", "-q", "-m", message}, flags...)...)
	return o.head()
}

// pull is a branch of two signed commits at a commit, which only the remote has,
// as the head of a pull request.
func (o *origin) pull(n int, at ring.SHA) ring.SHA {
	o.t.Helper()
	o.git(o.work, "checkout", "-q", "-b", fmt.Sprintf("work-%d", n), string(at))
	o.file(fmt.Sprintf("web/%d-b", n), "b", "work 1", "-S")
	head := o.file(fmt.Sprintf("web/%d-c", n), "c", "work 2", "-S")
	o.keep(n, head)
	o.git(o.work, "checkout", "-q", "main")
	return head
}

// keep is the ref that a forge has for a pull request.
func (o *origin) keep(n int, head ring.SHA) {
	o.t.Helper()
	o.git(o.work, "push", "-q", "--force", "origin", fmt.Sprintf("%s:refs/pull/%d/head", head, n))
}

// squash is the button; more is what it lands beside the head.
func (o *origin) squash(head ring.SHA, message string) ring.SHA {
	o.t.Helper()
	o.git(o.work, "merge", "-q", "--squash", string(head))
	o.git(o.work, "commit", "-q", "-m", message)
	o.push()
	return o.head()
}

func (o *origin) land(head ring.SHA, message string) ring.SHA {
	o.t.Helper()
	o.git(o.work, "merge", "-q", "--no-ff", "-m", message, string(head))
	o.push()
	return o.head()
}

// TestLandingsOverTheTransports is V24 to V26f once more, through a follower of a
// remote that alone has the heads.
func TestLandingsOverTheTransports(t *testing.T) {
	t.Parallel()
	rows := []struct {
		id, name string
		push     func(o *origin, anchor ring.SHA) ring.SHA
		want     ring.Code
	}{
		{id: "V24", name: "merge, up to date", push: func(o *origin, a ring.SHA) ring.SHA {
			return o.land(o.pull(7, a), "Merge pull request #7 from acme/work")
		}},
		{id: "V24", name: "merge, behind", push: func(o *origin, a ring.SHA) ring.SHA {
			head := o.pull(7, a)
			o.file("db/a", "meanwhile", "meanwhile", "-S")
			return o.land(head, "Merge pull request #7 from acme/work")
		}},
		{id: "V25", name: "merge with more than the head", push: func(o *origin, a ring.SHA) ring.SHA {
			o.git(o.work, "merge", "-q", "--no-ff", "--no-commit", string(o.pull(7, a)))
			o.file("web/evil", "evil", "Merge pull request #7 from acme/work")
			o.push()
			return o.head()
		}, want: ring.NotSignedContent},
		{id: "V26", name: "squash, up to date", push: func(o *origin, a ring.SHA) ring.SHA {
			return o.squash(o.pull(7, a), "Add b and c (#7)")
		}},
		{id: "V26", name: "squash, behind", push: func(o *origin, a ring.SHA) ring.SHA {
			head := o.pull(7, a)
			o.file("db/a", "meanwhile", "meanwhile", "-S")
			return o.squash(head, "Add b and c (#7)")
		}},
		{id: "V26", name: "two squashes in one push", push: func(o *origin, a ring.SHA) ring.SHA {
			one := o.squash(o.pull(7, a), "Add b and c (#7)")
			return o.squash(o.pull(8, one), "Add more (#8)")
		}},
		{id: "V26a", name: "squash with more than the head", push: func(o *origin, a ring.SHA) ring.SHA {
			o.git(o.work, "merge", "-q", "--squash", string(o.pull(7, a)))
			o.file("web/evil", "evil", "Add b and c (#7)")
			o.push()
			return o.head()
		}, want: ring.NotSignedContent},
		{id: "V26b", name: "the ref is gone", push: func(o *origin, a ring.SHA) ring.SHA {
			head := o.pull(7, a)
			o.git(o.bare, "update-ref", "-d", "refs/pull/7/head")
			return o.squash(head, "Add b and c (#7)")
		}, want: ring.HeadUnavailable},
		{id: "V26c", name: "rebase", push: func(o *origin, a ring.SHA) ring.SHA {
			o.pull(7, a)
			o.file("web/7-b", "b", "work 1")
			tip := o.file("web/7-c", "c", "work 2 (#7)")
			o.push()
			return tip
		}},
		{id: "V26d", name: "update branch, then squash", push: func(o *origin, a ring.SHA) ring.SHA {
			o.pull(7, a)
			main := o.file("db/a", "meanwhile", "meanwhile", "-S")
			o.git(o.work, "checkout", "-q", "work-7")
			o.git(o.work, "merge", "-q", "--no-ff", "-m", "Merge branch 'main' into work", string(main))
			head := o.head()
			o.keep(7, head)
			o.git(o.work, "checkout", "-q", "main")
			return o.squash(head, "Add b and c (#7)")
		}},
		{id: "V26f", name: "an old signed branch", push: func(o *origin, a ring.SHA) ring.SHA {
			head := o.pull(7, a)
			for i := range 3 {
				o.file("db/a", fmt.Sprint(i), "meanwhile", "-S")
			}
			return o.squash(head, "Add b and c (#7)")
		}},
	}
	for _, transport := range []string{"file", "http"} {
		for i, r := range rows {
			if transport == "http" && i%3 != 1 { // what differs is how objects come
				continue
			}
			t.Run(transport+" "+r.id+" "+r.name, func(t *testing.T) {
				t.Parallel()
				o, a := newOrigin(t), &ledger{}
				anchor := o.signed("one")
				more := []func(*Config){merging}
				if transport == "http" {
					more = append(more, at(serve(t, o.httpBackend())+"/remote.git"))
				}
				f := o.follow(a, more...)
				w := lookAt(t, f)
				w.must()
				tip := r.push(o, anchor)
				report := w.must()
				require.Equal(t, tip, report.Tip)
				if r.want != "" {
					require.NotNil(t, report.Refusal)
					require.Equal(t, r.want, report.Refusal.Code, report.Refusal.Says)
					require.Contains(t, report.Refusal.Hint, "gitring vouch")
					require.Equal(t, anchor, a.anchor.SHA)
					return
				}
				require.Nil(t, report.Refusal)
				require.Equal(t, tip, a.anchor.SHA)
				require.Equal(t, "alice@example.org", report.Commit.Signer)
				require.Contains(t, report.Commit.Note, "content by alice@example.org, landed by the forge: head ")
				require.Contains(t, a.events[len(a.events)-1].Reason, "content by alice@example.org, landed by the forge")
				require.NoDirExists(t, f.heads.store.dir, "the quarantine outlived the judgement")
				require.Equal(t, tip, w.must().Commit.SHA)
			})
		}
	}
}

func TestAHeadIsFetchedOverSSH(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: sshd logs root in")
	}
	s := startSSHD(t)
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging, at("ssh://root@"+s.addr+o.bare), func(c *Config) {
		c.Auth = Auth{SSHKeyFile: s.key, KnownHostsFile: s.known}
	}))
	w.must()
	tip := o.squash(o.pull(7, anchor), "Add b and c (#7)")
	require.Equal(t, tip, w.must().Commit.SHA)
}

func TestTheCopiesOfARebaseAreNotRecordedAsVerified(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging))
	w.must()
	o.pull(7, anchor)
	copied := o.file("web/7-b", "b", "work 1")
	tip := o.file("web/7-c", "c", "work 2 (#7)")
	o.push()
	w.must()
	require.Equal(t, tip, a.good[len(a.good)-1].SHA)
	for _, v := range a.good {
		require.NotEqual(t, copied, v.SHA)
	}
}

func TestACommitOfAHeadIsFirstSeenWhenItsHeadIs(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging))
	w.must()
	head := o.pull(7, anchor)
	o.squash(head, "Add b and c (#7)")
	w.must()
	require.Contains(t, a.sawAll(), head)
}

func TestAHeadThatComesLaterCuresTheRefusal(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging))
	w.must()
	head := o.pull(7, anchor)
	o.git(o.bare, "update-ref", "-d", "refs/pull/7/head")
	tip := o.squash(head, "Add b and c (#7)")
	require.Equal(t, ring.HeadUnavailable, w.must().Refusal.Code)
	o.keep(7, head)
	require.Equal(t, tip, w.must().Commit.SHA)
}

// askedFor is how often the remote was asked for a head.
func askedFor(f *Follower, fails func(ref string) error) *[]string {
	asked, next := &[]string{}, f.heads.remote
	f.heads.remote = func(ref plumbing.ReferenceName, lim Limits) (remote, error) {
		*asked = append(*asked, ref.String())
		if fails != nil {
			if err := fails(ref.String()); err != nil {
				return nil, err
			}
		}
		return next(ref, lim)
	}
	return asked
}

func TestMessagesMakeTheFollowerAskForBoundedlyManyHeads(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	f := o.follow(a, merging)
	w := lookAt(t, f)
	w.must()
	o.pull(3, anchor)
	for i := range 200 {
		o.git(o.work, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("change %d (#%d)", i, i+1))
	}
	o.push()
	asked := askedFor(f, nil)
	var r ring.Report
	for range 20 {
		before := len(*asked)
		r = w.look(t.Context())
		require.LessOrEqual(t, len(*asked)-before, maxHeadsOfLook)
		if r.Err == nil {
			break
		}
		require.ErrorIs(t, r.Err, errLater)
	}
	require.NoError(t, r.Err)
	require.Equal(t, ring.HeadUnavailable, r.Refusal.Code)
	require.Equal(t, maxHeadsOfTip, len(*asked))
	require.Equal(t, anchor, a.anchor.SHA)
}

func TestOneNumberIsAskedForOnceHoweverOftenItIsNamed(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	f := o.follow(a, merging)
	w := lookAt(t, f)
	w.must()
	for i := range 50 {
		o.git(o.work, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("change %d (#7)", i))
	}
	o.push()
	asked := askedFor(f, nil)
	w.must()
	require.Len(t, *asked, 1)
}

func TestAHeadThatMovesBetweenTwoLooksStaysWhatItWasForThatTip(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging))
	w.must()
	seven := o.pull(7, anchor)
	one := o.squash(seven, "Add seven (#7)")
	eight := o.pull(8, one)
	o.git(o.bare, "update-ref", "-d", "refs/pull/8/head")
	tip := o.squash(eight, "Add eight (#8)")
	require.Equal(t, ring.HeadUnavailable, w.must().Refusal.Code)

	o.git(o.work, "checkout", "-q", "-b", "evil", string(anchor))
	o.keep(7, o.file("web/evil", "evil", "not signed"))
	o.git(o.work, "checkout", "-q", "main")
	o.keep(8, eight)
	require.Equal(t, tip, w.must().Commit.SHA)

	o.git(o.work, "checkout", "-q", "evil")
	o.git(o.work, "checkout", "-q", "-B", "main")
	o.push() // the moved head gives nothing to whoever moved it
	require.Equal(t, ring.NonFastForward, w.must().Refusal.Code)
}

func TestANetworkThatFailsIsNoRefusal(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	f := o.follow(a, merging)
	w := lookAt(t, f)
	w.must()
	tip := o.squash(o.pull(7, anchor), "Add b and c (#7)")
	away := true
	askedFor(f, func(string) error {
		if away {
			return errors.New("connection reset")
		}
		return nil
	})
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "connection reset")
	require.Nil(t, r.Refusal)
	require.Equal(t, anchor, a.anchor.SHA)
	away = false
	require.Equal(t, tip, w.must().Commit.SHA)
}

func TestAHeadThatIsTooLargeIsDownloadedOnce(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	f := o.follow(a, merging, func(c *Config) { c.Limits.Received = 256 << 10 })
	w := lookAt(t, f)
	w.must()
	o.git(o.work, "checkout", "-q", "-b", "large")
	noise := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	o.keep(7, o.file("large", string(noise), "large", "-S"))
	o.git(o.work, "checkout", "-q", "main")
	o.git(o.work, "commit", "-q", "--allow-empty", "-m", "Add large (#7)")
	o.push()
	asked := askedFor(f, nil)
	for range 3 {
		r := w.must()
		require.Equal(t, ring.HeadUnavailable, r.Refusal.Code)
		require.Contains(t, r.Refusal.Says, "larger than the limits")
	}
	require.Len(t, *asked, 1)
	entries, _ := os.ReadDir(f.heads.store.packDir())
	require.Empty(t, entries, "what was refused stayed on disk")
}

// TestAQuarantineThatLiesIsFoundOut swaps what is in it between two looks: each
// time it is emptied, fetched again, and the landing judged by the true bytes.
func TestAQuarantineThatLiesIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(o *origin, f *Follower, head, other ring.SHA)
	}{
		{"another commit under the name of the head", func(o *origin, f *Follower, head, other ring.SHA) {
			_, body, err := f.heads.store.Raw(other)
			require.NoError(o.t, err)
			require.NoError(o.t, os.RemoveAll(filepath.Join(f.heads.store.dir, "objects")))
			storeLoose(o.t, f.heads.store.dir, head, "commit", body)
		}},
		{"a pack cut short", func(o *origin, f *Follower, _, _ ring.SHA) {
			eachPack(o.t, f, func(name string) { require.NoError(o.t, os.Truncate(name, 40)) })
		}},
		{"a pack of noise", func(o *origin, f *Follower, _, _ ring.SHA) {
			eachPack(o.t, f, func(name string) {
				b, err := os.ReadFile(name)
				require.NoError(o.t, err)
				for i := 12; i < len(b)-20; i++ {
					b[i] ^= 0x55
				}
				require.NoError(o.t, os.Chmod(name, 0o600))
				require.NoError(o.t, os.WriteFile(name, b, 0o600))
			})
		}},
		{"all of it gone", func(o *origin, f *Follower, _, _ ring.SHA) {
			require.NoError(o.t, os.RemoveAll(f.heads.store.dir))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			anchor := o.signed("one")
			f := o.follow(a, merging)
			w := lookAt(t, f)
			w.must()
			seven := o.pull(7, anchor)
			one := o.squash(seven, "Add seven (#7)")
			eight := o.pull(8, one)
			o.git(o.bare, "update-ref", "-d", "refs/pull/8/head")
			tip := o.squash(eight, "Add eight (#8)")
			require.Equal(t, ring.HeadUnavailable, w.must().Refusal.Code)
			parent := ring.SHA(o.git(o.work, "rev-parse", string(seven)+"^"))
			f.heads.rest()
			tc.do(o, f, seven, parent)
			f.heads.rest()
			o.keep(8, eight)
			r := w.look(t.Context())
			require.NoError(t, r.Err)
			require.Nil(t, r.Refusal)
			require.Equal(t, tip, r.Commit.SHA)
		})
	}
}

func eachPack(t *testing.T, f *Follower, do func(name string)) {
	packs, err := filepath.Glob(filepath.Join(f.heads.store.packDir(), "*.pack"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	for _, p := range packs {
		do(p)
	}
}

// storeLoose writes bytes as the object of that name, true or not.
func storeLoose(t *testing.T, dir string, sha ring.SHA, kind string, body []byte) {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	fmt.Fprintf(z, "%s %d\x00", kind, len(body))
	_, err := z.Write(body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	file := filepath.Join(dir, "objects", string(sha[:2]), string(sha[2:]))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700))
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
}

// TestAMirrorThatWasCopiedIsClonedAnewBeforeGitReadsIt: a source that was strict
// at first took the files of a folder as they were, and git hashes nothing.
func TestAMirrorThatWasCopiedIsClonedAnewBeforeGitReadsIt(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	dir := filepath.Join(t.TempDir(), "git", "prod")
	lookAt(t, o.follow(a, func(c *Config) { c.Dir = dir })).must()

	f := o.follow(a, merging, func(c *Config) { c.Dir = dir })
	w := lookAt(t, f)
	require.False(t, f.mirror.hashed())
	head := o.pull(7, anchor)
	o.file("db/a", "meanwhile", "meanwhile", "-S")
	tip := o.land(head, "Merge pull request #7 from acme/work")
	require.Equal(t, tip, w.must().Commit.SHA)
	require.True(t, f.mirror.hashed())
	for i := range 12 { // and it stays so when packs are put together
		o.file("db/a", fmt.Sprint(i), "more", "-S")
		o.push()
		w.must()
	}
	require.True(t, f.mirror.hashed())
}

func TestASignerOfContentIsKnownAfterARestartAndTheForgesWordsNever(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	dir := filepath.Join(t.TempDir(), "git", "prod")
	in := func(c *Config) { c.Dir = dir }
	w := lookAt(t, o.follow(a, merging, in))
	w.must()
	o.git(o.work, "checkout", "-q", "-b", "work")
	head := o.file("web/b", "b", "work\n\nGitring-Allow: remove=2\nGitring-Allow: waves\nGitring-Data: store from shop", "-S")
	o.keep(7, head)
	o.git(o.work, "checkout", "-q", "main")
	tip := o.squash(head, "Add b (#7)\n\nGitring-Allow: remove=100\nGitring-Data: store from none")
	r := w.must()
	require.Equal(t, tip, r.Commit.SHA)
	require.Equal(t, 2, r.Commit.AllowRemove, "whose word is it")
	require.True(t, r.Commit.AllowWaves, "whose word is it")
	require.Equal(t, []ring.DataAnswer{{App: "store", From: "shop"}}, r.Commit.Data)

	again, ok := (&watch{Follower: o.follow(a, merging, in)}).begin(t.Context())
	require.True(t, ok)
	require.Equal(t, "alice@example.org", again.Commit.Signer)
	require.Zero(t, again.Commit.AllowRemove)
	require.False(t, again.Commit.AllowWaves)
	require.Empty(t, again.Commit.Data)
	c, err := o.follow(a, merging, in).Commit(t.Context(), tip)
	require.NoError(t, err)
	require.Zero(t, c.AllowRemove)
	require.Empty(t, c.Data)
	require.NotEqual(t, anchor, tip)
}

func TestNeedsMergeTreeIsCuredByInstallingGit(t *testing.T) {
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	w := lookAt(t, o.follow(a, merging))
	w.must()
	head := o.pull(7, anchor)
	o.file("db/a", "meanwhile", "meanwhile", "-S")
	tip := o.land(head, "Merge pull request #7 from acme/work")

	bin := t.TempDir()
	t.Setenv("PATH", bin)
	r := w.must()
	require.Equal(t, ring.NeedsMergeTree, r.Refusal.Code)
	require.Contains(t, r.Refusal.Hint, "require branches to be up to date")
	old := "#!/bin/sh\necho git version 2.37.9\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(old), 0o700))
	require.Equal(t, ring.NeedsMergeTree, w.must().Refusal.Code)
	require.NoError(t, os.Remove(filepath.Join(bin, "git")))
	require.NoError(t, os.Symlink(git, filepath.Join(bin, "git")))
	require.Equal(t, tip, w.must().Commit.SHA)
}

// TestNothingOfTheHostChangesAMerge puts configuration and attributes everywhere
// where git looks for them.
func TestNothingOfTheHostChangesAMerge(t *testing.T) {
	y := newYard(t)
	base := y.edit("", "one", map[string]string{"a": "1\n2\n3\n4\n5\n", ".gitattributes": "* merge=evil\n"})
	y.branch("work", base)
	theirs := y.edit("", "theirs", map[string]string{"a": "1\n2\n3\n4\nfive\n"})
	y.back()
	ours := y.edit("", "ours", map[string]string{"a": "one\n2\n3\n4\n5\n"})
	y.git("checkout", "-q", "-b", "want", string(ours))
	want := y.edit("", "want", map[string]string{"a": "one\n2\n3\n4\nfive\n"})
	tree := ring.SHA(y.git("rev-parse", string(want)+"^{tree}"))

	home := t.TempDir()
	config := "[merge \"evil\"]\n\tdriver = touch " + home + "/ran; echo evil > %A\n[merge]\n\trenames = false\n\tdefault = evil\n[core]\n\tattributesFile = " + home + "/attributes\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "attributes"), []byte("* merge=evil\n"), 0o600))
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": home + "/.gitconfig", "GIT_DIR": y.dir, "GIT_ATTR_SOURCE": "HEAD",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "merge.default", "GIT_CONFIG_VALUE_0": "evil",
	} {
		t.Setenv(k, v)
	}
	got, err := mergeTree(t.Context(), ours, theirs, filepath.Join(y.dir, ".git", "objects"))
	require.NoError(t, err)
	require.Equal(t, tree, got)
	require.NoFileExists(t, home+"/ran")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = mergeTree(ctx, ours, theirs, filepath.Join(y.dir, ".git", "objects"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = mergeTree(t.Context(), ours, ring.SHA(strings.Repeat("1", 40)), filepath.Join(y.dir, ".git", "objects"))
	require.ErrorContains(t, err, "git merge-tree ends with")
}
