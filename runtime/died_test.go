package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestTheExitThatTheEngineRestartedAfterIsKnown(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := newRig(t)
	o := r.options()
	o.Now = func() time.Time { return now }
	f := newFake(o)
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	<-r.Poked // it listens

	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	a := enginetest.ActionOn(ring.DoPolicy, in)
	a.Policy = "always"
	r.Must(t, a)
	r.OnlyInstance(t)
	for n, c := range []struct {
		exit int
		oom  bool
	}{{3, false}, {137, true}, {4, false}} {
		now = now.Add(time.Minute)
		f.Exit(in.ID, c.exit, c.oom)
		s := r.WaitFor(t, "the engine's restart, and what events tell of it", func(s ring.Seen) bool {
			return s.Instances[0].Restarts == n+1 && s.Instances[0].ExitCode == c.exit
		})
		got := s.Instances[0]
		require.Equal(t, ring.StateRunning, got.State)
		require.Equal(t, c.oom, got.OOM)
		require.Equal(t, time.Minute, got.RanBefore)
		r.cache.mark("")
		require.Equal(t, time.Minute, r.OnlyInstance(t).RanBefore, "another look says the same")
	}
}

func TestAnEngineThatIsAboutToEndIsNotBelieved(t *testing.T) {
	r := fakeRig(t)
	f := &fake{Docker: r.Docker}
	a := r.CreateAction(nil)
	r.Must(t, a)
	in := r.OnlyInstance(t)
	working := r.connect
	dialled := 0
	r.connect = func() (engine, error) {
		dialled++
		return nil, errors.New("dial unix: connection refused")
	}
	r.Seen(t)
	require.Zero(t, dialled, "nothing ended, so nobody asks")

	r.Exit(t, in.ID, 0)
	r.cache.mark("")
	for range 3 {
		_, err := f.Look(t.Context())
		require.ErrorContains(t, err, "it takes no new connection, so it is about to end")
	}
	r.connect = working
	s := r.Seen(t)
	require.True(t, s.Instances[0].Ended(), "one that takes connections is believed")
	r.connect = func() (engine, error) { dialled = 100; return working() }
	r.Seen(t)
	require.Less(t, dialled, 100, "and asked once")
}
