package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// counted is how often a long test does what it does: a variable says, else less.
func counted(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	said := os.Getenv(variable)
	if said == "" {
		return otherwise
	}
	n, err := strconv.Atoi(said)
	require.NoError(t, err, variable)
	return n
}

// swarmNode is one engine of scripts/swarm.sh, as a test ends it and starts it again.
type swarmNode struct {
	*engine
	t    *testing.T
	pid  int
	dead bool
	args []string   // of its dockerd
	in   []*os.File // its network, host name and mounts, which would go with it
}

func (s *swarmHost) node(i int) *swarmNode {
	s.t.Helper()
	said, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimPrefix(s.nodes[i].url, "unix://")), "docker.pid"))
	require.NoError(s.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(said)))
	require.NoError(s.t, err)
	n := &swarmNode{engine: s.nodes[i], t: s.t, pid: pid}
	s.t.Cleanup(func() { // the next test has all nodes, whatever became of this one
		if n.dead {
			n.live()
			s.until("the node is back", s.allReady)
		}
	})
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	require.NoError(s.t, err)
	n.args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	for _, kind := range []string{"net", "uts", "mnt"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		require.NoError(s.t, err)
		s.t.Cleanup(func() { _ = f.Close() })
		n.in = append(n.in, f)
	}
	return n
}

// die is what a power cut is: the engine and all that it runs end at once.
func (n *swarmNode) die() {
	n.t.Helper()
	n.dead = true
	require.NoError(n.t, syscall.Kill(n.pid, syscall.SIGKILL))
	group := n.args[slices.Index(n.args, "--cgroup-parent")+1] + "/"
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	require.NoError(n.t, err)
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), ":"+group) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the others
		}
	}
}

// live starts the engine anew, with what it had on disk.
func (n *swarmNode) live() {
	n.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"--net=/proc/self/fd/3", "--uts=/proc/self/fd/4", "--mount=/proc/self/fd/5", "--"}, n.args...)...)
	cmd.ExtraFiles = n.in
	require.NoError(n.t, cmd.Start())
	n.pid, n.dead = cmd.Process.Pid, false
	go func() { _ = cmd.Wait() }()
}

type swarmMember struct {
	ID          string
	Description struct{ Hostname string }
	Status      struct{ State string }

	ManagerStatus *struct{ Leader bool }
}

// members are the nodes as the first manager that answers has them; nil for none.
func (s *swarmHost) members() (all []swarmMember) {
	for _, n := range s.nodes {
		if n.call("GET", "/nodes", nil, nil, &all) == nil {
			return all
		}
	}
	return nil
}

// leader is the place of the manager that leads; -1 for none.
func (s *swarmHost) leader() int {
	for _, m := range s.members() {
		if m.ManagerStatus != nil && m.ManagerStatus.Leader {
			n, err := strconv.Atoi(strings.TrimPrefix(m.Description.Hostname, "node-"))
			require.NoError(s.t, err)
			return n - 1
		}
	}
	return -1
}

func (s *swarmHost) allReady() bool {
	all := s.members()
	return len(all) == len(s.nodes) && !slices.ContainsFunc(all, func(m swarmMember) bool { return m.Status.State != "ready" })
}

// closings are the words that end a commit's status, in order.
func closings(states []string) []string {
	return slices.DeleteFunc(slices.Clone(states), func(s string) bool { return s == "pending" })
}

// quick is a service whose node says soon that it is not well, and not because the machine is busy.
func (s *swarmHost) quick(version string, more ...obj) obj {
	return s.served(version, append([]obj{{
		"healthcheck": obj{"interval": "1s", "timeout": "5s", "retries": 3}, "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms", "start_timeout": "20s"}},
	}}, more...)...)
}

// A node dies with all that it runs; later it is back.
func TestANodeOfASwarmDies(t *testing.T) {
	s := newSwarmHost(t)
	s.start()
	s.deployed("The first", s.stack(obj{"web": s.quick("1")}))
	n := s.node(2)
	n.die()
	st := s.await("the node is seen as down", func(st status) bool {
		return st.Cluster != nil && slices.ContainsFunc(st.Cluster.Nodes, func(n struct {
			Name, State string
			Tasks       int
		},
		) bool {
			return n.Name == "node-3" && n.State == "down"
		})
	})
	require.Empty(t, st.Engine, "two of three managers are a quorum")
	s.until("the app is whole on the others", func() bool { return len(s.running("shop_web")) == 3 })
	s.await("it is well", func(st status) bool { return st.service("shop", "web").Ready == 3 })
	next := s.deployed("An update meanwhile", s.stack(obj{"web": s.quick("2")}))
	s.closedAs(next, "success")
	require.Equal(t, []string{"success"}, closings(s.states(next)))
	n.live()
	s.until("the node is back", s.allReady)
	require.Len(t, s.running("shop_web"), 3)
	require.Equal(t, []string{"success"}, closings(s.states(next)))
}

// The manager that leads dies in the middle of an update, again and again: the commit is told
// once how it ended.
func TestLeadersOfASwarmDie(t *testing.T) {
	s := newSwarmHost(t)
	s.start()
	s.deployed("The first", s.stack(obj{"web": s.quick("0")}))
	times, own := counted(t, "GITRING_SWARM_LEADERS", 1), 0
	nodes := []*swarmNode{s.node(0), s.node(1), s.node(2)}
	told := map[string]string{}
	for i := range times {
		version := strconv.Itoa(i + 1)
		bad := i%3 == 2
		app := s.quick(version)
		if bad {
			app = s.quick(version, env("BROKEN", "1"))
		}
		sha := s.repo.pushed("Update "+version, s.stack(obj{"web": app}))
		s.until("the swarm is at it", func() bool {
			for _, n := range s.nodes {
				var v swarmService
				if n.call("GET", "/services/shop_web", nil, nil, &v) == nil {
					return strings.Contains(v.env(), "VERSION="+version+`"`)
				}
			}
			return false
		})
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond) // anywhere in the update
		at := -1
		s.until("somebody leads", func() bool { at = s.leader(); return at >= 0 })
		began := time.Now()
		nodes[at].die()
		s.until("another one leads", func() bool { now := s.leader(); return now >= 0 && now != at })
		led := time.Since(began)
		if at == 0 {
			own++ // without its manager gitring sees nothing, and what runs goes on
			nodes[at].live()
		}
		s.until("the forge hears how it ended", func() bool { return len(closings(s.states(sha))) > 0 })
		if at != 0 {
			nodes[at].live()
		}
		s.until("all are back", s.allReady)
		s.until("the app is whole", func() bool { return len(s.running("shop_web")) == 3 })
		word := strings.Join(closings(s.states(sha)), " ")
		require.NotContains(t, word, " ", "one closing word")
		if bad {
			require.Equal(t, "failure", word)
		}
		told[sha] = word
		t.Logf("kill %d: node-%d led, another one %s later, %s", i+1, at+1, led.Round(time.Second), word)
	}
	for sha, word := range told {
		require.Equal(t, word, strings.Join(closings(s.states(sha)), " "), "never a second one")
	}
	t.Logf("%d kills of a leader, %d of them gitring's own manager: each commit has one closing word", times, own)
}

// Updates that break or are superseded, in an order that a seed gives, of several services at once.
func TestBrokenUpdatesOnASwarmBreakNoFloor(t *testing.T) {
	s := newSwarmHost(t)
	const services = 4
	seed := uint64(counted(t, "GITRING_E2E_SEED", 1)) //nolint:gosec // any number
	rng := rand.New(rand.NewPCG(seed, 0))
	times := counted(t, "GITRING_SWARM_UPDATES", services)
	s.docker(0, "swarm", "update", "--task-history-limit", "100") // what became of a task that served is seen later
	t.Cleanup(func() { s.docker(0, "swarm", "update", "--task-history-limit", "5") })
	s.start()
	name := func(i int) string { return fmt.Sprintf("web%d", i) }
	all := func(more func(i int) obj) files {
		out := obj{}
		for i := range services {
			out[name(i)] = more(i)
		}
		return s.stack(out)
	}
	good, killed := 0, 0
	// Some are killed, and others end with status 0 where they are asked to stop.
	fails := func() obj {
		if rng.IntN(2) == 0 {
			killed++
			return obj{"stop_signal": "SIGKILL"}
		}
		return obj{}
	}
	// So many checks at once take a machine of two cores.
	calm := func(version string, more ...obj) obj {
		return s.quick(version, append([]obj{{"healthcheck": obj{"interval": "2s", "timeout": "15s"}}}, more...)...)
	}
	goods := func() files { return all(func(int) obj { return calm(fmt.Sprint("good-", good)) }) }
	s.deployed("The first", goods())
	var floors []func() int
	for i := range services {
		floors = append(floors, s.floor("shop_"+name(i)))
	}
	done, broke, slow, superseded := 0, 0, 0, 0
	for round := 0; done < times; round++ {
		shas := []string{}
		pushes := 1 + rng.IntN(3)
		for p := range pushes {
			shas = append(shas, s.repo.pushed(fmt.Sprintf("Round %d.%d", round, p), all(func(int) obj {
				version := fmt.Sprintf("bad-%d-%d", round, p)
				if p < pushes-1 && rng.IntN(2) == 0 {
					slow++
					return calm(version, obj{"environment": obj{"READY_AFTER": "3600000"}, "healthcheck": obj{"start_period": "10m"}}, fails())
				}
				broke++
				return calm(version, env("BROKEN", "1"), fails())
			})))
			done += services
			if p < pushes-1 {
				superseded += services
				time.Sleep(time.Duration(rng.IntN(6000)) * time.Millisecond) // anywhere in the update
			}
		}
		last := shas[len(shas)-1]
		s.closedAs(last, "failure")
		s.until("the good ones are whole", func() bool {
			for i := range services {
				v := s.service("shop_" + name(i))
				if !strings.Contains(v.env(), fmt.Sprintf(`VERSION=good-%d"`, good)) || len(s.running("shop_"+name(i))) != 3 {
					return false
				}
			}
			return true
		})
		for _, sha := range shas {
			require.NotContains(t, s.states(sha), "success")
		}
		if rng.IntN(4) == 0 {
			good++
			s.deployed("A good one", goods())
		}
	}
	least := 1 << 30
	for _, fewest := range floors {
		least = min(least, fewest())
	}
	require.GreaterOrEqual(t, least, 3, "seed %d", seed)
	t.Logf("seed %d: %d updates that never came to be (%d broken, %d never ready; %d of all superseded, %d end by SIGKILL), %d good ones between: never fewer than %d of 3 tasks", seed, done, broke, slow, superseded, killed, cmp.Or(good, 0), least)
}

// Two of three managers are away: nothing is decided, what runs goes on, and what was pushed
// meanwhile comes when they are back. A manager with another key may not join at all.
func TestASwarmWithoutQuorumDecidesNothing(t *testing.T) {
	s := newSwarmHost(t)
	s.start()
	s.deployed("The first", s.stack(obj{"web": s.quick("1")}))

	stranger := hostOn(t, s.engine)
	key := filepath.Join(stranger.dir, "cluster-key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("\x02\xfd", 16)), 0o600))
	stranger.config["engine"] = merged(s.config["engine"].(obj), obj{"url": s.nodes[1].url, "key_file": key})
	stranger.launch()
	stranger.until("it ends", stranger.gone)
	require.Contains(t, stranger.tail(5), "key")
	stranger.kill()

	n2, n3 := s.node(1), s.node(2)
	n2.die()
	n3.die()
	s.await("there is no quorum", func(st status) bool {
		return st.Cluster != nil && st.Cluster.State == "no quorum" && strings.Contains(st.Engine, "no quorum")
	})
	_, out := s.run("status")
	require.Contains(t, out, "no quorum")
	here, err := s.engine.containers("gitring.host=" + s.cluster)
	require.NoError(t, err)
	require.NotEmpty(t, here, "what runs on this node goes on")
	sha := s.repo.pushed("Meanwhile", s.stack(obj{"web": s.quick("2")}))
	for range 3 {
		require.Empty(t, closings(s.states(sha)))
		again, err := s.engine.containers("gitring.host=" + s.cluster)
		require.NoError(t, err)
		require.Equal(t, identities(here), identities(again))
		time.Sleep(2 * time.Second)
	}
	n2.live()
	n3.live()
	s.until("all are back", s.allReady)
	s.synced(sha)
	s.closedAs(sha, "success")
	require.Equal(t, []string{"success"}, closings(s.states(sha)))
}
