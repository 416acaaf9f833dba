package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hubProcess is a hub of the built program, with its file of tokens.
type hubProcess struct {
	t       *testing.T
	dir     string
	address string
	before  []string // the program that runs it, such as strace; none is none

	mu  sync.Mutex // guards what follows
	cmd *exec.Cmd
	pid int
}

func newHub(t *testing.T, before ...string) *hubProcess {
	t.Helper()
	u := &hubProcess{t: t, dir: t.TempDir(), address: freePort(t), before: before}
	body, err := json.Marshal(obj{"state": filepath.Join(u.dir, "state"), "listen": obj{"api": obj{"address": u.address}}, "api": obj{"tokens": filepath.Join(u.dir, "tokens")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(u.config(), body, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(u.dir, "tokens"), nil, 0o600))
	return u
}

func (u *hubProcess) config() string { return filepath.Join(u.dir, "hub.yaml") }

// token writes a line of the file, and gives the token. It is made here, as the file's page says.
func (u *hubProcess) token(name, scopes string) string {
	u.t.Helper()
	secret := make([]byte, 32)
	_, err := rand.Read(secret)
	require.NoError(u.t, err)
	id := strings.ToLower(rand.Text()[:8])
	text := "grt_" + id + "_" + base64.RawURLEncoding.EncodeToString(secret)
	f, err := os.OpenFile(filepath.Join(u.dir, "tokens"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(u.t, err)
	_, err = fmt.Fprintf(f, "%s %s %s until=never sha256:%x\n", id, name, scopes, sha256.Sum256([]byte(text)))
	require.NoError(u.t, err)
	require.NoError(u.t, f.Close())
	return text
}

// begin starts it, and waits until it answers.
func (u *hubProcess) begin() {
	u.t.Helper()
	args := append(slices.Clone(u.before), binary, "hub", "--config", u.config())
	cmd := exec.Command(args[0], args[1:]...)
	log, err := os.OpenFile(filepath.Join(u.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(u.t, err)
	defer log.Close() //nolint:errcheck // the process has its own
	cmd.Stderr = log
	require.NoError(u.t, cmd.Start())
	u.mu.Lock()
	u.cmd, u.pid = cmd, cmd.Process.Pid
	u.mu.Unlock()
	u.t.Cleanup(u.end)
	require.Eventually(u.t, func() bool {
		res, err := http.Get("http://" + u.address + "/v1/session") //nolint:noctx // on loopback
		if err != nil {
			return false
		}
		return res.Body.Close() == nil
	}, time.Minute, 5*time.Millisecond, "the hub does not answer: %s", u.log())
}

func (u *hubProcess) log() string {
	body, _ := os.ReadFile(filepath.Join(u.dir, "log"))
	return string(body)
}

// end kills it, and waits for its end.
func (u *hubProcess) end() {
	u.mu.Lock()
	cmd := u.cmd
	u.cmd = nil
	u.mu.Unlock()
	if cmd == nil {
		return
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	if len(u.before) > 0 { // who runs it ends with it, and not the other way round
		children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		require.NoError(u.t, err)
		child, err := strconv.Atoi(strings.TrimSpace(string(children)))
		require.NoError(u.t, err)
		require.NoError(u.t, syscall.Kill(child, syscall.SIGKILL))
	} else {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
}

// resident is how much memory it has, in KiB; 0 where it does not run.
func (u *hubProcess) resident() (kib int) {
	u.mu.Lock()
	pid := u.pid
	u.mu.Unlock()
	body, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, _ = strconv.Atoi(f[1])
		}
	}
	return kib
}

func (u *hubProcess) get(path, token string) (code int, body string) {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), http.MethodGet, "http://"+u.address+path, nil)
	require.NoError(u.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(u.t, err)
	defer res.Body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(res.Body)
	require.NoError(u.t, err)
	return res.StatusCode, string(raw)
}

// teller is a host that is only simulated: it speaks to a hub as the reference says, with nothing of
// the program's own code.
type teller struct {
	name, token, url string
	client           *http.Client
	status           json.RawMessage
	lines            []obj  // of the report
	want             string // what the hub's disk is to hold of them
	cursor           string
}

func (h *teller) append(reason string) {
	n := len(h.lines) + 1
	event := fmt.Sprintf(`{"seq":%d,"at":"2026-11-27T12:00:00Z","kind":"rollout.began","app":"shop","service":"web","reason":%q}`, n, reason)
	sum := sha256.Sum256([]byte(h.name + event))
	hash := hex.EncodeToString(sum[:4])
	h.lines = append(h.lines, obj{"hash": hash, "event": json.RawMessage(event)})
	h.want += hash + " " + event + "\n"
}

// tell makes one report. Where it is cut, the hub takes it and nobody reads the answer.
func (h *teller) tell(ctx context.Context, cut bool) error {
	report := obj{"host": h.name, "gitring": "1.0.0", "at": time.Now().UTC(), "after": h.cursor, "status": h.status}
	if h.cursor != "" {
		seq, _, _ := strings.Cut(h.cursor, ".")
		n, err := strconv.Atoi(seq)
		if err != nil {
			return err
		}
		report["lines"] = h.lines[min(n, len(h.lines)):]
	}
	raw, err := json.Marshal(report)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(raw)
	_ = z.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/report", &b)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Encoding", "gzip")
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(res.Body)
	if err != nil || cut {
		return err
	}
	if res.StatusCode != http.StatusOK || !regexp.MustCompile(`^\d+\.[0-9a-f]{8}$`).Match(answer) {
		return fmt.Errorf("%s: %d %s", h.name, res.StatusCode, answer)
	}
	h.cursor = string(answer)
	return nil
}

// whole reports whether the hub has taken all lines.
func (h *teller) whole() bool {
	return len(h.lines) == 0 || h.cursor == fmt.Sprintf("%d.%s", len(h.lines), h.lines[len(h.lines)-1]["hash"])
}

// bigStatus is that of a host with ten apps.
func bigStatus(name string, n int) json.RawMessage {
	var apps []obj
	for i := range 10 {
		apps = append(apps, obj{"name": fmt.Sprint("app-", i), "health": "Healthy", "commit": strings.Repeat("ab", 20), "services": []obj{{
			"name": "web", "kind": "worker", "phase": "Ready", "wanted": 2, "ready": 2, "updated": 2, "reason": fmt.Sprint("2/2 ready, look ", n),
			"instances": []obj{{"id": "c1", "name": "i1", "slot": 1, "state": "Ready"}, {"id": "c2", "name": "i2", "slot": 2, "state": "Ready"}},
		}}})
	}
	raw, _ := json.Marshal(obj{"host": name, "gitring": "1.0.0", "at": time.Now().UTC(), "sources": []obj{{
		"name": "prod", "branch": "main", "commit": strings.Repeat("ab", 20), "subject": "a subject", "sync": "Synced", "reason": "", "apps": apps,
	}}})
	return raw
}

// hubMemory is what a hub of 100 hosts may take, in KiB.
const hubMemory = 60 << 10

// A hundred hosts tell a hub once a second. One of a hundred requests, and one of a hundred answers,
// is lost, and the hub is killed ten times. No line is lost or there twice.
func TestAHubOfAHundredHostsLosesNoLine(t *testing.T) {
	needEngine(t)
	t.Parallel()
	const hosts, kills = 100, 10
	u := newHub(t)
	var all []*teller
	transport := &http.Transport{MaxIdleConnsPerHost: hosts}
	defer transport.CloseIdleConnections()
	for i := range hosts {
		name := fmt.Sprint("edge-", i)
		all = append(all, &teller{name: name, token: u.token(name, "report:"+name), url: "http://" + u.address, client: &http.Client{Transport: transport, Timeout: 20 * time.Second}})
	}
	reader := u.token("ann", "read,metrics")
	var viewers []string // each may ask 20 times a second
	for i := range 4 {
		viewers = append(viewers, u.token(fmt.Sprint("viewer-", i), "read"))
	}
	u.begin()
	var taken, lost atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, h := range all {
		running.Go(func() {
			rng := mathrand.New(mathrand.NewPCG(7, uint64(i))) //nolint:gosec // no secret
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				for range rng.IntN(3) {
					h.append(fmt.Sprint("line of look ", n))
				}
				h.status = bigStatus(h.name, n)
				if rng.IntN(100) == 0 { // the request
					lost.Add(1)
					continue
				}
				cut := rng.IntN(100) == 0 // the answer
				if err := h.tell(ctx, cut); err == nil && !cut {
					taken.Add(1)
				} else {
					lost.Add(1)
				}
			}
		})
	}
	most := 0
	for kill := range kills + 1 {
		until := taken.Load() + 3*hosts
		require.Eventually(t, func() bool { most = max(most, u.resident()); return taken.Load() >= until }, 2*time.Minute, 100*time.Millisecond)
		if kill < kills {
			u.end()
			u.begin()
		}
	}
	stop()
	running.Wait()
	require.Greater(t, lost.Load(), int64(hosts)/2)
	for _, h := range all {
		// A report whose connection was cut may be under way still: then the hub takes no second one.
		require.Eventually(t, func() bool { return h.whole() || h.tell(t.Context(), false) == nil && h.whole() }, time.Minute, 50*time.Millisecond, h.name)
	}
	code, body := u.get("/v1/fleet", reader)
	require.Equal(t, 200, code, body)
	require.Equal(t, hosts, strings.Count(body, `"word":"Synced"`))
	code, body = u.get("/metrics", reader)
	require.Equal(t, 200, code)
	require.Equal(t, hosts, strings.Count(body, "gitring_hub_host_silent{host="))
	code, body = u.get("/hosts", reader)
	require.Equal(t, 200, code)
	require.Equal(t, hosts, strings.Count(body, `id="host-edge-`))
	for i, h := range all[:12] { // pages of more hosts than are kept ready
		code, body = u.get("/hosts/"+h.name, viewers[i%4])
		require.Equal(t, 200, code)
		require.Contains(t, body, "app-9")
		code, body = u.get("/hosts/"+h.name+"/history", viewers[i%4])
		require.Equal(t, 200, code, body)
	}
	most = max(most, u.resident())
	u.end()
	lines := 0
	for _, h := range all {
		require.Equal(t, h.want, u.kept(h.token), h.name)
		lines += len(h.lines)
	}
	t.Logf("%d reports taken, %d lost, %d lines, %d KiB at most", taken.Load(), lost.Load(), lines, most)
	require.LessOrEqual(t, most, hubMemory)
}

// kept are the lines that the disk has of a token's host, in order.
func (u *hubProcess) kept(token string) (out string) {
	u.t.Helper()
	files, err := filepath.Glob(filepath.Join(u.dir, "state", "hosts", strings.Split(token, "_")[1], "*.ndjson"))
	require.NoError(u.t, err)
	for _, f := range files {
		body, err := os.ReadFile(f)
		require.NoError(u.t, err)
		for line := range strings.Lines(string(body)) {
			var r struct {
				Hash  string          `json:"hash"`
				Event json.RawMessage `json:"event"`
			}
			require.NoError(u.t, json.Unmarshal([]byte(line), &r), "%q", line)
			out += r.Hash + " " + string(r.Event) + "\n"
		}
	}
	return out
}

// The kernel is asked to connect nowhere, whatever hosts tell and people ask.
func TestAHubDialsNobody(t *testing.T) {
	needEngine(t)
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("there is no strace: scripts/needs.sh names what tests need")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	strace := []string{"strace", "-f", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace}
	// What the test would see: a client that asks a daemon that is not there.
	control := exec.Command(strace[0], append(slices.Clone(strace[1:]), binary, "status", "--socket", filepath.Join(t.TempDir(), "none"))...)
	_ = control.Run()
	body, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Contains(t, string(body), "connect(", "the test sees what it looks for")

	u := newHub(t, strace...)
	host := &teller{name: "edge-1", token: u.token("edge-1", "report:edge-1"), url: "http://" + u.address, client: http.DefaultClient}
	reader := u.token("ann", "read,metrics")
	u.begin()
	for n := range 3 {
		host.append(fmt.Sprintf("see http://192.0.2.1/%d and tcp://%s", n, u.address))
		host.status = json.RawMessage(strings.ReplaceAll(string(bigStatus("edge-1", n)), "a subject", "https://192.0.2.1/x"))
		require.NoError(t, host.tell(t.Context(), false))
	}
	for _, path := range []string{"/", "/hosts", "/hosts/edge-1", "/hosts/edge-1/history", "/hosts/edge-1/app/app-1", "/hosts/edge-1/svc/app-1/web", "/hosts/edge-1/jobs", "/hosts/edge-1/crashes", "/hosts/edge-1/commit/" + strings.Repeat("ab", 20), "/v1/fleet", "/metrics", "/v1/none"} {
		code, body := u.get(path, reader)
		require.Contains(t, []int{200, 404}, code, "%s: %s", path, body)
		_, _ = u.get(path, "grt_wrong")
	}
	u.end()
	body, err = os.ReadFile(trace)
	require.NoError(t, err)
	require.NotContains(t, string(body), "connect(")
	require.NotRegexp(t, `sin6?_port|sun_path`, string(body), "nothing is sent to an address")
	require.Contains(t, u.log(), `"started"`)
}

// A real daemon tells a real hub: what a push changes is there within 2 s of the host's own word.
func TestADaemonReportsToAHub(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	u := newHub(t)
	reader := u.token("ann", "read")
	h.config["report"] = obj{"url": "http://" + u.address, "token_file": h.secret("hub-token", u.token("edge", "report:"+h.name)+"\n")}
	app := h.app("web")
	u.begin()
	h.start()
	first := h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one", obj{})})})
	at := func(sha string) bool {
		_, body := u.get("/v1/fleet", reader)
		return strings.Contains(body, `"commit":"`+sha+`"`) && strings.Contains(body, `"word":"Synced"`) && strings.Contains(body, `"host":"`+h.name+`"`)
	}
	h.until("the hub shows the first", func() bool { return at(first) })
	u.end() // nobody notices
	second := h.deployed("The second", files{app + "/compose.yaml": h.compose(app, obj{"web": web("two", obj{})})})
	u.begin()
	h.until("the hub is told what it missed", func() bool { return at(second) })
	third := h.deployed("The third", files{app + "/compose.yaml": h.compose(app, obj{"web": web("three", obj{})})})
	asked := 0
	h.until("the hub shows the third", func() bool { asked++; return at(third) })
	t.Logf("asked %d times", asked)
	for _, page := range []string{"", "/app/" + app, "/svc/" + app + "/web", "/history", "/jobs", "/crashes", "/commit/" + third} {
		code, body := u.get("/hosts/"+h.name+page, reader)
		require.Equal(t, 200, code, page)
		require.NotContains(t, body, "/plan", "no page that is not stored is linked: %s", page)
		require.NotContains(t, body, `class="act"`, page)
		require.NotContains(t, body, "<form", page)
	}
	for _, page := range []string{"/plan", "/doctor", "/trust", "/logs/" + app + "/web", "/act/" + app} {
		code, _ := u.get("/hosts/"+h.name+page, reader)
		require.Equal(t, 404, code, page)
	}
	require.NotContains(t, u.log(), "grt_")
	require.NotContains(t, h.tail(10000), "grt_")
}
