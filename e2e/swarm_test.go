package e2e

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// registryOfNodes is where the nodes of scripts/swarm.sh reach a registry of the tests.
const registryOfNodes = "10.199.77.254:5000"

// swarmHost is a host whose engine is the first manager of a swarm of the tests' own.
type swarmHost struct {
	*host
	reg     *registry
	forge   *forge
	cluster string
	nodes   []*engine
}

func newSwarmHost(t *testing.T) *swarmHost {
	t.Helper()
	if os.Getenv("GITRING_SWARM") == "" {
		t.Skip("takes a swarm of its own: make swarm")
	}
	s := &swarmHost{reg: newRegistryAt(t, registryOfNodes), forge: &forge{kind: "gitea"}}
	s.reg.push("one")
	s.host = newHost(t)
	s.cluster = "cluster" + strings.TrimPrefix(s.name, "e2e")
	for _, at := range strings.Fields(os.Getenv("GITRING_SWARM_NODES")) {
		s.nodes = append(s.nodes, dial(at))
	}
	key := filepath.Join(s.dir, "cluster-key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("\x01\xfe", 16)), 0o600))
	s.config["engine"] = obj{"kind": "swarm", "url": os.Getenv("GITRING_SWARM"), "cluster": s.cluster, "key_file": key}
	s.config["env"] = obj{"dir": filepath.Join(s.dir, "env")}
	s.config["secrets"] = obj{"at_rest": "disk"}
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "env"), 0o700))
	t.Cleanup(s.empty)
	api := httptest.NewServer(s.forge)
	t.Cleanup(api.Close)
	s.tells("gitea", api.URL)
	t.Cleanup(func() {
		if t.Failed() {
			for _, task := range s.tasks("") {
				t.Logf("task %s of %s slot %d: %s (%s) %s %s", task.ID, task.version(), task.Slot, task.Status.State, task.DesiredState, task.Status.Err, task.NodeID)
			}
		}
	})
	return s
}

// empty removes what the cluster made, for the next test has services of these names.
func (s *swarmHost) empty() {
	s.kill()
	q := url.Values{"filters": {`{"label":["gitring.host=` + s.cluster + `"]}`}}
	for _, kind := range []string{"services", "configs", "secrets", "networks"} {
		s.until("no "+kind+" are left", func() bool {
			var all []struct{ ID string }
			if err := s.engine.call("GET", "/"+kind, q, nil, &all); err != nil {
				return false
			}
			for _, one := range all {
				_ = s.engine.call("DELETE", "/"+kind+"/"+one.ID, nil, nil, nil)
			}
			return len(all) == 0
		})
	}
}

// docker is a command to an engine of the swarm.
func (s *swarmHost) docker(node int, args ...string) {
	s.t.Helper()
	out, err := exec.Command("docker", append([]string{"-H", s.nodes[node].url}, args...)...).CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

// served is a service of three tasks, each asked by its node whether it is well.
func (s *swarmHost) served(version string, more ...obj) obj {
	out := obj{
		"image": s.reg.at + "/web:1", "environment": obj{"VERSION": version},
		"healthcheck": obj{"test": []string{"CMD", "/app", "check", "http://127.0.0.1:8080/healthz"}, "interval": "1s", "timeout": "3s", "retries": 2},
		"deploy":      obj{"replicas": 3, "restart_policy": obj{"condition": "any", "delay": "1s"}},
		"x-gitring":   obj{"rollout": obj{"min_ready_time": "1s", "start_timeout": "60s", "failure_threshold": 1}},
	}
	for _, m := range more {
		out = merged(out, m)
	}
	return out
}

// stack is the Compose file of one app.
func (s *swarmHost) stack(services obj, more ...obj) files {
	f := obj{"services": services}
	for _, m := range more {
		f = merged(f, m)
	}
	b, err := yaml.Marshal(f)
	require.NoError(s.t, err)
	return files{"shop/compose.yaml": string(b)}
}

// swarmTask is a task as a manager lists it.
type swarmTask struct {
	ID, ServiceID, NodeID, DesiredState string
	Slot                                int
	Spec                                struct {
		ContainerSpec struct{ Labels map[string]string }
	}
	Status struct {
		State, Err string
		Timestamp  time.Time
	}
	CreatedAt time.Time
}

// toldOf are tasks in one line, for who looks for why one was missing.
func toldOf(all []swarmTask) string {
	var out []string
	for _, t := range all {
		out = append(out, fmt.Sprintf("slot %d %s %s since %s, meant to be %s, made %s %s", t.Slot, t.version(), t.Status.State, t.Status.Timestamp.Format("15:04:05.000"), t.DesiredState, t.CreatedAt.Format("15:04:05.000"), t.Status.Err))
	}
	return strings.Join(out, "; ")
}

func (t swarmTask) version() string { return t.Spec.ContainerSpec.Labels["gitring.version"] }

// runs reports whether it serves: a task with a check is running once that passed.
func (t swarmTask) runs() bool { return t.Status.State == "running" && t.DesiredState == "running" }

// tasks are those of a service, all that the swarm remembers; "" is every service's.
func (s *swarmHost) tasks(service string) (all []swarmTask) {
	q := url.Values{}
	if service != "" {
		q.Set("filters", `{"service":["`+service+`"]}`)
	}
	for _, n := range s.nodes { // any manager that answers
		if n.call("GET", "/tasks", q, nil, &all) == nil {
			return all
		}
	}
	return nil
}

func (s *swarmHost) running(service string) (ids []string) {
	for _, t := range s.tasks(service) {
		if t.runs() {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// swarmService is a service as a manager has it.
type swarmService struct {
	ID      string
	Version struct{ Index uint64 }
	Spec    map[string]any
}

func (s *swarmHost) service(name string) (out swarmService) {
	s.t.Helper()
	require.NoError(s.t, s.engine.call("GET", "/services/"+name, nil, nil, &out))
	return out
}

func (s swarmService) label(name string) string {
	v, _ := s.Spec["Labels"].(map[string]any)[name].(string)
	return v
}

// envOf is the environment of the tasks of a service.
func (s swarmService) env() string {
	b, _ := json.Marshal(s.Spec["TaskTemplate"].(map[string]any)["ContainerSpec"].(map[string]any)["Env"])
	return string(b)
}

// objects is everything of a kind that the swarm has, as text.
func (s *swarmHost) objects(kind string) string {
	s.t.Helper()
	var all []any
	require.NoError(s.t, s.engine.call("GET", "/"+kind, nil, nil, &all))
	b, err := json.Marshal(all)
	require.NoError(s.t, err)
	return string(b)
}

// names are those of configs or secrets of the cluster, without the lease and the record.
func (s *swarmHost) names(kind string) (out []string) {
	s.t.Helper()
	var all []struct{ Spec struct{ Name string } }
	require.NoError(s.t, s.engine.call("GET", "/"+kind, url.Values{"filters": {`{"label":["gitring.host=` + s.cluster + `"]}`}}, nil, &all))
	for _, one := range all {
		if one.Spec.Name != "gitring."+s.cluster+".record" {
			out = append(out, one.Spec.Name)
		}
	}
	slices.Sort(out)
	return out
}

// floorOf is which slots of a service somebody emptied, by what was seen of its tasks so far. A task
// that an update ends is "shutdown". One that ended by itself, or by its node because its check
// failed, is "complete" or "failed": that is nobody's act.
type floorOf struct {
	served map[int]map[string]bool // by slot, the tasks that were seen to serve last
	own    int                     // how often a slot was empty because what served ended by itself
	// lost reports whether the swarm lost a node, and replaces its tasks: until all serve again that is its act.
	lost   bool
	swarms int // how often a slot was empty for that
}

// noteLost is that a node is not there, or that nobody was for long: this machine stood still.
func (f *floorOf) noteLost(lost bool) { f.lost = f.lost || lost }

// missing is how many slots of three nobody serves, and that an act emptied.
func (f *floorOf) missing(all []swarmTask) (n int) {
	state := map[string]string{}
	serving := map[int]map[string]bool{}
	for _, t := range all {
		state[t.ID] = t.Status.State
		if t.Status.State == "running" { // one that is told to stop serves until its container ends
			if serving[t.Slot] == nil {
				serving[t.Slot] = map[string]bool{}
			}
			serving[t.Slot][t.ID] = true
		}
	}
	for slot := 1; slot <= 3; slot++ {
		if serving[slot] != nil {
			f.served[slot] = serving[slot]
			continue
		}
		acted := len(f.served[slot]) == 0
		for id := range f.served[slot] {
			acted = acted || state[id] == "shutdown" || state[id] == ""
		}
		if acted {
			n++
		} else {
			f.own++
		}
	}
	if f.lost && n > 0 {
		f.swarms += n
		return 0
	}
	f.lost = false
	return n
}

// floor watches how many tasks of a service serve, until it is asked for the fewest. Slots that are
// empty because a task ended by itself are not counted.
func (s *swarmHost) floor(service string) (fewest func() int) {
	stop, least := make(chan struct{}), 1<<30
	f := floorOf{served: map[int]map[string]bool{}}
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for looks := 0; ; looks++ {
			f.noteLost(time.Since(last) > 5*time.Second || looks%10 == 0 && !s.allReady()) // so long may a node be silent
			last = time.Now()
			if all := s.tasks(service); all != nil {
				n := 3 - f.missing(all)
				if n < least && n < 3 {
					s.t.Logf("%s: %d tasks of %s serve: %s", time.Now().UTC().Format("15:04:05.000"), n, service, toldOf(all))
				}
				least = min(least, n)
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	return func() int {
		close(stop)
		done.Wait()
		if f.own > 0 {
			s.t.Logf("%s: a slot was empty in %d looks because its task ended by itself", service, f.own)
		}
		if f.swarms > 0 {
			s.t.Logf("%s: a slot was empty %d times because the swarm lost a node", service, f.swarms)
		}
		return least
	}
}

// states are what the forge was told of a commit's app.
func (s *swarmHost) states(sha string) []string {
	states, _ := s.forge.of(sha, "gitring/"+s.cluster+"/shop")
	return states
}

func (s *swarmHost) closedAs(sha, word string) {
	s.t.Helper()
	s.until("the forge hears "+word+" of "+sha[:7], func() bool { return slices.Contains(s.states(sha), word) })
}

// The road of a commit on three real engines, from the first push to the app's end.
func TestTheRoadOfACommitOnASwarm(t *testing.T) {
	s := newSwarmHost(t)
	const name = "shop_web"
	s.hostValue("shop/db.txt", "hunter2-never-anywhere")
	withFiles := func(version, conf string, more ...obj) files {
		f := s.stack(obj{"web": s.served(version, append([]obj{{
			"volumes": []any{"./app.conf:/etc/app.conf:ro"}, "secrets": []any{"db"},
		}}, more...)...)}, obj{"secrets": obj{"db": obj{"file": "./db.txt"}}})
		f["shop/app.conf"] = conf
		return f
	}
	s.start()
	first := s.deployed("The first", withFiles("1", "a=1"))
	require.Len(t, s.running(name), 3)
	s.closedAs(first, "success")
	st := s.status()
	require.Equal(t, s.name, st.Host, "the host is this machine")
	require.Equal(t, s.cluster, st.Cluster.Name)
	require.Len(t, st.Cluster.Nodes, len(s.nodes))
	tasks := 0
	for _, n := range st.Cluster.Nodes {
		require.Equal(t, "ready", n.State)
		tasks += n.Tasks
	}
	require.Equal(t, 3, tasks)
	for _, in := range st.service("shop", "web").Instances {
		require.NotEmpty(t, in.Node)
	}
	v := s.service(name)
	require.Equal(t, s.cluster, v.label("gitring.host"))
	require.Equal(t, "shop", v.label("com.docker.stack.namespace"))
	require.Equal(t, "pause", v.Spec["UpdateConfig"].(map[string]any)["FailureAction"])

	// The value is a secret of the swarm. Neither it nor a hash that anybody could try stands anywhere.
	require.Len(t, s.names("secrets"), 1)
	require.Len(t, s.names("configs"), 1)
	plain := sha256Of([]byte("hunter2-never-anywhere"))[len("sha256:"):]
	for _, kind := range []string{"services", "tasks", "configs", "secrets", "networks"} {
		text := s.objects(kind)
		require.NotContains(t, text, "hunter2", kind)
		require.NotContains(t, text, plain[:8], kind)
	}
	s.nowhere("hunter2-never-anywhere")
	code, out := s.run("logs", "shop/web", "-n", "5")
	require.Zero(t, code, out)

	t.Run("a rolling update keeps every task serving", func(t *testing.T) {
		fewest := s.floor(name)
		second := s.deployed("The second", withFiles("2", "a=1"))
		require.GreaterOrEqual(t, fewest(), 3)
		require.Contains(t, s.service(name).env(), "VERSION=2")
		s.closedAs(second, "success")
	})
	before := s.running(name)

	t.Run("a broken one is taken back by gitring", func(t *testing.T) {
		fewest := s.floor(name)
		bad := s.repo.pushed("A broken one", withFiles("3", "a=1", env("BROKEN", "1")))
		s.closedAs(bad, "failure")
		s.until("the good one is whole", func() bool { return strings.Contains(s.service(name).env(), "VERSION=2") && len(s.running(name)) == 3 })
		require.GreaterOrEqual(t, fewest(), 3)
		require.NotContains(t, s.states(bad), "success")
		_, told := s.journalled("rollout.restored", "shop", "web", "")
		require.True(t, told)
	})

	t.Run("a broken one behind one that never gets ready goes back to the good one", func(t *testing.T) {
		fewest := s.floor(name)
		slow := s.repo.pushed("Never ready", withFiles("7", "a=1", obj{"environment": obj{"READY_AFTER": "3600000"}, "healthcheck": obj{"start_period": "10m"}}))
		s.until("the swarm is at it", func() bool { return strings.Contains(s.service(name).env(), "VERSION=7") })
		bad := s.repo.pushed("And a broken one", withFiles("8", "a=1", env("BROKEN", "1")))
		s.closedAs(bad, "failure")
		s.until("the good one is whole", func() bool { return strings.Contains(s.service(name).env(), "VERSION=2") && len(s.running(name)) == 3 })
		require.GreaterOrEqual(t, fewest(), 3)
		require.NotContains(t, append(s.states(slow), s.states(bad)...), "success")
	})

	t.Run("a revert touches nothing", func(t *testing.T) {
		was := s.running(name)
		back := s.deployed("Back", withFiles("2", "a=1"))
		require.Equal(t, was, s.running(name))
		s.closedAs(back, "success")
	})
	t.Logf("tasks of the second commit that serve still: %d of 3", len(slices.DeleteFunc(before, func(id string) bool { return !slices.Contains(s.running(name), id) })))

	t.Run("a changed file is another config and a new version", func(t *testing.T) {
		was := s.names("configs")
		s.deployed("Another file", withFiles("2", "a=2"))
		s.until("the old config is kept for the way back alone", func() bool { now := s.names("configs"); return len(now) >= 1 && !slices.Equal(now, was) })
	})

	t.Run("what a hand changed is put back", func(t *testing.T) {
		v := s.service(name)
		v.Spec["Mode"].(map[string]any)["Replicated"].(map[string]any)["Replicas"] = 1
		b, err := json.Marshal(v.Spec)
		require.NoError(t, err)
		require.NoError(t, s.engine.call("POST", "/services/"+v.ID+"/update", url.Values{"version": {fmt.Sprint(v.Version.Index)}}, strings.NewReader(string(b)), nil))
		s.until("it is put back", func() bool { _, told := s.journalled("drift.healed", "shop", "web", "changed by hand"); return told })
		s.until("it is three again", func() bool { return len(s.running(name)) == 3 })
		require.InDelta(t, 3, s.service(name).Spec["Mode"].(map[string]any)["Replicated"].(map[string]any)["Replicas"], 0)
	})

	t.Run("what a swarm has no place for is refused, and the rest goes on", func(t *testing.T) {
		s.repo.pushed("More than a task may", withFiles("2", "a=2", obj{"shm_size": "1m"}))
		st := s.await("it is refused", func(st status) bool { return st.app("shop").Refusal != nil })
		require.Equal(t, "Unsupported", st.app("shop").Refusal.Code)
		require.Len(t, s.running(name), 3)
		s.deployed("Without it", withFiles("2", "a=2"))
	})

	for _, args := range [][]string{{"adopt", "shop"}, {"leave", "shop"}, {"prove", "shop/web"}} {
		code, out := s.run(append(args, "--reason", "a test")...)
		if strings.Contains(out, "unknown flag") {
			code, out = s.run(args...)
		}
		require.NotZero(t, code, out)
		require.Contains(t, out, "on a swarm", args[0])
	}
	for _, args := range [][]string{{"inspect", "shop/web"}, {"outdated"}, {"doctor"}, {"status", "-o", "wide"}, {"history", "shop"}, {"plan"}} {
		_, out := s.run(args...)
		require.NotContains(t, out, "error:", "%v", args)
		t.Logf("%v\n%s", args, out)
	}

	t.Run("an app that left is gone", func(t *testing.T) {
		s.repo.write(files{"other/compose.yaml": "services: {idle: {image: \"" + s.reg.at + "/web:1\"}}\n"})
		s.deployed("Another app comes", nil)
		s.deployed("And the first one goes", files{"shop": ""})
		s.until("nothing of it is left", func() bool {
			return len(s.names("secrets")) == 0 && len(s.names("configs")) == 0 && s.engine.call("GET", "/services/"+name, nil, nil, nil) != nil
		})
	})
	s.forge.check(t)
	require.NoError(t, s.stop())
}

// The shortest road: a first deploy, an update, and a broken one that is taken back. It is what
// each change is tried with, on a swarm of one node.
func TestAShortRoadOnASwarm(t *testing.T) {
	s := newSwarmHost(t)
	app := func(version string, more ...obj) files {
		return s.stack(obj{"web": s.quick(version, append([]obj{replicas(2)}, more...)...)})
	}
	s.start()
	s.closedAs(s.deployed("The first", app("1")), "success")
	s.closedAs(s.deployed("The second", app("2")), "success")
	bad := s.repo.pushed("A broken one", app("3", env("BROKEN", "1")))
	s.closedAs(bad, "failure")
	s.until("the good one is whole", func() bool {
		return strings.Contains(s.service("shop_web").env(), "VERSION=2") && len(s.running("shop_web")) == 2
	})
	require.Equal(t, []string{"failure"}, closings(s.states(bad)))
	require.NoError(t, s.stop())
}

// TestOneNodeIsASwarm runs the short road beside an engine of its own.
func TestOneNodeIsASwarm(t *testing.T) {
	needEngine(t)
	if os.Getenv("GITRING_SWARM") != "" {
		t.Skip("a swarm is here")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may run engines")
	}
	for _, program := range []string{"dockerd", "docker", "docker-registry", "ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
			t.Skip(program + " is not on this machine")
		}
	}
	t.Parallel()
	self, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "../scripts/swarm.sh", "1", self, "-test.run", "^TestAShortRoadOnASwarm$", "-test.timeout", "8m")
	cmd.Env = append(os.Environ(), "GITRING_E2E_BINARY="+binary)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
	require.NotContains(t, string(out), "no tests to run")
}
