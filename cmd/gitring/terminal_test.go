//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// A terminal is the model that the tests read screens from: rows of cells, a cursor, and
// what xterm does at the edges. It knows the few sequences that gitring writes.
type terminal struct {
	width, height int
	rows          [][]rune
	x, y          int
	pending       bool // the last column was written: the next letter begins a line

	above   []string // what scrolled out
	frames  []string // the screen each time before it was drawn over
	broken  []string // lines that the terminal broke, not gitring
	unknown []string // sequences that the model does not know
}

func newTerminal(width, height int) *terminal {
	v := &terminal{width: width, height: height, rows: make([][]rune, height)}
	for i := range v.rows {
		v.rows[i] = blank(width)
	}
	return v
}

func blank(width int) []rune { return []rune(strings.Repeat(" ", width)) }

func (v *terminal) write(b []byte) {
	for len(b) > 0 {
		if b[0] == 0x1b {
			b = b[v.sequence(b):]
			continue
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch r {
		case '\r':
			v.x, v.pending = 0, false
		case '\n':
			v.down()
		default:
			v.put(r)
		}
	}
}

func (v *terminal) put(r rune) {
	if v.pending {
		v.broken = append(v.broken, v.row(v.y))
		v.x, v.pending = 0, false
		v.down()
	}
	v.rows[v.y][v.x] = r
	if v.x == v.width-1 {
		v.pending = true
		return
	}
	v.x++
}

func (v *terminal) down() {
	v.pending = false
	if v.y < v.height-1 {
		v.y++
		return
	}
	v.above = append(v.above, v.row(0))
	v.rows = append(v.rows[1:], blank(v.width))
}

// sequence carries out one escape sequence and tells its length.
func (v *terminal) sequence(b []byte) int {
	end := bytes.IndexFunc(b[min(2, len(b)):], func(r rune) bool { return r >= '@' && r <= '~' })
	if len(b) < 3 || b[1] != '[' || end < 0 {
		v.unknown = append(v.unknown, fmt.Sprintf("%q", b[:min(8, len(b))]))
		return len(b)
	}
	n, err := strconv.Atoi(string(b[2 : 2+end]))
	if err != nil {
		n = 0
	}
	switch b[2+end] {
	case 'm':
	case 'A':
		v.frames = append(v.frames, v.String())
		v.y, v.pending = max(0, v.y-max(n, 1)), false
	case 'H':
		v.x, v.y, v.pending = 0, 0, false
	case 'J':
		if n == 2 {
			v.x, v.y = 0, 0
		}
		v.pending = false
		copy(v.rows[v.y][v.x:], blank(v.width))
		for i := v.y + 1; i < v.height; i++ {
			v.rows[i] = blank(v.width)
		}
	default:
		v.unknown = append(v.unknown, fmt.Sprintf("%q", b[:3+end]))
	}
	return 3 + end
}

func (v *terminal) row(y int) string { return strings.TrimRight(string(v.rows[y]), " ") }

func (v *terminal) String() string {
	rows := make([]string, v.height)
	for y := range rows {
		rows[y] = v.row(y)
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n") + "\n"
}

// openPTY gives both ends of a pseudo terminal of the kernel.
func openPTY(t *testing.T, width, height int) (master, slave *os.File) {
	t.Helper()
	master, slave, err := openTerminal(width, height)
	if errors.Is(err, errNoTerminals) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	return master, slave
}

var errNoTerminals = errors.New("no pseudo terminals here")

func openTerminal(width, height int) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNoTerminals, err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	ioctl := func(request uintptr, arg unsafe.Pointer) {
		var errno syscall.Errno
		failed := raw.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
		})
		if errno != 0 {
			failed = errno
		}
		err = errors.Join(err, failed)
	}
	var number, lock int32
	ioctl(syscall.TIOCGPTN, unsafe.Pointer(&number))
	ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&lock))
	size := [4]uint16{uint16(height), uint16(width)}
	ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// seenOn runs the command line on a pseudo terminal and gives the screen at its end.
func seenOn(t *testing.T, width, height int, ctx context.Context, now func() time.Time, args ...string) (v *terminal, code int) {
	t.Helper()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	master, slave := openPTY(t, width, height)
	v = newTerminal(width, height)
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 1<<16)
		var kept []byte
		for {
			n, err := master.Read(buf)
			kept = append(kept, buf[:n]...)
			if err != nil {
				v.write(kept) // whole: a sequence may come in two reads
				return
			}
		}
	})
	code = run(ctx, args, slave, slave, slave, now)
	require.NoError(t, slave.Close())
	reading.Wait()
	require.Empty(t, v.unknown)
	return v, code
}

// saying is a daemon that tells these statuses one after the other, and the last one
// again; told is called after each.
func saying(t *testing.T, told func(n int), statuses ...ring.Status) (socket string) {
	t.Helper()
	n := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(statuses[min(n, len(statuses)-1)])
		n++
		told(n)
	})
	mux.HandleFunc("POST /v1/sync", func(w http.ResponseWriter, _ *http.Request) {
		for i := range statuses {
			_ = json.NewEncoder(w).Encode(map[string]any{"status": statuses[i]})
			n++
			told(n)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"settled": true})
	})
	return socketOf(t, mux)
}

// socketOf is where a daemon of a test answers.
func socketOf(t *testing.T, mux http.Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return socket
}

var aMoment = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// busy is a host of 29 services of which one is degraded, in the middle of the list, and
// one rolls; an app pulls.
func busy() ring.Status {
	const before, wanted = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", "b2c3d4e5f60718293a4b5c6d7e8f9012345678a1"
	src := ring.SourceStatus{
		Name: "prod", Branch: "main", Tip: wanted, Trusted: wanted, Commit: before, Subject: "Raise the log level", Signer: "alice@example.org",
		Sync: ring.SyncStaging, Checked: aMoment, Next: &ring.Next{Commit: wanted, Reason: "app media: pulling jellyfin/jellyfin:10.11 (120MB of 480MB, 3 of 9 layers)"},
	}
	for i := range 27 {
		name := fmt.Sprintf("app%02d", i)
		src.Apps = append(src.Apps, ring.AppStatus{Name: name, Health: ring.Healthy, Commit: before, Services: []ring.ServiceStatus{{
			Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: before, LastGood: before, Reason: "1/1 ready",
		}}})
	}
	broken := "1/2 ready; slot 2 exit 1: panic: cannot open /data/index.db: no such file or directory"
	src.Apps[13] = ring.AppStatus{Name: "search", Health: ring.Degraded, Commit: before, Reason: broken, Services: []ring.ServiceStatus{{
		Name: "index", Kind: ring.Worker, Phase: ring.PhaseDegraded, Wanted: 2, Ready: 1, Updated: 2, Commit: before, LastGood: before, Reason: broken,
		Conditions: []ring.Condition{{Type: ring.ConditionAvailable, Status: ring.ConditionFalse, Reason: "1 of 2 ready, at least 2 should be", Since: aMoment.Add(-time.Hour)}},
	}}}
	src.Apps[20] = ring.AppStatus{Name: "shop", Health: ring.Progressing, Commit: wanted, Reason: "4/4 ready; slot 2 starting", Services: []ring.ServiceStatus{{
		Name: "api", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 4, Ready: 4, Updated: 1, Commit: wanted, LastGood: before, Reason: "4/4 ready; slot 2 starting",
		Rollout:    &ring.RolloutStatus{Phase: ring.RolloutProgressing, Commit: wanted, Version: "1:5555555566666666", Reason: "waiting for slot 2: settling 4s"},
		Conditions: []ring.Condition{{Type: ring.ConditionProgressing, Status: ring.ConditionTrue, Reason: "waiting for slot 2: settling 4s", Since: aMoment.Add(-42 * time.Second)}},
	}}}
	src.Apps = append(src.Apps, ring.AppStatus{Name: "media", Health: ring.Progressing, Commit: before, Reason: "pulling jellyfin/jellyfin:10.11 (120MB of 480MB, 3 of 9 layers)", Services: []ring.ServiceStatus{
		{Name: "jellyfin", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: before, LastGood: before, Reason: "1/1 ready"},
		{Name: "cache", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: before, LastGood: before, Reason: "1/1 ready"},
	}})
	return ring.Status{Host: "edge-1", Gitring: "0.1.0", Sources: []ring.SourceStatus{src}}
}

// A watched screen is as wide as the terminal, has what is wrong at its head, counts the
// rest, and is drawn over whole.
func TestWatchedScreenFitsTheTerminal(t *testing.T) {
	for _, width := range []int{80, 120} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			socket := saying(t, func(n int) {
				if n == 3 {
					cancel()
				}
			}, busy())
			v, code := seenOn(t, width, 24, ctx, func() time.Time { return aMoment }, "status", "--watch", "--socket", socket)
			require.Zero(t, code)
			sees(t, v)
			require.Contains(t, v.String(), "edge-1  gitring 0.1.0", "runs of spaces are kept")
			require.Regexp(t, `27 ready, 1 degraded, 1 progressing`, v.String())
			require.Regexp(t, `(?s)search/index.*shop/api.*app00/web`, v.String(), "what is wrong comes first")
			require.Regexp(t, `… \d+ more: \d+ ready`, v.String())
			require.Regexp(t, `\[##--------\] 120MB of 480MB`, v.String())
			require.Regexp(t, `\[##--------\] 1 of 4 updated`, v.String())
			require.Contains(t, v.String(), "42s")
			require.Equal(t, 1, strings.Count(v.String(), "Degraded"), v.String())
			require.Equal(t, 1, strings.Count(strings.Join(strings.Fields(v.String()), " "), "no such file or directory"), v.String())
		})
	}
}

// What fronts carry is drawn over in place, until it is interrupted.
func TestWatchedTrafficIsDrawnOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/traffic", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 3 {
			cancel()
		}
		_ = json.NewEncoder(w).Encode([]api.FrontNow{{
			App: "shop", Service: "web", Container: "shop-web-front-1-01234567", Phase: ring.PhaseReady, At: aMoment, Generation: int64(asked),
			Build: "sha256:" + strings.Repeat("ab", 32), Newest: true, Connections: asked, Ports: []api.PortNow{{Port: 80, Protocol: "tcp", Carry: "http"}},
		}})
	})
	socket := socketOf(t, mux)
	v, code := seenOn(t, 80, 24, ctx, func() time.Time { return aMoment }, "traffic", "--watch", "--socket", socket)
	require.Zero(t, code)
	require.Empty(t, v.broken, "lines that the terminal broke")
	require.Empty(t, v.above, "lines that scrolled out cannot be drawn over")
	require.Equal(t, 1, strings.Count(v.String(), "shop/web  Ready"), "one screen: %s", v.String())
	require.Contains(t, v.String(), "table 2, proxy abababab, 2 connections")
}

// refusing is a host of two refused apps, whose refusals are long, and of two services in
// trouble.
func refusing() ring.Status {
	st := busy()
	src := &st.Sources[0]
	src.Sync, src.Next = ring.SyncRefused, nil
	for i, name := range []string{"app02", "app05"} {
		a := &src.Apps[2+3*i]
		a.Refusal = &ring.Refusal{
			Code: "PolicyDenied", Commit: src.Tip, App: name, File: "stacks/" + name + "/compose.yaml", Line: 4,
			Says: "the policy denies privileged of service web: it is the same as root on this host, with all devices",
			Hint: "take it out; or grant it to this app alone, where gitring policy suggest prints the smallest grant",
		}
		a.Reason = a.Refusal.Says
	}
	failed := "0/1 ready; slot 1 exit 127: /docker-entrypoint.sh: exec: line 47: serve: not found"
	src.Apps[22].Health = ring.Degraded
	src.Apps[22].Services[0].Phase, src.Apps[22].Services[0].Ready, src.Apps[22].Services[0].Reason = ring.PhaseFailed, 0, failed
	return st
}

// What is in trouble has its rows before refusals have theirs.
func TestRefusalsLeaveRoomForServicesInTrouble(t *testing.T) {
	for height, cut := range map[int]string{24: "… 1 more refused", 20: "… 2 refused"} {
		ctx, cancel := context.WithCancel(t.Context())
		socket := saying(t, func(n int) {
			if n == 2 {
				cancel()
			}
		}, refusing())
		v, code := seenOn(t, 80, height, ctx, func() time.Time { return aMoment }, "status", "--watch", "--socket", socket)
		require.Zero(t, code)
		require.Empty(t, v.broken)
		require.Regexp(t, `(?m)^  search/index +Degraded`, v.String())
		require.Regexp(t, `(?m)^  app22/web +Failed`, v.String())
		require.Contains(t, v.String(), "\n  "+cut+"\n")
		require.NotContains(t, v.String(), "more lines")

		v, _ = seenOn(t, 80, height, t.Context(), func() time.Time { return aMoment }, "sync", "--wait", "--socket", saying(t, func(int) {}, refusing(), refusing()))
		require.Regexp(t, `(?m)^  search/index +Degraded`, v.frames[len(v.frames)-1])
		require.Regexp(t, `(?m)^  app22/web +Failed`, v.frames[len(v.frames)-1])
	}
}

// sync --wait shows the same on its way, and how long it takes.
func TestSyncWaitFitsTheTerminal(t *testing.T) {
	for _, width := range []int{80, 120} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			began := 0
			now := func() time.Time { began++; return aMoment.Add(time.Duration(began-1) * time.Second) }
			v, code := seenOn(t, width, 24, t.Context(), now, "sync", "--wait", "--socket", saying(t, func(int) {}, busy(), busy(), busy()))
			require.Equal(t, exit.Failed, code)
			sees(t, v)
			require.Len(t, v.frames, 3)
			onTheWay, end := v.frames[2], v.String()
			require.Regexp(t, `(?m)^prod  Staging`, onTheWay)
			require.Regexp(t, `27 ready, 1 degraded, 1 progressing, \ds so far`, onTheWay)
			require.Regexp(t, `(?s)search/index.*shop/api`, onTheWay, "what is wrong comes first")
			require.Regexp(t, `… \d+ more: \d+ ready`, onTheWay)
			require.Regexp(t, `\[##--------\] 120MB of 480MB`, onTheWay)
			require.Regexp(t, `\[##--------\] 1 of 4 updated`, onTheWay)
			require.NotContains(t, end, "app00/web", "the result takes the place of the progress")
			require.Regexp(t, `27 ready, 1 degraded, 1 progressing, took \ds`, end)
			require.Equal(t, 1, strings.Count(strings.Join(strings.Fields(end), " "), "no such file or directory"), end)
		})
	}
}

// What runs is on one line of 80 columns: commit, image and tag, port or address, uptime.
func TestStatusOfAHealthyServiceIsOneLine(t *testing.T) {
	st := busy()
	src := &st.Sources[0]
	src.Sync, src.Next, src.Apps = ring.SyncSynced, nil, nil
	for _, x := range []struct{ app, service, image, address string }{
		{"media", "jellyfin", "ghcr.io/jellyfin/jellyfin:10.11.3", "8096:8096/tcp"},
		{"paperless", "webserver", "ghcr.io/paperless-ngx/paperless-ngx:2.19", "127.0.0.1:8000:8000/tcp"},
		{"home", "assistant", "ghcr.io/home-assistant/home-assistant:2026.11", ""},
	} {
		src.Apps = append(src.Apps, ring.AppStatus{Name: x.app, Health: ring.Healthy, Services: []ring.ServiceStatus{{
			Name: x.service, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: src.Commit, Running: src.Commit, Reason: "1/1 ready",
			Image: x.image, Ports: strings.Fields(x.address), Instances: []ring.InstanceStatus{{ID: "c1", Name: "n", Slot: 1, State: ring.SlotReady, Started: aMoment.Add(-3 * time.Hour), Address: "172.18.0.2"}},
		}}})
	}
	for width, want := range map[int]string{
		80: `
  SERVICE              PHASE  READY  COMMIT   IMAGE           ADDRESS         UP
  media/jellyfin       Ready  1/1    a1b2c3d  jelly…:10.11.3  :8096           3h
  paperless/webserver  Ready  1/1    a1b2c3d  paperles…:2.19  127.0.0.1:8000  3h
  home/assistant       Ready  1/1    a1b2c3d  home-…:2026.11  172.18.0.2      3h
`,
		100: `
  SERVICE              PHASE  READY  COMMIT   IMAGE                   ADDRESS         UP
  media/jellyfin       Ready  1/1    a1b2c3d  jellyfin:10.11.3        :8096           3h
  paperless/webserver  Ready  1/1    a1b2c3d  paperless-ngx:2.19      127.0.0.1:8000  3h
  home/assistant       Ready  1/1    a1b2c3d  home-assistant:2026.11  172.18.0.2      3h
`,
	} {
		v, code := seenOn(t, width, 24, t.Context(), func() time.Time { return aMoment }, "status", "--socket", saying(t, func(int) {}, st))
		require.Zero(t, code)
		require.Empty(t, v.broken)
		require.Contains(t, v.String(), want)
	}
}

// One long name takes a line of its own; every other service stays on one line.
func TestALongNameWrapsItsOwnRowOnly(t *testing.T) {
	st := busy()
	src := &st.Sources[0]
	src.Sync, src.Next, src.Apps = ring.SyncSynced, nil, nil
	for _, x := range []struct{ app, service string }{
		{"media", "jellyfin"}, {"a-rather-long-application-name", "a-service-with-a-long-name-too"}, {"home", "assistant"},
	} {
		src.Apps = append(src.Apps, ring.AppStatus{Name: x.app, Health: ring.Healthy, Services: []ring.ServiceStatus{{
			Name: x.service, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: src.Commit, Running: src.Commit, Reason: "1/1 ready",
			Image: "ghcr.io/acme/thing:1.2", Instances: []ring.InstanceStatus{{ID: "c1", Name: "n", Slot: 1, State: ring.SlotReady, Started: aMoment.Add(-3 * time.Hour), Address: "172.18.0.2"}},
		}}})
	}
	v, code := seenOn(t, 80, 24, t.Context(), func() time.Time { return aMoment }, "status", "--socket", saying(t, func(int) {}, st))
	require.Zero(t, code)
	require.Empty(t, v.broken)
	require.Contains(t, v.String(), `
  SERVICE         PHASE  READY  COMMIT   IMAGE      ADDRESS     UP
  media/jellyfin  Ready  1/1    a1b2c3d  thing:1.2  172.18.0.2  3h
  a-rather-long-application-name/a-service-with-a-long-name-too
                  Ready  1/1    a1b2c3d  thing:1.2  172.18.0.2  3h
  home/assistant  Ready  1/1    a1b2c3d  thing:1.2  172.18.0.2  3h
`)
}

// One service of several addresses has its own row shortened; every other keeps its address.
func TestSeveralAddressesShortenTheirOwnRowOnly(t *testing.T) {
	st := busy()
	src := &st.Sources[0]
	src.Sync, src.Next, src.Apps = ring.SyncSynced, nil, nil
	for _, x := range []struct{ app, service, ports string }{
		{"media", "jellyfin", "127.0.0.1:8000:8000/tcp 127.0.0.1:8443:8443/tcp 1900:1900/udp"},
		{"paperless", "webserver", "127.0.0.1:8100:8000/tcp"},
		{"home", "assistant", ""},
		{"six", "web", "[2001:db8:1234:5678::1]:8080:80/tcp"},
	} {
		src.Apps = append(src.Apps, ring.AppStatus{Name: x.app, Health: ring.Healthy, Services: []ring.ServiceStatus{{
			Name: x.service, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: src.Commit, Running: src.Commit, Reason: "1/1 ready",
			Image: "ghcr.io/acme/thing:1.2", Ports: strings.Fields(x.ports),
			Instances: []ring.InstanceStatus{{ID: "c1", Name: "n", Slot: 1, State: ring.SlotReady, Started: aMoment.Add(-3 * time.Hour), Address: "172.18.0.2"}},
		}}})
	}
	v, code := seenOn(t, 80, 24, t.Context(), func() time.Time { return aMoment }, "status", "--socket", saying(t, func(int) {}, st))
	require.Zero(t, code)
	require.Empty(t, v.broken)
	require.Contains(t, v.String(), `
  SERVICE              PHASE  READY  COMMIT   IMAGE      ADDRESS              UP
  media/jellyfin       Ready  1/1    a1b2c3d  thing:1.2  127.0.0.1:8000,+2    3h
  paperless/webserver  Ready  1/1    a1b2c3d  thing:1.2  127.0.0.1:8100       3h
  home/assistant       Ready  1/1    a1b2c3d  thing:1.2  172.18.0.2           3h
  six/web              Ready  1/1    a1b2c3d  thing:1.2  …1234:5678::1]:8080  3h
`)
}

// A person at a terminal is asked why, where the reason is required.
func TestATerminalAsksForTheReason(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	asked := make(chan string, 1)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		_, _ = io.WriteString(w, `{"says":"web held"}`)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })

	master, slave := openPTY(t, 80, 24)
	_, err = io.WriteString(master, "the disk is being replaced\n")
	require.NoError(t, err)
	require.Zero(t, run(t.Context(), []string{"hold", "web", "--socket", socket}, slave, slave, slave, time.Now))
	require.NoError(t, slave.Close())
	require.JSONEq(t, `{"verb":"hold","app":"web","reason":"the disk is being replaced","for":"4h"}`, <-asked)

	master, slave = openPTY(t, 80, 24)
	_, err = io.WriteString(master, "\n")
	require.NoError(t, err)
	require.Equal(t, exit.Usage, run(t.Context(), []string{"hold", "web", "--socket", socket}, slave, slave, slave, time.Now), "Enter is no reason")
	require.NoError(t, slave.Close())
}

// What is no result is wrapped as results are: a terminal breaks lines inside of words.
func TestLongErrorsAndNoticesAreWrapped(t *testing.T) {
	const notice = "1 Compose file is not read, another name than Compose looks for: tools/monitoring/uptime/stack.yml; list the apps in gitring.yaml"
	const says = "no signing key: Git is set to none, and the folder of keys of the person who types this has none either"
	const hint = "--generate-key makes one (--generate-key=ed25519-sk on a security key, which asks for a touch at each commit), --key names one"
	master, slave := openPTY(t, 80, 24)
	g := &globals{in: slave, out: slave, err: slave}
	g.notice("%s", notice)
	g.tell(says, hint)
	require.NoError(t, slave.Close())
	shown, _ := io.ReadAll(master) // a terminal that was closed ends with an error
	require.Equal(t, notice+" error: "+says+" hint: "+hint, strings.Join(strings.Fields(string(shown)), " "))
	for line := range strings.SplitSeq(string(shown), "\n") {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\r")), 80)
	}
}

// A long question goes on below, between two words.
func TestALongQuestionIsWrapped(t *testing.T) {
	const question = "who owns this host: owner (who signs owns it, and may ask for all that Compose takes) or compose (who signs changes apps, and the host stays yours)?"
	master, slave := openPTY(t, 80, 24)
	_, err := io.WriteString(master, "\n")
	require.NoError(t, err)
	g := &globals{in: slave, out: slave, err: slave}
	answer, err := g.ask(question, "compose")
	require.NoError(t, err)
	require.Equal(t, "compose", answer)
	require.NoError(t, slave.Close())
	shown, _ := io.ReadAll(master) // a terminal that was closed ends with an error
	said := strings.Trim(string(shown), "\r\n")
	require.Equal(t, question+" [compose]", strings.Join(strings.Fields(said), " "))
	lines := strings.Split(said, "\n")
	require.Len(t, lines, 3, said)
	for _, line := range lines {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\r")), 80)
	}
}

// sees holds a screen to what every one has: no line and no word is broken, and nothing of
// an older drawing is left.
func sees(t *testing.T, v *terminal) {
	t.Helper()
	require.Empty(t, v.broken, "lines that the terminal broke")
	require.Empty(t, v.above, "lines that scrolled out cannot be drawn over")
	require.Equal(t, 1, strings.Count(v.frames[0], "app00/web"), v.frames[0])
	all := v.frames[0] + v.String()
	for _, word := range []string{"search/index", "shop/api", "/data/index.db:", "jellyfin/jellyfin:10.11", "directory", "Degraded"} {
		require.Contains(t, all, word)
	}
}
