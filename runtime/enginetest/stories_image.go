package enginetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func resolveLocal(t *testing.T, r *Rig) {
	ask := func(image, policy string) ring.Done {
		return r.Must(t, ring.Action{Kind: ring.DoResolve, App: r.App, Service: "web", Image: image, PullPolicy: policy})
	}
	require.Equal(t, r.Image, ask(r.ImageName, "never").Pin.Image)
	if r.lacks(t, LocalImages) { // each has a digest, as if of a registry, which is asked
		require.Nil(t, r.MustFail(t, ring.Action{Kind: ring.DoResolve, Image: "127.0.0.1:1/" + r.ImageName}).Refusal)
	} else {
		require.Equal(t, r.Image, ask(r.ImageName, "").Pin.Image)
		require.NotEmpty(t, ask(r.ImageName, "").Pin.Note)
	}
	require.Equal(t, r.Image, ask(r.Image, "").Pin.Image)
	fixed := "example.org/app:1@sha256:" + strings.Repeat("ab", 32)
	require.Equal(t, fixed, ask(fixed, "").Pin.Image)
	require.Equal(t, "already present", r.Must(t, ring.Action{Kind: ring.DoPull, Image: r.Image}).Note)
}

func registryImage(t *testing.T, r *Rig) {
	name, digest := r.AddRemote(t)
	pin := r.Must(t, ring.Action{Kind: ring.DoResolve, Image: name}).Pin.Image
	require.Equal(t, name+"@"+digest, pin)
	pull := ring.Action{Kind: ring.DoPull, Image: pin}
	require.Equal(t, "pulled", r.Must(t, pull).Note)
	asked := r.RegistryCalls()
	require.Equal(t, "already present", r.Must(t, pull).Note)
	require.Equal(t, asked, r.RegistryCalls(), "what is present is not asked for")

	a := r.CreateAction(func(s *ring.Service) { s.Spec.Image, s.Pin = name, ring.Pin{Image: pin} })
	r.Must(t, a)
	in := r.OnlyInstance(t)
	if r.lacks(t, ImageNames) {
		require.Equal(t, strings.TrimSuffix(name, ":1")+"@"+digest, in.Image)
	} else {
		require.Equal(t, pin, in.Image)
	}
	r.Must(t, ActionOn(ring.DoRemove, in))
	r.ForgetImage(t, pin)
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseImagePull, e.Cause, "a pruned image is told, and can be had again")
	require.False(t, e.Permanent)
	require.Equal(t, "pulled", r.Must(t, pull).Note)
	r.Must(t, a)
	require.Equal(t, ring.StateRunning, r.OnlyInstance(t).State)
	require.Equal(t, pin, r.Must(t, ring.Action{Kind: ring.DoResolve, Image: name}).Pin.Image)
	r.Must(t, ActionOn(ring.DoRemove, r.OnlyInstance(t)))
}

func imageNobodyHas(t *testing.T, r *Rig) {
	name, _ := r.AddRemote(t)
	repo := strings.TrimSuffix(name, ":1")
	e := r.MustFail(t, ring.Action{Kind: ring.DoResolve, App: r.App, Image: repo + ":2"})
	require.Equal(t, ring.CauseImagePull, e.Cause)
	require.Equal(t, ring.ImageNotFound, refusalOf(t, e).Code)
	require.Equal(t, r.App, refusalOf(t, e).App)
	require.NotEmpty(t, refusalOf(t, e).Hint)
	gone := "sha256:" + strings.Repeat("0", 64)
	for _, a := range []ring.Action{
		{Kind: ring.DoResolve, Image: "gitring-test/nowhere:1", PullPolicy: "never"},
		{Kind: ring.DoResolve, Image: gone},
		{Kind: ring.DoPull, Image: gone},
		{Kind: ring.DoPull, Image: repo + "@" + gone},
	} {
		e := r.MustFail(t, a)
		require.Equal(t, ring.ImageNotFound, refusalOf(t, e).Code, a.Image)
		require.True(t, e.Permanent)
	}
	bad := r.MustFail(t, ring.Action{Kind: ring.DoResolve, Image: "No Image"})
	require.Equal(t, ring.BadValue, refusalOf(t, bad).Code)
}

func missingProgram(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) { s.Spec.Entrypoint = []string{"/nope"} })
	done, err := r.Engine.Do(t.Context(), a)
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.True(t, e.Permanent)
	in := r.OnlyInstance(t)
	require.Equal(t, done.Instance, in.ID, "what was made is told")
	require.False(t, in.Live())
	r.Must(t, ActionOn(ring.DoRemove, in))
	require.Empty(t, r.Seen(t).Instances)
}
