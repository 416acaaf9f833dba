package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kills is how often the daemon dies in one run of the test.
const kills = 25

// TestADaemonKilledAtAnyMomentConverges pushes good and bad versions and kills the daemon in
// the middle of what it does about them. GITRING_E2E_SEED replays the moments
// as far as the world allows.
func TestADaemonKilledAtAnyMomentConverges(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("GITRING_E2E_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("GITRING_E2E_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	h := newHost(t)
	app := h.app("web")
	const d, settle = 2, 500 * time.Millisecond
	version := func(v int, more ...obj) files {
		// Three contents that alternate: a revert to what still runs is among them.
		name := fmt.Sprint(v % 3)
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": merged(web(name, more...), replicas(d)), "db": db(name, "pg", more...),
		}, obj{"volumes": obj{"pg": obj{}}})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	live := time.Now()

	v := 0
	for range kills {
		mark := h.events.mark()
		switch r.IntN(6) {
		case 0, 1: // the one before goes on
		case 2:
			h.repo.pushed("Never ready", version(v, broken()))
		default:
			v += 1 + r.IntN(2)
			h.repo.pushed(fmt.Sprintf("Version %d", v), version(v))
		}
		// A rollout of both makes some 20 events; where none are left to come,
		// the moment comes by itself.
		h.events.wait(mark, r.IntN(12), 1500*time.Millisecond)
		<-time.After(time.Duration(r.IntN(60)) * time.Millisecond)
		h.kill()
		h.launch()
	}
	v++
	last := h.repo.pushed("The last version", version(v))
	h.synced(last)

	want := fmt.Sprint(v % 3)
	cs := h.containers()
	require.Len(t, cs, d+1, "no duplicate, no orphan")
	for i, c := range cs {
		require.Equal(t, []string{"db 1", "web 1", "web 2"}[i], c.service()+" "+c.slot())
		require.True(t, c.State.Running)
		require.Equal(t, want, c.env("VERSION"))
		require.Empty(t, c.env("BROKEN"))
	}
	nets, err := h.engine.networks("gitring.host=" + h.name)
	require.NoError(t, err)
	require.Equal(t, []string{app + "_default"}, nets)
	onlyOne(t, h.journal(h.one("db")))
	floorHeld(t, h.events.after(0), live, "web", d, d+1, settle)
	code, out := h.run("history", "--limit", "1000")
	require.Equal(t, 0, code, out)
	require.NoError(t, h.stop(), "%s", h.tail(20))

	// The store opens again, and there is nothing left to do.
	mark := h.events.mark()
	h.start()
	h.synced(last)
	_, _ = h.run("sync", "--wait")
	require.Empty(t, h.events.after(mark, "create", "start", "kill", "die", "destroy"))
	require.Equal(t, ids(cs), ids(h.containers()))
}

// floorHeld reads the engine's journal of a service that was live at a time: at
// each stop signal of ours from then on at least floor others had run for settle, and never did more than
// ceiling run at once.
func floorHeld(t *testing.T, events []engineEvent, live time.Time, service string, floor, ceiling int, settle time.Duration) {
	t.Helper()
	up := map[string]time.Time{}   // running instances, since when
	signalled := map[string]bool{} // in their present life
	stopped := 0
	for _, e := range events {
		if e.service() != service {
			continue
		}
		id := e.Actor.ID
		switch e.Action {
		case "start":
			up[id], signalled[id] = e.at(), false
			require.LessOrEqual(t, len(up), ceiling, "too many at %s: %v", e.at(), up)
		case "die":
			delete(up, id)
		case "kill":
			if signalled[id] {
				continue // the kill after the grace is the end of the same stop
			}
			signalled[id] = true
			stopped++
			if e.at().Before(live) {
				continue
			}
			n := 0
			for other, since := range up {
				if other != id && !signalled[other] && !since.Add(settle).After(e.at()) {
					n++
				}
			}
			require.GreaterOrEqual(t, n, floor, "only %d others had run for %s when %s got its stop signal:\n%s", n, settle, e.Actor.Attributes["name"], told(events, e))
		}
	}
	require.Positive(t, stopped, "nothing was stopped: the test shows nothing")
	require.False(t, slices.ContainsFunc(events, func(e engineEvent) bool { return e.Action == "oom" }))
}

// told are the events shortly before one, as people read them.
func told(events []engineEvent, last engineEvent) string {
	var b strings.Builder
	for _, e := range events {
		if e.TimeNano <= last.TimeNano && last.at().Sub(e.at()) < 15*time.Second && !strings.HasPrefix(e.Action, "exec") {
			fmt.Fprintf(&b, "  %s %-8s %s\n", e.at().UTC().Format("15:04:05.000"), e.Action, e.Actor.Attributes["name"])
		}
	}
	return b.String()
}
