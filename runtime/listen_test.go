package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

const hearing = "4f1c0f4e3d2b1a09"

// asKernel writes the tables of a process of a container, as Linux does on a machine
// whose numbers begin with their smallest byte.
func asKernel(t *testing.T, proc string, pid int, group string, tables map[string][]string) {
	t.Helper()
	dir := filepath.Join(proc, strconv.Itoa(pid))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "net"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/system.slice/docker-"+group+".scope\n"), 0o644))
	for name, rows := range tables {
		var text strings.Builder
		text.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
		for i, row := range rows { // local address and state
			local, state, _ := strings.Cut(row, " ")
			fmt.Fprintf(&text, "%4d: %s 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 637\n", i, local, state)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "net", name), []byte(text.String()), 0o644))
	}
}

// publishing is a container as looked at: ports such as "80/tcp", all published.
func publishing(ports ...nat.Port) container.InspectResponse {
	open := nat.PortMap{}
	for _, p := range ports {
		open[p] = []nat.PortBinding{{HostIP: "0.0.0.0", HostPort: "1"}}
	}
	settings := &container.NetworkSettings{}
	settings.Ports = open
	return container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: hearing, State: &container.State{Running: true, Pid: 4711, StartedAt: "2026-03-01T12:00:00Z"}},
		NetworkSettings:   settings,
	}
}

func TestWhetherAnythingListensOnAPublishedPortIsReadOffTheKernel(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		ports  []nat.Port
		tables map[string][]string
		want   []ring.Unheard
	}{
		{"on all addresses", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"00000000:1F90 0A"}}, nil},
		{"on the container's own", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"020011AC:1F90 0A"}}, nil},
		{"on all addresses of IPv6, which is both", []nat.Port{"8080/tcp"}, map[string][]string{"tcp6": {"00000000000000000000000000000000:1F90 0A"}}, nil},
		{"on nothing", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"00000000:1F91 0A"}}, []ring.Unheard{{Port: "8080/tcp"}}},
		{"on 127.0.0.1", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"0100007F:1F90 0A"}}, []ring.Unheard{{Port: "8080/tcp", Loopback: true}}},
		{"on another address of loopback", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"0B00007F:1F90 0A"}}, []ring.Unheard{{Port: "8080/tcp", Loopback: true}}},
		{"on ::1", []nat.Port{"8080/tcp"}, map[string][]string{"tcp6": {"00000000000000000000000001000000:1F90 0A"}}, []ring.Unheard{{Port: "8080/tcp", Loopback: true}}},
		{"on 127.0.0.1 as IPv6 has it", []nat.Port{"8080/tcp"}, map[string][]string{"tcp6": {"0000000000000000FFFF00000100007F:1F90 0A"}}, []ring.Unheard{{Port: "8080/tcp", Loopback: true}}},
		{"on 127.0.0.1 and outside", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"0100007F:1F90 0A", "020011AC:1F90 0A"}}, nil},
		{"a connection is no listener", []nat.Port{"8080/tcp"}, map[string][]string{"tcp": {"020011AC:1F90 01"}}, []ring.Unheard{{Port: "8080/tcp"}}},
		{"udp", []nat.Port{"53/udp"}, map[string][]string{"udp": {"020011AC:C350 01", "00000000:0035 07"}}, nil},
		{"another protocol is another port", []nat.Port{"53/udp", "53/tcp"}, map[string][]string{"udp": {"00000000:0035 07"}}, []ring.Unheard{{Port: "53/tcp"}}},
		{"sctp has no table here", []nat.Port{"9/sctp"}, nil, nil},
		{"two side by side are two ports", []nat.Port{"80/tcp", "81/tcp"}, nil, []ring.Unheard{{Port: "80/tcp"}, {Port: "81/tcp"}}},
		{"three are a range", []nat.Port{"21/tcp", "21100/tcp", "21101/tcp", "21102/tcp", "21102/udp"}, nil, []ring.Unheard{{Port: "21/tcp"}, {Port: "21102/udp"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proc := t.TempDir()
			asKernel(t, proc, 4711, hearing, tc.tables)
			all := map[string]known{hearing: {ears: earsOf(publishing(tc.ports...), known{})}}
			listen(proc, all, at)
			require.Equal(t, tc.want, all[hearing].in.Unheard)
		})
	}
}

func TestWhatCannotBeSeenIsNotSaidToBeSilent(t *testing.T) {
	look := func(proc string, c container.InspectResponse) []ring.Unheard {
		all := map[string]known{hearing: {ears: earsOf(c, known{})}}
		listen(proc, all, time.Now())
		return all[hearing].in.Unheard
	}
	seen, other, none := t.TempDir(), t.TempDir(), t.TempDir()
	asKernel(t, seen, 4711, hearing, nil)
	asKernel(t, other, 4711, "another", nil)
	require.NotEmpty(t, look(seen, publishing("80/tcp")))
	require.Empty(t, look(other, publishing("80/tcp")), "the number is another host's, or another namespace's")
	require.Empty(t, look(none, publishing("80/tcp")), "processes of others are hidden")
	require.NoError(t, os.Mkdir(filepath.Join(seen, "4711/net/tcp"), 0o755))
	require.Empty(t, look(seen, publishing("80/tcp")), "the kernel does not let us")
	require.NoError(t, os.Remove(filepath.Join(seen, "4711/net/tcp")))
	asKernel(t, seen, 4711, hearing, map[string][]string{"udp": make([]string, 20_000)})
	require.Empty(t, look(seen, publishing("80/udp")), "more sockets than are read")

	host := publishing("80/tcp")
	host.NetworkSettings.Ports = nil
	require.Empty(t, look(seen, host), "on the host's network nothing is published")
	exposed := publishing("80/tcp")
	exposed.NetworkSettings.Ports["80/tcp"] = nil
	require.Empty(t, look(seen, exposed), "exposed is not published")
	ended := publishing("80/tcp")
	ended.State.Running, ended.State.Pid = false, 0
	require.Empty(t, look(seen, ended))
	require.Empty(t, look(seen, container.InspectResponse{}))
}

func TestAPortThatWasHeardIsNotLookedAtAgainInThatStart(t *testing.T) {
	proc, at := t.TempDir(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := map[string]known{hearing: {ears: earsOf(publishing("80/tcp", "90/tcp"), known{})}}
	look := func(after time.Duration, listening ...string) []ring.Unheard {
		asKernel(t, proc, 4711, hearing, map[string][]string{"tcp": listening})
		k := all[hearing]
		k.ears = earsOf(publishing("80/tcp", "90/tcp"), k) // each look inspects it anew
		all[hearing] = k
		listen(proc, all, at.Add(after))
		return all[hearing].in.Unheard
	}
	both := []ring.Unheard{{Port: "80/tcp"}, {Port: "90/tcp"}}
	require.Equal(t, both, look(0))
	require.Equal(t, both, look(listenAgain-1, "00000000:0050 0A"), "not so soon")
	require.Equal(t, both[1:], look(listenAgain, "00000000:0050 0A"))
	require.Equal(t, both[1:], look(time.Hour), "what was heard is not asked again")
	require.Empty(t, look(2*time.Hour, "00000000:005A 0A"))
	require.Empty(t, look(3*time.Hour))
	k := all[hearing]
	c := publishing("80/tcp", "90/tcp")
	c.State.StartedAt = "2026-03-01T15:00:00Z"
	k.ears = earsOf(c, k)
	all[hearing] = k
	listen(proc, all, at.Add(4*time.Hour))
	require.Equal(t, both, all[hearing].in.Unheard, "a restart is another one")
}

func TestALookAsksFewOfManyThatAreSilentAndEachInTurn(t *testing.T) {
	proc, at, all := t.TempDir(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), map[string]known{}
	for i := range 5 * listenAtOnce {
		id := fmt.Sprintf("c%04d", i)
		c := publishing("80/tcp")
		c.State.Pid = 100 + i
		asKernel(t, proc, c.State.Pid, id, nil)
		all[id] = known{ears: earsOf(c, known{})}
	}
	for look := range 10 {
		now := at.Add(time.Duration(look) * 10 * time.Second)
		listen(proc, all, now)
		asked, silent := 0, 0
		for _, k := range all {
			if k.ears.read.Equal(now) {
				asked++
			}
			silent += len(k.in.Unheard)
		}
		require.Equal(t, listenAtOnce, asked)
		require.Equal(t, min(look+1, 5)*listenAtOnce, silent)
	}
}

func TestEngineTellsWhatNobodyListensOn(t *testing.T) {
	r := realRig(t)
	if why := unseenProcesses(procs, ownContainer()); why != "" {
		t.Skip(why)
	}
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Environment = map[string]string{"LISTEN": "tcp/:8081 udp/:53"}
		s.Spec.Ports = []ring.Port{
			{Container: 8080, Protocol: "tcp"},
			{Container: 8081, Protocol: "tcp"},
			{Container: 9090, Protocol: "tcp"},
			{Container: 53, Protocol: "udp"},
			{Container: 5353, Protocol: "udp"},
		}
	})
	r.AddNetwork(t, &a, "default")
	r.Must(t, a)
	want := []ring.Unheard{{Port: "8080/tcp", Loopback: true}, {Port: "9090/tcp"}, {Port: "5353/udp"}}
	r.WaitFor(t, "it listens", func(s ring.Seen) bool {
		r.cache.mu.Lock() // as if the time had passed
		for id, k := range r.cache.known {
			k.ears.read = time.Time{}
			r.cache.known[id] = k
		}
		r.cache.mu.Unlock()
		return len(s.Instances) == 1 && len(s.Instances[0].Unheard) == len(want)
	})
	require.Equal(t, want, r.OnlyInstance(t).Unheard)
}
