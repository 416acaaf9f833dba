package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeaveSaysWhetherAnythingRunsOn(t *testing.T) {
	for story, says := range map[string]string{
		"service web\ncommit c1 web=v1\nrest":                                  "web is Compose's again: it runs on as it is, and gitring keeps its hands off until gitring adopt web",
		"service web job\nversion v1 exits 0 after 1s\ncommit c1 web=v1\nrest": "web is Compose's again: nothing of it runs, and gitring keeps its hands off until gitring adopt web",
	} {
		s := newStory()
		require.NoError(t, play(s, story, 0))
		done, err := Carry(s.world(), Act{Verb: Leave, App: "web", Actor: "alice", Reason: "r", To: s.disk.Apps["web"].App.Commit}, s.clock())
		require.NoError(t, err)
		require.Contains(t, done.Says, says)
	}
}
