package gitsync

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// isolated fetches in a process of its own.
func isolated(c *Config) { c.Isolated = true }

func TestASourceIsFollowedThroughAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, url := range map[string]string{"file": o.url(), "http": serve(t, o.httpBackend()) + "/remote.git"} {
		t.Run(name, func(t *testing.T) {
			one := o.signed("one " + name)
			f := o.follow(&ledger{}, at(url), isolated)
			t.Cleanup(f.child.rest)
			w := lookAt(t, f)
			require.Equal(t, one, w.must().Commit.SHA)
			require.Equal(t, one, w.must().Commit.SHA)
			two := o.signed("two " + name)
			require.Equal(t, two, w.must().Commit.SHA)
			o.git(f.cfg.Dir, "fsck", "--strict")
		})
	}
}
