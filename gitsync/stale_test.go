package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestAStaleBranchBringsNobodyBack is V65a. In each case mallory was in the file of
// signers once and was taken out again, and now it has the bytes of before.
func TestAStaleBranchBringsNobodyBack(t *testing.T) {
	limited := Binding{Signer: "bob@example.org", Roles: []Role{RoleCommit, RoleMerge}, Paths: []string{"web/**"}}
	root := Binding{Signer: "alice@example.org", Roles: []Role{RoleCommit, RoleMerge, RoleVouch, RoleTrust}}
	// history is a branch where the file went from one edition to another and back.
	type history struct {
		*yard
		first, out, stale ring.SHA // the first edition, the last one, and the branch with the one between
		with, without     string
	}
	rows := []struct {
		id, name string
		mode     string
		push     func(h history) ring.SHA // the commit refused
		threads  int                      // trust_threshold
		whole    bool                     // one range is judged as two looks are
		want     ring.Code
	}{
		{id: "V65a", name: "strict, a merge by a signer with limited paths", push: func(h history) ring.SHA {
			return h.merge("bob", string(h.stale))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "strict, the same with more commits on the branch", push: func(h history) ring.SHA {
			h.checkout(h.stale, "more")
			more := h.edit("bob", "more", texts("web/b", "2"))
			h.checkout(h.out, "main")
			return h.merge("bob", string(more))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "strict, the stale branch is the first parent", push: func(h history) ring.SHA {
			h.checkout(h.stale, "main")
			return h.merge("bob", string(h.out))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "strict, one of three parents", push: func(h history) ring.SHA {
			h.checkout(h.out, "other")
			other := h.edit("bob", "other", texts("web/c", "2"))
			h.checkout(h.out, "main")
			h.edit("bob", "on main", texts("web/d", "2"))
			return h.merge("bob", string(other), string(h.stale))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "strict, a merge that takes the file of an older edition", push: func(h history) ring.SHA {
			h.edit("alice", "carol joins", texts(signersPath, h.listed("bob", "carol")))
			h.checkout(h.first, "old")
			old := h.edit("bob", "old", texts("web/b", "2"))
			h.checkout(ring.SHA(h.git("rev-parse", "main")), "main")
			h.git("merge", "-q", "--no-ff", "--no-commit", string(old))
			h.git("checkout", "-q", string(old), "--", signersPath)
			return h.commitWith(noon, "merge", h.signWith("bob")...)
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "forge-merge, the merge button", mode: ForgeMerge, push: func(h history) ring.SHA {
			return h.merge("", string(h.stale))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "forge-merge, the squash button", mode: ForgeMerge, push: func(h history) ring.SHA {
			h.pull(7, h.stale)
			return h.squash("", h.stale, "Mallory joins (#7)")
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "forge-merge, the rebase button", mode: ForgeMerge, push: func(h history) ring.SHA {
			h.checkout(h.stale, "more")
			more := h.edit("bob", "more", texts("web/b", "2"))
			h.pull(7, more)
			h.checkout(h.out, "main")
			h.git("cherry-pick", "--no-gpg-sign", string(h.stale))
			h.squash("", more, "more (#7)")
			return h.head()
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "forge-merge, a head that the message names by its id", mode: ForgeMerge, push: func(h history) ring.SHA {
			return h.squash("", h.stale, "Mallory joins\n\nGitring-Head: "+string(h.stale))
		}, whole: true, want: ring.SignersStale},
		{id: "V65a", name: "forge-merge, the merge button on the stale branch", mode: ForgeMerge, push: func(h history) ring.SHA {
			h.checkout(h.stale, "main")
			return h.merge("", string(h.out))
		}, whole: true, want: ring.SignersStale},

		{name: "a new change on top of the edition in force", push: func(h history) ring.SHA {
			h.edit("alice", "mallory is back", texts(signersPath, h.with))
			return h.edit("mallory", "two", texts("web/b", "2"))
		}},
		{name: "somebody with the role trust brings both together", push: func(h history) ring.SHA {
			return h.merge("alice", string(h.stale))
		}},
		{name: "somebody with the role trust vouches for the merge", push: func(h history) ring.SHA {
			m := h.merge("bob", string(h.stale))
			return h.edit("alice", vouchFor(m), nil)
		}},
		{name: "the same for a landing", mode: ForgeMerge, push: func(h history) ring.SHA {
			m := h.merge("", string(h.stale))
			return h.edit("alice", vouchFor(m), nil)
		}},
		{name: "one vouch where two people have to answer", threads: 2, push: func(h history) ring.SHA {
			m := h.merge("bob", string(h.stale))
			h.edit("alice", vouchFor(m), nil)
			return h.stale
		}, want: ring.AwaitingApproval},
		{name: "what the hint says: merged into the branch, and changed again", mode: ForgeMerge, push: func(h history) ring.SHA {
			h.checkout(h.stale, "work")
			h.git("merge", "-q", "--no-ff", "--no-commit", string(h.out))
			h.git("checkout", "-q", string(h.out), "--", signersPath)
			h.commitWith(noon, "update", h.signWith("alice")...)
			head := h.edit("alice", "mallory is back", texts(signersPath, h.with))
			h.checkout(h.out, "main")
			return h.merge("", string(head))
		}},
		{name: "an old branch that never changed the file", push: func(h history) ring.SHA {
			h.checkout(h.first, "old")
			old := h.edit("bob", "old", texts("web/b", "2"))
			h.checkout(h.out, "main")
			return h.merge("bob", string(old))
		}},
		{name: "an old branch with the file of an older edition, which the merge does not take", push: func(h history) ring.SHA {
			h.checkout(h.out, "main")
			h.edit("alice", "carol joins", texts(signersPath, h.listed("bob", "carol")))
			h.git("tag", "main2")
			h.checkout(h.out, "old")
			old := h.edit("bob", "old", texts("web/b", "2"))
			h.checkout("main2", "main")
			h.merge("bob", string(old))
			return h.edit("carol", "three", texts("web/c", "3"))
		}},
		{name: "the same, with the old branch as the first parent", push: func(h history) ring.SHA {
			h.checkout(h.out, "main")
			h.edit("alice", "carol joins", texts(signersPath, h.listed("bob", "carol")))
			h.git("tag", "main2")
			h.checkout(h.out, "old")
			h.edit("bob", "old", texts("web/b", "2"))
			h.merge("bob", "main2")
			return h.edit("carol", "three", texts("web/c", "3"))
		}},
	}
	for _, row := range rows {
		t.Run(row.id+" "+row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("alice", "")
			for _, name := range []string{"bob", "carol", "mallory"} {
				y.key(name)
			}
			h := history{yard: y, without: y.listed("bob"), with: y.listed("bob", "mallory")}
			y.signers = append(y.signers, "bob@example.org "+y.publicLine("bob"))
			h.first = y.edit("alice", "one", texts(signersPath, h.without, "web/a", "1"))
			y.branch("stale", h.first)
			h.stale = y.edit("alice", "mallory joins", texts(signersPath, h.with))
			y.back()
			y.edit("alice", "mallory joins, again", texts(signersPath, h.with))
			h.out = y.edit("alice", "mallory leaves", texts(signersPath, h.without))
			at := row.push(h)
			trust := y.trust(inRepo, bound(root, limited), func(c *TrustConfig) {
				c.TrustThreshold = row.threads
				if row.mode != "" {
					c.Mode = row.mode
				}
			})
			for _, from := range []ring.SHA{h.out, h.first} {
				_, refusal, err := trust.RangeWith(y, y.aids(), from, y.head(), noon, nil)
				require.NoError(t, err)
				switch {
				case row.want == "":
					require.Nil(t, refusal)
				case from == h.out || row.whole:
					require.NotNil(t, refusal)
					require.Equal(t, row.want, refusal.Code, refusal.Says)
					require.Equal(t, at, refusal.Commit)
					require.NotEmpty(t, refusal.Hint)
				}
			}
		})
	}
}
