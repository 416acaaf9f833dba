package show

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

func TestAViolationIsSaidOnceInWords(t *testing.T) {
	const says = "capabilities.add NET_ADMIN: reconfigures the network; its grant ended with 2020-06-30"
	st := &ring.Status{Sources: []ring.SourceStatus{{
		Conditions: []ring.Condition{
			{Type: ring.ConditionPolicyViolated, Status: ring.ConditionTrue, Reason: "web/web: " + says + " (and 1 more); no new instance is made"},
			{Type: ring.ConditionStale, Status: ring.ConditionTrue, Reason: "the remote does not answer"},
		},
		Apps: []ring.AppStatus{{Name: "web", Health: ring.Degraded, Reason: says, Refusal: &ring.Refusal{Code: ring.PolicyDenied, App: "web", Says: says, Hint: "remove it"}}},
	}}}
	s := screen.New(false, 0)
	Status(s, st, View{})
	require.Contains(t, s.String(), "  policy violated: web/web (and 1 more); no new instance is made\n")
	require.Contains(t, s.String(), "  stale: the remote does not answer\n")
	require.Equal(t, 1, strings.Count(s.String(), says), s.String())

	st.Sources[0].Apps[0].Refusal, st.Sources[0].Apps[0].Reason = nil, ""
	s = screen.New(false, 0)
	Status(s, st, View{})
	require.Contains(t, s.String(), "  policy violated: web/web: "+says+" (and 1 more); no new instance is made\n", "nothing else says it")
}

// "Paused" is what a person did, in a plan and in what explains a service too.
func TestARolloutThatStoppedByItselfIsNotPaused(t *testing.T) {
	for _, tt := range []struct {
		code    ring.ReasonCode
		service ring.Phase
		want    string
	}{
		{ring.WhyPausedByPerson, ring.PhaseHeld, "Paused"},
		{ring.WhyRolloutFailed, ring.PhaseFailed, "Stopped"},
		{ring.WhyAwaitingPromote, ring.PhaseHeld, "Awaiting promote"},
		{ring.WhyHostNotReady, ring.PhaseDegraded, "Waiting"},
		{ring.WhyHeldByPerson, ring.PhaseHeld, "Held"},
	} {
		s := screen.New(false, 0)
		Changes(s, &ring.Changes{UnderWay: []ring.Move{{App: "web", Service: "web", Phase: ring.RolloutPaused, Code: tt.code, ServicePhase: tt.service, Reason: "x"}}}, time.Now())
		require.Contains(t, s.String(), "web/web "+tt.want+": x")
		s = screen.New(false, 0)
		Explained(s, &ring.Explained{App: "web", Service: "web", Phase: tt.service, Rollout: &ring.RolloutStatus{Phase: ring.RolloutPaused, Code: tt.code, Reason: "x"}}, time.Now())
		require.Contains(t, s.String(), "rollout: "+tt.want+" ")
	}
}

// Who forgot restart: "no" is told so where the failure is told.
func TestWhatEndedWellIsToldOfJobs(t *testing.T) {
	for reason, told := range map[string]bool{"slot 1 exited with code 0": true, "slot 1 exited with code 1": false, "slot 1 exited with code 10": false} {
		st := &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{Name: "backup", Services: []ring.ServiceStatus{{
			Name: "backup", Kind: ring.Worker, Phase: ring.PhaseFailed, Wanted: 1, Reason: reason,
			Conditions: []ring.Condition{{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue}},
		}}}}}}}
		s := screen.New(false, 0)
		Status(s, st, View{Now: time.Now()})
		require.Equal(t, told, strings.Contains(s.String(), `if it is meant to end, write restart: "no"`), reason)
	}
}

// A host that earlier waves hold has not stopped: it waits, and its row says for whom.
func TestAHostThatWaitsForWavesSaysForWhom(t *testing.T) {
	for code, says := range map[ring.ReasonCode]string{ring.WhyWaveWaiting: "waits for canary-1: pending", ring.WhyWaveFailed: "failed on canary-1: web/web: slot 1 exited with code 3"} {
		st := &ring.Status{Sources: []ring.SourceStatus{{
			Name: "prod", Sync: ring.SyncHeld, Code: code, Reason: says, Next: &ring.Next{Commit: "b2c3d4e5f607", Code: code, Reason: says},
			Apps: []ring.AppStatus{{Name: "web", Health: ring.Healthy, Services: []ring.ServiceStatus{{Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1}}}},
		}}}
		s := screen.New(false, 0)
		s.Table(0, HostColumns, [][]screen.Word{HostRow(st)})
		require.Regexp(t, `(?m)^(Waiting|Held) +1/1 +`+says, s.String())
		require.Equal(t, code == ring.WhyWaveWaiting, strings.Contains(s.String(), "Waiting"))
		require.NotContains(t, s.String(), "Stopped")
	}
}

// What is doubted at a commit is told where it is planned, and for as long as it is in force.
func TestDoubtsOfACommitAreTold(t *testing.T) {
	const doubt = `.gitring/fleet.yaml:4: waves: "edgy-*" names no host of the file, so nobody waits for it`
	s := screen.New(false, 0)
	Changes(s, &ring.Changes{Source: "prod", Doubts: []string{doubt}}, time.Now())
	require.Contains(t, s.String(), "warning: "+doubt)
	s = screen.New(false, 0)
	Status(s, &ring.Status{Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncSynced, Doubts: []string{doubt}}}}, View{})
	require.Contains(t, s.String(), "warning: "+doubt)
}
