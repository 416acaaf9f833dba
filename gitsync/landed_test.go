package gitsync

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func forgeMerge(c *TrustConfig) { c.Mode = ForgeMerge }

// aids answer with the yard's own git and its refs/pull/<n>/head.
func (y *yard) aids() Aids {
	return Aids{
		Head: func(pull Pull) (ring.SHA, error) {
			cmd := exec.Command("git", "rev-parse", "-q", "--verify", pull.Ref())
			cmd.Dir, cmd.Env = y.dir, y.at(noon)
			out, err := cmd.Output()
			if err != nil {
				return "", fmt.Errorf("pull request %s: %w", pull, ErrMissing)
			}
			return ring.SHA(strings.TrimSpace(string(out))), nil
		},
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
			return mergeTree(y.t.Context(), ours, theirs, filepath.Join(y.dir, ".git", "objects"))
		},
	}
}

// branch makes a branch at a commit and goes there.
func (y *yard) branch(name string, at ring.SHA) { y.git("checkout", "-q", "-b", name, string(at)) }

func (y *yard) back() { y.git("checkout", "-q", "main") }

// pull is the ref that a forge keeps for a pull request.
func (y *yard) pull(n int, head ring.SHA) {
	y.git("update-ref", fmt.Sprintf("refs/pull/%d/head", n), string(head))
}

// squash is the button: the head's changes as one commit that nobody signed, or
// the forge did.
func (y *yard) squash(key string, head ring.SHA, message string) ring.SHA {
	y.git("merge", "-q", "--squash", string(head))
	return y.edit(key, message, nil)
}

// TestLanding is the rows V24 to V26f: what the three buttons of the forges make,
// rebuilt with real git.
func TestLanding(t *testing.T) {
	one := map[string]string{"web/a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "db/a": "1"}
	work := func(y *yard, at ring.SHA) ring.SHA { // two commits that people signed
		y.branch("work", at)
		y.edit("bob", "work 1", map[string]string{"web/b": "b"})
		head := y.edit("alice", "work 2", map[string]string{"web/c": "c"})
		y.back()
		return head
	}
	rows := []struct {
		id, name string
		push     func(y *yard, anchor ring.SHA) ring.SHA
		aids     func(Aids) Aids
		bind     []Binding
		want     ring.Code
		note     string // of the tip
		says     string
		hint     string
	}{
		{id: "V24", name: "the merge button on a head that was up to date", push: func(y *yard, a ring.SHA) ring.SHA {
			return mergeOf(y, "", work(y, a))
		}, note: "content by bob@example.org, alice@example.org, landed by the forge"},
		{id: "V24", name: "the merge button, signed by the forge's key", push: func(y *yard, a ring.SHA) ring.SHA {
			return mergeOf(y, "forge", work(y, a))
		}, note: "content by"},
		{id: "V24", name: "the merge button on a head that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			return mergeOf(y, "", head)
		}, note: "content by"},
		{id: "V24", name: "a merge that people signed as strict asks", push: func(y *yard, a ring.SHA) ring.SHA {
			return mergeOf(y, "alice", work(y, a))
		}},
		{id: "V25", name: "a merge with a blob that nobody signed", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.git("merge", "-q", "--no-ff", "--no-commit", string(head))
			return y.edit("", "Merge pull request #1", map[string]string{"web/evil": "evil"})
		}, want: ring.NotSignedContent},
		{id: "V25", name: "the same of a head that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			y.git("merge", "-q", "--no-ff", "--no-commit", string(head))
			return y.edit("", "Merge pull request #1", map[string]string{"web/evil": "evil"})
		}, want: ring.NotSignedContent},
		{id: "V25", name: "a conflict that the forge's editor resolved", push: func(y *yard, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"db/a": "2"})
			y.back()
			y.edit("alice", "meanwhile", map[string]string{"db/a": "3"})
			cmd := exec.Command("git", "merge", "-q", "--no-ff", "--no-commit", string(head))
			cmd.Dir, cmd.Env = y.dir, y.at(noon)
			_ = cmd.Run()
			return y.edit("", "Merge pull request #1", map[string]string{"db/a": "4"})
		}, want: ring.NotSignedContent, says: "conflicts"},
		{id: "V20", name: "a head with a commit that nobody signed", push: func(y *yard, a ring.SHA) ring.SHA {
			y.branch("work", a)
			y.edit("", "sneaked in", map[string]string{"web/b": "b"})
			head := y.edit("alice", "work", map[string]string{"web/c": "c"})
			y.back()
			return mergeOf(y, "", head)
		}, want: ring.Unsigned, says: "landed by the forge"},
		{id: "V26", name: "the squash button, its pull request named", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.pull(7, head)
			return y.squash("forge", head, "Add b and c (#7)")
		}, note: "content by bob@example.org, alice@example.org, landed by the forge"},
		{id: "V26", name: "the squash button of GitLab", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.git("update-ref", "refs/merge-requests/9/head", string(head))
			return y.squash("", head, "Add b and c\n\nSee merge request acme/infra!9")
		}, note: "landed by the forge"},
		{id: "V26", name: "the squash button of a head that was behind", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.pull(7, head)
			y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			return y.squash("", head, "Add b and c (#7)")
		}, note: "landed by the forge"},
		{id: "V26", name: "a squash that names its head itself", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			return y.squash("", head, "Add b and c\n\nGitring-Head: "+string(head))
		}, note: "landed by the forge"},
		{id: "V26a", name: "a squash with one blob more than the head", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.pull(7, head)
			y.git("merge", "-q", "--squash", string(head))
			return y.edit("", "Add b and c (#7)", map[string]string{"web/evil": "evil"})
		}, want: ring.NotSignedContent},
		{id: "V26b", name: "a head whose ref is gone", push: func(y *yard, a ring.SHA) ring.SHA {
			return y.squash("", work(y, a), "Add b and c (#7)")
		}, want: ring.HeadUnavailable},
		{id: "V26c", name: "the rebase button: unsigned copies", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.pull(7, head)
			y.edit("", "work 1", map[string]string{"web/b": "b"})
			return y.edit("", "work 2 (#7)", map[string]string{"web/c": "c"})
		}, note: "landed by the forge"},
		{id: "V26c", name: "copies whose last tree is another", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.pull(7, head)
			y.edit("", "work 1", map[string]string{"web/b": "b"})
			return y.edit("", "work 2 (#7)", map[string]string{"web/c": "evil"})
		}, want: ring.NotSignedContent},
		{id: "V26d", name: "a head that the forge brought up to date", push: func(y *yard, a ring.SHA) ring.SHA {
			y.branch("work", a)
			y.edit("bob", "work 1", map[string]string{"web/b": "b"})
			y.back()
			main := y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			y.git("checkout", "-q", "work")
			mergeOf(y, "", main) // the button "update branch"
			head := y.edit("bob", "work 2", map[string]string{"web/c": "c"})
			y.back()
			return mergeOf(y, "", head)
		}, note: "content by"},
		{id: "V26d", name: "an update that brought in more", push: func(y *yard, a ring.SHA) ring.SHA {
			y.branch("work", a)
			y.edit("bob", "work 1", map[string]string{"web/b": "b"})
			y.back()
			main := y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			y.git("checkout", "-q", "work")
			y.git("merge", "-q", "--no-ff", "--no-commit", string(main))
			y.edit("", "Merge branch main into work", map[string]string{"web/evil": "evil"})
			head := y.edit("bob", "work 2", map[string]string{"web/c": "c"})
			y.back()
			return mergeOf(y, "", head)
		}, want: ring.NotSignedContent},
		{id: "V26e", name: "not up to date, and no git that merges trees", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			return mergeOf(y, "", head)
		}, aids: func(a Aids) Aids {
			a.Merge = func(_, _ ring.SHA) (ring.SHA, error) { return "", ErrNoMergeTree }
			return a
		}, want: ring.NeedsMergeTree},
		{id: "V24", name: "up to date, and no git that merges trees", push: func(y *yard, a ring.SHA) ring.SHA {
			return mergeOf(y, "", work(y, a))
		}, aids: func(Aids) Aids { return Aids{} }, note: "content by"},
		{id: "V26f", name: "an old, signed branch landed by somebody with merge rights", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			for i := range 3 {
				y.edit("alice", "meanwhile", map[string]string{"db/b": fmt.Sprint(i)})
			}
			return mergeOf(y, "", head)
		}, note: "content by"},
		{id: "V11", name: "an edit on the web, then a commit that somebody signed", push: func(y *yard, _ ring.SHA) ring.SHA {
			y.edit("", "Update a.yaml", map[string]string{"web/evil": "evil"})
			return y.edit("alice", "on top", map[string]string{"web/c": "c"})
		}, want: ring.Unsigned},
		{id: "V11", name: "an edit on the web that a landing leaves out", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.edit("", "Update a.yaml", map[string]string{"web/evil": "evil"})
			return mergeOf(y, "", head)
		}, want: ring.NotSignedContent},
		{id: "V40", name: "a head whose signer may not change that path", push: func(y *yard, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"db/b": "b"})
			y.back()
			return mergeOf(y, "", head)
		}, bind: []Binding{{Signer: "bob@example.org", Paths: []string{"web/**"}}}, want: ring.PathNotAllowed},
		{id: "V12", name: "a landing that a revoked key signed", push: func(y *yard, a ring.SHA) ring.SHA {
			head := work(y, a)
			y.key("gone")
			y.signers = append(y.signers, "gone@example.org "+y.publicOf("gone"))
			y.revoked = []string{y.publicOf("gone")}
			return mergeOf(y, "gone", head)
		}, want: ring.Revoked},
		{id: "", name: "a squash that names no pull request", push: func(y *yard, a ring.SHA) ring.SHA {
			return y.squash("", work(y, a), "Add b and c")
		}, want: ring.Unsigned, hint: "its message has to name the pull request, as in the subject Title (#12)"},
		{id: "", name: "two landings after each other", push: func(y *yard, a ring.SHA) ring.SHA {
			first := mergeOf(y, "", work(y, a))
			y.branch("more", first)
			head := y.edit("bob", "more", map[string]string{"web/d": "d"})
			y.back()
			return mergeOf(y, "", head)
		}, note: "content by bob@example.org, landed"},
		{id: "", name: "a signed commit on top of a landing", push: func(y *yard, a ring.SHA) ring.SHA {
			mergeOf(y, "", work(y, a))
			return y.edit("alice", "on top", map[string]string{"web/d": "d"})
		}},
	}
	for _, r := range rows {
		t.Run(strings.TrimSpace(r.id+" "+r.name), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			y.key("forge")
			anchor := y.edit("alice", "one", one)
			tip := r.push(y, anchor)
			aids := y.aids()
			if r.aids != nil {
				aids = r.aids(aids)
			}
			all, refusal, err := y.trust(forgeMerge, bound(r.bind...)).RangeWith(y, aids, anchor, tip, noon, nil)
			require.NoError(t, err)
			if r.want != "" {
				require.NotNil(t, refusal)
				require.Equal(t, r.want, refusal.Code, refusal.Says)
				require.Contains(t, refusal.Says, r.says)
				require.Contains(t, refusal.Hint, r.hint)
				require.NotEmpty(t, refusal.Hint)
				return
			}
			require.Nil(t, refusal)
			require.Equal(t, tip, all[len(all)-1].SHA)
			require.Contains(t, all[len(all)-1].Note, r.note)
		})
	}
}

// mergeOf is the merge button: no signature, or the forge's.
func mergeOf(y *yard, key string, head ring.SHA) ring.SHA {
	y.t.Helper()
	y.git("merge", "-q", "--no-ff", "--no-commit", string(head))
	return y.edit(key, "Merge pull request #1 from acme/work", nil)
}

// publicOf is the public line of a key that was made before.
func (y *yard) publicOf(name string) string {
	y.t.Helper()
	return strings.TrimSpace(y.run(y.at(noon), y.keys, "cat", name+".pub"))
}

// TestV11TipModeLaunders is why status calls the mode weak.
func TestV11TipModeLaunders(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	anchor := y.edit("alice", "one", map[string]string{"a": "1"})
	y.edit("", "nobody's", map[string]string{"a": "2"})
	tip := y.edit("alice", "three", map[string]string{"b": "1"})
	trust := y.trust(func(c *TrustConfig) { c.Mode = Tip })
	all, refusal, err := trust.Range(y, anchor, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, all, 2)
	require.Contains(t, all[0].Note, "not verified")
	require.Contains(t, trust.Warning(), "weak")

	_, refusal, err = trust.Range(y, tip, anchor, noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.Rollback, refusal.Code)
	unsigned := y.edit("", "nobody's", map[string]string{"a": "3"})
	_, refusal, err = trust.Range(y, tip, unsigned, noon, nil)
	require.NoError(t, err)
	require.Equal(t, ring.Unsigned, refusal.Code)
}
