package upgrade

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestADaemonThatWasWellMayBeUnwellForABoundedTime(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	held := terms{to: "0.2.0", startWithin: 2 * time.Minute, probation: 10 * time.Minute, knows: func(ring.TrialStep) bool { return true }}
	engine := func(says string) seen {
		return seen{unit: Unit{PID: 7}, st: &ring.Status{Gitring: "0.2.0", Engine: says, Trial: &ring.Trial{Looks: 1}}}
	}
	fine, away := engine(""), engine("away")
	type look struct {
		after time.Duration
		is    seen
		want  string // "" is to be looked at again
	}
	for name, looks := range map[string][]look{
		"never well": {{time.Second, away, ""}, {2 * time.Minute, away, ""}, {2*time.Minute + time.Second, away, "away"}},
		"the engine restarts": {
			{time.Second, fine, ""},
			{5 * time.Minute, away, ""},
			{6 * time.Minute, away, ""},
			{6*time.Minute + time.Second, fine, ""},
			{16 * time.Minute, fine, ""},
			{16*time.Minute + time.Second, fine, "passed"},
		},
		"it stays away": {{time.Second, fine, ""}, {5 * time.Minute, away, ""}, {7 * time.Minute, away, ""}, {7*time.Minute + time.Second, away, "away"}},
		"now and then, for ever": {
			{time.Second, fine, ""}, {9 * time.Minute, away, ""}, {10 * time.Minute, fine, ""}, {12*time.Minute + time.Second, away, "away"},
		},
	} {
		w := watched{began: began}
		for _, l := range looks {
			err := w.judge(held, l.is, began.Add(l.after))
			if l.want == "" {
				require.NoError(t, err, "%s, after %s", name, l.after)
			} else {
				require.ErrorContains(t, err, l.want, "%s, after %s", name, l.after)
			}
		}
	}
}
