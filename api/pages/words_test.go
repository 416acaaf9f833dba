package pages

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
)

// One word for one state: a page says of each service, and of each source, what the terminal
// says.
func TestPagesHaveTheWordsOfTheStatus(t *testing.T) {
	f := rich()
	f.status.Sources[1].Conditions = []ring.Condition{{Type: ring.ConditionStale, Status: ring.ConditionTrue, Reason: "not reached for 3 h"}}
	web := func(name string, phase ring.Phase, of ring.ServiceStatus) ring.ServiceStatus {
		of.Name, of.Phase, of.Kind, of.Wanted, of.Ready, of.Reason = name, phase, ring.Worker, 1, 1, "r"
		return of
	}
	is := func(kind string) []ring.Condition {
		return []ring.Condition{{Type: kind, Status: ring.ConditionTrue, Reason: "r"}}
	}
	f.status.Sources[1].Apps = append(f.status.Sources[1].Apps, ring.AppStatus{Name: "zoo", Health: ring.Degraded, Services: []ring.ServiceStatus{
		web("quarantined", ring.PhaseReady, ring.ServiceStatus{Conditions: is(ring.ConditionQuarantined)}),
		web("contested", ring.PhaseReady, ring.ServiceStatus{Conditions: is(ring.ConditionContested)}),
		web("loops", ring.PhaseDegraded, ring.ServiceStatus{Conditions: is(ring.ConditionCrashLooping)}),
		web("failed", ring.PhaseFailed, ring.ServiceStatus{Conditions: is(ring.ConditionQuarantined)}),
		web("back", ring.PhaseReady, ring.ServiceStatus{Rollout: &ring.RolloutStatus{Phase: ring.RolloutIsRestored}}),
		web("watched", ring.PhaseReady, ring.ServiceStatus{Rollout: &ring.RolloutStatus{Phase: ring.RolloutProgressing}}),
		web("paused", ring.PhaseHeld, ring.ServiceStatus{Code: ring.WhyPausedByPerson}),
		web("waves", ring.PhaseHeld, ring.ServiceStatus{Code: ring.WhyWaveWaiting}),
		web("broken", ring.PhaseHeld, ring.ServiceStatus{Code: ring.WhyRolloutFailed}),
	}})
	s := screen.New(false, 0)
	show.Status(s, &f.status, show.View{Now: noon})
	terminal := s.String()

	page := get(t, f.handler(everything), "/").Body.String()
	line := regexp.MustCompile(`<div class="line"><span class="mark [a-z]+"><i [^>]*></i>([^<]+)</span> <a class="name" href="/svc/([^"/]+)/([^"]+)">`)
	n := 0
	for _, m := range line.FindAllStringSubmatch(page, -1) {
		n++
		require.Regexp(t, `(?m)^ +`+m[2]+`/`+m[3]+` .* `+m[1]+`( |$)`, terminal, "of %s/%s the page says %s", m[2], m[3], m[1])
	}
	require.Greater(t, n, 14)
	source := regexp.MustCompile(`<h2><span class="mark [a-z]+"><i [^>]*></i>([^<]+)</span> <span class="name">([^<]+)</span>`)
	sources := source.FindAllStringSubmatch(page, -1)
	require.Len(t, sources, 2)
	for _, m := range sources {
		require.True(t, strings.Contains(terminal, m[2]+"  "+m[1]+"  "), "%s: the page says %s", m[2], m[1])
	}
}
