package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fleetOf writes the user's inventory.
func (f *farHost) fleetOf(t *testing.T, hosts ...string) {
	t.Helper()
	f.write(t, filepath.Join(f.dir, ".config/gitring/fleet.yaml"), "hosts:\n  "+strings.Join(hosts, "\n  ")+"\n")
}

// at is an entry of the inventory: a host whose socket is of that name.
func (f *farHost) at(name, socket string) string {
	return fmt.Sprintf("%s: {at: 'ssh://%s%s'}", name, name, filepath.Join(f.dir, socket))
}

// first is something before the configuration that is for every host.
func (f *farHost) first(t *testing.T, lines string) {
	t.Helper()
	before, err := os.ReadFile(f.config)
	require.NoError(t, err)
	f.write(t, f.config, lines+"\n"+string(before))
}

func statusOf(host, sync, more string) string {
	return fmt.Sprintf(`{"host":%q,"gitring":"0.1.0","sources":[{"name":"prod","branch":"main","commit":"442e027a442e027a442e027a442e027a442e027a","checking":false,"sync":%q,"reason":"r","apps":[{"name":"web","health":"Healthy","services":[`+
		`{"name":"api","kind":"worker","phase":"Ready","wanted":2,"ready":2,"updated":2,"reason":"","instances":[]},{"name":"once","kind":"job","phase":"Completed","wanted":1,"ready":0,"updated":0,"reason":"","instances":[]}%s]}]}]}`, host, sync, more)
}

func TestAFleetIsOneRowAHostAndTheWorstExitCounts(t *testing.T) {
	f := newFarHost(t)
	good := statusOf("edge-1", "Synced", "")
	bad := statusOf("edge-2", "Degraded", `,{"name":"db","kind":"worker","phase":"Degraded","wanted":1,"ready":0,"updated":0,"reason":"exited with code 3","instances":[]}`)
	askedGood := f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, good))
	f.serve(t, filepath.Join(f.dir, "bad"), answers(http.StatusOK, bad))
	f.serve(t, filepath.Join(f.dir, "denies"), answers(http.StatusForbidden, `{"code":"Denied","error":"ann may not do this","hint":"ask"}`))

	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-10", "good"))
	got := call("fleet", "status")
	require.Equal(t, called{0, "HOST     STATE   COMMIT   READY\nedge-1   Synced  442e027  2/2\nedge-10  Synced  442e027  2/2\n", ""}, got)
	require.Equal(t, []string{"GET /v1/status ", "GET /v1/status "}, askedGood())

	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-2", "bad"))
	got = call("fleet", "status")
	require.Equal(t, 6, got.code)
	require.Contains(t, got.out, "edge-2  Degraded  442e027  2/3    web/db Degraded: exited with code 3\n")

	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-2", "bad"), f.at("edge-3", "nobody"))
	got = call("fleet", "status")
	require.Equal(t, 3, got.code, "3 comes before 6")
	require.Contains(t, got.out, "edge-3  cannot reach the daemon on "+filepath.Join(f.dir, "nobody")+": no such file or directory\n  hint: is gitring serve running here?")
	require.Contains(t, got.out, "edge-1  Synced")

	askedGood()
	t.Setenv("GITRING_HOST", "ssh://edge-9")
	got = call("fleet", "status", "--on", "edge-1", "-o", "json", "--phase", "Ready", "--label", "tier=web")
	require.Zero(t, got.code, got.said)
	var rows []struct {
		Host, At, Error string
		Exit            int
		Answer          struct{ Host string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &rows))
	require.Len(t, rows, 1)
	require.Equal(t, "edge-1", rows[0].Answer.Host)
	require.Equal(t, "ssh://edge-1"+filepath.Join(f.dir, "good"), rows[0].At)
	require.Equal(t, []string{"GET /v1/status?label=tier%3Dweb&phase=Ready "}, askedGood(), "GITRING_HOST names one host, and is nothing here")

	require.Equal(t, 4, call("fleet", "status", "--on", "edge-7").code)
	require.Equal(t, 4, call("fleet", "status", "--on", "edge-1,db-*").code)
	require.Equal(t, 2, call("fleet", "status", "--host", "ssh://edge-1").code)
	f.fleetOf(t, f.at("edge-1", "denies"))
	require.Equal(t, 5, call("fleet", "sync").code)
	require.NoError(t, os.RemoveAll(filepath.Join(f.dir, ".config")))
	t.Chdir(t.TempDir())
	require.Equal(t, 4, call("fleet", "status").code)
}

func TestAFleetNeverAcceptsAHostKeyNorAsks(t *testing.T) {
	f := newFarHost(t)
	f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, statusOf("edge-1", "Synced", "")))
	// What the user's own configuration allows does not count for names of a file.
	f.first(t, "Host stranger changed\n StrictHostKeyChecking no\nHost stranger\n HostKeyAlias stranger\nHost changed\n HostKeyAlias changed\nHost asks\n IdentityFile /nowhere\n")
	known, err := os.ReadFile(f.known)
	require.NoError(t, err)
	user, err := os.ReadFile(filepath.Join(f.dir, "user.pub"))
	require.NoError(t, err)
	with := string(known) + "changed " + string(user)
	f.write(t, f.known, with)
	f.fleetOf(t, f.at("edge-1", "good"), f.at("stranger", "good"), f.at("changed", "good"), "asks: {at: 'ssh://nobody@edge-1'}")
	got := call("fleet", "status")
	require.Equal(t, 3, got.code)
	require.Contains(t, got.out, "edge-1  Synced", "others are not delayed")
	for _, says := range []string{"stranger  ", "No ED25519 host key is known for stranger", "changed  ", "REMOTE HOST IDENTIFICATION HAS CHANGED", "asks  ", "Permission denied"} {
		require.Contains(t, got.out, says)
	}
	after, err := os.ReadFile(f.known)
	require.NoError(t, err)
	require.Equal(t, with, string(after))
}

func TestNamesOfAClonesFileReachOnlyKnownHosts(t *testing.T) {
	f := newFarHost(t)
	f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, statusOf("edge-1", "Synced", "")))
	f.first(t, "Host stranger\n StrictHostKeyChecking no\n HostKeyAlias stranger\n")
	clone := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(clone, ".git"), 0o755))
	f.write(t, filepath.Join(clone, ".gitring/fleet.yaml"), "hosts:\n  "+f.at("edge-1", "good")+"\n  "+f.at("stranger", "good")+"\n")
	t.Chdir(clone)
	require.Zero(t, call("status", "--host", "edge-1").code)
	got := call("status", "--host", "stranger")
	require.Equal(t, 3, got.code, got.said)
	require.Contains(t, got.said, "No ED25519 host key is known for stranger")
	require.Equal(t, 3, call("fleet", "status").code)

	f.write(t, filepath.Join(clone, ".gitring/fleet.yaml"), "hosts: {edge-1: {at: 'ssh://-oProxyCommand=touch${IFS}/tmp/pwned'}}")
	require.Equal(t, 1, call("fleet", "status").code)
	require.Equal(t, 1, call("status", "--host", "edge-1").code)
}

func TestActsOnAFleetNameTheirHostsAndAReason(t *testing.T) {
	f := newFarHost(t)
	asked := f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, `{"says":"web is held until 12:30"}`))
	f.serve(t, filepath.Join(f.dir, "denies"), answers(http.StatusForbidden, `{"code":"Denied","error":"ann may not do this","hint":"ask"}`))
	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-2", "good"), f.at("core", "denies"))

	for _, line := range []string{
		"fleet hold web --reason r --yes", "fleet hold web --on * --yes", "fleet hold web --on * --reason r", "fleet hold web/ --on * --reason r --yes",
		"fleet scale web --on * --reason r --yes", "fleet hold web --on * --reason r --yes --for 9000h", "fleet approve xyz --on * --reason r --yes",
	} {
		got := call(strings.Fields(line)...)
		require.Equal(t, 2, got.code, "%s: %s", line, got.said)
	}
	require.Equal(t, 4, call("fleet", "hold", "web", "--on", "edge-9", "--reason", "r", "--yes").code)
	require.Empty(t, asked(), "nothing was done by halves")

	got := call("fleet", "hold", "web", "--on", "edge-*", "--for", "30m", "--reason", "disk", "--yes")
	require.Zero(t, got.code, got.said)
	require.Equal(t, "gitring hold web, on 2 hosts:\n  edge-1 (ssh://edge-1"+f.dir+"/good)\n  edge-2 (ssh://edge-2"+f.dir+"/good)\n", got.said)
	require.Equal(t, 2, strings.Count(got.out, "web is held until 12:30"))
	require.Regexp(t, `^HOST +ANSWER\n`, got.out)
	want := `POST /v1/act {"verb":"hold","app":"web","reason":"disk","for":"30m"}`
	require.Equal(t, []string{want, want}, asked())

	got = call("fleet", "hold", "web", "--on", "*", "--reason", "disk", "--yes")
	require.Equal(t, 5, got.code)
	require.Contains(t, got.out, "core  ann may not do this")
	require.Len(t, asked(), 2)

	require.Zero(t, call("fleet", "scale", "web/api=3", "--on", "edge-1", "--reason", "r", "--yes").code)
	require.Equal(t, []string{`POST /v1/act {"verb":"scale","app":"web","service":"api","reason":"r","replicas":3}`}, asked())
	require.Zero(t, call("fleet", "approve", "442e027", "--on", "edge-1", "--reason", "r", "--yes").code)
	require.Equal(t, []string{`POST /v1/approve {"commit":"442e027","reason":"r"}`}, asked())
}

// Who asks for lines that have been trimmed is told so, beside what is left.
func TestEventsSayThatLinesWereTrimmed(t *testing.T) {
	for first, notice := range map[string]string{"": "", "7": "lines before 7 were trimmed: nothing older is kept\n"} {
		socket := socketOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if first != "" {
				w.Header().Set("Gitring-First-Line", first)
			}
			_, _ = io.WriteString(w, `{"seq":7,"at":"2026-11-21T12:00:00Z","kind":"daemon.started"}`+"\n")
		}))
		got := call("events", "--tail", "0", "--socket", socket)
		require.Zero(t, got.code, got.said)
		require.Equal(t, notice, got.said)
		require.Contains(t, got.out, "daemon.started")
	}
}

// A person at a terminal is told each host that an act will reach, and asked once for them all.
func TestATerminalIsAskedBeforeAnActOnAFleet(t *testing.T) {
	f := newFarHost(t)
	asked := f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, `{"says":"web is held until 12:30"}`))
	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-2", "good"))
	t.Setenv("NO_COLOR", "1")
	hold := func(answer string, more ...string) (code int, said string) {
		t.Helper()
		master, slave := openPTY(t, 400, 24)
		_, err := io.WriteString(master, answer)
		require.NoError(t, err)
		var reading sync.WaitGroup
		reading.Go(func() {
			b, _ := io.ReadAll(master) // a terminal that was closed ends with an error
			said = string(b)
		})
		args := append([]string{"fleet", "hold", "web", "--on", "edge-*", "--reason", "disk"}, more...)
		code = run(t.Context(), args, slave, slave, slave, time.Now)
		require.NoError(t, slave.Close())
		reading.Wait()
		return code, said
	}
	for _, no := range []string{"n\n", "\n", "no\n", "yesterday\n"} {
		code, said := hold(no)
		require.Equal(t, 1, code, said)
		require.Contains(t, said, "nothing was done")
		require.Equal(t, 1, strings.Count(said, "Do it? [y/N]"), said)
		hosts, _, _ := strings.Cut(said, "Do it?")
		require.Contains(t, hosts, "gitring hold web, on 2 hosts:")
		require.Contains(t, hosts, "  edge-1 (ssh://edge-1")
		require.Contains(t, hosts, "  edge-2 (ssh://edge-2")
		require.Empty(t, asked())
	}
	for answer, more := range map[string][]string{"y\n": nil, "": {"--yes"}} {
		code, said := hold(answer, more...)
		require.Zero(t, code, said)
		require.Equal(t, len(more) == 0, strings.Contains(said, "Do it?"), said)
		require.Len(t, asked(), 2)
	}
}

func TestAFleetPlansSyncsAndTellsVersions(t *testing.T) {
	f := newFarHost(t)
	asked := f.serve(t, filepath.Join(f.dir, "good"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, map[string]string{
			"/v1/version": `{"gitring":"0.1.1","engine":"docker 28.5.2","engine_api":"1.51"}`, "/v1/sync": `{}`,
			"/v1/plan": `{"source":"prod","commit":"442e027","apps":[{"app":"web","services":[{"service":"api","class":"roll"}]}]}`,
		}[r.URL.Path])
	})
	f.serve(t, filepath.Join(f.dir, "refuses"), answers(http.StatusOK, `{"source":"prod","apps":[],"refusals":[{"code":"UnknownKey","says":"no","app":"web"}]}`))
	f.fleetOf(t, f.at("edge-1", "good"), f.at("edge-2", "refuses"))
	t.Chdir(t.TempDir())
	got := call("fleet", "version", "--on", "edge-1")
	require.Equal(t, called{0, "HOST    GITRING  ENGINE         API\nedge-1  0.1.1    docker 28.5.2  1.51\n", ""}, got)
	require.Zero(t, call("fleet", "sync", "--on", "edge-1").code)
	got = call("fleet", "plan", "442e027", "--on", "edge-1")
	require.Zero(t, got.code, got.said)
	require.Contains(t, got.out, "edge-1  1 to roll")
	require.Equal(t, []string{"GET /v1/version ", "POST /v1/sync ", "POST /v1/plan?rev=442e027 "}, asked())
	got = call("fleet", "plan", "442e027")
	require.Equal(t, 7, got.code)
}

func TestAFleetFollowsAllJournals(t *testing.T) {
	f := newFarHost(t)
	var mu sync.Mutex
	at := map[string]int{}
	stream := func(host string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			at[host]++
			mu.Unlock()
			_, _ = io.WriteString(w, `{"seq":7,"at":"2026-11-21T12:00:00Z","kind":"daemon.started","reason":"of `+host+`"}`+"\n")
			_ = http.NewResponseController(w).Flush()
			if r.URL.Query().Has("follow") {
				<-r.Context().Done()
			}
		}
	}
	f.serve(t, filepath.Join(f.dir, "one"), stream("one"))
	f.serve(t, filepath.Join(f.dir, "two"), stream("two"))
	f.fleetOf(t, f.at("edge-1", "one"), f.at("edge-2", "two"), f.at("edge-3", "nobody"))
	got := call("fleet", "events")
	require.Equal(t, 3, got.code)
	require.Contains(t, got.out, "edge-1        daemon.started")
	require.Contains(t, got.out, "of two")
	require.Contains(t, got.said, "edge-3: cannot reach the daemon on ")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := &allOf{texts: []string{"of one", "of two"}, end: cancel}
	require.Zero(t, run(ctx, []string{"fleet", "events", "-f", "-o", "json"}, strings.NewReader(""), told, io.Discard, time.Now))
	require.Empty(t, told.texts)
}

func TestAFleetIsExaminedInOneRowAHost(t *testing.T) {
	f := newFarHost(t)
	check := `{"about":"engine","name":"answers","result":"ok","says":"docker"},{"about":"state","name":"room","result":%q,"says":"1 GiB left"},{"about":"clock","name":"skew","result":"warn","says":"40 s"},{"about":"people","name":"p","result":"skip","says":"s"}`
	report := `{"host":"h","gitring":"0.1.0","at":"2026-11-21T12:00:00Z","daemon":true,"checks":[` + check + `]}`
	f.serve(t, filepath.Join(f.dir, "warns"), answers(http.StatusOK, fmt.Sprintf(report, "ok")))
	f.serve(t, filepath.Join(f.dir, "fails"), answers(http.StatusOK, fmt.Sprintf(report, "fail")))
	f.serve(t, filepath.Join(f.dir, "denies"), answers(http.StatusForbidden, `{"code":"Denied","error":"ann may not do this","hint":"ask"}`))
	f.fleetOf(t, f.at("edge-1", "warns"))
	got := call("fleet", "doctor")
	require.Equal(t, called{0, "HOST    FAIL  WARN  OK  SKIP\nedge-1  0     1     2   1     clock: skew: 40 s\n", ""}, got)
	f.fleetOf(t, f.at("edge-1", "warns"), f.at("edge-2", "fails"))
	got = call("fleet", "doctor")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "edge-2  1     1     1   1     state: room: 1 GiB left\n")
	f.fleetOf(t, f.at("edge-1", "warns"), f.at("edge-2", "denies"), f.at("edge-3", "nobody"))
	got = call("fleet", "doctor", "-o", "json")
	require.Equal(t, 3, got.code, "a host that does not answer is the gravest")
	require.Contains(t, got.out, "ann may not do this")

	asked := f.serve(t, filepath.Join(f.dir, "refreshes"), answers(http.StatusOK, `[{"app":"web","service":"api","image":"web:1"}]`))
	f.fleetOf(t, f.at("edge-1", "refreshes"))
	got = call("fleet", "refresh", "web/api", "--on", "*", "--reason", "r", "--yes")
	require.Zero(t, got.code, got.said)
	require.Contains(t, got.out, "edge-1  looked up 1 image")
	require.Equal(t, []string{`POST /v1/refresh {"app":"web","service":"api","reason":"r"}`}, asked())
}

// fakeSSH is an ssh that answers at once for every host, and writes down how many of it run.
const fakeSSH = `#!/bin/sh
touch "$FLEET_DIR/on.$$"
n=0
for f in "$FLEET_DIR"/on.*; do kill -0 "${f##*.}" 2>/dev/null && n=$((n + 1)); done
echo "$n" >>"$FLEET_DIR/counts"
for host; do :; done
echo "gitring dial-stdio"
while IFS= read -r line; do [ "$line" != "$(printf '\r')" ] || break; done
body=$(cat "$FLEET_DIR/body")
printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body"
cat >/dev/null
`

func TestFiftyHostsAreAskedSixteenAtOnce(t *testing.T) {
	home, bin, dir := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte(fakeSSH), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "body"), []byte(statusOf("edge", "Synced", "")), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("FLEET_DIR", dir)
	lines := "hosts:\n"
	for i := range 50 {
		lines += fmt.Sprintf("  edge-%d: {}\n", i)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".config/gitring"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".config/gitring/fleet.yaml"), []byte(lines), 0o600))
	began := time.Now()
	got := call("fleet", "status")
	t.Logf("50 hosts took %s", time.Since(began))
	require.Zero(t, got.code, got.out)
	require.Equal(t, 50, strings.Count(got.out, "Synced"))
	counts, err := os.ReadFile(filepath.Join(dir, "counts"))
	require.NoError(t, err)
	words := strings.Fields(string(counts))
	require.Len(t, words, 50, "one ssh a host")
	most := 0
	for _, w := range words {
		n, err := strconv.Atoi(w)
		require.NoError(t, err)
		most = max(most, n)
	}
	require.LessOrEqual(t, most, 16)
	require.Greater(t, most, 1, "not one after the other")
}

// Each is a session of its own at a real sshd, which takes half a second and more of a busy
// machine, so GITRING_E2E_LONG asks for it.
func TestFiftyHostsAreAskedOfARealSSHD(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("signs in fifty times: GITRING_E2E_LONG=1 asks for it")
	}
	f := newFarHost(t)
	f.serve(t, filepath.Join(f.dir, "good"), answers(http.StatusOK, statusOf("edge", "Synced", "")))
	var hosts []string
	for i := range 50 {
		hosts = append(hosts, f.at(fmt.Sprintf("edge-%d", i), "good"))
	}
	f.fleetOf(t, hosts...)
	began := time.Now()
	got := call("fleet", "status")
	t.Logf("50 hosts took %s", time.Since(began))
	require.Zero(t, got.code, got.out)
	require.Equal(t, 50, strings.Count(got.out, "Synced"))
}

// allOf ends something when all texts were written.
type allOf struct {
	texts []string
	end   func()
}

func (a *allOf) Write(b []byte) (int, error) {
	for i := len(a.texts) - 1; i >= 0; i-- {
		if strings.Contains(string(b), a.texts[i]) {
			a.texts = append(a.texts[:i], a.texts[i+1:]...)
		}
	}
	if len(a.texts) == 0 {
		a.end()
	}
	return len(b), nil
}
