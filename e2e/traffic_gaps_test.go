package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// alone is a service of which no two may run at once, behind a front.
func alone(version, port string, more ...obj) obj {
	return fronted(version, port, append([]obj{env("DATA", "/data"), {"volumes": []any{"data:/data"}, "environment": obj{"ABRUPT": "0"}}}, more...)...)
}

var volumeOfIt = obj{"volumes": obj{"data": obj{}}}

// websocket is a connection by a front that is HTTP no more.
type websocket struct {
	net.Conn
	r *bufio.Reader
}

func openWebsocket(t *testing.T, port string) *websocket {
	t.Helper()
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	return &websocket{c, r}
}

// says sends a line, and returns what comes back.
func (w *websocket) says(line string) (string, error) {
	_ = w.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		return "", err
	}
	return w.r.ReadString('\n')
}

// Upgraded connections would end only after half an hour, and nobody waits for them: requests
// wait for the stop and the start alone.
func TestWebsocketsHoldUpNoRecreate(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": alone(v, port, obj{"x-gitring": obj{"route": obj{"drain_timeout": "30m", "queue": "5m"}}}),
		}, volumeOfIt)}
	}
	h.begin(port, version("1"))
	var open []*websocket
	for range 10 {
		w := openWebsocket(t, port)
		got, err := w.says("hello")
		require.NoError(t, err)
		require.Equal(t, "1 hello\n", got)
		open = append(open, w)
	}
	load := ask(port)
	load.more(h, 5)
	h.live("Version 2", version("2"))
	load.lostNone(t, h)
	for _, w := range open {
		_, err := w.says("hello")
		require.Error(t, err, "what it spoke with is gone")
	}
	got, err := openWebsocket(t, port).says("hello")
	require.NoError(t, err)
	require.Equal(t, "2 hello\n", got)
}

// A daemon that dies after it stopped the only instance leaves requests waiting. The next one
// starts the new instance, and all of them are answered.
func TestADaemonThatDiesInAGapLeavesRequestsWaiting(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": alone(v, port, obj{"x-gitring": obj{"route": obj{"queue": "5m"}}}),
		}, volumeOfIt)}
	}
	h.begin(port, version("1"))
	old, load := h.one("web"), ask(port)
	load.more(h, 5)
	mark := h.events.mark()
	second := h.repo.pushed("Version 2", version("2"))
	_, _ = h.run("sync")
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "die" && e.Actor.ID == old.ID })
	h.kill()
	h.launch()
	h.synced(second)
	h.serves(port, "2")
	load.lostNone(t, h)
}

// tableOfFront is what lies on the disk of the only front.
func (h *host) tableOfFront() []byte {
	h.t.Helper()
	all, err := filepath.Glob(filepath.Join(h.dir, "state/fronts/*/table/table.json"))
	require.NoError(h.t, err)
	require.Len(h.t, all, 1)
	body, err := os.ReadFile(all[0])
	require.NoError(h.t, err)
	return body
}

// generation is the number of that table.
func (h *host) generation() int64 {
	h.t.Helper()
	var table struct{ Generation int64 }
	require.NoError(h.t, json.Unmarshal(h.tableOfFront(), &table))
	return table.Generation
}

// A front whose first process is killed comes back by the engine and its own disk alone: nothing is
// made, and it is started once. How long that takes is the engine's to say, and told.
func TestAFrontThatIsKilledServesAgainByItself(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it ends a process of another user")
	}
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	h.begin(port, files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port)})})
	settled(h)
	h.kill()
	front := h.one("web-front")
	mark := h.events.mark()
	began := time.Now()
	require.NoError(t, syscall.Kill(h.processes(front.ID)[0], syscall.SIGKILL))
	started := h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.Actor.ID == front.ID })
	h.serves(port, "1")
	t.Logf("the engine started it %s after the kill, and it served %s after that", started.at().Sub(began), time.Since(started.at()))
	load := ask(port)
	load.lostNone(t, h)
	require.Len(t, h.events.after(mark, "create", "start", "destroy"), 1)
}

// The two processes of a front have little memory of their own while nobody asks. Their program,
// which all fronts of a host share, and the engine's shim are no part of it; the benchmark has both.
func TestAnIdleFrontNeedsLittleMemory(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	h.begin(port, files{app + "/compose.yaml": h.compose(app, obj{"web": fronted("1", port)})})
	settled(h)
	pids := h.processes(h.one("web-front").ID)
	require.Len(t, pids, 2)
	all := 0
	for _, pid := range pids {
		own := ownMemory(t, pid)
		t.Logf("process %d: %d KiB", pid, own)
		all += own
	}
	require.Less(t, all, 10<<10, "KiB")
}

// ownMemory is the memory of a process that is no file's, in KiB.
func ownMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "RssAnon:")
	require.True(t, ok, "%s", status)
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib
}

// The daemon is killed at each arrow of an update in turn: as containers are created, started,
// told to stop and removed, and as each table comes to lie on the front's disk.
func TestADaemonKilledAtEachArrowLosesNoRequest(t *testing.T) {
	t.Parallel()
	arrows := []string{"table 1", "kill", "create", "table 2", "start", "table 3", "die", "destroy"}
	arrows = arrows[:amount(t, "ARROWS", 2, len(arrows))]
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	version := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": fronted(strconv.Itoa(n), port)})}
	}
	first := h.repo.pushed("Version 0", version(0))
	h.start()
	h.synced(first)
	h.serves(port, "0")
	load := ask(port)
	load.more(h, 5)
	for n, arrow := range arrows {
		h.until("the old instance is gone", func() bool { return len(h.containers("web")) == 1 })
		mark, was := h.events.mark(), h.generation()
		sha := h.repo.pushed(fmt.Sprintf("Version %d", n+1), version(n+1))
		_, _ = h.run("sync")
		if steps, err := strconv.ParseInt(arrow[len(arrow)-1:], 10, 64); err == nil {
			h.until(arrow, func() bool { return h.generation() >= was+steps })
		} else {
			h.events.first(t, mark, func(e engineEvent) bool { return e.Action == arrow })
		}
		h.kill()
		load.more(h, 2)
		h.launch()
		h.synced(sha)
		h.serves(port, strconv.Itoa(n+1))
	}
	all := load.lostNone(t, h)
	t.Logf("%d arrows, %d requests, none lost", len(arrows), all)
}

// An app whose health never passes is reached as with plain Compose, and told as what it is.
func TestAnAppThatIsNeverHealthyIsReached(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, port := h.app("web"), h.freePort()
	h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{
		"web": fronted("1", port, env("BROKEN", "1"), rollout(obj{"start_timeout": "3s", "on_failure": "continue", "failure_threshold": 1})),
	})})
	h.start()
	h.serves(port, "1")
	_, out := h.run("status")
	require.NotContains(t, out, "1/1 ready")
}
