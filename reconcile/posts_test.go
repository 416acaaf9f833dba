package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// What an author reads of a commit, from the first word to the last.
func TestThePostsOfACommitSayWhoWhatAndHowLong(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		h.with(func() { h.takes = func(ring.Action) time.Duration { return 20 * time.Second } })
		src := tree("c1", "web=v1")
		src.Commit.Signer = "alice@example.org"
		offer(t, l, src)
		time.Sleep(30 * time.Second)
		if p := h.told("c1", "gitring/sim"); !strings.HasPrefix(p.Description, "verified by alice; ") || strings.Contains(p.Description, "example") {
			t.Errorf("queued: %q", p.Says())
		}
		await(t, l, ring.SyncSynced, 10*time.Minute)
		for _, context := range []string{"gitring/sim", "gitring/sim/web"} {
			if p := h.told("c1", context); !strings.HasPrefix(p.Description, "healthy 1/1 in 1m") {
				t.Errorf("done: %s says %q", context, p.Says())
			}
		}
	})
}

func TestARefusalIsToldWithItsCodeAndItsSentence(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		src := tree("c1", "web=v1")
		src.Tip = shaOf("c3")
		src.Refusal = &ring.Refusal{Code: ring.Unsigned, Commit: shaOf("c2"), Says: "commit c2 is not signed <img src=x>"}
		offer(t, l, src)
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, commit := range []string{"c2", "c3"} {
			p := h.told(commit, "gitring/sim")
			want := "rejected: Unsigned " + shaOf("c2").Short() + ": commit c2 is not signed  img src x"
			if p.State != ring.PostFailure || p.Description != want {
				t.Errorf("%s says %q", commit, p.Says())
			}
			if p.Code != ring.WhyCommitRefused {
				t.Errorf("%q has the code %q", p.Description, p.Code)
			}
		}
		src.Refusal, src.Commit, src.Tip = nil, &ring.Commit{SHA: shaOf("c3")}, shaOf("c3")
		src.Next = tree("c3", "web=v1").Next
		offer(t, l, src)
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, l, ring.SyncSynced, time.Minute)
		if p := h.told("c3", "gitring/sim"); p.State != ring.PostSuccess {
			t.Errorf("trusted after all, and it says %q", p.Says())
		}
	})
}

func TestAnAppThatTheCommitDoesNotChangeIsNoDeployment(t *testing.T) {
	for _, changed := range []bool{true, false} {
		src := tree("c1", "web=v1")
		src.Deployments = true
		d := &decider{Pass: Pass{World: World{Host: "sim", Facts: ring.NewFacts()}}, own: map[string]bool{}}
		d.Facts.Set(ring.Post{Source: "s", SHA: shaOf("c1"), Context: "gitring/sim/web", State: ring.PostFailure, Description: "web is not well"})
		d.deploymentPost(&src, shaOf("c1"), "web", changed)
		_, made := d.Facts.Posts[ring.PostKey(shaOf("c1"), ring.DeploymentContext("sim", "web"))]
		if made != changed {
			t.Errorf("changed %v, and a deployment is made: %v", changed, made)
		}
	}
}

// A status never goes to a commit that is not on the trusted chain, but for the
// refused tip and the commit at fault.
func TestNoOtherCommitIsEverToldOf(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		for i, c := range []string{"c1", "c2", "c3"} {
			src := tree(c, "web=v"+c)
			src.Deployments = true
			if i == 2 { // the branch went on to commits that nobody signed
				src.Tip, src.Refusal = shaOf("c9"), &ring.Refusal{Code: ring.Unsigned, Commit: shaOf("c7"), Says: "not signed"}
			}
			offer(t, l, src)
			time.Sleep(time.Second) // the older are superseded half way
		}
		time.Sleep(5 * time.Minute)
		known := map[ring.SHA]bool{shaOf("c1"): true, shaOf("c2"): true, shaOf("c3"): true, shaOf("c7"): true, shaOf("c9"): true}
		h.with(func() {
			for _, p := range h.facts.Posts {
				if !known[p.SHA] {
					t.Errorf("told of %s: %q", p.SHA.Short(), p.Says())
				}
				if p.Open() {
					t.Errorf("%s %s is never closed: %q", p.SHA.Short(), p.Context, p.Says())
				}
			}
			if p := h.facts.Posts[ring.PostKey(shaOf("c8"), "gitring/sim")]; p.SHA != "" {
				t.Errorf("between the trusted one and the fault: %q", p.Says())
			}
		})
	})
}
