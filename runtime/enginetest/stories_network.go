package enginetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func externalNetwork(t *testing.T, r *Rig) {
	a := ring.Action{Kind: ring.DoNetwork, App: r.App, Network: &ring.Network{Key: "ext", External: r.App + "-theirs"}, NetworkName: r.App + "-theirs"}
	e := r.MustFail(t, a)
	require.Equal(t, ring.BadValue, refusalOf(t, e).Code)
	require.Contains(t, refusalOf(t, e).Hint, "docker network create "+a.NetworkName)
	a.Network.External, a.NetworkName = "bridge", "bridge"
	require.NotEmpty(t, r.Must(t, a).Note)
}

func onlyItsNetworks(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	r.AddNetwork(t, &a, "front", "www", "site")
	r.AddNetwork(t, &a, "back")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	front, back := ring.NetworkName(r.App, "front"), ring.NetworkName(r.App, "back")
	require.Len(t, in.Addresses, 2)
	require.NotEmpty(t, in.Addresses[front])
	require.NotEmpty(t, in.Addresses[back])
	nets := r.Inspect(t, in.ID).NetworkSettings.Networks
	require.Subset(t, nets[front].Aliases, []string{"web", "www", "site"})
	require.Subset(t, nets[back].Aliases, []string{"web"})
	require.NotContains(t, nets[back].Aliases, "www")
}

func noNetwork(t *testing.T, r *Rig) {
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	require.Equal(t, "", in.Addresses["none"])
	require.Len(t, in.Addresses, 1)
}

func networkLife(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default")
	require.Equal(t, "already present", r.Must(t, made).Note)
	n, ok := r.FindNetwork(t, made.NetworkName)
	require.True(t, ok)
	require.Equal(t, ring.SeenNetwork{ID: n.ID, Name: made.NetworkName, App: r.App, Key: "default", Definition: made.Network.Definition()}, n)

	other := made
	other.Network.Internal = true
	require.False(t, r.MustFail(t, other).Permanent, "another definition under the name")

	r.Must(t, a)
	off := ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: made.NetworkName}
	e := r.MustFail(t, off)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.False(t, e.Permanent)
	r.Must(t, ActionOn(ring.DoRemove, r.OnlyInstance(t)))
	r.Must(t, off)
	_, ok = r.FindNetwork(t, made.NetworkName)
	require.False(t, ok)
	require.Equal(t, "already gone", r.Must(t, off).Note)
}

// ownNetwork asks as an app does that says network_mode: bridge. An engine that was
// started without a bridge starts it with no network, and says nothing.
func ownNetwork(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) { s.Spec.NoNetwork, s.Spec.NetworkMode = false, "bridge" })
	a.Of.Services = []ring.Service{*a.Want}
	_, there := r.FindNetwork(t, "bridge")
	_, err := r.Engine.Do(t.Context(), ring.Action{Kind: ring.DoAdmit, App: r.App, Of: a.Of})
	if r.lacks(t, OwnNetwork) {
		require.ErrorContains(t, err, "network_mode: bridge")
		return
	}
	if !there {
		require.ErrorContains(t, err, "this engine has none")
		return
	}
	require.NoError(t, err)
	if _, err := r.Engine.Do(t.Context(), a); err != nil && strings.Contains(err.Error(), "could not find bridge") {
		return // a second engine without a bridge took this one's away
	}
	require.NotEmpty(t, r.OnlyInstance(t).Addresses["bridge"])
}

func foreignNetworks(t *testing.T, r *Rig) {
	if _, ok := r.FindNetwork(t, "bridge"); !ok {
		t.Skip("this engine has no bridge of its own")
	}
	off := ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: "bridge"}
	require.True(t, r.MustFail(t, off).Permanent)
	n, ok := r.FindNetwork(t, "bridge")
	require.True(t, ok)
	require.Empty(t, n.App)
	used := ring.Action{Kind: ring.DoNetwork, App: r.App, NetworkName: "bridge", Network: &ring.Network{Key: "x"}}
	require.Contains(t, r.Must(t, used).Note, "used")

	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default")
	made.App = "other"
	require.Equal(t, ring.Conflict, refusalOf(t, r.MustFail(t, made)).Code)
	off = ring.Action{Kind: ring.DoNetworkOff, App: "other", NetworkName: made.NetworkName}
	require.True(t, r.MustFail(t, off).Permanent)
}

func overlapping(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "one")
	made.NetworkName, made.Network.Key = ring.NetworkName(r.App, "two"), "two"
	e := r.MustFail(t, made)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.False(t, e.Permanent, "the other network may go")
	require.Equal(t, ring.Conflict, refusalOf(t, e).Code)
}

func takenPort(t *testing.T, r *Rig) {
	hostPort := fmt.Sprint(20000 + rand.IntN(10000))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Ports = []ring.Port{{HostIP: "127.0.0.1", HostPort: hostPort, Container: 8080, Protocol: "tcp"}}
	})
	r.AddNetwork(t, &a, "default")
	r.Must(t, a)
	first := r.OnlyInstance(t)
	a.Slot = 2
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseCreate, e.Cause)
	require.False(t, e.Permanent)
	require.NotNil(t, e.Refusal)
	require.Contains(t, refusalOf(t, e).Says, "port 127.0.0.1:"+hostPort+"/tcp of the host is taken")
	r.Must(t, ActionOn(ring.DoStop, first))
	r.Must(t, a) // finishes the one that was made
	s := r.Seen(t)
	require.Len(t, s.Instances, 2)
	for _, in := range s.Instances {
		require.Equal(t, in.Slot == 2, in.State == ring.StateRunning)
	}
}

// clashingPorts asks the engine itself what ring.Port.Clashes says of ports.
func clashingPorts(t *testing.T, r *Rig) {
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		require.NoError(t, l.Close())
	} else {
		t.Skipf("this host has no second family of addresses: %v", err)
	}
	base := r.CreateAction(nil)
	r.AddNetwork(t, &base, "default")
	for _, c := range []struct {
		held, takes string // ADDRESS/PROTOCOL
		clashes     bool
	}{
		{"127.0.0.5/tcp", "127.0.0.5/tcp", true},
		{"127.0.0.5/tcp", "0.0.0.0/tcp", true},
		{"127.0.0.5/tcp", "/tcp", true},
		{"127.0.0.5/tcp", "127.0.0.6/tcp", false},
		{"127.0.0.5/tcp", "127.0.0.5/udp", false},
		{"127.0.0.5/tcp", "::/tcp", false},
		{"::/tcp", "/tcp", true},
		{"::/tcp", "::1/tcp", true},
		{"::/tcp", "0.0.0.0/tcp", false},
		{"/tcp", "127.0.0.1/tcp", true},
	} {
		hostPort := fmt.Sprint(20000 + rand.IntN(10000))
		publish := func(slot int, at string) (ring.Action, error) {
			ip, proto, _ := strings.Cut(at, "/")
			a, want := base, *base.Want
			want.Spec.Ports = []ring.Port{{HostIP: ip, HostPort: hostPort, Container: 8080, Protocol: proto}}
			want.Version = ring.VersionOf(a.Of, &want, want.Pin)
			a.Slot, a.Want, a.Version = slot, &want, want.Version
			_, err := r.Engine.Do(t.Context(), a)
			return a, err
		}
		_, err := publish(1, c.held)
		require.NoError(t, err)
		holder := r.OnlyInstance(t).Name
		_, err = publish(2, c.takes)
		if c.held == "::/tcp" && c.takes == "/tcp" && r.lacks(t, PortFamilies) {
			c.clashes = false
		}
		require.Equal(t, c.clashes, err != nil, "%s beside %s: %v", c.takes, c.held, err)
		if c.clashes {
			require.ErrorContains(t, err, "is taken by container "+holder+" (", "%s beside %s", c.takes, c.held)
		}
		for _, in := range r.Seen(t).Instances {
			r.Must(t, ActionOn(ring.DoRemove, in))
		}
	}
}

func networkMadeAgain(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	made := r.AddNetwork(t, &a, "default", "www")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	r.Must(t, ActionOn(ring.DoStop, in))
	// An engine lets a network go whose containers are all stopped.
	r.Must(t, ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: made.NetworkName})
	start := ActionOn(ring.DoStart, in)
	start.Networks, start.Want, start.Of = a.Networks, a.Want, a.Of
	e := r.MustFail(t, start)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.False(t, e.Permanent)
	r.Must(t, made)
	r.Must(t, start)
	now := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, now.State)
	require.Equal(t, in.ID, now.ID)
	require.Len(t, now.Addresses, 1)
	require.NotEmpty(t, now.Addresses[made.NetworkName])
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[made.NetworkName].Aliases, []string{"web", "www"})
}

func startBare(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	front := r.AddNetwork(t, &a, "front", "www")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	r.AddNetwork(t, &a, "back") // of a neighbour
	start := ActionOn(ring.DoStart, in)
	start.Networks = a.Networks
	r.Must(t, ActionOn(ring.DoStop, in))
	r.Must(t, start)
	require.Len(t, r.OnlyInstance(t).Addresses, 1)

	r.Must(t, ActionOn(ring.DoStop, in))
	r.Must(t, ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: front.NetworkName})
	r.Must(t, front)
	r.Must(t, start)
	now := r.OnlyInstance(t)
	require.Len(t, now.Addresses, 1)
	require.NotEmpty(t, now.Addresses[front.NetworkName])
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[front.NetworkName].Aliases, []string{"web", "www"})
	// A service without network gets none by being started again.
	alone := r.CreateAction(func(s *ring.Service) { s.Name = "alone" })
	done := r.Must(t, alone)
	again := ring.Action{Kind: ring.DoStart, App: r.App, Service: "alone", Instance: done.Instance, Networks: a.Networks, Grace: time.Second}
	r.Must(t, again)
	require.True(t, r.Inspect(t, done.Instance).HostConfig.NetworkMode.IsNone())
	require.Len(t, r.Inspect(t, done.Instance).NetworkSettings.Networks, 1)
}

func startFinishes(t *testing.T, r *Rig) {
	a := r.CreateAction(nil)
	a.Start = false
	r.AddNetwork(t, &a, "front")
	r.Must(t, a)
	r.AddNetwork(t, &a, "back")
	start := ActionOn(ring.DoStart, r.OnlyInstance(t))
	start.Networks, start.Want = a.Networks, a.Want
	r.Must(t, start)
	in := r.OnlyInstance(t)
	require.Len(t, in.Addresses, 2)
	require.Equal(t, ring.StateRunning, in.State)
	require.Subset(t, r.Inspect(t, in.ID).NetworkSettings.Networks[ring.NetworkName(r.App, "back")].Aliases, []string{"web"})
}
