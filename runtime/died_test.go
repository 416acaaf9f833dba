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
	r.image = f.AddImage(enginetest.Image{Name: localImage})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	<-r.poked // it listens

	r.must(t, r.service(nil))
	in := r.one(t)
	a := on(ring.DoPolicy, in)
	a.Policy = "always"
	r.must(t, a)
	r.one(t)
	for n, c := range []struct {
		exit int
		oom  bool
	}{{3, false}, {137, true}, {4, false}} {
		now = now.Add(time.Minute)
		f.Exit(in.ID, c.exit, c.oom)
		s := r.eventually(t, "the engine's restart, and what events tell of it", func(s ring.Seen) bool {
			return s.Instances[0].Restarts == n+1 && s.Instances[0].ExitCode == c.exit
		})
		got := s.Instances[0]
		require.Equal(t, ring.StateRunning, got.State)
		require.Equal(t, c.oom, got.OOM)
		require.Equal(t, time.Minute, got.RanBefore)
		r.cache.mark("")
		require.Equal(t, time.Minute, r.one(t).RanBefore, "another look says the same")
	}
}

func TestAnEngineThatIsAboutToEndIsNotBelieved(t *testing.T) {
	r := fakeRig(t)
	f := &fake{Docker: r.Docker}
	a := r.service(nil)
	r.must(t, a)
	in := r.one(t)
	working := r.connect
	dialled := 0
	r.connect = func() (engine, error) {
		dialled++
		return nil, errors.New("dial unix: connection refused")
	}
	r.look(t)
	require.Zero(t, dialled, "nothing ended, so nobody asks")

	r.exit(t, in.ID, 0)
	r.cache.mark("")
	for range 3 {
		_, err := f.Look(t.Context())
		require.ErrorContains(t, err, "it takes no new connection, so it is about to end")
	}
	r.connect = working
	s := r.look(t)
	require.True(t, s.Instances[0].Ended(), "one that takes connections is believed")
	r.connect = func() (engine, error) { dialled = 100; return working() }
	r.look(t)
	require.Less(t, dialled, 100, "and asked once")
}
