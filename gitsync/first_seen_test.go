package gitsync

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// max_age counts from there: a restart, or a signature that claims another time, must
// not make an old commit young.
func TestWhenTheTrustedCommitWasFirstSeenSurvivesARestart(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"strict", "disabled"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			sha := o.signed("one")
			dir := filepath.Join(t.TempDir(), "git")
			began := func(c *Config) {
				c.Dir = dir
				if mode == "disabled" {
					c.Trust = TrustConfig{Mode: Disabled}
				}
			}
			w := lookAt(t, o.follow(a, began))
			seen := w.must().Commit.FirstSeen
			require.False(t, seen.IsZero())
			w.tidy(t.Context())

			again := &looker{&watch{Follower: o.follow(a, began)}, t}
			again.now = func() time.Time { return seen.Add(40 * day) }
			r, ok := again.begin(t.Context())
			require.True(t, ok)
			require.Equal(t, sha, r.Commit.SHA)
			require.Equal(t, seen, r.Commit.FirstSeen, "from the mirror and the store alone")
			require.Equal(t, seen, again.must().Commit.FirstSeen, "after a look that brought nothing")
		})
	}
}
