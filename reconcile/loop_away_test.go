package reconcile

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

func (h *host) told(commit, context string) (p ring.Post) {
	h.with(func() { p = h.facts.Posts[ring.PostKey(shaOf(commit), context)] })
	return p
}

func (h *host) deafen(err error) { h.with(func() { h.deaf = err }) }

func TestTheForgeIsToldThatTheEngineIsAwayAndThenTheOutcome(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		h.deafen(errors.New("connection refused"))
		offer(t, l, tree("c2", "web=v2"))
		time.Sleep(progressEvery - time.Second)
		if p := h.told("c2", "gitring/sim"); p.Phase == ring.PostTrouble {
			t.Error("told of an engine that is only restarted")
		}
		time.Sleep(10 * time.Second)
		p := h.told("c2", "gitring/sim")
		if p.State != ring.PostError || p.Description != "docker unavailable; retrying" {
			t.Errorf("told %q", p.Says())
		}
		before := h.records
		time.Sleep(10 * time.Minute)
		if h.told("c2", "gitring/sim") != p || h.records != before {
			t.Error("told again and again")
		}
		if p := h.told("c1", "gitring/sim"); p.State != ring.PostSuccess {
			t.Errorf("the outcome of an older commit became %q", p.Says())
		}
		h.deafen(nil)
		await(t, l, ring.SyncSynced, time.Minute)
		if p := h.told("c2", "gitring/sim"); p.State != ring.PostSuccess {
			t.Errorf("after all it says %q", p.Says())
		}
	})
}

func TestACommitThatIsDoneStaysDoneWhileTheEngineIsAway(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		h.deafen(errors.New("connection refused"))
		time.Sleep(time.Hour)
		if p := h.told("c1", "gitring/sim"); p.State != ring.PostSuccess {
			t.Errorf("it says %q", p.Says())
		}
	})
}

func TestACommitSupersededWhileTheEngineIsAwayIsClosed(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		h.deafen(errors.New("connection refused"))
		offer(t, l, tree("c1", "web=v1"))
		time.Sleep(time.Minute)
		offer(t, l, tree("c2", "web=v2"))
		h.deafen(nil)
		await(t, l, ring.SyncSynced, time.Minute)
		if p := h.told("c1", "gitring/sim"); p.State != ring.PostError || p.Phase != ring.PostSuperseded {
			t.Errorf("it says %q", p.Says())
		}
	})
}

// The phases: a forge with words for them tells what is queued from what runs.
func TestARolloutIsQueuedThenUnderWayThenDone(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		h.with(func() { h.takes = func(ring.Action) time.Duration { return 20 * time.Second } })
		src := tree("c1", "web=v1")
		src.Deployments = true
		offer(t, l, src)
		want := map[string]string{
			"gitring/sim":                        "pending/ pending/running success/",
			"gitring/sim/web":                    "pending/running success/",
			ring.DeploymentContext("sim", "web"): "pending/running success/",
		}
		got := map[string][]string{}
		for range 10 * 60 {
			time.Sleep(time.Second)
			for context := range want {
				if p := h.told("c1", context); p.SHA != "" && !slices.Contains(got[context], p.State+"/"+p.Phase) {
					got[context] = append(got[context], p.State+"/"+p.Phase)
				}
			}
		}
		for context, w := range want {
			if g := strings.Join(got[context], " "); g != w {
				t.Errorf("%s went %s", context, g)
			}
		}
	})
}

func TestOnlyAppsThatTheCommitChangesAreDeployments(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		for _, c := range [][]string{{"c1", "web=v1", "db=v1"}, {"c2", "web=v2", "db=v1"}} {
			src := tree(c[0], c[1:]...)
			src.Deployments = true
			offer(t, l, src)
			if err := l.Looked(t.Context()); err != nil {
				t.Fatal(err)
			}
			await(t, l, ring.SyncSynced, time.Minute)
		}
		for _, c := range []struct {
			commit, app string
			want        string
		}{{"c1", "web", ring.PostSuccess}, {"c1", "db", ring.PostSuccess}, {"c2", "web", ring.PostSuccess}, {"c2", "db", ""}} {
			if p := h.told(c.commit, ring.DeploymentContext("sim", c.app)); p.State != c.want {
				t.Errorf("%s of %s says %q", c.app, c.commit, p.Says())
			}
		}
		offer(t, l, tree("c3", "web=v3", "db=v1"))
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, l, ring.SyncSynced, time.Minute)
		if p := h.told("c3", ring.DeploymentContext("sim", "web")); p.SHA != "" {
			t.Errorf("nobody asked for deployments, and there is %q", p.Says())
		}
	})
}

// Without quorum no update gets further: the time of a version counts from the first look after it.
func TestASwarmWithoutQuorumCondemnsNobody(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		h.with(func() {
			h.engine.swarm = newSwarmModel()
			h.engine.natures["v2"] = nature{readyAfter: 15 * time.Second}
		})
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, 2*time.Minute)
		offer(t, l, tree("c2", "web=v2"))
		time.Sleep(5 * time.Second)
		h.with(func() { h.engine.swarm.quorum, h.deaf = false, errNoLeader })
		time.Sleep(time.Hour)
		h.with(func() { h.engine.swarm.quorum, h.deaf = true, nil })
		await(t, l, ring.SyncSynced, 2*time.Minute)
		if p := h.told("c2", "gitring/sim"); p.State != ring.PostSuccess {
			t.Errorf("it says %q", p.Says())
		}
	})
}
