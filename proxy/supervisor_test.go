//go:build linux

package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The tests of processes run this binary as front: the supervisor in one process, its proxies
// in others. DNS there is the address itself.
const rootEnv = "GITRING_FRONT_ROOT"

// hungEnv is how long an older proxy may be silent, in one test; else as it is.
const hungEnv = "GITRING_FRONT_HUNG"

func TestMain(m *testing.M) {
	root := os.Getenv(rootEnv)
	if root == "" {
		os.Exit(m.Run())
	}
	l := log.New(os.Stderr, "", 0)
	switch os.Args[1] {
	case "supervisor":
		s := Supervisor{TableDir: filepath.Join(root, "table"), BuildsDir: filepath.Join(root, "front"), Program: os.Args[0], Args: []string{"proxy"}, Log: l, host: "127.0.0.1"}
		os.Exit(ended(l, s.Run(context.Background())))
	case "proxy":
		hung, _ := time.ParseDuration(os.Getenv(hungEnv))
		os.Exit(ended(l, RunProxy(Options{
			hung: hung, TableDir: filepath.Join(root, "table"), RunDir: filepath.Join(root, "run"), Log: l, Memory: defaultMemory,
			Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
				a, err := netip.ParseAddr(name)
				return []netip.Addr{a}, err
			},
			own: func() ownNet { return ownNet{subnets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}} },
		})))
	case "health":
		os.Exit(health(os.Stdout, filepath.Join(root, "run", ring.FrontSocket)))
	}
	os.Exit(2)
}

// house is a front in processes of its own, and its instance at the same port of another address.
type house struct {
	t     *testing.T
	root  string
	port  int
	cmd   *exec.Cmd
	said  *lockedBuffer
	gen   int64
	table ring.FrontTable
}

const instanceAddr = "127.0.3.1"

func newHouse(t *testing.T, carry string, h http.HandlerFunc) *house {
	t.Helper()
	s := &house{t: t, root: shortDir(t), said: &lockedBuffer{}}
	for _, d := range []string{"table", "run", "front"} {
		require.NoError(t, os.Mkdir(filepath.Join(s.root, d), 0o700))
	}
	l, err := net.Listen("tcp", instanceAddr+":0")
	require.NoError(t, err)
	s.port = l.Addr().(*net.TCPAddr).Port
	serveOn(t, l, h)
	s.table = ring.FrontTable{
		Service: "app/web", Ports: []ring.FrontPort{{Port: s.port, Carry: carry}}, Forwarded: true,
		Instances: []ring.FrontInstance{{Name: instanceAddr, State: ring.FrontActive}},
	}
	s.write()
	s.start()
	return s
}

// write has the table be on disk, one generation on.
func (s *house) write() []byte {
	s.t.Helper()
	s.gen++
	s.table.Generation = s.gen
	body, err := json.Marshal(s.table)
	require.NoError(s.t, err)
	file := filepath.Join(s.root, "table", ring.FrontTableFile)
	require.NoError(s.t, os.WriteFile(file+".new", body, 0o600))
	require.NoError(s.t, os.Rename(file+".new", file))
	return body
}

func (s *house) start() {
	s.t.Helper()
	exe, err := os.Executable()
	require.NoError(s.t, err)
	s.cmd = exec.Command(exe, "supervisor")
	s.cmd.Env = append(os.Environ(), rootEnv+"="+s.root)
	s.cmd.Stderr = s.said
	require.NoError(s.t, s.cmd.Start())
	s.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		if s.t.Failed() {
			s.t.Log(s.said.String())
		}
	})
	s.eventually("the front answers", func() bool { return s.seen().Process != "" && len(s.pids()) == 1 })
}

func (s *house) eventually(what string, is func() bool) {
	s.t.Helper()
	require.Eventually(s.t, is, wait, 10*time.Millisecond, what)
}

// ask is asked of the control; 0 where nobody answers.
func (s *house) ask(method, path string, body []byte, into any) int {
	status, err := askSocket(context.Background(), filepath.Join(s.root, "run", ring.FrontSocket), wait, method, path, body, into)
	if err != nil {
		return 0
	}
	return status
}

func (s *house) seen() (out ring.FrontSeen) {
	s.ask(http.MethodGet, "/v1/seen", nil, &out)
	return out
}

func (s *house) url(path string) string { return "http://" + s.addr() + path }

func (s *house) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// hup asks for a new proxy, and waits until it answers.
func (s *house) hup() {
	s.t.Helper()
	was, n := s.seen().Process, len(s.pids())
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.eventually("a new proxy answers", func() bool {
		now := s.seen().Process
		return now != "" && now != was && len(s.pids()) == n+1
	})
}

// pids are those of the proxies that the supervisor told of, last first.
func (s *house) pids() (out []int) {
	for line := range strings.Lines(s.said.String()) {
		if _, text, ok := strings.Cut(line, "started program="); ok {
			_, n, _ := strings.Cut(text, "pid=")
			pid, err := strconv.Atoi(strings.TrimSpace(n))
			require.NoError(s.t, err)
			out = append([]int{pid}, out...)
		}
	}
	return out
}

// load asks all the time, over kept and new connections; stop gives how many were answered.
func (s *house) load(n int) (count *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	count = &atomic.Int64{}
	var all sync.WaitGroup
	for i := range n {
		tr := &http.Transport{DisableKeepAlives: i%2 == 0}
		c := &http.Client{Transport: tr, Timeout: wait}
		all.Go(func() {
			defer tr.CloseIdleConnections()
			for ctx.Err() == nil {
				var res *http.Response
				var err error
				if i%4 < 2 {
					res, err = c.Get(s.url("/"))
				} else {
					res, err = c.Post(s.url("/"), "text/plain", strings.NewReader(strings.Repeat("x", 2000)))
				}
				if err == nil {
					_, err = io.ReadAll(res.Body)
					_ = res.Body.Close()
				}
				if err != nil || res.StatusCode != 200 {
					s.t.Errorf("lost: %v %v", res, err)
					return
				}
				count.Add(1)
			}
		})
	}
	return count, func() { cancel(); all.Wait() }
}

func echo(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(w, r.Body)
}

func TestTwentyUpgradesUnderLoadLoseNothing(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	count, stop := s.load(6)
	defer stop()
	for range 20 {
		s.hup()
		before := count.Load()
		s.eventually("load goes on", func() bool { return count.Load() > before+20 || t.Failed() })
	}
	stop()
	s.eventually("the old ones have ended", func() bool { return s.seen().Old == 0 })
	left, err := filepath.Glob(filepath.Join(s.root, "run", "*.sock"))
	require.NoError(t, err)
	require.Len(t, left, 2, "the newest one's and the front's")
}

// Requests that are in flight to an older proxy count, and a table reaches it.
func TestAnOldProxyIsStillToldAndSeen(t *testing.T) {
	hold := make(chan struct{})
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-hold
	})
	defer close(hold)
	res, err := http.Get(s.url("/"))
	require.NoError(t, err)
	defer res.Body.Close()
	s.hup()
	s.eventually("the old one is seen", func() bool { return s.seen().Old == 1 })
	require.Equal(t, 1, s.seen().Instances[0].InFlight)
	s.table.Instances[0].State, s.table.Instances[0].Until = ring.FrontDraining, time.Now()
	var said problem
	require.Equal(t, 200, s.ask(http.MethodPut, "/v1/table", s.write(), &said), said.Says)
	_, err = io.ReadAll(res.Body)
	require.Error(t, err, "cut at the deadline")
	s.eventually("the old one has ended", func() bool { got := s.seen(); return got.Old == 0 && got.Cut == 1 })
}

// What older proxies counted, the newest one tells as well: after they have ended, too, and
// after the next upgrade.
func TestNoRequestIsLostToTheCountsOfAnUpgrade(t *testing.T) {
	came, hold := make(chan struct{}, 1), make(chan struct{})
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			came <- struct{}{}
			<-hold
		}
	})
	c := &http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}
	asked := int64(0)
	get := func(path string) {
		res, err := c.Get(s.url(path))
		if err == nil {
			err = res.Body.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	ask := func(path string) {
		asked++
		get(path)
	}
	counted := func() (n ring.FrontCounts) {
		seen := s.seen()
		for _, b := range append(seen.Before, countedBy(&seen)) {
			n.Requests += b.Counts[instanceAddr].Requests
			n.Answers2xx += b.Counts[instanceAddr].Answers2xx
		}
		return n
	}
	ask("/")
	slow := make(chan struct{})
	asked++
	go func() {
		defer close(slow)
		get("/slow")
	}()
	<-came
	s.hup()
	ask("/")
	close(hold)
	<-slow // an answer that the older one gives
	s.eventually("it has ended", func() bool { return s.seen().Old == 0 })
	require.Equal(t, asked, counted().Requests)
	require.Equal(t, asked, counted().Answers2xx)
	s.hup()
	ask("/")
	s.eventually("the next one has ended, too", func() bool { return s.seen().Old == 0 })
	require.Equal(t, asked, counted().Requests)
}

// A table is in force once every proxy has it. An older one that hangs does not keep it from
// that for ever: it is ended.
func TestAnOlderProxyThatHangsKeepsNoTableFromTheNewOne(t *testing.T) {
	t.Setenv(hungEnv, "500ms")
	s := newHouse(t, ring.CarryAuto, echo)
	hung := s.pids()[0]
	require.NoError(t, syscall.Kill(hung, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(hung, syscall.SIGKILL) })
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.eventually("a new proxy tells of one that may carry something", func() bool { return len(s.pids()) == 2 && s.seen().Old == 1 })
	s.eventually("a table comes into force", func() bool {
		var said problem
		return s.ask(http.MethodPut, "/v1/table", s.write(), &said) == http.StatusOK
	})
	s.eventually("it has ended", func() bool { return s.seen().Old == 0 })
	res, err := http.Get(s.url("/"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Len(t, s.pids(), 2)
}

func TestAKilledProxyIsStartedAgainAndNobodyIsRefused(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	for ended := range 3 {
		require.Equal(t, ended, s.seen().Crashes, "which is told from the third on")
		was := s.seen().Process
		n := len(s.pids())
		require.NoError(t, syscall.Kill(s.pids()[0], syscall.SIGKILL))
		// Meanwhile clients wait in the backlog.
		res, err := (&http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}).Get(s.url("/"))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 200, res.StatusCode)
		require.NotEqual(t, was, s.seen().Process)
		s.eventually("the supervisor tells of it", func() bool { return len(s.pids()) == n+1 })
	}
	require.Equal(t, 3, s.seen().Crashes)
	require.Zero(t, (&Supervisor{crashes: 3, crashed: time.Now().Add(-calmAfter - time.Second)}).recent(), "after a calm while there is nothing to tell")
}

// A release that does not get ready is not taken, and the one before serves on.
func TestAProxyThatIsNotReadyIsNotTaken(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	program := []byte("#!/bin/sh\nexit 3\n")
	was := s.seen().Process
	// A build whose folder names another content was not written whole: it is not tried.
	wrong := filepath.Join(s.root, "front", strings.Repeat("0", 64))
	require.NoError(t, os.Mkdir(wrong, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(wrong, "front"), program, 0o700))
	s.hup()
	require.NotEqual(t, was, s.seen().Process)

	right := s.build(program)
	was = s.seen().Process
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.eventually("it was tried", func() bool { return strings.Contains(s.said.String(), "not ready program="+right) })
	require.Equal(t, was, s.seen().Process)
	res, err := http.Get(s.url("/"))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
}

// build has a program be the newest of the daemon's.
func (s *house) build(program []byte) (path string) {
	s.t.Helper()
	early := filepath.Join(s.root, "new")
	require.NoError(s.t, os.WriteFile(early, program, 0o700))
	folder := filepath.Join(s.root, "front", strings.TrimPrefix(SumOf(early), "sha256:"))
	require.NoError(s.t, os.Mkdir(folder, 0o700))
	path = filepath.Join(folder, "front")
	require.NoError(s.t, os.Rename(early, path))
	return path
}

// A new proxy that hangs before it is ready is ended after 10 s, and the one before serves on.
func TestANewProxyThatHangsIsNotTaken(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	count, stop := s.load(2)
	defer stop()
	hangs := s.build([]byte("#!/bin/sh\nexec sleep 600\n"))
	was := s.seen().Process
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.eventually("it had its time", func() bool { return strings.Contains(s.said.String(), "it was not ready in 10s") })
	line := s.said.String()
	_, pid, _ := strings.Cut(line[strings.Index(line, "not ready program="+hangs):], "pid=")
	n, err := strconv.Atoi(strings.Fields(pid)[0])
	require.NoError(t, err)
	s.eventually("it was ended", func() bool { return syscall.Kill(n, 0) != nil })
	require.Equal(t, was, s.seen().Process)
	before := count.Load()
	s.eventually("load goes on", func() bool { return count.Load() > before+20 || t.Failed() })
}

// Two old ones run at most; the third upgrade waits.
func TestAThirdOldProxyWaits(t *testing.T) {
	hold := make(chan struct{})
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		<-hold
	})
	c := &http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 2 {
		s.eventually("the newest one has something in flight", func() bool {
			res, err := c.Get(s.url("/")) // one that retires can accept it still
			require.NoError(t, err)
			t.Cleanup(func() { _ = res.Body.Close() })
			var alone ring.FrontSeen
			s.ask(http.MethodGet, "/v1/seen?alone", nil, &alone)
			return alone.Process != "" && alone.Instances[0].InFlight > 0
		})
		s.hup()
	}
	res, err := c.Get(s.url("/"))
	require.NoError(t, err)
	defer res.Body.Close()
	s.eventually("two are old", func() bool { return s.seen().Old == 2 })
	was := s.seen().Process
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	require.Len(t, s.pids(), 3)
	require.Equal(t, was, s.seen().Process)
	close(hold)
	s.eventually("it had its turn", func() bool { now := s.seen().Process; return now != "" && now != was })
}

func TestATermLeavesWhatIsInFlightAMoment(t *testing.T) {
	asked, hold := make(chan struct{}), make(chan struct{})
	s := newHouse(t, ring.CarryAuto, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			close(asked)
			<-hold
		}
		_, _ = io.WriteString(w, "whole")
	})
	got := make(chan string, 1)
	go func() {
		res, err := http.Get(s.url("/"))
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		got <- string(b)
	}()
	<-asked
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.eventually("nothing is accepted", func() bool {
		c, err := net.Dial("tcp", s.addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(hold)
	require.Equal(t, "whole", <-got)
	require.NoError(t, s.cmd.Wait())
}

// What never ends is cut soon, and the front is gone.
func TestATermEndsWhatGoesOnForEver(t *testing.T) {
	asked := make(chan struct{})
	s := newHouse(t, ring.CarryAuto, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			close(asked)
			<-r.Context().Done()
		}
	})
	got := make(chan error, 1)
	go func() {
		res, err := http.Get(s.url("/"))
		if err == nil {
			err = res.Body.Close()
		}
		got <- err
	}()
	<-asked
	began := time.Now()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.cmd.Wait(), "by itself, and before the engine would kill it")
	require.GreaterOrEqual(t, time.Since(began), lastMoments, "it had its moment")
	require.Error(t, <-got)
}

func TestHealthSaysWhenAnotherFrontComes(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	check := func() (int, string) {
		exe, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(exe, "health")
		cmd.Env = append(os.Environ(), rootEnv+"="+s.root)
		out, err := cmd.Output()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, says := check()
	require.Zero(t, code, says)
	s.table.Leaving = true
	var said problem
	require.Equal(t, 200, s.ask(http.MethodPut, "/v1/table", s.write(), &said), said.Says)
	code, says = check()
	require.Equal(t, 1, code)
	require.Contains(t, says, "takes its place")
	res, err := http.Get(s.url("/"))
	require.NoError(t, err, "it serves on")
	require.NoError(t, res.Body.Close())
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.eventually("nobody answers", func() bool { code, _ := check(); return code == 1 })
}

// A front whose supervisor is gone has no proxy that goes on.
func TestAProxyEndsWithItsSupervisor(t *testing.T) {
	s := newHouse(t, ring.CarryAuto, echo)
	pid := s.pids()[0]
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.eventually("the proxy has ended", func() bool { return fmt.Sprint(syscall.Kill(pid, 0)) == "no such process" })
}

// A proxy can end in the moment in which it is ready, and its end be heard of first.
func TestAProxyThatEndsAsItBecomesReadyIsNotTakenForOneThatServes(t *testing.T) {
	process := func() *child {
		c := exec.Command("sleep", "600")
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		hers, life, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = hers.Close() })
		return &child{program: "/bin/front", process: c.Process, life: life}
	}
	for _, serves := range []*child{nil, process()} {
		s := Supervisor{Program: "/bin/front", Log: log.New(t.Output(), "", 0), current: serves, coming: process()}
		restart := time.NewTimer(time.Hour)
		s.lost(s.coming, restart)
		s.settle(nil, restart)
		require.Same(t, serves, s.current)
		require.Empty(t, s.old, "what serves is not retired for it")
		require.Equal(t, serves == nil, s.crashes == 1, "another one is started where none serves")
	}
}

// A proxy that ends is started again at once, and one that goes on ending after a while that
// grows. Ten calm minutes forget that.
func TestAProxyThatEndsAgainAndAgainIsStartedMoreAndMoreSeldom(t *testing.T) {
	var said lockedBuffer
	s := Supervisor{Log: log.New(&said, "", 0)}
	restart := time.NewTimer(time.Hour)
	defer restart.Stop()
	waits := func(n int) (out []string) {
		for range n {
			s.again(restart)
		}
		for line := range strings.Lines(said.String()) {
			_, wait, _ := strings.Cut(strings.TrimSpace(line), "again_in=")
			out = append(out, wait)
		}
		said = lockedBuffer{}
		return out
	}
	require.Equal(t, []string{"0s", "1s", "2s", "4s", "8s", "10s", "10s", "10s"}, waits(8))
	s.crashed = time.Now().Add(-calmAfter + time.Minute)
	require.Equal(t, []string{"10s"}, waits(1))
	s.crashed = time.Now().Add(-calmAfter - time.Second)
	require.Equal(t, []string{"0s", "1s"}, waits(2))
}

// Where descriptors are used up new clients wait for those who idle, and all are answered.
func TestUsedUpDescriptorsMakeIdleClientsGo(t *testing.T) {
	s := newHouse(t, ring.CarryHTTP, echo)
	pid := s.pids()[0]
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	most := syscall.Rlimit{Cur: uint64(len(open)) + 12, Max: uint64(len(open)) + 12}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&most)), 0, 0, 0)
	require.Zero(t, errno)
	for i := range 60 {
		c, err := net.Dial("tcp", s.addr())
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(wait))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, "client %d", i)
		require.Equal(t, http.StatusOK, res.StatusCode, "client %d", i)
	}
	require.True(t, s.seen().Full, "and it is told")
	require.Equal(t, pid, s.pids()[0], "the same proxy")
}

// Process 1 of a front is replaced by nothing but a new container. So it stays small: all
// files with a method of Supervisor count, without blank lines and comments.
func TestTheSupervisorIsSmall(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	n := 0
	for _, name := range files {
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") || !strings.Contains(string(body), "\nfunc (s *Supervisor) ") {
			continue
		}
		for line := range strings.Lines(string(body)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	require.Greater(t, n, 100)
	require.LessOrEqual(t, n, 300)
}
