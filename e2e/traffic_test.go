package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requests are clients of a port of this host that ask again and again, each waiting for
// its answer: what is lost is counted, whatever the reason.
type requests struct {
	at   string // host:port
	quit chan struct{}
	all  sync.WaitGroup

	mu   sync.Mutex     // guards what follows
	done map[string]int // by kind
	by   map[string]int // by the version that answered
	lost []string
}

// The kinds of clients: what can be lost differs between them.
var kinds = []string{"GET on a kept connection", "GET on new ones", "POST on a kept connection", "POST on new ones"}

// ask begins one client of each kind, at a port of this host.
func ask(port string) *requests { return askAt("127.0.0.1:" + port) }

func askAt(at string) *requests {
	r := &requests{at: at, quit: make(chan struct{}), done: map[string]int{}, by: map[string]int{}}
	for _, kind := range kinds {
		c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: strings.HasSuffix(kind, "new ones")}}
		r.all.Go(func() {
			defer c.CloseIdleConnections()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-r.quit:
					return
				case <-tick.C:
				}
				version, err := once(c, r.at, kind, n)
				r.mu.Lock()
				r.by[version]++
				if r.done[kind]++; err != nil {
					r.lost = append(r.lost, time.Now().UTC().Format("15:04:05.000 ")+kind+": "+err.Error())
				}
				r.mu.Unlock()
			}
		})
	}
	return r
}

// once is one request, and the version that answered: it is lost unless it is answered, whole.
func once(c *http.Client, at, kind string, n int) (version string, err error) {
	var res *http.Response
	want := ""
	if strings.HasPrefix(kind, "POST") {
		want = fmt.Sprintf("request %d of %s", n, kind)
		res, err = c.Post("http://"+at+"/echo", "text/plain", strings.NewReader(want))
	} else {
		res, err = c.Get("http://" + at + "/")
	}
	if err != nil {
		return "", err
	}
	version = res.Header.Get("Version")
	body, err := io.ReadAll(res.Body)
	switch err = errors.Join(err, res.Body.Close()); {
	case err != nil:
		return version, err
	case res.StatusCode != http.StatusOK:
		return version, fmt.Errorf("%s: %s", res.Status, body)
	case want != "" && string(body) != want:
		return version, fmt.Errorf("it was answered %q", body)
	}
	return version, nil
}

// asked is how many requests there were, and those that were lost.
func (r *requests) asked() (n int, lost []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.done {
		n += k
	}
	return n, slices.Clone(r.lost)
}

// lostNone stops the clients, once each was answered a few times more, and none was lost of all
// requests: how many there were.
func (r *requests) lostNone(t *testing.T, h *host) (all int) {
	t.Helper()
	r.more(h, 5)
	all, lost := r.stop(t)
	require.Empty(t, lost, "of %d requests", all)
	return all
}

// begin has the daemon start with a first version, which serves at a port.
func (h *host) begin(port string, first files) {
	h.t.Helper()
	sha := h.repo.pushed("Version 1", first)
	h.start()
	h.synced(sha)
	h.serves(port, "1")
}

// more waits until each client was answered, or lost, that many times more.
func (r *requests) more(h *host, n int) {
	h.t.Helper()
	r.mu.Lock()
	from := map[string]int{}
	for _, kind := range kinds {
		from[kind] = r.done[kind]
	}
	r.mu.Unlock()
	h.until("requests are answered", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !slices.ContainsFunc(kinds, func(kind string) bool { return r.done[kind] < from[kind]+n })
	})
}

// stop ends all clients, after the request under way of each.
func (r *requests) stop(t *testing.T) (n int, lost []string) {
	t.Helper()
	close(r.quit)
	r.all.Wait()
	for _, kind := range kinds {
		require.Positive(t, r.done[kind], "%s: it shows nothing", kind)
	}
	return r.asked()
}

// fronted is a service with a front on a port of the host. Its program ends at once when it
// is told to stop.
func fronted(version, port string, more ...obj) obj {
	s := web(version, append([]obj{
		{"ports": []any{port + ":8080"}, "x-gitring": obj{"publish": "front"}}, env("ABRUPT", "1"), rollout(obj{"min_ready_time": "200ms"}),
	}, more...)...)
	return s
}

// serves waits until the port answers with a version.
func (h *host) serves(port, version string) {
	h.t.Helper()
	h.until("port "+port+" serves version "+version, func() bool {
		c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Get("http://127.0.0.1:" + port + "/")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return err == nil && res.StatusCode == http.StatusOK && string(body) == version
	})
}

// live pushes and has the daemon look at once, then waits until all of it is live.
func (h *host) live(subject string, fs files) string {
	h.t.Helper()
	sha := h.repo.pushed(subject, fs)
	_, _ = h.run("sync")
	h.synced(sha)
	return sha
}

func TestUpdatesBehindAFrontLoseNoRequest(t *testing.T) {
	t.Parallel()
	updates := amount(t, "UPDATES", 8, 100)
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": fronted(strconv.Itoa(n), port, replicas(2))})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	h.serves(port, "0")
	front := h.one("web-front")
	require.Equal(t, "always", front.HostConfig.RestartPolicy.Name)

	load := ask(port)
	load.more(h, 5)
	for n := 1; n <= updates; n++ {
		h.live(fmt.Sprintf("Version %d", n), version(n))
	}
	h.serves(port, strconv.Itoa(updates))
	all := load.lostNone(t, h)
	require.Equal(t, front.ID, h.one("web-front").ID, "no update of the service makes its front anew")
	require.Len(t, h.containers("web"), 2)
	t.Logf("%d updates, %d requests, none lost", updates, all)
}

func TestRequestsWaitWhileWhatCannotOverlapIsRecreated(t *testing.T) {
	t.Parallel()
	times := amount(t, "RECREATES", 3, 20)
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": fronted(strconv.Itoa(n), port, env("DATA", "/data"), obj{"volumes": []any{"data:/data"}, "environment": obj{"ABRUPT": "0"}}),
		}, obj{"volumes": obj{"data": obj{}}})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	h.serves(port, "0")
	load := ask(port)
	load.more(h, 5)
	for n := 1; n <= times; n++ {
		h.live(fmt.Sprintf("Version %d", n), version(n))
	}
	load.lostNone(t, h)
	require.Equal(t, times+1, onlyOne(t, h.journal(h.one("web"))), "never two at once on its data")
}

func TestADaemonKilledInUpdatesBehindAFrontLosesNoRequest(t *testing.T) {
	t.Parallel()
	kills, r := amount(t, "FRONT_KILLS", 4, 100), dice(t)
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": fronted(strconv.Itoa(n), port, replicas(2))})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	h.serves(port, "0")
	load := ask(port)
	load.more(h, 5)
	last := ""
	for n := 1; n <= kills; n++ {
		mark := h.events.mark()
		last = h.repo.pushed(fmt.Sprintf("Version %d", n), version(n))
		h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "create" || e.Action == "start" || e.Action == "kill" })
		pause(time.Duration(r.IntN(2500)) * time.Millisecond)
		h.kill()
		h.launch()
	}
	h.synced(last)
	h.serves(port, strconv.Itoa(kills))
	load.lostNone(t, h)
}

func TestAProxyThatIsKilledLosesWhatIsInFlightAlone(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it ends a process of another user")
	}
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	h.begin(port, files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port)})})
	before := h.one("web-front")
	load := ask(port)
	load.more(h, 5)
	const times = 3
	for range times {
		pids := h.processes(before.ID)
		require.GreaterOrEqual(t, len(pids), 2, "a supervisor and its proxy")
		require.NoError(t, syscall.Kill(pids[len(pids)-1], syscall.SIGKILL))
		load.more(h, 20)
	}
	_, lost := load.stop(t)
	require.LessOrEqual(t, len(lost), times*len(kinds), "no more than each client's one request: %v", lost)
	for _, why := range lost {
		require.NotContains(t, why, "refused")
	}
	require.Equal(t, identities([]*container{before}), identities([]*container{h.one("web-front")}), "the container goes on")
}

// processes are the pids of a container on the host, the first process before its children: their
// numbers begin anew at some time, so the order of those does not say.
func (h *host) processes(id string) []int {
	h.t.Helper()
	var top struct{ Processes [][]string }
	require.NoError(h.t, h.engine.call("GET", "/containers/"+id+"/top", url.Values{"ps_args": {"-o pid,ppid"}}, nil, &top))
	parent := map[int]int{}
	for _, p := range top.Processes {
		pid, err := strconv.Atoi(p[0])
		require.NoError(h.t, err)
		parent[pid], err = strconv.Atoi(p[1])
		require.NoError(h.t, err)
	}
	pids := slices.Collect(maps.Keys(parent))
	depth := func(pid int) int {
		if _, child := parent[parent[pid]]; child {
			return 1
		}
		return 0
	}
	slices.SortFunc(pids, func(a, b int) int { return cmp.Or(depth(a)-depth(b), a-b) })
	return pids
}

func TestAFrontServesAfterARebootWithoutGitring(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	h := hostOn(t, e.engine)
	app, port := h.app("web"), h.freePort()
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port, replicas(2))})})
	forwarded(t, h.subnets[app])
	h.start()
	h.synced(first)
	h.serves(port, "1")
	settled(h)
	h.kill()
	e.end(syscall.SIGTERM)
	left := processesWith("-namespace", filepath.Base(e.dir))
	bury(left)
	e.start()
	h.serves(port, "1") // nobody but the engine started anything
	load := ask(port)
	load.more(h, 15)
	load.lostNone(t, h)
	h.events = e.listen(t, h.name)
	mark := h.events.mark()
	h.start()
	h.synced(first)
	require.Empty(t, h.events.after(mark, "create", "destroy"), "and who comes back has nothing to make")
}

// forwarded lets containers of a network reach each other, where an engine that leaves
// iptables alone runs beside one that has the kernel drop what it does not know.
func forwarded(t *testing.T, subnet string) {
	t.Helper()
	if _, err := exec.LookPath("iptables"); err != nil {
		return
	}
	rule := []string{"FORWARD", "-s", subnet, "-d", subnet, "-j", "ACCEPT"}
	out, err := exec.Command("iptables", append([]string{"-w", "-I"}, rule...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if out, err := exec.Command("iptables", append([]string{"-w", "-D"}, rule...)...).CombinedOutput(); err != nil {
			t.Errorf("cannot take the rule away: %v %s", err, out)
		}
	})
}

func TestLabelsOfAProxyMoveToTheFront(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	routes := obj{
		"labels": obj{"traefik.enable": "true", "traefik.http.routers.web.rule": "Host(`a.example.org`)", "traefik.http.services.web.loadbalancer.server.port": "8080", "team": "blue"},
	}
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v, routes, replicas(2), obj{"x-gitring": obj{"publish": "front"}})})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	front := h.one("web-front")
	require.Equal(t, "true", front.Config.Labels["traefik.enable"])
	require.Equal(t, "Host(`a.example.org`)", front.Config.Labels["traefik.http.routers.web.rule"])
	require.NotContains(t, front.Config.Labels, "team")
	for _, c := range h.containers("web") {
		require.NotContains(t, c.Config.Labels, "traefik.http.routers.web.rule")
		require.Equal(t, "blue", c.Config.Labels["team"])
	}
	require.Equal(t, app, front.Config.Labels["com.docker.compose.project"])
	require.Equal(t, "web-front", front.Config.Labels["com.docker.compose.service"])

	// Who routes by the labels reaches the service by the front's address and port.
	res, err := http.Get("http://" + net.JoinHostPort(front.address(), "8080") + "/")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, errors.Join(err, res.Body.Close()))
	require.Equal(t, "1", string(body))

	var all []struct {
		App, Service, Container, Build string
		Generation                     int
		Instances                      []struct{ State string }
	}
	code, out := h.run("traffic", app+"/web", "-o", "json")
	require.Equal(t, 0, code, out)
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 1)
	require.Equal(t, strings.TrimPrefix(front.Name, "/"), all[0].Container)
	require.Len(t, all[0].Instances, 2)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", all[0].Build)
	code, out = h.run("traffic", app+"/nothing")
	require.Equal(t, 4, code, out)
}

// Who routes by the labels asks the front at its own address, which no update of the service
// changes.
func TestUpdatesOfALabelledServiceLoseNoRequest(t *testing.T) {
	t.Parallel()
	updates := amount(t, "LABEL_UPDATES", 4, 100)
	h := newHost(t)
	app := h.app("web")
	routes := obj{
		"labels":      obj{"traefik.enable": "true", "traefik.http.services.web.loadbalancer.server.port": "8080"},
		"environment": obj{"ABRUPT": "1"}, "x-gitring": obj{"publish": "front"},
	}
	version := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(strconv.Itoa(n), routes, rollout(obj{"min_ready_time": "200ms"}))})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	front := h.one("web-front")
	load := askAt(net.JoinHostPort(front.address(), "8080"))
	load.more(h, 5)
	for n := 1; n <= updates; n++ {
		h.live(fmt.Sprintf("Version %d", n), version(n))
	}
	all := load.lostNone(t, h)
	require.Equal(t, identities([]*container{front}), identities([]*container{h.one("web-front")}))
	require.Positive(t, load.by[strconv.Itoa(updates)], "the last version answered")
	t.Logf("%d updates, %d requests, none lost", updates, all)
}

// Where no file names a port, the front listens on what the image exposes, as the engine says.
func TestAFrontListensOnWhatTheImageExposes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	exposes := "gitring-e2e-exposes-" + app + ":1"
	require.NoError(t, h.engine.loadProgram(exposes, program, []string{"app"}, `ENTRYPOINT ["/app"]`, `CMD ["serve"]`, `EXPOSE 8080`))
	t.Cleanup(func() { h.engine.unload(exposes) })
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v, replicas(2), obj{"image": exposes, "x-gitring": obj{"publish": "front"}}, rollout(obj{"min_ready_time": "200ms"}))})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	front := h.one("web-front")
	load := askAt(net.JoinHostPort(front.address(), "8080"))
	load.more(h, 5)
	h.live("Version 2", version("2"))
	load.lostNone(t, h)
	require.Positive(t, load.by["2"])
	require.Equal(t, identities([]*container{front}), identities([]*container{h.one("web-front")}))
}

func TestAServiceGetsAFrontAndLosesItAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(v, publish string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": fronted(v, port, obj{"x-gitring": obj{"publish": publish}})})}
	}
	h.begin(port, version("1", "direct"))
	require.Empty(t, h.containers("web-front"))

	h.live("A front", version("1", "front"))
	h.serves(port, "1")
	require.Len(t, h.containers("web-front"), 1)
	load := ask(port)
	load.more(h, 5)
	h.live("Version 2", version("2", "front"))
	h.serves(port, "2")
	_, lost := load.stop(t)
	require.Empty(t, lost)
	folders, err := os.ReadDir(filepath.Join(h.dir, "state/fronts"))
	require.NoError(t, err)
	require.Len(t, folders, 1)

	h.live("No front", version("2", "direct"))
	h.serves(port, "2")
	h.until("the front is gone", func() bool { return len(h.containers("web-front")) == 0 })
	require.Len(t, h.containers("web"), 1)
	h.until("the folders of the front are gone", func() bool {
		folders, err := os.ReadDir(filepath.Join(h.dir, "state/fronts"))
		return err == nil && len(folders) == 0
	})
}

func TestNewerProxiesTakeTheOpenPortsOver(t *testing.T) {
	t.Parallel()
	times := amount(t, "PROXY_UPGRADES", 3, 20)
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	h.begin(port, files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port)})})
	front := h.one("web-front")
	require.NoError(t, h.stop()) // a daemon that finds a front has its program ready
	h.start()
	programs := filepath.Join(h.dir, "state/front")
	entries, err := os.ReadDir(programs)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	program, err := os.ReadFile(filepath.Join(programs, entries[0].Name(), "front"))
	require.NoError(t, err)
	load := ask(port)
	load.more(h, 5)
	for n := range times {
		// Another build of the same program: what stands behind a program does not change it.
		sum := placeProxy(t, programs, append(bytes.Clone(program), byte(n)))
		require.NoError(t, h.engine.call("POST", "/containers/"+front.ID+"/kill", url.Values{"signal": {"HUP"}}, nil, nil))
		h.until("the front has the newest proxy", func() bool { return h.proxyOf(app, "web") == "sha256:"+sum })
		load.more(h, 5)
	}
	all, lost := load.stop(t)
	require.Empty(t, lost, "of %d requests", all)
	require.Equal(t, identities([]*container{front}), identities([]*container{h.one("web-front")}))
}

// placeProxy lays a program out as the daemon does, and returns its hash.
func placeProxy(t *testing.T, programs string, program []byte) string {
	t.Helper()
	sum := strings.TrimPrefix(sha256Of(program), "sha256:")
	dir := filepath.Join(programs, sum)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "front.new"), program, 0o555))
	require.NoError(t, os.Rename(filepath.Join(dir, "front.new"), filepath.Join(dir, "front")))
	return sum
}

// proxyOf is the build of the proxy that the front of a service says to run.
func (h *host) proxyOf(app, service string) string {
	h.t.Helper()
	_, out := h.run("traffic", app+"/"+service, "-o", "json")
	var all []struct{ Build string }
	if json.Unmarshal([]byte(out), &all) != nil || len(all) != 1 {
		return ""
	}
	return all[0].Build
}

// oldRelease is the commit before fronts.
const oldRelease = "87fcf295f03fecef533b065258da0012a34f404e"

// It is compiled whole, which is 40 s of work, so GITRING_E2E_LONG asks for it.
func TestAHostOfTheReleaseBeforeFrontsIsUpgradedWithoutATouch(t *testing.T) {
	t.Parallel()
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("compiles an old release: GITRING_E2E_LONG=1 asks for it")
	}
	old := programOf(t, cmp.Or(os.Getenv("GITRING_E2E_BEFORE_FRONTS"), oldRelease))

	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"web": web("1", replicas(2)), "out": web("1", obj{"ports": []any{port + ":8080"}, "labels": obj{"traefik.enable": "true"}}), "db": db("1", "./pg"),
	})})
	h.program = old
	h.start()
	h.synced(first)
	settled(h)
	require.NoError(t, h.stop())
	mark, before := h.events.mark(), identities(h.containers())
	h.program = ""
	h.start()
	h.synced(first)
	code, said := h.run("sync", "--wait")
	require.Equal(t, 0, code, said)
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))
}

func TestAFrontIsHandedBackAndTakenBackAsItIs(t *testing.T) {
	t.Parallel()
	p := handed(t)
	port := p.freePort()
	first := p.commit("A shop", obj{"web": fronted("1", port, replicas(2))}, nil)
	p.start()
	p.synced(first)
	p.serves(port, "1")
	settled(p.host)
	before := identities(p.containers())
	load := ask(port)
	load.more(p.host, 5)
	dir, said := p.left()
	require.Contains(t, said, "docker compose up -d --remove-orphans")
	file, err := os.ReadFile(filepath.Join(dir, "compose.gitring.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(file), "web-front:")
	table, err := filepath.Glob(filepath.Join(p.dir, "state/fronts/*/table/table.json"))
	require.NoError(t, err)
	require.Len(t, table, 1)
	told, err := os.ReadFile(table[0])
	require.NoError(t, err)
	require.Contains(t, string(told), `"name":"web"`, "whatever Compose makes of it later")
	load.more(p.host, 5)
	if p.program != nil {
		p.docker(dir, "up", "-d", "--no-recreate")
		require.Equal(t, before, identities(p.containers()))
	}
	code, out := p.run("adopt", p.app, "--reason", "a test")
	require.Equal(t, 0, code, out)
	p.synced(first)
	second := p.commit("Version 2", obj{"web": fronted("2", port, replicas(2))}, nil)
	p.synced(second)
	p.serves(port, "2")
	_, lost := load.stop(t)
	require.Empty(t, lost)
	front := p.one("web-front")
	require.Contains(t, before, identity{front.ID, front.State.StartedAt, front.RestartCount}, "the front was never touched")
}

// The way out that leave tells: Compose alone, in the app's own folder.
func TestAfterLeaveComposeGetsThePortsBackAndTouchesNoData(t *testing.T) {
	t.Parallel()
	p := handed(t)
	if p.program == nil {
		t.Skip("docker compose is not here, nor bin/docker-compose (scripts/compose.sh)")
	}
	port := p.freePort()
	data := merged(env("DATA", "/data", "ABRUPT", "0"), obj{"volumes": []any{"pg:/data"}})
	first := p.commit("A shop", obj{"web": fronted("1", port, data), "other": web("1")}, nil)
	p.start()
	p.synced(first)
	p.serves(port, "1")
	settled(p.host)
	p.tell(p.one("web"), "/write?path=/data/kept&text=precious")
	before := p.one("web").Mounts
	_, said := p.left()
	require.Contains(t, said, "docker compose up -d --remove-orphans")
	require.NoError(t, p.stop())

	clone := filepath.Join(p.dir, "opt")
	out, err := exec.Command("git", "clone", "-q", p.repo.bare, clone).CombinedOutput()
	require.NoError(t, err, "%s", out)
	up := p.docker(filepath.Join(clone, p.app), "up", "-d", "--remove-orphans")
	p.serves(port, "1")
	now := p.all()
	require.NotContains(t, now, "web-front/1", "%s", up)
	require.Len(t, now, 2, "%s", up)
	web := now["web/1"]
	require.Equal(t, before, web.Mounts, "the volume of before")
	code, text := p.ask(web, "/file?path=/data/kept")
	require.Equal(t, 200, code)
	require.Equal(t, "precious", text)
	require.Equal(t, 2, onlyOne(t, p.journal(web)), "one after the other on the data")
}
