package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestASquashLendsNobodyTheRightsOfItsLastSigner: bob may change apps/blog alone. In a
// squash with a commit of alice's he would take, in her name, what needs her rights.
func TestASquashLendsNobodyTheRightsOfItsLastSigner(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", "")
	anchor := y.edit("alice", "shop", texts("apps/shop/compose.yaml", "1"))
	trust := y.trust(forgeMerge, bound(Binding{Signer: "bob@example.org", Paths: []string{"apps/blog/**"}}))
	y.branch("alices", anchor)
	alices := y.edit("alice", "not landed yet", texts("docs/x", "x"))
	y.branch("bobs", anchor)
	bobs := y.edit("bob", "claim", texts("apps/blog/compose.yaml", "name: shop"))
	squash := func(head ring.SHA, onto ring.SHA) ring.SHA {
		return y.like(head, "Work\n\nGitring-Head: "+string(head), onto)
	}
	y.checkout(bobs, "above")
	above := y.edit("alice", "on top", texts("docs/y", "y"))
	for _, tt := range []struct {
		name    string
		tip     ring.SHA
		limited bool
	}{
		{"alice's own", squash(alices, anchor), false},
		{"bob's own", squash(bobs, anchor), true},
		{"both, merged by nobody who signs", squash(y.clean(bobs, alices, "Merge"), anchor), true},
		{"bob's commit below alice's", squash(above, anchor), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := remembers(y, trust, anchor)
			m.accepts(tt.tip)
			f := &Follower{cfg: Config{Name: "prod"}, anchors: &ledger{good: m.last}}
			paths, limited, err := f.Paths(t.Context(), trust.hands(), tt.tip)
			require.NoError(t, err)
			require.Equal(t, tt.limited, limited)
			require.NotContains(t, paths, "**")
		})
	}
}
