package checkout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestWhatFailedAndWasWellLaterCanBeGoneBackTo(t *testing.T) {
	event := func(kind, app, service string) ring.Event {
		return ring.Event{Kind: kind, Commit: "c1", App: app, Service: service}
	}
	for _, tt := range []struct {
		name string
		all  []ring.Event // the newest first
		want string
	}{
		{"nothing is known", nil, ""},
		{"it was rolled out", []ring.Event{event(ring.RolloutCompleted, "web", "web"), event(ring.AppInForce, "web", "")}, "good"},
		{"it was restored", []ring.Event{event(ring.RolloutRestored, "web", "web"), event(ring.RolloutFailed, "web", "web"), event(ring.AppInForce, "web", "")}, "failed"},
		{"refused until a person adopted it", []ring.Event{event(ring.RolloutCompleted, "web", "web"), event(ring.AppInForce, "web", ""), event(ring.AppRefused, "web", "")}, "good"},
		{"refused until then, and not rolled out yet", []ring.Event{event(ring.AppInForce, "web", ""), event(ring.AppRefused, "web", "")}, ""},
		{"a person tried again", []ring.Event{event(ring.RolloutCompleted, "web", "web"), event(ring.RolloutFailed, "web", "web")}, "good"},
		{"one service failed and then another was well", []ring.Event{event(ring.RolloutCompleted, "web", "b"), event(ring.RolloutRestored, "web", "a")}, "failed"},
		{"one service was well and then another failed", []ring.Event{event(ring.RolloutRestored, "web", "a"), event(ring.RolloutCompleted, "web", "b")}, "failed"},
		{"one app is refused and another is not", []ring.Event{event(ring.RolloutCompleted, "web", "web"), event(ring.AppInForce, "web", ""), event(ring.AppRefused, "shop", "")}, "failed"},
		{"the commit is refused", []ring.Event{event(ring.CommitRefused, "", "")}, "failed"},
		{"and answered for later", []ring.Event{event(ring.CommitAccepted, "", ""), event(ring.CommitRefused, "", "")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, verdictsOf(tt.all)["c1"])
		})
	}
}
