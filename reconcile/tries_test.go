package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// stopped is a world in which a service's instances have ended, on a network
// that may be gone.
func stopped(now time.Time, slots int, networks ...ring.SeenNetwork) World {
	s := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: slots, Version: "1:aa", Rollout: ring.DefaultRollout(),
		Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
		Spec:    ring.Spec{Networks: []ring.Attachment{{Network: "default"}}},
	}
	app := ring.App{Name: "shop", Source: "s", Commit: "c1", Services: []ring.Service{s}, Networks: []ring.Network{{Key: "default"}}}
	id := ring.ID("shop", "web")
	w := World{Host: "h", Sources: []Source{{Name: "s", FreshFor: time.Hour, Reached: now}}, Facts: ring.NewFacts(), Recent: NewRecent()}
	for _, f := range []ring.Fact{
		ring.InForce{App: app, Since: now},
		ring.Good{AppName: "shop", App: app, Service: s, Commit: "c1"},
		ring.Verdict{ID: id, Version: s.Version, Good: true, Commit: "c1"},
		ring.RolloutRow{ID: id, Version: s.Version, Commit: "c1", Done: true},
	} {
		w.Facts.Set(f)
	}
	w.Seen = ring.Seen{At: now, Networks: networks}
	for i := range slots {
		w.Seen.Instances = append(w.Seen.Instances, ring.Instance{
			ID: fmt.Sprintf("id%d", i+1), Name: ring.ContainerName("shop", "web", i+1, s.Version), App: "shop", Source: "s", Service: "web",
			Slot: i + 1, Version: s.Version, Kind: ring.Worker, State: ring.StateExited, Policy: "no",
			Started: now.Add(-time.Hour), Finished: now.Add(-time.Minute), Hand: "stopped", // no crash, so there are no last words to read first
		})
	}
	return w
}

func theNetwork() ring.SeenNetwork {
	n := ring.Network{Key: "default"}
	return ring.SeenNetwork{ID: "n", Name: "shop_default", App: "shop", Key: "default", Definition: n.Definition()}
}

// Two slots whose start fails take turns, and neither forgets the other's wait.
func TestSlotsThatFailInTurnsEachKeepTheirWait(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := stopped(begin, 2, theNetwork())
	tried, told := map[int]int{}, 0
	for now := begin; now.Before(begin.Add(time.Minute)); now = now.Add(100 * time.Millisecond) {
		w.Seen.At = now
		d := Diff(w, now)
		for _, f := range d.Facts {
			w.Facts.Set(f)
		}
		for _, a := range d.Actions {
			require.Equal(t, ring.DoStart, a.Kind)
			tried[a.Slot]++
			_, events := Settle(w.Recent, nil, a, ring.Done{}, errors.New("cannot start container "+a.Name), now)
			told += len(events)
		}
	}
	require.Equal(t, map[int]int{1: 6, 2: 6}, tried, "1 s, doubled: at 0, 1, 3, 7, 15 and 31 s")
	require.Equal(t, 2, told, "each failure is told once")
}

func TestASuccessForgetsTheWaitOfItsOwnSlotAndOfOldVersions(t *testing.T) {
	now := time.Now()
	step := func(slot int, v ring.Version) ring.Action {
		return ring.Action{Kind: ring.DoStart, App: "shop", Service: "web", Slot: slot, Version: v, Name: ring.ContainerName("shop", "web", slot, v)}
	}
	r := NewRecent()
	for _, a := range []ring.Action{step(1, "1:old"), step(1, "1:new"), step(2, "1:new")} {
		Settle(r, nil, a, ring.Done{}, errors.New("cannot"), now)
	}
	Settle(r, nil, step(1, "1:new"), ring.Done{}, nil, now)
	require.Len(t, r.Tries, 1)
	require.Contains(t, r.Tries, tryKey(step(2, "1:new")))
}

// Somebody pruned the network while nothing ran: it is made before the first start.
func TestANetworkThatIsGoneIsMadeBeforeAnythingStarts(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kinds := func(d Decision) (out []ring.ActionKind) {
		for _, a := range d.Actions {
			out = append(out, a.Kind)
		}
		return out
	}
	require.Equal(t, []ring.ActionKind{ring.DoNetwork}, kinds(Diff(stopped(now, 2), now)))
	require.Equal(t, []ring.ActionKind{ring.DoStart}, kinds(Diff(stopped(now, 2, theNetwork()), now)))
}
