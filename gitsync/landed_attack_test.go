package gitsync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestNobodyLandsWhatNobodySigned is what was tried against landings by somebody
// who may push and move refs, and has no key. bob and alice sign; alice may vouch.
func TestNobodyLandsWhatNobodySigned(t *testing.T) {
	web := []Binding{{Signer: "bob@example.org", Paths: []string{"web/**"}}}
	rows := []struct {
		name   string
		push   func(y *yard, old, anchor ring.SHA) ring.SHA
		bind   []Binding
		target bool
		want   ring.Code // "" is accepted
		says   string
	}{
		{name: "an old head by way of an unsigned merge on an old base takes nothing back", push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", old)
			head := y.edit("bob", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			hinge := y.craft(old, "Merge", "web/evil", old, a)
			return y.like(head, "Work (#7)", hinge)
		}, want: ring.NotSignedContent, says: "comes after"},
		{name: "the same with the newest commit behind two hinges", push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", old)
			head := y.edit("bob", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			hinge := y.craft(old, "Merge", "web/evil", old, y.craft(a, "Edit", "web/evil2", a))
			return y.like(head, "Work (#7)", hinge)
		}, want: ring.NotSignedContent, says: "comes after"},
		{name: "a merge with its parents swapped takes nothing back", push: func(y *yard, old, a ring.SHA) ring.SHA {
			return y.like(old, "Merge", old, a)
		}, want: ring.NotSignedContent},
		{name: "a head that is the landing itself", push: func(y *yard, _, a ring.SHA) ring.SHA {
			tip := y.craft(a, "Work (#7)", "web/evil", a)
			y.pull(7, tip)
			return tip
		}, want: ring.Unsigned},
		{name: "a head that comes after the landing", push: func(y *yard, _, a ring.SHA) ring.SHA {
			tip := y.craft(a, "Work (#7)", "web/evil", a)
			y.checkout(tip, "work")
			y.pull(7, y.edit("alice", "on top", map[string]string{"web/b": "b"}))
			return tip
		}, want: ring.Unsigned},
		{name: "two landings that name each other", push: func(y *yard, _, a ring.SHA) ring.SHA {
			one := y.craft(a, "One (#8)", "web/evil", a)
			two := y.like(one, "Two (#7)", one)
			y.pull(7, one)
			y.pull(8, two)
			return two
		}, want: ring.Unsigned},
		{name: "a number in the message of a person is no landing", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.pull(7, y.craft(a, "x", "web/evil", a))
			y.checkout(a, "main")
			return y.edit("alice", "Fix (#7)", map[string]string{"web/b": "b"})
		}},
		{name: "nor does it save a signature that is bad", push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			raw := strings.Replace(y.raw(head), "work\n", "work (#7)\n", 1)
			return y.put(raw)
		}, want: ring.BadSignature},
		{name: "three parents are no button", push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"web/b": "b"})
			return y.like(head, "Merge", a, head, old)
		}, want: ring.Unsigned},
		{name: "a commit of no parents in between", push: func(y *yard, _, a ring.SHA) ring.SHA {
			root := y.craft(a, "Root", "web/evil")
			return y.like(root, "Merge", a, root)
		}, want: ring.Unsigned},
		{name: "a landing whose first parent is a root that nobody signed", push: func(y *yard, _, a ring.SHA) ring.SHA {
			root := y.craft(a, "Root", "web/evil")
			return y.like(root, "Merge", root, a)
		}, want: ring.Unsigned},
		{name: "a head with another beginning", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.git("checkout", "-q", "--orphan", "other")
			head := y.edit("bob", "other", map[string]string{"web/b": "b"})
			return y.like(head, "Merge", a, head)
		}, want: ring.NotSignedContent, says: "conflicts"},
		{name: "a trailer that names a file", push: func(y *yard, _, a ring.SHA) ring.SHA {
			blob := y.git("rev-parse", string(a)+":web/a")
			return y.craft(a, "Work\n\nGitring-Head: "+blob, "web/evil", a)
		}, want: ring.NotACommit},
		{name: "a trailer that names no id", push: func(y *yard, _, a ring.SHA) ring.SHA {
			return y.craft(a, "Work\n\nGitring-Head: HEAD", "web/evil", a)
		}, want: ring.HeadUnavailable},
		{name: "a trailer that names an old trusted commit takes nothing back", push: func(y *yard, old, a ring.SHA) ring.SHA {
			return y.like(old, "Work\n\nGitring-Head: "+string(old), a)
		}, want: ring.NotSignedContent},
		{name: "a trailer that names what nobody trusts", push: func(y *yard, _, a ring.SHA) ring.SHA {
			evil := y.craft(a, "x", "web/evil", a)
			return y.like(evil, "Work\n\nGitring-Head: "+string(evil), a)
		}, want: ring.Unsigned},
		{name: "a head on top of an edit that an earlier landing left out", push: func(y *yard, _, a ring.SHA) ring.SHA {
			evil := y.craft(a, "Update a.yaml", "db/evil", a)
			y.branch("work", a)
			head := y.edit("alice", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			landed := y.like(head, "Work (#7)", evil)
			y.checkout(evil, "more") // alice took the edit for good
			y.pull(8, y.edit("alice", "more", map[string]string{"web/c": "c"}))
			y.git("checkout", "-q", "--detach", string(landed))
			return mergeOf(y, "", ring.SHA(y.git("rev-parse", "refs/pull/8/head")))
		}, want: ring.Unsigned},
		{name: "a vouch inside a head, by one who may, cures that head", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			edit := y.edit("", "Update a.yaml", map[string]string{"web/b": "b"})
			y.edit("alice", "seen\n\nGitring-Vouch: "+string(edit), map[string]string{"web/c": "c"})
			y.pull(7, y.head())
			return y.like(y.head(), "Work (#7)", a)
		}},
		{name: "a vouch inside a head for an edit on the branch, squashed", push: func(y *yard, _, a ring.SHA) ring.SHA {
			edit := y.craft(a, "Update a.yaml", "web/b", a)
			y.checkout(edit, "work")
			head := y.edit("alice", "seen\n\nGitring-Vouch: "+string(edit), map[string]string{"web/c": "c"})
			y.pull(7, head)
			return y.like(head, "Work (#7)", edit)
		}},
		{name: "a vouch inside a head by one who may not", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			edit := y.edit("", "Update a.yaml", map[string]string{"web/b": "b"})
			head := y.edit("bob", "seen\n\nGitring-Vouch: "+string(edit), map[string]string{"web/c": "c"})
			y.pull(7, head)
			return y.like(head, "Work (#7)", a)
		}, want: ring.VouchNotAllowed},
		{name: "a vouch in a head that was not landed counts for nothing", push: func(y *yard, _, a ring.SHA) ring.SHA {
			edit := y.craft(a, "Update a.yaml (#7)", "web/evil", a)
			y.checkout(edit, "work")
			y.pull(7, y.edit("alice", "seen\n\nGitring-Vouch: "+string(edit), map[string]string{"web/c": "c"}))
			return edit
		}, want: ring.NotSignedContent},
		{name: "a squash that quotes a vouch vouches for nothing", push: func(y *yard, _, a ring.SHA) ring.SHA {
			edit := y.craft(a, "Update a.yaml", "web/evil", a)
			return y.like(edit, "Work\n\nGitring-Vouch: "+string(edit), edit)
		}, want: ring.Unsigned},
		{name: "a target that only the forge wrote", target: true, push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"web/b": "b"})
			return y.like(head, "Merge\n\nGitring-Target: prod", a, head)
		}, want: ring.TargetMissing},
		{name: "a target that the head's signer wrote", target: true, push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work\n\nGitring-Target: prod", map[string]string{"web/b": "b"})
			return y.like(head, "Merge\n\nGitring-Target: staging", a, head)
		}},
		{name: "a landing of nothing has no target of its own", target: true, push: func(y *yard, old, a ring.SHA) ring.SHA {
			return y.like(a, "Merge\n\nGitring-Target: prod", a, old)
		}, want: ring.TargetMissing},
		{name: "a criss-cross of signed branches is what git makes of it", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("left", a)
			left := y.edit("bob", "left", map[string]string{"web/l": "l"})
			y.branch("right", a)
			right := y.edit("bob", "right", map[string]string{"web/r": "r"})
			x := mergeOf(y, "", left)
			y.git("checkout", "-q", "left")
			mergeOf(y, "", right)
			one := y.edit("bob", "more", map[string]string{"web/l": "l2"})
			y.checkout(x, "right2")
			two := y.edit("alice", "more", map[string]string{"web/r": "r2"})
			y.checkout(one, "main")
			return mergeOf(y, "", two)
		}},
		{name: "rights hold in a head that was behind", bind: web, push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			head := y.edit("bob", "work", map[string]string{"db/a": "mine"})
			y.back()
			y.edit("alice", "meanwhile", map[string]string{"web/z": "z"})
			return mergeOf(y, "", head)
		}, want: ring.PathNotAllowed},
		{name: "a merge does not give back what another may not change", bind: web, push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", old)
			side := y.edit("bob", "work", map[string]string{"web/b": "b"})
			y.checkout(a, "main")
			y.git("merge", "-q", "--no-ff", "--no-commit", string(side))
			return y.edit("bob", "Merge", map[string]string{"db/a": "old"}) // as it is on that side
		}, want: ring.PathNotAllowed},
		{name: "nor with an old commit as its parent", bind: web, push: func(y *yard, old, a ring.SHA) ring.SHA {
			tree := y.git("rev-parse", string(old)+"^{tree}")
			return y.commitTree("bob", tree, "Merge", a, old)
		}, want: ring.PathNotAllowed},
		{name: "a merge that takes each side's own changes needs no right to them", bind: web, push: func(y *yard, old, a ring.SHA) ring.SHA {
			y.branch("work", old)
			side := y.edit("alice", "work", map[string]string{"db/b": "b", "web/b": "b"})
			y.checkout(a, "main")
			y.git("merge", "-q", "--no-ff", "--no-commit", string(side))
			return y.edit("bob", "Merge", nil)
		}},
		{name: "update, land, update, land", push: func(y *yard, _, a ring.SHA) ring.SHA {
			y.branch("work", a)
			y.edit("bob", "work", map[string]string{"web/b": "b"})
			y.checkout(a, "main")
			main := y.edit("alice", "meanwhile", map[string]string{"db/b": "b"})
			y.git("checkout", "-q", "work")
			head := mergeOf(y, "", main)
			y.pull(7, head)
			y.git("checkout", "-q", "main")
			landed := y.like(head, "Work (#7)", main)
			y.git("checkout", "-q", "work")
			y.git("reset", "-q", "--hard", string(landed))
			y.edit("bob", "more", map[string]string{"web/d": "d"})
			head = y.head()
			return y.like(head, "Merge", landed, head)
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			old := y.edit("alice", "old", map[string]string{"web/a": "1\n", "db/a": "old"})
			anchor := y.edit("alice", "anchor", map[string]string{"db/a": "new"})
			tip := r.push(y, old, anchor)
			trust := y.trust(forgeMerge, bound(r.bind...), func(c *TrustConfig) { c.RequireTarget = r.target })
			aids := y.aids()
			aids.Standing = func(sha ring.SHA) (ring.Standing, error) {
				if sha == old {
					return ring.OwnSignature, nil
				}
				return ring.NeverSeen, nil
			}
			_, refusal, err := trust.RangeWith(y, aids, anchor, tip, noon, nil)
			require.NoError(t, err)
			if r.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal, "accepted")
			require.Equal(t, r.want, refusal.Code, refusal.Says)
			require.Contains(t, refusal.Says, r.says)
		})
	}
}

// TestAnUpdateFromAMainThatWasSquashed: what is behind the anchor is trusted,
// whoever made it and whoever signs today.
func TestAnUpdateFromAMainThatWasSquashed(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	old := y.edit("alice", "old", map[string]string{"web/a": "1"})
	y.branch("work", old)
	y.edit("bob", "work", map[string]string{"web/b": "b"})
	y.back()
	squashed := y.edit("", "Something (#3)", map[string]string{"db/a": "1"}) // #3 is long gone
	y.git("checkout", "-q", "work")
	head := mergeOf(y, "", squashed)
	y.back()
	tip := mergeOf(y, "", head)
	_, refusal, err := y.trust(forgeMerge).RangeWith(y, y.aids(), squashed, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
}

func (y *yard) raw(sha ring.SHA) string {
	y.t.Helper()
	_, body, err := y.Raw(sha)
	require.NoError(y.t, err)
	return string(body)
}

// like is an unsigned commit with the tree of another one.
func (y *yard) like(of ring.SHA, message string, parents ...ring.SHA) ring.SHA {
	y.t.Helper()
	return y.commitTree("", y.git("rev-parse", string(of)+"^{tree}"), message, parents...)
}

// craft is an unsigned commit with one file more than another one has.
func (y *yard) craft(of ring.SHA, message, file string, parents ...ring.SHA) ring.SHA {
	y.t.Helper()
	y.git("checkout", "-q", "--detach", string(of))
	y.edit("", "x", map[string]string{file: "evil"})
	return y.like(y.head(), message, parents...)
}

func (y *yard) commitTree(key, tree, message string, parents ...ring.SHA) ring.SHA {
	y.t.Helper()
	args := []string{"-c", "gpg.format=ssh", "commit-tree", tree, "-m", message}
	if key != "" {
		args = append(args, fmt.Sprintf("-S%s/%s", y.keys, key))
	}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	return ring.SHA(y.git(args...))
}

// Git's merge follows a file that was moved meanwhile. What a signer changed within
// his paths must not land outside of them by that.
func TestALandingDoesNotCarryAChangeToWhereItsSignerMayNot(t *testing.T) {
	const file, moved = "apps/web/cache.yaml", "apps/db/cache.yaml"
	body := strings.Repeat("a line of some length\n", 30)
	for _, row := range []struct {
		name string
		bind []Binding
		edit map[string]string
		want ring.Code // "" is accept
	}{
		{"a change of the moved file", []Binding{{Signer: "bob@example.org", Paths: []string{"apps/web/**"}}}, texts(file, body+"privileged: true\n"), ring.NotSignedContent},
		{"a change of another file", []Binding{{Signer: "bob@example.org", Paths: []string{"apps/web/**"}}}, texts("apps/web/b", "2"), ""},
		{"a change of the moved file, where everybody may change everything", nil, texts(file, body+"more\n"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			y.allow("bob", "")
			anchor := y.edit("alice", "one", texts(file, body, "apps/web/b", "1", "apps/db/a", "1"))
			y.branch("side", anchor)
			head := y.edit("bob", "edit", row.edit)
			y.back()
			y.git("mv", file, moved)
			y.edit("alice", "move", nil)
			tip := y.merge("", string(head))
			_, refusal, err := y.trust(forgeMerge, bound(row.bind...)).RangeWith(y, y.aids(), anchor, tip, noon, nil)
			require.NoError(t, err)
			if row.want == "" {
				require.Nil(t, refusal)
				return
			}
			require.NotNil(t, refusal)
			require.Equal(t, row.want, refusal.Code)
			require.Contains(t, refusal.Says, moved)
		})
	}
}
