package e2e

import (
	"encoding/json"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// inSteps is a service whose versions come as canaries. Each step waits for a person, so that
// nothing but the test's requests and the judge decide how long it lasts. What is slow is judged
// by nobody: a busy machine is.
func inSteps(version, port string, weights []int, more ...obj) obj {
	var steps []any
	for _, w := range weights {
		steps = append(steps, obj{"weight": w, "promote": "manual"})
	}
	knobs := rollout(obj{
		"strategy": "canary", "steps": steps,
		"judge": obj{"interval": "1s", "min_requests": 20, "failures": 3, "max_p99": "10000%"},
	})
	return fronted(version, port, append([]obj{replicas(2), knobs}, more...)...)
}

// sharing is what the front of a service does with a canary.
type sharing struct {
	Canary    *struct{ Weight int }
	Instances []struct{ State, Set string }
}

// table is the table that the front of a service acknowledged last; the zero value while nobody tells.
func (h *host) table(app, service string) (now sharing) {
	h.t.Helper()
	_, out := h.run("traffic", app+"/"+service, "-o", "json")
	var all []sharing
	if json.Unmarshal([]byte(out), &all) != nil || len(all) != 1 {
		return sharing{}
	}
	return all[0]
}

// answers is how many requests each version answered so far. What was asked before the call
// is among them: each client ends what it is at.
func (r *requests) answers(h *host) map[string]int {
	h.t.Helper()
	r.more(h, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

func TestAGoodCanaryGetsItsShareInEachStepAndLosesNoRequest(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port, weights := h.app("web"), h.freePort(), []int{25, 75}
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": inSteps(v, port, weights)})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first) // a first deploy has no steps
	h.serves(port, "1")
	old := h.containers("web")
	load := ask(port)
	load.more(h, 5)
	second := h.repo.pushed("Version 2", version("2"))
	_, _ = h.run("sync")
	for _, weight := range weights {
		h.until("the front gives the canary its share", func() bool {
			now := h.table(app, "web").Canary
			return now != nil && now.Weight == weight
		})
		before := load.answers(h)
		load.more(h, 75)
		after := load.answers(h)
		stable, canary := after["1"]-before["1"], after["2"]-before["2"]
		all, p := float64(stable+canary), float64(weight)/100
		// Six standard deviations of a lottery: a front that takes turns stays far within.
		require.InDelta(t, all*p, canary, 6*math.Sqrt(all*p*(1-p)), "%d of %.0f at %d %%", canary, all, weight)
		require.Subset(t, ids(h.containers("web")), ids(old), "no old instance goes before the last step has passed")
		h.until("a person promotes the step", func() bool {
			code, _ := h.run("rollout", "promote", app+"/web", "--reason", "a test")
			return code == 0
		})
	}
	h.synced(second)
	h.serves(port, "2")
	before := load.answers(h)
	load.more(h, 20)
	require.Equal(t, before["1"], load.answers(h)["1"], "the old version gets no more")
	all, lost := load.stop(t)
	require.Empty(t, lost, "of %d requests", all)
	require.Len(t, h.containers("web"), 2)
}

func TestABadCanaryIsTakenBackAndGetsNoMoreRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port, weights := h.app("web"), h.freePort(), []int{50}
	version := func(v string, more ...obj) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": inSteps(v, port, weights, more...)})}
	}
	h.begin(port, version("1"))
	old := identities(h.containers("web"))
	load := ask(port)
	load.more(h, 5)
	h.repo.pushed("Version 2", version("2", env("ERRORS", "60")))
	_, _ = h.run("sync")
	st := h.await("the old version is kept", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Restored"
	})
	require.Regexp(t, `canary at 50 %: \d+\.\d % of \d+ answers failed, 0\.0 % of \d+ of the stable version`, st.service(app, "web").Rollout.Reason)
	h.until("the front has acknowledged that the canary is out", func() bool {
		now := h.table(app, "web")
		for _, in := range now.Instances {
			if in.Set == "canary" && in.State == "active" {
				return false
			}
		}
		return len(now.Instances) > 0 && now.Canary == nil
	})
	before := load.answers(h)
	require.Positive(t, before["2"], "it shows nothing")
	load.more(h, 50)
	require.Equal(t, before["2"], load.answers(h)["2"])
	h.until("the canary is gone", func() bool { return len(h.containers("web")) == len(old) })
	require.Equal(t, old, identities(h.containers("web")), "what served before was never touched")
	h.serves(port, "1")
	load.more(h, 5)
	_, lost := load.stop(t)
	require.NotEmpty(t, lost)
	for _, why := range lost {
		require.Contains(t, why, ": 500 Internal Server Error: ", "the canary's own errors alone")
	}
}
