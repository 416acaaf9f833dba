package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// sharing is a pass in which two sources follow one commit of one repository.
func sharing(at time.Time, facts ring.Facts) (*decider, *Source, *Source) {
	t := newDecider(World{Host: "sim", Facts: facts, Sources: []Source{
		{Name: "a", Next: &ring.Plan{Source: "a", Commit: shaOf("c1")}},
		{Name: "b", Next: &ring.Plan{Source: "b", Commit: shaOf("c1")}},
	}}, at)
	return t, &t.Sources[0], &t.Sources[1]
}

// One commit has one status of a host: what two sources make of it is told together,
// and no success of one hides that the other is not done, or failed.
func TestTwoSourcesOfOneCommitAreToldTogether(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	key := ring.PostKey(shaOf("c1"), "gitring/sim")
	for _, tc := range []struct {
		name        string
		a, b        string
		state, says string
	}{
		{"one is done", ring.PostSuccess, ring.PostPending, ring.PostPending, "b: pending"},
		{"the other is done", ring.PostRunning, ring.PostSuccess, ring.PostPending, "a: running"},
		{"one failed", ring.PostFailure, ring.PostSuccess, ring.PostFailure, "a: failure"},
		{"the other failed", ring.PostSuccess, ring.PostFailure, ring.PostFailure, "b: failure"},
		{"one failed, the other is under way", ring.PostRunning, ring.PostFailure, ring.PostFailure, "b: failure"},
		{"both failed", ring.PostFailure, ring.PostFailure, ring.PostFailure, "a: failure; b: failure"},
		{"both are done", ring.PostSuccess, ring.PostSuccess, ring.PostSuccess, "a: success; b: success"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, a, b := sharing(at, ring.NewFacts())
			d.summarizeCommit(a, shaOf("c1"), tc.a, ring.Reason{Says: tc.a})
			d.summarizeCommit(b, shaOf("c1"), tc.b, ring.Reason{Says: tc.b})
			d.tellTogether()
			p := d.Facts.Posts[key]
			if p.State != tc.state || p.Description != tc.says {
				t.Errorf("it says %q", p.Says())
			}
		})
	}
}

// Where one of two says nothing to a forge, the other's word is the commit's.
func TestASourceThatTellsNobodyHasNoWordInASummary(t *testing.T) {
	d, a, b := sharing(time.Unix(0, 0), ring.NewFacts())
	a.Silent = true
	d.summarizeCommit(a, shaOf("c1"), ring.PostFailure, ring.Reason{Says: "no"})
	d.summarizeCommit(b, shaOf("c1"), ring.PostSuccess, ring.Reason{Says: "healthy 1/1"})
	d.tellTogether()
	if p := d.Facts.Posts[ring.PostKey(shaOf("c1"), "gitring/sim")]; p.Source != "b" || p.Description != "healthy 1/1" {
		t.Errorf("%s says %q", p.Source, p.Says())
	}
}

// The one that goes on does not close what the other still carries out.
func TestASourceThatGoesOnLeavesTheSummaryToTheOther(t *testing.T) {
	d, a, b := sharing(time.Unix(0, 0), ring.NewFacts())
	for _, s := range []*Source{a, b} {
		d.summarizeCommit(s, shaOf("c1"), ring.PostPending, ring.Reason{Says: "0/1 ready"})
	}
	d.tellTogether()
	a.Next = &ring.Plan{Source: "a", Commit: shaOf("c2")}
	d.supersedePosts(a)
	d.supersedePosts(b)
	key := ring.PostKey(shaOf("c1"), "gitring/sim")
	if p := d.Facts.Posts[key]; !p.Open() {
		t.Errorf("it says %q", p.Says())
	}
	d.summarizeCommit(b, shaOf("c1"), ring.PostSuccess, ring.Reason{Says: "healthy 1/1"})
	if p := d.Facts.Posts[key]; p.State != ring.PostSuccess || p.Source != "b" {
		t.Errorf("%s says %q", p.Source, p.Says())
	}
}

func TestWhatWasToldUnderAnotherNameOfTheHostIsClosed(t *testing.T) {
	facts := ring.NewFacts()
	for _, context := range []string{"gitring/old", "gitring/old/web", ring.DeploymentContext("old", "web"), "gitring/sim", "gitring/sim/web", "gitring/sim/old", ring.DeploymentContext("sim", "web")} {
		facts.Set(ring.Post{Source: "a", SHA: shaOf("c1"), Context: context, State: ring.PostPending, Description: "0/1 ready"})
	}
	d, a, _ := sharing(time.Unix(0, 0), facts)
	d.supersedePosts(a)
	for _, p := range d.Facts.Posts {
		if renamed := strings.Contains(p.Context, "old") && !strings.Contains(p.Context, "sim"); p.Open() == renamed {
			t.Errorf("%s says %q", p.Context, p.Says())
		}
	}
}

// The clock was a year ahead, and is put right: what goes on is told all the same.
func TestProgressIsToldWhenTheClockWasSetBack(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d, a, _ := sharing(at, ring.NewFacts())
	d.Facts.Set(ring.Post{Source: "a", SHA: shaOf("c1"), Context: "gitring/sim/web", State: ring.PostPending, Description: "0/2 ready", At: at.AddDate(1, 0, 0)})
	if !d.decidePost(a, shaOf("c1"), "web", ring.PostPending, ring.Reason{Says: "1/2 ready"}) {
		t.Error("it waits for a year")
	}
}

// What was in the way of one of two sources is gone.
func TestARefusalOfOneOfTwoSourcesIsTakenBack(t *testing.T) {
	d, a, b := sharing(time.Unix(0, 0), ring.NewFacts())
	d.summarizeCommit(a, shaOf("c1"), ring.PostFailure, ring.Reason{Code: ring.WhyAppRefused, Says: "app web rejected: ForeignProject: web runs already"})
	d.summarizeCommit(b, shaOf("c1"), ring.PostSuccess, ring.Reason{Says: "healthy 1/1"})
	d.tellTogether()
	d.parts = nil
	for _, s := range []*Source{a, b} {
		d.summarizeCommit(s, shaOf("c1"), ring.PostSuccess, ring.Reason{Says: "healthy 1/1"})
	}
	d.tellTogether()
	if p := d.Facts.Posts[ring.PostKey(shaOf("c1"), "gitring/sim")]; p.State != ring.PostSuccess {
		t.Errorf("it says %q", p.Says())
	}
}
