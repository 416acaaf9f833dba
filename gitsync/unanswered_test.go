package gitsync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestWhatIsUnansweredIsCuredByVouchingForIt names commits nobody answers for, and
// then lets somebody vouch for exactly these: the range is accepted.
func TestWhatIsUnansweredIsCuredByVouchingForIt(t *testing.T) {
	rows := []struct {
		name string
		mode func(*TrustConfig)
		push func(y *yard, anchor ring.SHA)
		want []ring.Code
	}{
		{"nothing, where all is signed", nil, func(y *yard, _ ring.SHA) {
			y.edit("alice", "signed", map[string]string{"web/a": "2"})
		}, nil},
		{"an edit on the web, one of a stranger, and what lies between is not named", nil, func(y *yard, _ ring.SHA) {
			y.edit("", "edit", map[string]string{"web/a": "2"})
			y.edit("alice", "signed", map[string]string{"web/a": "3"})
			y.edit("mallory", "stranger", map[string]string{"web/a": "4"})
		}, []ring.Code{ring.Unsigned, ring.UnknownSigner}},
		{"a merge that nobody signed and what it brings", nil, func(y *yard, at ring.SHA) {
			y.branch("side", at)
			side := y.edit("", "side", map[string]string{"web/b": "b"})
			y.back()
			y.edit("alice", "main", map[string]string{"web/a": "2"})
			y.merge("", string(side))
		}, []ring.Code{ring.Unsigned, ring.Unsigned}},
		{"a path that its signer may not change", func(c *TrustConfig) {
			c.Bindings = []Binding{{Signer: "bob@example.org", Paths: []string{"web/**"}}}
		}, func(y *yard, _ ring.SHA) {
			y.edit("bob", "db", map[string]string{"db/a": "2"})
		}, []ring.Code{ring.PathNotAllowed}},
		{"a landing with more than its head, in forge-merge", forgeMerge, func(y *yard, at ring.SHA) {
			y.branch("work", at)
			head := y.edit("alice", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			y.back()
			y.git("merge", "-q", "--squash", string(head))
			y.edit("", "work (#7)", map[string]string{"web/evil": "evil"})
		}, []ring.Code{ring.NotSignedContent}},
		{"nothing, for a good landing in forge-merge", forgeMerge, func(y *yard, at ring.SHA) {
			y.branch("work", at)
			head := y.edit("alice", "work", map[string]string{"web/b": "b"})
			y.pull(7, head)
			y.back()
			y.squash("", head, "work (#7)")
		}, nil},
		{"the tip alone, in mode tip", func(c *TrustConfig) { c.Mode = Tip }, func(y *yard, _ ring.SHA) {
			y.edit("", "edit", map[string]string{"web/a": "2"})
			y.edit("", "edit", map[string]string{"web/a": "3"})
		}, []ring.Code{ring.Unsigned}},
		{"not that the tip says for whom it is", func(c *TrustConfig) { c.RequireTarget = true }, func(y *yard, _ ring.SHA) {
			y.edit("", "edit", map[string]string{"web/a": "2"})
		}, []ring.Code{ring.Unsigned}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.allow("carol", "") // the first signer vouches
			y.allow("alice", "")
			y.allow("bob", "")
			y.key("mallory")
			anchor := y.edit("alice", "anchor", map[string]string{"web/a": "1", "db/a": "1"})
			row.push(y, anchor)
			rules := []func(*TrustConfig){}
			if row.mode != nil {
				rules = append(rules, row.mode)
			}
			trust := y.trust(rules...)
			list, incurable, err := trust.Unanswered(y, y.aids(), anchor, y.head(), noon)
			require.NoError(t, err)
			require.Nil(t, incurable)
			var codes []ring.Code
			message := "vouch\n\nGitring-Target: prod"
			for _, r := range list {
				codes = append(codes, r.Code)
				message += fmt.Sprintf("\nGitring-Vouch: %s", r.Commit)
			}
			require.Equal(t, row.want, codes)
			if len(list) == 0 {
				return
			}
			_, refusal, err := trust.RangeWith(y, y.aids(), anchor, y.edit("carol", message, nil), noon, nil)
			require.NoError(t, err)
			require.Nil(t, refusal)
		})
	}
}

func TestRewrittenHistoryIsNothingToVouchFor(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	old := y.edit("alice", "old", map[string]string{"web/a": "1"})
	anchor := y.edit("alice", "anchor", map[string]string{"web/a": "2"})
	y.checkout(old, "other")
	y.edit("", "edit", map[string]string{"web/a": "3"})
	list, incurable, err := y.trust().Unanswered(y, y.aids(), anchor, y.head(), noon)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, ring.NonFastForward, incurable.Code)

	list, incurable, err = y.trust().Unanswered(y, y.aids(), anchor, old, noon)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, ring.Rollback, incurable.Code)

	_, _, err = y.trust().Unanswered(y, y.aids(), ring.SHA(strings.Repeat("z", 40)), old, noon)
	require.Error(t, err)
}
