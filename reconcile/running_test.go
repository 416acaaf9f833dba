package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestWhatGitringStoppedDidNotCrash(t *testing.T) {
	w := World{Facts: ring.Facts{Intents: map[string]ring.Intent{"c1": {Instance: "c1", Reason: "port 8080/tcp is needed by version 2"}}}}
	look := newDecider(w, time.Now())
	ended := &ring.Instance{ID: "c1", State: ring.StateExited, ExitCode: 143}
	require.Equal(t, "stopped by gitring: port 8080/tcp is needed by version 2", look.endSays(&instance{Instance: ended, intent: intentPark}))
	require.Equal(t, "ended with the engine", look.endSays(&instance{Instance: ended, intent: intentAgain}))
	require.Equal(t, "exited with code 143", look.endSays(&instance{Instance: ended}))
	require.Equal(t, "exited with code 143", look.endSays(&instance{Instance: ended, intent: intentHooks}), "what was started by gitring and ended did fail")
}

func TestStatusNamesWhatRunsWhileAnotherIsWanted(t *testing.T) {
	const before, wanted = ring.SHA("a1b2c3d4e5f60718293a4b5c6d7e8f9012345678"), ring.SHA("b2c3d4e5f60718293a4b5c6d7e8f9012345678a1")
	spec := func(image string) ring.Spec {
		return ring.Spec{Image: image, Ports: []ring.Port{{HostPort: "8080", Container: 80, Protocol: "tcp"}, {HostIP: "::1", HostPort: "53", Container: 53, Protocol: "udp"}, {Container: 9, Protocol: "tcp"}}}
	}
	v := &service{
		want: &ring.Service{Spec: spec("web:2"), Version: "1:new", Changed: wanted, Pin: ring.Pin{Image: "web@sha256:2"}},
		good: &ring.Good{Commit: before, Service: ring.Service{Spec: spec("web:1"), Version: "1:old", Pin: ring.Pin{Image: "web@sha256:1"}}},
	}
	one := func(version ring.Version, state ring.State) *instance {
		return &instance{Instance: &ring.Instance{Version: version, State: state}}
	}
	look := newDecider(World{}, time.Now())
	says := func(all ...*instance) (st ring.ServiceStatus) {
		v.instances = all
		look.fillRunning(v, &st)
		return st
	}
	ports := []string{"8080:80/tcp", "[::1]:53:53/udp", "9/tcp"}
	require.Equal(t, ring.ServiceStatus{Running: wanted, Image: "web:2", Digest: "sha256:2", Ports: ports}, says(one("1:new", ring.StateRunning)))
	require.Equal(t, ring.ServiceStatus{Running: before, Image: "web:1", Digest: "sha256:1", Ports: ports}, says(one("1:new", ring.StateRunning), one("1:old", ring.StateRunning)))
	require.Equal(t, wanted, says(one("1:old", ring.StateExited), one("1:new", ring.StateRunning)).Running)
	require.Equal(t, ring.SHA(""), says(one("1:new", ring.StateCreated)).Running, "nothing runs")
}

// A check that fails is a fault to look at, long before the deadline makes it a verdict. One
// that has not answered often enough yet is not.
func TestStatusSaysThatACheckFailsWhileTheServiceStarts(t *testing.T) {
	now := time.Now()
	up := ring.Check{Name: "up", For: ring.Readiness, Interval: time.Second, Timeout: time.Second}
	for _, failing := range []bool{false, true} {
		look := newDecider(World{Health: map[string]ring.Health{"c1": {Failing: failing, Reason: "readiness check up: it said no"}}}, now)
		v := &service{want: &ring.Service{Name: "web", Version: "1:new", Checks: []ring.Check{up}}, app: &ring.App{Name: "shop"}}
		in := &instance{Instance: &ring.Instance{ID: "c1", Version: "1:new", State: ring.StateRunning, Started: now, Since: now}}
		look.judgeInstance(v, in)
		st := look.instanceStatus(nil, in)
		require.Equal(t, ring.SlotStarting, st.State)
		require.Equal(t, failing, st.Failing)
		require.Equal(t, "readiness check up: it said no", st.Reason)
	}
}
