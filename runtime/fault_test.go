package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestFaultMeanings(t *testing.T) {
	for _, x := range []struct {
		says      string
		class     error
		cause     string
		permanent bool
	}{
		{says: "driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:80 failed: port is already allocated", cause: ring.CauseCreate},
		{says: "listen tcp4 0.0.0.0:80: bind: address already in use", cause: ring.CauseCreate},
		{says: "Address already in use", cause: ring.CauseNetwork},
		{says: `OCI runtime create failed: runc create failed: unable to start container process: exec: "nope": executable file not found in $PATH: unknown`, class: cerrdefs.ErrInvalidArgument, cause: ring.CauseCreate, permanent: true},
		{says: `starting container process caused: exec: "/app": permission denied: unknown`, cause: ring.CauseCreate, permanent: true},
		{says: "exec /app: exec format error", cause: ring.CauseCreate, permanent: true},
		{says: `error mounting "/x" to rootfs at "/y": not a directory: Are you trying to mount a directory onto a file (or vice-versa)?`, cause: ring.CauseFiles, permanent: true},
		{says: `invalid mount config for type "bind": bind source path does not exist: /x`, class: cerrdefs.ErrInvalidArgument, cause: ring.CauseFiles, permanent: true},
		{says: "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network", cause: ring.CauseNetwork, permanent: true},
		{says: "all predefined address pools have been fully subnetted", cause: ring.CauseNetwork, permanent: true},
		{says: "Pool overlaps with other one on this address space", cause: ring.CauseNetwork},
		{says: "network web_default not found", class: cerrdefs.ErrNotFound, cause: ring.CauseNetwork},
		{says: "No such image: web:1", class: cerrdefs.ErrNotFound, cause: ring.CauseImagePull},
		{says: "write /var/lib/docker/x: no space left on device", cause: ring.CauseFiles},
		{says: "unable to find user nobody1: no matching entries in passwd file", cause: ring.CauseCreate, permanent: true},
		{says: "invalid hostname format", class: cerrdefs.ErrInvalidArgument, cause: ring.CauseConfig, permanent: true},
		{says: "something else", class: cerrdefs.ErrInternal, cause: "given"},
	} {
		err := error(errors.New(x.says))
		if x.class != nil {
			err = enginetest.Refuse(x.class, "%s", x.says)
		}
		f := fault("cannot do it", "given", err)
		require.Equal(t, x.cause, f.Cause, x.says)
		require.Equal(t, x.permanent, f.Permanent, x.says)
		require.Contains(t, f.Error(), "cannot do it: "+x.says)
		require.ErrorIs(t, f, err)
	}
}

func TestEngineAwayMeansNothing(t *testing.T) {
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, enginetest.ErrDown, syscall.ECONNREFUSED, fmt.Errorf("x: %w", io.EOF)} {
		f := fault("cannot do it", ring.CauseCreate, err)
		require.Empty(t, f.Cause, err)
		require.False(t, f.Permanent)
	}
}

func TestPoolsRunOut(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	f.Pools(2)
	var err error
	for i := range 3 {
		key := fmt.Sprintf("n%d", i)
		_, err = f.Do(t.Context(), ring.Action{Kind: ring.DoNetwork, App: r.App, NetworkName: ring.NetworkName(r.App, key), Network: &ring.Network{Key: key}})
	}
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.Equal(t, ring.CauseNetwork, e.Cause)
	require.True(t, e.Permanent)
	require.Contains(t, e.Error(), "default-address-pools")
}

// Two networks that are made at once may be given one pool: the next try has another.
func TestOnlyASubnetThatTheCommitWroteIsAskedAnotherOf(t *testing.T) {
	for _, x := range []struct {
		name  string
		pools []ring.Pool
		asked bool
	}{
		{name: "the engine chose"},
		{name: "the engine chose, and options are written", pools: []ring.Pool{{Aux: map[string]string{"a": "b"}}}},
		{name: "the commit wrote a subnet", pools: []ring.Pool{{Subnet: "10.9.8.0/24"}}, asked: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := newFake(Options{Host: "edge-1", OwnerHost: func() bool { return true }})
			f.Fail(once("NetworkCreate", 1, false, enginetest.Refuse(cerrdefs.ErrPermissionDenied, "Pool overlaps with other one on this address space")))
			n := ring.Network{Key: "lan", Pools: x.pools}
			a := ring.Action{Kind: ring.DoNetwork, App: "web", Network: &n, NetworkName: ring.NetworkName("web", "lan")}
			_, err := f.Do(t.Context(), a)
			var e *ring.EngineError
			require.ErrorAs(t, err, &e)
			require.Equal(t, ring.CauseNetwork, e.Cause)
			require.False(t, e.Permanent, "the other network may go at any moment, as that of a renamed app does")
			require.Equal(t, x.asked, e.Refusal != nil, "its author has nothing to choose")
			_, err = f.Do(t.Context(), a)
			require.NoError(t, err)
		})
	}
}

// Whatever call of whatever step fails, before or after it took effect, the
// same step tried again comes to the same end, and nothing is there twice.
func TestStepsSurviveFaults(t *testing.T) {
	ops := []string{
		"ContainerInspect", "ContainerCreate", "ContainerStart", "ContainerStop", "ContainerRestart", "ContainerRemove", "ContainerUpdate", "ContainerRename",
		"NetworkList", "NetworkCreate", "NetworkConnect", "NetworkRemove", "VolumeCreate", "ImageInspect", "ImagePull", "DistributionInspect",
	}
	lost := errors.New("connection reset")
	for _, op := range ops {
		for _, nth := range []int{1, 2} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d, after=%v", op, nth, after), func(t *testing.T) {
					faulted(t, op, nth, after, lost)
				})
			}
		}
	}
}

func faulted(t *testing.T, op string, nth int, after bool, lost error) {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker = f.Docker
	digest := "sha256:0707070707070707070707070707070707070707070707070707070707070707"
	f.AddRemote(enginetest.Image{Name: "example.org/app:1", Digest: digest})
	f.Fail(once(op, nth, after, lost))
	try := func(a ring.Action) ring.Done {
		t.Helper()
		done, err := f.Do(t.Context(), a)
		if err == nil {
			return done
		}
		require.ErrorContains(t, err, lost.Error())
		done, err = f.Do(t.Context(), a)
		require.NoError(t, err)
		return done
	}
	pin := try(ring.Action{Kind: ring.DoResolve, Image: "example.org/app:1"}).Pin
	require.Equal(t, "example.org/app:1@"+digest, pin.Image)
	try(ring.Action{Kind: ring.DoPull, Image: pin.Image})
	a := r.CreateAction(func(s *ring.Service) {
		s.Pin = pin
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
		s.Spec.NoNetwork = false
		s.Spec.Networks = []ring.Attachment{{Network: "a"}, {Network: "b"}}
	})
	for _, key := range []string{"a", "b"} {
		a.Networks[key] = ring.NetworkName(r.App, key)
		try(ring.Action{Kind: ring.DoNetwork, App: r.App, NetworkName: a.Networks[key], Network: &ring.Network{Key: key}})
	}
	try(a)
	f.Fail(nil)
	in := r.OnlyInstance(t)
	require.Equal(t, ring.StateRunning, in.State)
	require.Len(t, in.Addresses, 2)
	require.Len(t, f.Volumes(), 1)
	f.Fail(once(op, nth, after, lost))
	policy := enginetest.ActionOn(ring.DoPolicy, in)
	policy.Policy = "always"
	try(policy)
	rename := enginetest.ActionOn(ring.DoRename, in)
	rename.NewName = in.Name + "-old"
	try(rename)
	for _, kind := range []ring.ActionKind{ring.DoStop, ring.DoStart, ring.DoRestart, ring.DoRemove} {
		try(enginetest.ActionOn(kind, in))
	}
	for _, name := range a.Networks {
		try(ring.Action{Kind: ring.DoNetworkOff, App: r.App, NetworkName: name})
	}
	f.Fail(nil)
	s := r.Seen(t)
	require.Empty(t, s.Instances)
	require.Len(t, s.Networks, 3, "the engine's own")
	require.Len(t, f.Volumes(), 1, "no volume is ever removed")
}

// once fails the nth call of an op from now.
func once(op string, nth int, after bool, lost error) func(string, int) (error, error) {
	n := 0
	return func(o string, _ int) (error, error) {
		if o != op {
			return nil, nil
		}
		if n++; n != nth {
			return nil, nil
		}
		if after {
			return nil, lost
		}
		return lost, nil
	}
}
