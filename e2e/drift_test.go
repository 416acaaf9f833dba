package e2e

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A hand is what somebody does to a container through the engine.
type hand struct {
	service string // whose container it is done to
	says    string // in the journal
	do      func(*host, *container) error
	// kept says that what was done is there still.
	kept func(*container) bool
}

// update is docker update.
func (h *host) update(c *container, what obj) error {
	b, err := json.Marshal(what)
	require.NoError(h.t, err)
	return h.engine.call("POST", "/containers/"+c.ID+"/update", nil, strings.NewReader(string(b)), nil)
}

// hands are those of docs/reference/drift.md that one call makes. The engine tells of
// each in its events.
var hands = []hand{
	{
		"unplugged", "slot 1 was taken off network ",
		func(h *host, c *container) error {
			for name := range c.NetworkSettings.Networks {
				body := strings.NewReader(`{"Container":"` + c.ID + `","Force":true}`)
				if err := h.engine.call("POST", "/networks/"+name+"/disconnect", nil, body, nil); err != nil {
					return err
				}
			}
			return nil
		},
		func(c *container) bool { return c != nil && len(c.NetworkSettings.Networks) == 0 },
	},
	{
		"stopped", "slot 1 was stopped by hand",
		func(h *host, c *container) error { return h.engine.stop(c.ID) },
		func(c *container) bool { return c != nil && !c.State.Running },
	},
	{
		"killed", "slot 1 was killed by hand",
		func(h *host, c *container) error { return h.engine.kill(c.ID) },
		func(c *container) bool { return c != nil && !c.State.Running },
	},
	{
		"removed", "the container of slot 1 was removed by hand",
		func(h *host, c *container) error { return h.engine.remove(c.ID) },
		func(c *container) bool { return c == nil },
	},
	{
		"renamed", "slot 1 was renamed to ",
		func(h *host, c *container) error {
			return h.engine.call("POST", "/containers/"+c.ID+"/rename", url.Values{"name": {"mine" + c.Name[1:]}}, nil, nil)
		},
		func(c *container) bool { return c != nil && strings.HasPrefix(c.Name, "/mine") },
	},
	{
		"paused", "slot 1 was paused by hand",
		func(h *host, c *container) error {
			return h.engine.call("POST", "/containers/"+c.ID+"/pause", nil, nil, nil)
		},
		func(c *container) bool { return c != nil && c.State.Status == "paused" },
	},
	{
		"squeezed", "slot 1 has mem_limit 33554432 instead of 67108864",
		func(h *host, c *container) error {
			return h.update(c, obj{"Memory": 32 << 20, "MemorySwap": 64 << 20})
		},
		func(c *container) bool { return c != nil && c.HostConfig.Memory == 32<<20 },
	},
	{
		"policed", "slot 1 was given restart policy unless-stopped by hand",
		func(h *host, c *container) error {
			return h.update(c, obj{"RestartPolicy": obj{"Name": "unless-stopped"}})
		},
		func(c *container) bool { return c != nil && c.HostConfig.RestartPolicy.Name == "unless-stopped" },
	},
}

// journalled is the line of the journal of a kind about a service that says so.
func (h *host) journalled(kind, app, service, says string) (journalLine, bool) {
	h.t.Helper()
	code, out := h.run("events", "-o", "json", "-n", "0", "--app", app)
	require.Equal(h.t, 0, code, out)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var l journalLine
		require.NoError(h.t, json.Unmarshal([]byte(line), &l), line)
		if l.Kind == kind && l.Service == service && strings.Contains(l.Reason, says) {
			return l, true
		}
	}
	return journalLine{}, false
}

type journalLine struct {
	At                    time.Time
	Kind, Service, Reason string
}

// What hands of others do to what runs is seen when the engine tells of it, not at the
// next full look ten seconds later, journalled as drift, and put back; of an app with
// drift: report it is told, and stays.
func TestHandsOfOthersAreJournalledAndPutBackOrTold(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	heals, tells := h.app("heals"), h.app("tells")
	services := obj{}
	for _, by := range hands {
		services[by.service] = web("1", obj{"mem_limit": "64m", "memswap_limit": "128m"})
	}
	first := h.repo.pushed("Two apps alike", files{
		"gitring.yaml":          "version: 1\napps:\n- {name: " + heals + ", path: " + heals + "}\n- {name: " + tells + ", path: " + tells + ", drift: report}\n",
		heals + "/compose.yaml": h.compose(heals, services),
		tells + "/compose.yaml": h.compose(tells, services),
	})
	h.start()
	h.synced(first)
	settled(h)
	of := func(app, service string) *container {
		t.Helper()
		for _, c := range h.containers(service) {
			if c.Config.Labels["gitring.app"] == app {
				return c
			}
		}
		return nil
	}

	// One after the other, so that no look serves two of them.
	var late []time.Duration
	for _, app := range []string{heals, tells} {
		for _, by := range hands {
			c := of(app, by.service)
			require.NotNil(t, c, "%s/%s", app, by.service)
			require.NoError(t, by.do(h, c), by.service)
			done := time.Now()
			h.until(app+"/"+by.service+" is journalled as drift", func() bool {
				l, ok := h.journalled("drift.seen", app, by.service, by.says)
				if ok {
					late = append(late, l.At.Sub(done).Round(time.Millisecond))
				}
				return ok
			})
		}
	}
	t.Logf("journalled so long after the engine's answer: %v", late)
	quiet := late[len(hands):] // nothing is done about those, so nothing else asks for a look
	slices.Sort(quiet)
	require.Less(t, quiet[len(quiet)/2], 5*time.Second, "half of them are later than half of the time between two full looks: nobody listens to the engine")

	for _, by := range hands {
		h.until(by.service+" is in order again, and that is told", func() bool {
			_, ok := h.journalled("drift.healed", heals, by.service, by.says)
			return ok && !by.kept(of(heals, by.service))
		})
		_, crashed := h.journalled("instance.crashed", heals, by.service, "")
		require.False(t, crashed, by.service)
		_, seen := h.journalled("app.contested", heals, by.service, "")
		require.False(t, seen, "%s: one act was counted three times", by.service)
	}

	// A daemon that comes back looks at everything; what is only told stays.
	h.kill()
	h.start()
	st := h.await("it has looked", func(st status) bool {
		return st.service(heals, "removed").Phase == "Ready" && st.app(tells).Health != "Unknown"
	})
	for _, by := range hands {
		_, healed := h.journalled("drift.healed", tells, by.service, "")
		require.False(t, healed, by.service)
		require.True(t, by.kept(of(tells, by.service)), by.service)
		require.True(t, slices.ContainsFunc(st.service(tells, by.service).Conditions, func(c struct{ Type, Reason string }) bool {
			return c.Type == "Drifted" && strings.Contains(c.Reason, by.says)
		}), "%s: %+v", by.service, st.service(tells, by.service))
	}
}
