package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// StartOwner starts an instance that others can join, with a volume.
func (r *Rig) StartOwner(t *testing.T) ring.Instance {
	t.Helper()
	a := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.IPCMode = "vpn", "shareable"
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "keys", Target: "/keys"}}
	})
	r.Must(t, a)
	return r.InstanceOf(t, "vpn")
}

// InstanceOf is the instance of a service.
func (r *Rig) InstanceOf(t *testing.T, service string) ring.Instance {
	t.Helper()
	for _, in := range r.Seen(t).Instances {
		if in.Service == service {
			return in
		}
	}
	require.Fail(t, "not seen", service)
	return ring.Instance{}
}

// JoinAction makes a service that joins its owner, which has that ID.
func (r *Rig) JoinAction(owner string, edit func(*ring.Spec)) ring.Action {
	a := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.NoNetwork = "app", false
		s.Spec.Command = []string{"sleep"} // the owner's port is taken in its namespace
		edit(&s.Spec)
	})
	a.Owners = map[string]string{"vpn": owner}
	return a
}

// ServeContent makes an instance that mounts a content.
func ServeContent(t *testing.T, r *Rig, hash string, slot int) ring.Done {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = append(s.Spec.Mounts, ring.Mount{Kind: ring.MountContent, Source: hash, Target: "/conf"})
	})
	a.Slot = slot
	return r.Must(t, a)
}

// Subnet is a small range of addresses of its own, so that tests do not drain the engine's pools.
func Subnet() string {
	return fmt.Sprintf("10.%d.%d.%d/28", 150+rand.IntN(80), rand.IntN(256), 16*rand.IntN(16))
}

// CreateAction makes a small worker of the test's app.
func (r *Rig) CreateAction(edit func(*ring.Service)) ring.Action {
	s := &ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Pin: ring.Pin{Image: r.Image}, Spec: ring.Spec{
		Image: r.ImageName, Entrypoint: []string{"/app"}, Command: []string{"serve"}, NoNetwork: true, StopGrace: time.Second,
	}}
	if edit != nil {
		edit(s)
	}
	app := &ring.App{Name: r.App, Source: "prod", Path: "apps/" + r.App, Files: []string{"compose.yaml", "compose.prod.yaml"}}
	s.Version = ring.VersionOf(app, s, s.Pin)
	return ring.Action{
		Kind: ring.DoCreate, App: r.App, Service: s.Name, Slot: 1, Version: s.Version, Commit: "c0ffee0000000000000000000000000000000000",
		Of: app, Want: s, Start: true, Networks: map[string]string{},
	}
}

// Must carries a step out.
func (r *Rig) Must(t *testing.T, a ring.Action) ring.Done {
	t.Helper()
	done, err := r.Engine.Do(t.Context(), a)
	require.NoError(t, err, "%s", a.Kind)
	return done
}

// MustFail carries a step out that must fail, and returns what it means.
func (r *Rig) MustFail(t *testing.T, a ring.Action) *ring.EngineError {
	t.Helper()
	_, err := r.Engine.Do(t.Context(), a)
	require.Error(t, err)
	var e *ring.EngineError
	require.True(t, errors.As(err, &e), "%T %v", err, err)
	if e.Refusal == nil {
		require.True(t, strings.HasPrefix(err.Error(), "cannot "), err.Error())
	}
	return e
}

// refusalOf is what a step was refused with; there has to be one.
func refusalOf(t *testing.T, e *ring.EngineError) *ring.Refusal {
	t.Helper()
	require.NotNil(t, e.Refusal, "%v", e)
	return e.Refusal
}

// Seen is one whole look.
func (r *Rig) Seen(t *testing.T) ring.Seen {
	t.Helper()
	s, err := r.Engine.Look(t.Context())
	require.NoError(t, err)
	return s
}

// OnlyInstance is the one that is seen; there has to be just one.
func (r *Rig) OnlyInstance(t *testing.T) ring.Instance {
	t.Helper()
	s := r.Seen(t)
	require.Len(t, s.Instances, 1)
	return s.Instances[0]
}

// AddNetwork creates a network of the app and joins the action's service to it.
func (r *Rig) AddNetwork(t *testing.T, a *ring.Action, key string, aliases ...string) ring.Action {
	t.Helper()
	n := ring.Network{Key: key, Pools: []ring.Pool{{Subnet: Subnet()}}}
	name := ring.NetworkName(r.App, key)
	made := ring.Action{Kind: ring.DoNetwork, App: r.App, Network: &n, NetworkName: name}
	r.Must(t, made)
	a.Of.Networks = append(a.Of.Networks, n)
	a.Networks[key] = name
	a.Want.Spec.NoNetwork = false
	a.Want.Spec.Networks = append(a.Want.Spec.Networks, ring.Attachment{Network: key, Aliases: aliases})
	a.Want.Version = ring.VersionOf(a.Of, a.Want, a.Want.Pin)
	a.Version = a.Want.Version
	return made
}

// ActionOn is a step on an instance.
func ActionOn(kind ring.ActionKind, in ring.Instance) ring.Action {
	return ring.Action{Kind: kind, App: in.App, Service: in.Service, Slot: in.Slot, Version: in.Version, Instance: in.ID, Name: in.Name, Grace: time.Second}
}

// FindNetwork is a network by its name, and whether it is there.
func (r *Rig) FindNetwork(t *testing.T, name string) (ring.SeenNetwork, bool) {
	t.Helper()
	for _, n := range r.Seen(t).Networks {
		if n.Name == name {
			return n, true
		}
	}
	return ring.SeenNetwork{}, false
}

// NextPoke is what the engine was poked with next.
func (r *Rig) NextPoke(t *testing.T) string {
	t.Helper()
	select {
	case id := <-r.Poked:
		return id
	case <-time.After(time.Minute):
		require.Fail(t, "no poke")
		return ""
	}
}
