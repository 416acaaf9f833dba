package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestFakePutsBack(t *testing.T) { putsBack(t, fakeRig) }

func TestEnginePutsBack(t *testing.T) {
	engineOrSkip(t)
	putsBack(t, realRig)
}

// putsBack has hands of others change an instance, sees what they did in a look,
// and has the step that undoes it do so, twice.
func putsBack(t *testing.T, start func(*testing.T) *rig) {
	r := start(t)
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Resources = &ring.Resources{Memory: 64 << 20, CPUShares: 512}
	})
	r.AddNetwork(t, &a, "default")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	require.Equal(t, int64(64<<20), in.Limits.Memory)
	require.Equal(t, int64(512), in.Limits.CPUShares)
	e, err := r.ready(t.Context())
	require.NoError(t, err)
	step := func(k ring.ActionKind) {
		x := enginetest.ActionOn(k, in)
		x.Of, x.Want, x.Networks = a.Of, a.Want, a.Networks
		r.Must(t, x)
		r.Must(t, x) // and once more
		r.cache.mark("")
	}
	see := func() ring.Instance { r.cache.mark(""); return r.OnlyInstance(t) }

	require.NoError(t, e.ContainerPause(t.Context(), in.ID))
	require.Equal(t, ring.StatePaused, see().State)
	step(ring.DoUnpause)
	require.Equal(t, ring.StateRunning, see().State)

	_, err = e.ContainerUpdate(t.Context(), in.ID, container.UpdateConfig{Resources: container.Resources{Memory: 32 << 20, MemorySwap: 64 << 20, CPUShares: 100}})
	require.NoError(t, err)
	require.Equal(t, int64(32<<20), see().Limits.Memory)
	step(ring.DoUpdate)
	require.Equal(t, int64(64<<20), see().Limits.Memory)
	require.Equal(t, int64(512), see().Limits.CPUShares)

	network := a.Networks["default"]
	require.Contains(t, see().Addresses, network)
	require.NoError(t, e.NetworkDisconnect(t.Context(), network, in.ID, true))
	require.NotContains(t, see().Addresses, network)
	step(ring.DoConnect)
	require.Contains(t, see().Addresses, network)
	require.Equal(t, in.Started, see().Started, "it went on running through all of it")
}

func TestASignalHasTheNumberThatTheEngineTells(t *testing.T) {
	for name, want := range map[string]int{
		"SIGTERM": 15, "term": 15, "15": 15, "SIGRTMIN+3": 37, "RTMAX-1": 63, "SIGRTMAX": 64, "": 0, "SIGFOO": 0, "FOO+1": 0, "+": 0,
	} {
		require.Equal(t, want, numberOf(name), name)
	}
	require.False(t, signals(0).with(64).has(0))
	require.True(t, signals(0).with(64).has(64))
}

func TestWhoEndedAContainerIsHeardFromTheEvents(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	said := func(action events.Action, attributes map[string]string) events.Message {
		at = at.Add(time.Second)
		return events.Message{Action: action, TimeNano: at.UnixNano(), Actor: events.Actor{ID: "c", Attributes: attributes}}
	}
	start, died := said(events.ActionStart, nil), said(events.ActionDie, map[string]string{"exitCode": "143"})
	signal := func(n string) events.Message { return said(events.ActionKill, map[string]string{"signal": n}) }
	for _, c := range []struct {
		name string
		all  []events.Message
		hand string
	}{
		{"docker stop", []events.Message{start, signal("15"), died, said(events.ActionStop, nil)}, "stopped"},
		{"a stop signal of its own, before the event of the stop", []events.Message{start, signal("28"), died}, "stopped"},
		{"docker stop, before its own event", []events.Message{start, signal("15"), died}, "stopped"},
		{"docker stop of what does not hear it", []events.Message{start, signal("15"), signal("9"), died}, "stopped"},
		{"docker kill", []events.Message{start, signal("9"), died}, "killed"},
		{"docker kill of what was told to reload", []events.Message{start, signal("1"), signal("9"), died}, "killed"},
		{"a stop signal of its own", []events.Message{start, signal("12"), died, said(events.ActionStop, nil)}, "stopped"},
		{"an end of its own", []events.Message{start, died}, ""},
		{"an end of its own, after a signal to reload", []events.Message{start, signal("10"), died}, ""},
		{"killed, started and ended by itself", []events.Message{start, signal("9"), died, start, died}, ""},
		{"nobody heard", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d deaths
			for _, m := range c.all {
				d.hear(m)
			}
			in := ring.Instance{ID: "c", State: ring.StateExited}
			d.tell(&in, "SIGWINCH")
			require.Equal(t, c.hand, in.Hand)
			in = ring.Instance{ID: "c", State: ring.StateRunning}
			d.tell(&in, "SIGWINCH")
			require.Empty(t, in.Hand, "it runs")
		})
	}
}

func TestFakeTellsWhoWasUnplugged(t *testing.T) { tellsUnplugged(t, fakeRig) }

func TestEngineTellsWhoWasUnplugged(t *testing.T) {
	engineOrSkip(t)
	tellsUnplugged(t, realRig)
}

// tellsUnplugged has somebody take an instance off its network, and hears of it, but
// not where a step of ours is at it.
func tellsUnplugged(t *testing.T, start func(*testing.T) *rig) {
	r := start(t)
	a := r.CreateAction(nil)
	r.AddNetwork(t, &a, "default")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	e, err := r.ready(t.Context())
	require.NoError(t, err)
	named := a.Networks["default"]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Unplugs(ctx) }()
	defer func() { cancel(); require.ErrorIs(t, <-ended, context.Canceled) }()

	for try := range 20 { // it may not listen yet
		require.NoError(t, e.NetworkDisconnect(t.Context(), named, in.ID, true))
		select {
		case id := <-r.Poked:
			require.Equal(t, in.ID, id)
			require.Contains(t, r.cache.snapshot().marks, in.ID)
			release := r.cache.hold(in.ID)
			require.False(t, r.cache.runs(in.ID), "a step of ours is at it")
			release()
			require.True(t, r.cache.runs(in.ID))
			require.False(t, r.cache.runs("somebody else's"))
			return
		case <-time.After(500 * time.Millisecond):
			require.Less(t, try, 19, "the engine told nothing")
		}
		x := enginetest.ActionOn(ring.DoConnect, in)
		x.Of, x.Want, x.Networks = a.Of, a.Want, a.Networks
		r.Must(t, x)
	}
}
