package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// opensDoor has the daemon listen for people, and returns the address and a token that may read.
func (h *host) opensDoor() (address, token string) {
	h.t.Helper()
	address = freePort(h.t)
	file := filepath.Join(h.dir, "tokens")
	require.NoError(h.t, os.WriteFile(file, nil, 0o600))
	h.config["listen"].(obj)["api"] = obj{"address": address}
	h.config["api"] = obj{"tokens": file}
	h.writeConfig()
	return address, h.token("viewer")
}

// token is a new one that may read.
func (h *host) token(name string) string {
	h.t.Helper()
	out, err := h.command("token", "new", name, "--scope", "read", "--for", "30d", "--add", "--config", h.configFile()).Output()
	require.NoError(h.t, err)
	return strings.TrimSpace(string(out))
}

// status and logs are narrowed by what a person types, on the host itself.
func TestStatusAndLogsAreNarrowedByTheCommandLine(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	h.start()
	h.deployed("Two services", files{app + "/compose.yaml": h.compose(app, obj{
		"api": web("1", obj{"labels": obj{"tier": "web"}}), "db": web("1", obj{"labels": obj{"tier": "data"}}),
		"load": obj{"image": image, "pull_policy": "never", "command": []any{"job"}, "environment": obj{"VERSION": "needle"}, "x-gitring": obj{"kind": "job"}, "labels": obj{"tier": "load"}},
	})})
	for _, tt := range []struct {
		args      []string
		has, lack string
	}{
		{[]string{"status"}, app + "/api", "no such service"},
		{[]string{"status", "--label", "tier=web"}, app + "/api", app + "/db"},
		{[]string{"status", "--label", "tier=data"}, app + "/db", app + "/api"},
		{[]string{"status", "--phase", "Ready", "--label", "tier=web"}, app + "/api", app + "/db"},
		{[]string{"status", "--phase", "Degraded"}, h.name, app + "/api"},
		{[]string{"status", "--phase", "Degraded", "-o", "json"}, h.name, `"api"`},
	} {
		_, out := h.run(tt.args...)
		require.Contains(t, out, tt.has, "%v", tt.args)
		require.NotContains(t, out, tt.lack, "%v", tt.args)
	}
	code, out := h.run("status", "--phase", "Readdy")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "Ready")
	code, out = h.run("logs", app+"/load", "--grep", "needle")
	require.Zero(t, code, out)
	require.Contains(t, out, "job needle runs")
	code, out = h.run("logs", app+"/load", "--grep", "straw")
	require.Zero(t, code, out)
	require.NotContains(t, out, "job needle runs")
}

// forgetPeak has the kernel count the most memory that the daemon had from now on.
func (h *host) forgetPeak() {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile("/proc/"+strconv.Itoa(h.daemon.Process.Pid)+"/clear_refs", []byte("5"), 0))
}

// peak is the most memory that the daemon had, in KiB.
func (h *host) peak() (kib int) {
	h.t.Helper()
	body, err := os.ReadFile("/proc/" + strconv.Itoa(h.daemon.Process.Pid) + "/status")
	require.NoError(h.t, err)
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kib, err = strconv.Atoi(f[1])
			require.NoError(h.t, err)
		}
	}
	return kib
}

// 10,000 connections come to the door for people, with wrong tokens, or with nothing at all, and
// readers of a byte a second stay. The daemon takes less than 32 MiB for it, rolls out meanwhile,
// looks as often as ever, and lets a valid token in.
func TestAFloodAtTheDoorCostsLittleAndDelaysNothing(t *testing.T) {
	h := newHost(t)
	app := h.app("shop")
	address, token := h.opensDoor()
	h.start()
	h.deployed("One", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(3))})})
	settled(h)
	h.forgetPeak()
	before, looked := h.peak(), h.looks()
	ctx, end := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var came atomic.Int64
	defer flood.Wait()
	defer end()
	hold := func(say string) net.Conn {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil
		}
		came.Add(1)
		_, _ = io.WriteString(c, say)
		return c
	}
	wrong := "GET /v1/status HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer grt_aaaaaaaa_" + strings.Repeat("a", 43) + "\r\n\r\n"
	right := strings.Replace(wrong, "grt_aaaaaaaa_"+strings.Repeat("a", 43), token, 1)
	for n := range 20 {
		flood.Go(func() {
			var open []net.Conn
			for ctx.Err() == nil && came.Load() < 10_000 {
				say := ""
				if n%2 == 0 {
					say = wrong
				}
				if c := hold(say); c != nil {
					open = append(open, c)
				}
				if len(open) > 20 {
					_ = open[0].Close()
					open = open[1:]
				}
			}
			for _, c := range open {
				_ = c.Close()
			}
		})
	}
	for range 8 { // who may read, and takes a byte a second
		flood.Go(func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			c := hold(right)
			if c == nil {
				return
			}
			defer c.Close()
			for one := make([]byte, 1); ctx.Err() == nil; <-tick.C {
				if _, err := c.Read(one); err != nil {
					return
				}
			}
		})
	}
	var in, out atomic.Int64
	flood.Go(func() { // whoever has a token looks four times a second
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/version", nil)
			if err != nil {
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
			res, err := client.Do(r)
			if err != nil {
				continue
			}
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				in.Add(1)
			} else {
				out.Add(1)
			}
		}
	})
	h.deployed("Two, in a flood", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(3))})})
	h.until("the flood is over", func() bool { return came.Load() >= 10_000 })
	end()
	flood.Wait()
	took, now := h.peak()-before, h.looks()
	now.looks -= looked.looks
	t.Logf("%d connections; %d KiB at most more than the %d before; a valid token came in %d times and was kept out %d times", came.Load(), took, before, in.Load(), out.Load())
	t.Logf("%d looks of %.3f s on average, after %d of %.3f s", now.looks, (now.took-looked.took)/float64(now.looks), looked.looks, looked.took/float64(looked.looks))
	require.Greater(t, now.looks, 2, "it looks on: a rollout of three takes a look for each")
	require.Less(t, took, 32<<10)
	require.Positive(t, in.Load())
	require.Zero(t, out.Load())
}

// looked is how many looks at the engine the daemon made, and how many seconds all of them took.
type looked struct {
	looks int
	took  float64
}

func (h *host) looks() (l looked) {
	h.t.Helper()
	out, err := h.command("metrics").Output()
	require.NoError(h.t, err)
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "gitring_look_duration_seconds_count":
			l.looks, err = strconv.Atoi(value)
		case "gitring_look_duration_seconds_sum":
			l.took, err = strconv.ParseFloat(value, 64)
		}
		require.NoError(h.t, err)
	}
	require.Positive(h.t, l.looks)
	return l
}

// cpu is what the daemon used since its start.
func (h *host) cpu() time.Duration {
	h.t.Helper()
	body, err := os.ReadFile("/proc/" + strconv.Itoa(h.daemon.Process.Pid) + "/stat")
	require.NoError(h.t, err)
	_, rest, _ := strings.Cut(string(body), ") ")
	f := strings.Fields(rest)
	user, err := strconv.Atoi(f[11])
	require.NoError(h.t, err)
	system, err := strconv.Atoi(f[12])
	require.NoError(h.t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Fifty look at one page during rollouts, each by a stream of their own, and fetch the page again
// with each status, as a browser does. Every one of them is told; what it costs is written down.
func TestFiftyViewersOfARollout(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("it measures a minute: GITRING_E2E_LONG=1 asks for it")
	}
	h := newHost(t)
	app := h.app("shop")
	address, _ := h.opensDoor()
	var tokens []string
	for i := range 50 {
		tokens = append(tokens, h.token("viewer-"+strconv.Itoa(i)))
	}
	h.start()
	v := 0
	rolled := func() (took, used time.Duration) {
		v++
		began, before := time.Now(), h.cpu()
		for range 3 {
			v++
			h.deployed("Another "+strconv.Itoa(v), files{app + "/compose.yaml": h.compose(app, obj{"web": web(strconv.Itoa(v), replicas(5)), "db": web(strconv.Itoa(v), replicas(5))})})
		}
		return time.Since(began), h.cpu() - before
	}
	rolled()
	took, alone := rolled()
	var viewers sync.WaitGroup
	var pages, bytes atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	get := func(token, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return http.DefaultClient.Do(r)
	}
	for _, token := range tokens {
		viewers.Go(func() {
			res, err := get(token, "/v1/stream")
			if err != nil {
				return
			}
			defer res.Body.Close()
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				if lines.Text() != "event: status" {
					continue
				}
				page, err := get(token, "/")
				if err != nil {
					return
				}
				n, _ := io.Copy(io.Discard, page.Body)
				_ = page.Body.Close()
				if page.StatusCode == http.StatusOK {
					pages.Add(1)
					bytes.Add(n)
				}
			}
		})
	}
	with, used := rolled()
	end()
	viewers.Wait()
	t.Logf("alone %s of CPU in %s, with viewers %s in %s: %d pages, %d bytes", alone, took, used, with, pages.Load(), bytes.Load())
	require.Greater(t, pages.Load(), int64(50), "each of them, and more than once")
}
