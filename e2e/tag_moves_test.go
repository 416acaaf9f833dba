package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// hoursLater has it that the tags of a host whose daemon is not there were asked two hours ago:
// the shortest time between two questions is longer than a test.
func (h *host) hoursLater() {
	h.t.Helper()
	s, err := store.Open(h.t.Context(), filepath.Join(h.dir, "state"))
	require.NoError(h.t, err)
	defer func() { require.NoError(h.t, s.Close()) }()
	facts, err := s.Facts(h.t.Context())
	require.NoError(h.t, err)
	require.Len(h.t, facts.Tags, 1)
	var earlier []ring.Fact
	for _, row := range facts.Tags {
		row.Asked = row.Asked.Add(-2 * time.Hour)
		earlier = append(earlier, row)
	}
	require.NoError(h.t, s.Record(h.t.Context(), earlier, nil))
}

// A tag is followed by the clock as a commit's image is, and a bad one is taken back and not
// tried again. A restart of the daemon asks nothing early.
func TestATagThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	app := h.app("web")
	service := web("", obj{"image": reg.at + "/web:1", "pull_policy": "every_1h", "environment": nil})
	reg.push("one")
	h.start()
	h.deployed("Followed", files{app + "/compose.yaml": h.compose(app, obj{"web": service})})
	settled(h)
	next := func() {
		t.Helper()
		require.NoError(t, h.stop())
		h.hoursLater()
		h.start()
	}
	told := func(kind, says string) func() bool {
		return func() bool { _, ok := h.journalled(kind, app, "web", says); return ok }
	}

	reg.push("two")
	require.NoError(t, h.stop())
	h.start()
	_, moved := h.journalled("tag.moved", app, "web", "")
	require.False(t, moved, "a restart asks nothing early")
	next()
	h.until("the new image is followed", func() bool { return h.ranAs("web", "two") && told("rollout.completed", "")() })
	require.True(t, told("tag.followed", "tag "+reg.at+"/web:1 moved")())
	settled(h)

	reg.env = []string{"BROKEN=1", "EXIT_AFTER=1"}
	reg.push("bad")
	next()
	h.until("the bad image is taken back", told("rollout.restored", ""))
	h.until("the good one serves alone", func() bool { return len(h.containers("web")) == 1 && h.ranAs("web", "two") })
	good := h.one("web").ID
	asked := time.Now()
	next()
	h.until("the tag is asked again", func() bool {
		_, out := h.run("status", "-o", "json")
		var st ring.Status
		require.NoError(t, json.Unmarshal([]byte(out), &st), out)
		for _, src := range st.Sources {
			for _, a := range src.Apps {
				for _, s := range a.Services {
					if s.Tag != nil && s.Tag.Asked.After(asked) {
						return true
					}
				}
			}
		}
		return false
	})
	require.Equal(t, good, h.one("web").ID, "the same bad image is not tried again")
}
