package runtime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// at is a clock that the test moves.
type at struct{ t time.Time }

func (a *at) now() time.Time { return a.t }

func newAt() *at { return &at{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// timed is a faked rig whose clock the test moves, with n instances.
func timed(t *testing.T, n int) (*rig, *fake, *at) {
	r, clock := newRig(t), newAt()
	o := r.options()
	o.Now = clock.now
	f := newFake(o)
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage})
	for i := range n {
		a := r.CreateAction(nil)
		a.Slot = i + 1
		r.Must(t, a)
	}
	r.Seen(t)
	return r, f, clock
}

func failing(op string, err error) func(string, int) (error, error) {
	return func(o string, _ int) (error, error) {
		if o == op {
			return err, nil
		}
		return nil, nil
	}
}

func TestLookFailsWhole(t *testing.T) {
	broken := errors.New("the engine stumbled")
	for _, op := range []string{"ContainerList", "NetworkList", "ContainerInspect"} {
		t.Run("an error of "+op+" is no empty host", func(t *testing.T) {
			r, f, _ := timed(t, 3)
			r.cache.mark("")
			f.Fail(failing(op, broken))
			s, err := r.Look(t.Context())
			require.ErrorIs(t, err, broken)
			require.Empty(t, s)
			f.Fail(nil)
			require.Len(t, r.Seen(t).Instances, 3)
		})
	}
	t.Run("a container that went between list and inspect is left out", func(t *testing.T) {
		r, f, _ := timed(t, 3)
		r.cache.mark("")
		f.Fail(func(op string, n int) (error, error) {
			if op == "ContainerInspect" && n%3 == 0 {
				return fmt.Errorf("no such container: %w", cerrdefs.ErrNotFound), nil
			}
			return nil, nil
		})
		require.Len(t, r.Seen(t).Instances, 2)
	})
	t.Run("an engine that is away is no empty host", func(t *testing.T) {
		r, f, _ := timed(t, 3)
		f.Down(true)
		_, err := r.Look(t.Context())
		var e *ring.EngineError
		require.ErrorAs(t, err, &e)
		require.Empty(t, e.Cause)
		require.False(t, e.Permanent)
		f.Down(false)
		require.Len(t, r.Seen(t).Instances, 3)
	})
}

// inspects is how many inspects a look makes.
func inspects(t *testing.T, r *rig, f *fake) int {
	before := f.Ops()["ContainerInspect"]
	r.Seen(t)
	return f.Ops()["ContainerInspect"] - before
}

func TestLookInspectsOnlyWhatChanged(t *testing.T) {
	r, f, clock := timed(t, 5)
	require.Equal(t, 0, inspects(t, r, f))
	s := r.Seen(t)

	clock.t = clock.t.Add(3 * time.Minute)
	require.Equal(t, 0, inspects(t, r, f), "an uptime is no change")

	r.cache.mark(s.Instances[2].ID)
	require.Equal(t, 1, inspects(t, r, f), "named by an event")

	f.Exit(s.Instances[1].ID, 3, true)
	require.Equal(t, 1, inspects(t, r, f), "its row changed")
	in := r.Seen(t).Instances[1]
	require.Equal(t, 3, in.ExitCode)
	require.True(t, in.OOM)

	f.SetHealth(s.Instances[0].ID, "unhealthy")
	require.Equal(t, 1, inspects(t, r, f), "its health is in its row")

	f.TakeAway(s.Instances[4].ID)
	require.Equal(t, 0, inspects(t, r, f))
	require.Len(t, r.Seen(t).Instances, 4)
}

// A rename of ours costs one call: what it makes of a container is known. One of others is
// seen all the same, before it and after it.
func TestARenameOfOursIsNotAskedAbout(t *testing.T) {
	r, f, _ := timed(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	require.Eventually(t, func() bool { return inspects(t, r, f) == 2 }, time.Minute, time.Millisecond, "the stream stands")
	in := r.Seen(t).Instances[0]
	named := func(name string) ring.Action {
		a := enginetest.ActionOn(ring.DoRename, in)
		a.NewName = name
		return a
	}
	before := f.Ops()
	r.Must(t, named("shop-web-1"))
	require.Equal(t, 1, f.Ops()["ContainerRename"]-before["ContainerRename"])
	require.Zero(t, f.Ops()["ContainerInspect"]-before["ContainerInspect"])
	nameOf := func() string {
		for _, x := range r.Seen(t).Instances {
			if x.ID == in.ID {
				return x.Name
			}
		}
		return ""
	}
	require.Equal(t, "shop-web-1", nameOf())
	require.Zero(t, f.Ops()["ContainerInspect"]-before["ContainerInspect"], "the look knows it")

	require.NoError(t, f.Client().ContainerRename(t.Context(), in.ID, "by-hand"))
	require.Equal(t, "by-hand", nameOf())
	require.Equal(t, 1, f.Ops()["ContainerInspect"]-before["ContainerInspect"])
	r.Must(t, named("shop-web-1"))
	require.Equal(t, "shop-web-1", nameOf())
	done := r.Must(t, named("shop-web-1"))
	require.Equal(t, "has that name already", done.Note)

	// A name that is taken, and an engine that renamed and did not say so.
	_, err := r.Do(t.Context(), named(r.Seen(t).Instances[1].Name))
	require.ErrorContains(t, err, "is held by")
	require.Equal(t, "shop-web-1", nameOf())
	f.Fail(func(op string, _ int) (error, error) {
		if op == "ContainerRename" {
			return nil, errors.New("timeout")
		}
		return nil, nil
	})
	_, err = r.Do(t.Context(), named("shop-web-9"))
	require.ErrorContains(t, err, "timeout")
	f.Fail(nil)
	require.Equal(t, "shop-web-9", nameOf())
}

func TestLookSeesEngineRestartWithoutEvents(t *testing.T) {
	r, f, clock := timed(t, 2)
	in := r.Seen(t).Instances[0]
	p := enginetest.ActionOn(ring.DoPolicy, in)
	p.Policy = "always"
	r.Must(t, p)
	r.Seen(t)
	clock.t = clock.t.Add(20 * time.Second)
	r.Seen(t)
	clock.t = clock.t.Add(time.Second)
	f.Exit(in.ID, 1, false) // and the engine starts it again
	clock.t = clock.t.Add(9 * time.Second)
	require.Equal(t, 1, r.Seen(t).Instances[0].Restarts, "the row is the same, only the uptime went back")
}

func TestLookRefreshesSpread(t *testing.T) {
	r, f, clock := timed(t, 3)
	r.Seen(t)
	clock.t = clock.t.Add(refreshAfter - time.Second)
	require.Equal(t, 0, inspects(t, r, f))
	clock.t = clock.t.Add(time.Second)
	for range 3 {
		require.Equal(t, 1, inspects(t, r, f))
	}
	require.Equal(t, 0, inspects(t, r, f))
}

func TestDueIsOneInAHundred(t *testing.T) {
	now := newAt().t
	for _, n := range []int{1, 100, 101, 1000} {
		before := map[string]known{}
		var list []container.Summary
		for i := range n {
			id := fmt.Sprintf("%064d", i)
			list = append(list, container.Summary{ID: id})
			before[id] = known{asked: now.Add(-refreshAfter - time.Duration(i)*time.Second)}
		}
		ask := due(list, snapshot{known: before}, now)
		require.Len(t, ask, (n+99)/100)
		require.True(t, ask[fmt.Sprintf("%064d", n-1)], "the oldest first")
	}
}

func TestMarkDuringLookStays(t *testing.T) {
	r, f, _ := timed(t, 1)
	id := r.Seen(t).Instances[0].ID
	r.cache.mark(id)
	f.Fail(func(op string, _ int) (error, error) {
		if op == "ContainerInspect" {
			r.cache.mark(id) // an event while the answer is on its way
		}
		return nil, nil
	})
	require.Equal(t, 1, inspects(t, r, f))
	f.Fail(nil)
	require.Equal(t, 1, inspects(t, r, f), "the answer may be older than the event")
	require.Equal(t, 0, inspects(t, r, f))
}

// The engine locks a container while it starts or removes it; a look that waits
// for that waits for the slowest step of a host.
func TestLookWaitsForNoStep(t *testing.T) {
	r, f, _ := timed(t, 1)
	during := func(op string, look func(s ring.Seen)) {
		f.Fail(func(o string, _ int) (error, error) {
			if o != op {
				return nil, nil
			}
			f.Fail(nil)
			r.cache.mark("") // whatever events there were
			before := f.Ops()["ContainerInspect"]
			s := r.Seen(t)
			require.Equal(t, before+1, f.Ops()["ContainerInspect"], "of the other instance only")
			look(s)
			return nil, nil
		})
	}
	a := r.CreateAction(nil)
	a.Slot = 2
	during("ContainerStart", func(s ring.Seen) {
		require.Len(t, s.Instances, 2)
		in := s.Instances[1]
		require.Equal(t, ring.StateCreated, in.State)
		require.Equal(t, 2, in.Slot)
		require.Equal(t, a.Want.Version, in.Version)
		require.Equal(t, r.Image, in.Image)
		require.NotEmpty(t, in.Name)
		require.Contains(t, in.Addresses, s.Networks[len(s.Networks)-1].Name)
	})
	r.Must(t, a)
	require.Equal(t, 1, inspects(t, r, f), "the step has ended")
	in := r.Seen(t).Instances[1]
	require.Equal(t, ring.StateRunning, in.State)

	during("ContainerRemove", func(s ring.Seen) {
		require.Equal(t, ring.StateRunning, s.Instances[1].State, "as it was before")
	})
	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))
	require.Len(t, r.Seen(t).Instances, 1)
}

func TestUptime(t *testing.T) {
	for status, want := range map[string][2]time.Duration{
		"Up Less than a second":            {0, time.Second},
		"Up 1 second":                      {time.Second, 2 * time.Second},
		"Up 59 seconds (health: starting)": {59 * time.Second, time.Minute},
		"Up About a minute (healthy)":      {time.Minute, 2 * time.Minute},
		"Up 3 minutes":                     {3 * time.Minute, 4 * time.Minute},
		"Up About an hour":                 {time.Hour, 2 * time.Hour},
		"Up 5 weeks (Paused)":              {35 * 24 * time.Hour, 42 * 24 * time.Hour},
	} {
		least, most, ok := uptime(status)
		require.True(t, ok, status)
		require.Equal(t, want, [2]time.Duration{least, most}, status)
	}
	for _, status := range []string{"", "Created", "Exited (0) 3 minutes ago", "Restarting (1) 2 seconds ago", "Up", "Up 99999999999999999999 hours", "Dead"} {
		_, _, ok := uptime(status)
		require.False(t, ok, status)
	}
}

// A process that was not restarted is never taken for one that was, at any age
// and however the engine rounds.
func TestSteadyIsNeverRestarted(t *testing.T) {
	clock := newAt()
	f := newFake(Options{Now: clock.now})
	id := f.AddForeign("x", nil)
	c, err := f.Inspect(t.Context(), id)
	require.NoError(t, err)
	var up time.Time
	for age := time.Duration(0); age < 3*365*24*time.Hour; age += age/50 + 700*time.Millisecond {
		now := moment(c.State.StartedAt).Add(age)
		clock.t = now
		list, err := f.Client().ContainerList(t.Context(), container.ListOptions{})
		require.NoError(t, err)
		status := list[0].Status
		require.False(t, restarted(status, up, now), "%s at %s", status, age)
		up = upSince(status, up, now)
	}
}

func TestRowIgnoresUptimeOnly(t *testing.T) {
	row := func(status string) row {
		return rowOf(container.Summary{State: "running", Names: []string{"/b", "/a"}, Status: status})
	}
	require.Equal(t, row("Up 3 seconds (healthy)"), row("Up 4 hours (healthy)"))
	require.NotEqual(t, row("Up 3 seconds (healthy)"), row("Up 3 seconds (unhealthy)"))
	require.NotEqual(t, row("Exited (0) 3 seconds ago"), row("Exited (1) 3 seconds ago"))
	require.NotEqual(t, row("Up 3 seconds"), row("Up 3 seconds (Paused)"))
	require.Equal(t, rowOf(container.Summary{Names: []string{"/a", "/b"}}), rowOf(container.Summary{Names: []string{"/b", "/a"}}))
}

func TestInstanceOfAlmostNothing(t *testing.T) {
	for _, c := range []container.InspectResponse{
		{},
		{ContainerJSONBase: &container.ContainerJSONBase{ID: "ab"}},
		{ContainerJSONBase: &container.ContainerJSONBase{State: &container.State{StartedAt: "soon", FinishedAt: "0001-01-01T00:00:00Z"}}, Config: &container.Config{Labels: map[string]string{"gitring.slot": "x"}}},
	} {
		in := instance(c)
		require.Zero(t, in.Started)
		require.Zero(t, in.Finished)
		require.Zero(t, in.Slot)
		require.Equal(t, "no", in.Policy)
	}
	require.Equal(t, "ab", short("ab"))
}
