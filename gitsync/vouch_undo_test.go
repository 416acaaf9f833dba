package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestALimitedVouchTakesNothingBackOutsideItsPaths is a vouch over a range that
// changed the same file twice: the whole of it shows no difference there. dave may
// vouch, and only for web/**; alice takes the db's old state out within the range.
func TestALimitedVouchTakesNothingBackOutsideItsPaths(t *testing.T) {
	dave := Binding{Signer: "dave@example.org", Roles: []Role{RoleCommit, RoleMerge, RoleVouch}, Paths: []string{"web/**"}}
	rows := []struct {
		name string
		push func(y *yard, old ring.SHA) ring.SHA // HEAD is the anchor
	}{
		{"an unsigned commit on the branch", func(y *yard, _ ring.SHA) ring.SHA {
			y.edit("alice", "close the hole", map[string]string{"db/a": "closed"})
			back := y.edit("", "open it", map[string]string{"db/a": "open"})
			return y.edit("dave", "vouch\n\nGitring-Vouch: "+string(back), map[string]string{"web/a": "2"})
		}},
		{"a branch from before the anchor, merged", func(y *yard, old ring.SHA) ring.SHA {
			y.edit("alice", "close the hole", map[string]string{"db/a": "closed"})
			closed := y.head()
			y.checkout(old, "work")
			back := y.edit("", "open it", map[string]string{"db/a": "open"})
			vouch := y.edit("dave", "vouch\n\nGitring-Vouch: "+string(back), map[string]string{"web/a": "2"})
			y.checkout(closed, "main")
			return y.merge("dave", string(vouch))
		}},
		{"an unsigned merge that takes one side's file", func(y *yard, _ ring.SHA) ring.SHA {
			anchor := y.head()
			y.edit("alice", "close the hole", map[string]string{"db/a": "closed"})
			closed := y.head()
			y.checkout(anchor, "work")
			work := y.edit("dave", "work", map[string]string{"web/a": "2"})
			y.checkout(closed, "main")
			y.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", string(work))
			back := y.edit("", "merge", map[string]string{"db/a": "open", "web/a": "2"})
			return y.edit("dave", "vouch\n\nGitring-Vouch: "+string(back), map[string]string{"web/a": "3"})
		}},
	}
	for _, mode := range []string{Strict, ForgeMerge} {
		for _, inRepo := range []string{"", DefaultSignersInRepo} {
			for _, r := range rows {
				t.Run(mode+" "+inRepo+" "+r.name, func(t *testing.T) {
					y := newYard(t)
					y.allow("alice", "") // the first signer
					y.allow("dave", "")
					old := y.edit("alice", "zero", map[string]string{"web/a": "1", "db/a": "closed"})
					anchor := y.edit("alice", "one", map[string]string{"db/a": "open"})
					tip := r.push(y, old)
					trust := y.trust(bound(dave), func(c *TrustConfig) { c.Mode, c.SignersInRepo = mode, inRepo })
					_, refusal, err := trust.Range(y, anchor, tip, noon, nil)
					require.NoError(t, err)
					require.NotNil(t, refusal, "the hole is open again, and nobody with rights for db said so")
					if mode == Strict { // forge-merge says of the commit what is wrong with it
						require.Equal(t, ring.PathNotAllowed, refusal.Code, refusal.Says)
					}
				})
			}
		}
	}
}
