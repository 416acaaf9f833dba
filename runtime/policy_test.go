package runtime

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// always is a step that sets the policy of an instance.
func always(in ring.Instance) ring.Action {
	a := enginetest.ActionOn(ring.DoPolicy, in)
	a.Policy = "always"
	return a
}

// spent is what f was asked since before.
func spent(f *fake, before map[string]int) map[string]int {
	out := map[string]int{}
	for op, n := range f.Ops() {
		if n > before[op] {
			out[op] = n - before[op]
		}
	}
	return out
}

func TestARestartPolicyIsSetByOneCall(t *testing.T) {
	r, f, _ := timed(t, 2)
	in := r.Seen(t).Instances[0]
	before := f.Ops()
	r.Must(t, always(in))
	require.Equal(t, map[string]int{"ContainerUpdate": 1}, spent(f, before))
	require.Equal(t, 0, inspects(t, r, f), "what it made is known")
	require.Equal(t, "always", r.Seen(t).Instances[0].Policy)

	failed := enginetest.ActionOn(ring.DoPolicy, in)
	failed.Policy = "on-failure"
	f.Fail(failing("ContainerUpdate", context.DeadlineExceeded))
	_, err := r.Do(t.Context(), failed)
	require.Error(t, err)
	f.Fail(nil)
	require.Equal(t, 1, inspects(t, r, f), "what a failed call made is not known")
}

func TestALookUnderWayDoesNotForgetARestartPolicy(t *testing.T) {
	r, f, _ := timed(t, 1)
	in := r.Seen(t).Instances[0]
	f.Fail(func(op string, _ int) (error, error) {
		if op == "NetworkList" { // it knows the containers as they were
			f.Fail(nil)
			r.Must(t, always(in))
		}
		return nil, nil
	})
	r.Seen(t)
	require.Equal(t, "always", r.Seen(t).Instances[0].Policy)
}

// The engine tells of our update too. One of somebody else, before or after
// ours, is seen.
func TestAnUpdateOfOursIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Host: "h"}
		poked := 0
		o.Poke = func(string) { poked++ }
		f := newFake(o)
		r := newRig(t)
		r.Docker = f.Docker
		r.Image = f.AddImage(enginetest.Image{Name: localImage})
		a := r.CreateAction(nil)
		r.Must(t, a)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		synctest.Wait()
		in := r.Seen(t).Instances[0]
		foreign := func() {
			e, err := f.ready(t.Context())
			require.NoError(t, err)
			_, err = e.ContainerUpdate(t.Context(), in.ID, container.UpdateConfig{RestartPolicy: container.RestartPolicy{Name: "unless-stopped"}})
			require.NoError(t, err)
		}
		r.Seen(t)
		poked = 0
		r.Must(t, always(in))
		synctest.Wait()
		require.Equal(t, 0, inspects(t, r, f))
		require.Equal(t, 0, poked)

		foreign()
		synctest.Wait()
		require.Equal(t, 1, poked)
		require.Equal(t, 1, inspects(t, r, f))
		require.Equal(t, "unless-stopped", r.Seen(t).Instances[0].Policy)

		r.Must(t, always(in))
		foreign() // before anybody read the event of ours
		synctest.Wait()
		require.Equal(t, "unless-stopped", r.Seen(t).Instances[0].Policy)
	})
}
