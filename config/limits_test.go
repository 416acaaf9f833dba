package config

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// limited is a configuration whose limits say what is given; "" is the defaults.
func limited(t *testing.T, says, url string) *Config {
	t.Helper()
	text := "host: edge-1\nstate: " + filepath.Join(t.TempDir(), "state") + "\nsources:\n  - {name: prod, url: \"" + url + "\", trust: {mode: disabled}}\n"
	if says != "" {
		group, limit, _ := strings.Cut(says, ".")
		text += "limits: {" + group + ": {" + limit + "}}\n"
	}
	c, err := Parse("c.yaml", []byte(text), env())
	require.NoError(t, err)
	return c
}

// Each limit of docs/design/trust.md#limits, and each of our own, is set away from its
// default, and what it holds is tried under both: what the stricter one refuses, the
// other lets pass.
func TestEachLimitChangesWhatIsEnforced(t *testing.T) {
	many := func(n int, text string) string { return strings.Repeat(text, n) }
	list := func(n int, item string) string { return "[" + strings.TrimSuffix(many(n, item+", "), ", ") + "]" }
	services := func(n int) string {
		out := "services:\n"
		for i := range n {
			out += fmt.Sprintf("  s%d: {image: a}\n", i)
		}
		return out
	}
	numbered := func(n int, name, text string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf(name, i)] = strings.ReplaceAll(text, "NEXT", strconv.Itoa(i+1))
		}
		return out
	}
	web := func(text string) map[string]string { return map[string]string{"web/compose.yaml": text} }
	with := func(files map[string]string, more map[string]string) map[string]string {
		for name, text := range more {
			files[name] = text
		}
		return files
	}
	nodes := "x-a:\n"
	for i := range 110 {
		nodes += fmt.Sprintf("  k%d: %s\n", i, list(1000, "a"))
	}
	includes := "include: ["
	for i := range 51 {
		includes += fmt.Sprintf("part%d.yaml, ", i)
	}
	mounts := "services: {web: {image: a, volumes: ['./c:/c']}}\n"

	cases := []struct {
		set     string // the limit, away from its default
		tighter bool   // what is set refuses, and the default does not
		try     func(t *testing.T, c *Config) (refused string)
		says    string // part of the refusal
	}{
		{"content.files: 200", true, read(numbered(201, "a%d/compose.yaml", services(1))), "more than 200 manifest files"},
		{"content.file_size: 2MiB", false, read(web(services(1) + "#" + many(mib, "x"))), "larger than 1 MiB"},
		{"content.total_size: 8MiB", true, read(numbered(9, "a%d/compose.yaml", services(1)+"#"+many(mib-100, "x"))), "larger than 8 MiB together"},
		{"content.yaml_depth: 80", false, read(web("x-a: " + many(70, "[") + many(70, "]") + "\n" + services(1))), "deeper than 64"},
		{"content.yaml_nodes: 200_000", false, read(web(nodes + services(1))), "more than 100000 nodes"},
		{"content.yaml_aliases: 2000", false, read(web("x-a: &a b\nx-b: " + list(600, "*a") + "\nx-c: " + list(600, "*a") + "\n" + services(1))), "more than 1000 aliases"},
		{"content.yaml_entries: 2000", false, read(web("x-a: " + list(1001, "a") + "\n" + services(1))), "more than 1000 entries"},
		{"content.string: 128KiB", false, read(web("x-a: " + many(70*kib, "y") + "\n" + services(1))), "longer than 65536 bytes"},
		{"content.include_depth: 20", false, read(with(numbered(10, "web/in%d.yaml", "include: [inNEXT.yaml]\n"), map[string]string{"web/compose.yaml": "include: [in0.yaml]\n" + services(1), "web/in10.yaml": "networks: {a: {}}\n"})), "deeper than 8 files"},
		{"content.include_files: 60", false, read(with(numbered(51, "web/part%d.yaml", "networks: {nNEXT: {}}\n"), web(strings.TrimSuffix(includes, ", ")+"]\n"+services(1)))), "more than 50 files"},
		{"content.services: 150", false, read(web(services(101))), "more than 100 services"},
		{"content.ports: 2000", false, read(web("services: {web: {image: a, ports: ['1001-1550:1001-1550'], expose: ['2001-2550']}}\n")), "more than 1000 ports"},
		{"content.replicas: 2000", false, read(web("services: {web: {image: a, deploy: {replicas: 1001}}}\n")), "cannot have 1001 replicas"},
		{"content.mounted_files: 10_100", false, read(with(numbered(10_001, "web/c/%d", "x"), web(mounts))), "more than 10000 files"},
		{"content.mounted_file: 1KiB", true, read(with(web(mounts), map[string]string{"web/c/a": many(2*kib, "x")})), "larger than 1 KiB"},
		{"content.mounted_folder: 3KiB", true, read(with(web(mounts), map[string]string{"web/c/a": many(2*kib, "x"), "web/c/b": many(2*kib, "x")})), "larger than 3 KiB"},

		{"webhook.body: 512KiB", false, func(t *testing.T, c *Config) string { return posted(t, c, 1, 300*kib) }, "413"},
		{"webhook.rate: 20", false, func(t *testing.T, c *Config) string { return posted(t, c, 19, 1) }, "429"},
		{"webhook.concurrent: 100", false, atOnce(40), "429"},
		{"webhook.read_timeout: 1s", true, slowly, "408"},

		{"git.received: 1MiB", true, fetched(2*mib, 0), "more than the limit"},
		{"git.objects: 100", true, fetched(0, 150), "at most 100 are allowed"},
		{"git.object_size: 1MiB", true, func(t *testing.T, c *Config) string {
			return firstLook(t, c, served(t, remoteWith(t, 2*mib, 0), func() {}), func() {})
		}, "at most 1048576 are allowed"},
		{"git.file_size: 1MiB", true, fetched(2*mib, 0), "RLIMIT_FSIZE"},
		{"git.refs_size: 64KiB", true, advertised, "the remote sends too much"},
		{"git.idle: 1s", true, func(t *testing.T, c *Config) string { return slowRemote(t, c, false) }, "timeout"},
		{"git.clone: 1s", true, func(t *testing.T, c *Config) string { return slowRemote(t, c, false) }, "longer than 1s"},
		{"git.update: 1s", true, func(t *testing.T, c *Config) string { return slowRemote(t, c, true) }, "longer than 1s"},
		{"git.memory: 2GiB", false, ofProcess("Max data size", 1<<31), "1073741824"},
		{"git.open_files: 512", false, ofProcess("Max open files", 512), "256"},
		{"git.memory_target: 512MiB", true, func(_ *testing.T, c *Config) string { // the runtime's own, in the other process
			if n := GitConfig(c, &c.Sources[0]).Limits.Target; n == 512*mib {
				return "512 MiB"
			}
			return ""
		}, "512 MiB"},
		{"git.poke_every: 10s", true, poked, "1 look"},
		{"git.backoff: 10s", false, patient, "15m"},
	}
	tried := map[string]bool{}
	for _, tc := range cases {
		key, _, _ := strings.Cut(tc.set, ":")
		tried[key] = true
		t.Run(key, func(t *testing.T) {
			if strings.HasPrefix(key, "git.") && key != "git.poke_every" && key != "git.backoff" {
				t.Parallel()
			}
			strict, loose := "", tc.set
			if tc.tighter {
				strict, loose = loose, strict
			}
			require.Contains(t, tc.try(t, limited(t, strict, "file:///nowhere")), tc.says)
			require.Empty(t, tc.try(t, limited(t, loose, "file:///nowhere")))
		})
	}
	for _, key := range limitKeys {
		require.True(t, tried[key.name], "%s is not tried", key.name)
	}
	require.Len(t, tried, len(limitKeys))
}

// read is a commit's files, read as the daemon and validate read them.
func read(files map[string]string) func(*testing.T, *Config) string {
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return func(_ *testing.T, c *Config) string {
		settings := SettingsOf(c, &c.Sources[0])
		_, all := manifest.Check(&ring.Commit{SHA: "x", Tree: tree}, settings)
		if len(all) > 0 {
			return all[0].Error()
		}
		return ""
	}
}

var hookSecret = []byte("0123456789abcdef0123456789abcdef")

func hooksOf(t *testing.T, c *Config) *api.Webhooks {
	t.Helper()
	h, err := api.NewWebhooks([]api.Hook{{Source: "prod", Forge: "github", Secret: [][]byte{hookSecret}}}, api.HookOptions{Limits: c.limits.hooks, Poke: func(string) {}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return h
}

func signedPush(body string, reader io.Reader) *http.Request {
	m := hmac.New(sha256.New, hookSecret)
	m.Write([]byte(body))
	r := httptest.NewRequest(http.MethodPost, "/v1/webhook/prod", reader)
	r.ContentLength = int64(len(body))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
	return r
}

// posted are that many good requests in a row; the first answer that is no 202.
func posted(t *testing.T, c *Config, n, bytes int) string {
	h, body := hooksOf(t, c), strings.Repeat("x", bytes)
	for range n {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, signedPush(body, strings.NewReader(body)))
		if w.Code != http.StatusAccepted {
			return strconv.Itoa(w.Code)
		}
	}
	return ""
}

// atOnce are requests of different addresses whose bodies do not come yet.
func atOnce(n int) func(*testing.T, *Config) string {
	return func(t *testing.T, c *Config) string {
		h := hooksOf(t, c)
		read, write := io.Pipe()
		codes := make(chan int, n)
		began := make(chan struct{}, n)
		for i := range n {
			r := signedPush("x", &announced{read, began})
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				codes <- w.Code
			}()
		}
		refused := ""
		for left := n; left > 0; left-- { // each begins to read, or is refused
			select {
			case <-began:
			case code := <-codes:
				refused = strconv.Itoa(code)
			}
		}
		require.NoError(t, write.Close())
		return refused
	}
}

// announced tells that somebody begins to read.
type announced struct {
	io.Reader
	began chan<- struct{}
}

func (a *announced) Read(b []byte) (int, error) {
	if a.began != nil {
		a.began <- struct{}{}
		a.began = nil
	}
	return a.Reader.Read(b)
}

// slowly is a request whose body ends after one and a half seconds.
func slowly(t *testing.T, c *Config) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	h := hooksOf(t, c)
	go func() { ended <- h.Run(ctx, l) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	sum := signedPush("xy", strings.NewReader("")).Header.Get("X-Hub-Signature-256")
	fmt.Fprintf(conn, "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Hub-Signature-256: %s\r\nContent-Length: 2\r\n\r\nx", sum)
	<-time.After(1500 * time.Millisecond)
	_, _ = io.WriteString(conn, "y") // it may have hung up
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	if strings.Contains(string(answer), " 202 ") {
		return ""
	}
	return string(answer)
}

// forgetful is a store of anchors that trusts nothing yet.
type forgetful struct{}

func (forgetful) Anchor(context.Context, string) (ring.Anchor, error) { return ring.Anchor{}, nil }

func (forgetful) FirstSeen(_ context.Context, _ string, shas []ring.SHA, now time.Time) (map[ring.SHA]time.Time, error) {
	out := map[ring.SHA]time.Time{}
	for _, s := range shas {
		out[s] = now
	}
	return out, nil
}

func (forgetful) Standing(context.Context, string, ring.SHA) (ring.Standing, error) {
	return ring.NeverSeen, nil
}

func (forgetful) Carriers(context.Context, string, string) ([]ring.Carrier, error) { return nil, nil }

func (forgetful) Verified(context.Context, string, ring.SHA) (ring.Verified, bool, error) {
	return ring.Verified{}, false, nil
}

func (forgetful) Trust(context.Context, ring.Anchor, []ring.Verified, []ring.Event) error { return nil }

// followed runs the follower of a configuration; out hears each report, and ends it
// when it says so.
func followed(t *testing.T, cfg gitsync.Config, out func(f *gitsync.Follower, r ring.Report) (end bool)) {
	t.Helper()
	f, err := gitsync.New(cfg, forgetful{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, f.Run(ctx, func(_ context.Context, r ring.Report) {
		if out(f, r) {
			cancel()
		}
	}))
}

// firstLook is what the first look at a remote met.
func firstLook(t *testing.T, c *Config, url string, while func()) (met string) {
	t.Helper()
	cfg := GitConfig(c, &c.Sources[0])
	cfg.URL = url
	followed(t, cfg, func(_ *gitsync.Follower, r ring.Report) bool {
		if r.Err != nil {
			met = r.Err.Error()
		}
		while()
		return true
	})
	return met
}

// remoteWith is a repository with one large file and many small ones.
func remoteWith(t *testing.T, large, small int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "remote")
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, string(said))
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	git("init", "-q", "-b", "main", ".")
	noise := make([]byte, large)
	_, _ = rand.Read(noise) // or it would be packed small
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), noise, 0o600))
	for i := range small {
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(strconv.Itoa(i)), 0o600))
	}
	git("add", ".")
	git("commit", "-q", "-m", "One")
	return dir
}

func fetched(large, small int) func(*testing.T, *Config) string {
	return func(t *testing.T, c *Config) string {
		return firstLook(t, c, "file://"+remoteWith(t, large, small), func() {})
	}
}

// advertised is a remote with many refs.
func advertised(t *testing.T, c *Config) string {
	dir := remoteWith(t, 1, 1)
	refs := ""
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	require.NoError(t, err)
	for i := range 2000 {
		refs += fmt.Sprintf("%s refs/tags/t%04d\n", strings.TrimSpace(string(head)), i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "packed-refs"), []byte("# pack-refs with: peeled fully-peeled sorted \n"+refs), 0o600))
	return firstLook(t, c, served(t, dir, func() {}), func() {})
}

// served is a repository behind HTTP; each request waits for the word before.
func served(t *testing.T, dir string, before func()) string {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	back := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before()
		back.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/.git"
}

// slowRemote answers after a second and a half: at once, or after it was cloned.
func slowRemote(t *testing.T, c *Config, cloned bool) (met string) {
	var slow atomic.Bool
	slow.Store(!cloned)
	cfg := GitConfig(c, &c.Sources[0])
	cfg.URL = served(t, remoteWith(t, 1, 1), func() {
		if slow.Load() {
			<-time.After(1500 * time.Millisecond)
		}
	})
	looks := 0
	followed(t, cfg, func(f *gitsync.Follower, r ring.Report) bool {
		looks++
		if cloned && looks == 1 {
			require.NoError(t, r.Err)
			slow.Store(true)
			f.Poke()
			return false
		}
		if r.Err != nil {
			met = r.Err.Error()
		}
		return true
	})
	return met
}

// ofProcess is a limit of the process that fetches, as the kernel has it: "" when
// one has what was set.
func ofProcess(name string, set int) func(*testing.T, *Config) string {
	return func(t *testing.T, c *Config) (met string) {
		firstLook(t, c, "file://"+remoteWith(t, 1, 1), func() {
			all, err := filepath.Glob("/proc/[0-9]*/cmdline")
			require.NoError(t, err)
			for _, file := range all { // those of other looks too
				if !fetches(file) {
					continue
				}
				text, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "limits"))
				_, line, _ := strings.Cut(string(text), name)
				f := strings.Fields(line)
				if len(f) > 0 && f[0] == strconv.Itoa(set) {
					met = ""
					return
				}
				met += strings.Join(f[:min(1, len(f))], "") + " "
			}
		})
		return met
	}
}

// fetches reports whether a process is a child of this one that fetches.
func fetches(cmdline string) bool {
	line, _ := os.ReadFile(cmdline)
	if !strings.HasPrefix(string(line), "gitring\x00"+gitsync.FetchVerb) {
		return false
	}
	stat, _ := os.ReadFile(filepath.Join(filepath.Dir(cmdline), "stat"))
	f := strings.Fields(string(stat))
	return len(f) > 3 && f[3] == strconv.Itoa(os.Getpid())
}

// poked counts the looks at a remote that is poked without end for five seconds.
func poked(t *testing.T, c *Config) (met string) {
	dir := filepath.Join(t.TempDir(), "none") // no bubble's business
	synctest.Test(t, func(t *testing.T) {
		cfg := GitConfig(c, &c.Sources[0])
		cfg.URL, cfg.Isolated, cfg.Poll = "file://"+dir, false, "1h"
		began, looks := time.Now(), 0
		followed(t, cfg, func(f *gitsync.Follower, _ ring.Report) bool {
			looks++
			f.Poke()
			if time.Since(began) >= 5*time.Second && looks < 4 {
				met = "1 look in 5s"
			}
			return looks == 4 || met != ""
		})
	})
	return met
}

// patient is the longest time between two looks at a remote that is away.
func patient(t *testing.T, c *Config) (met string) {
	dir := filepath.Join(t.TempDir(), "none")
	synctest.Test(t, func(t *testing.T) {
		cfg := GitConfig(c, &c.Sources[0])
		cfg.URL, cfg.Isolated = "file://"+dir, false
		var at []time.Time
		followed(t, cfg, func(*gitsync.Follower, ring.Report) bool {
			at = append(at, time.Now())
			return len(at) == 15
		})
		longest := time.Duration(0)
		for i := range at[1:] {
			longest = max(longest, at[i+1].Sub(at[i]))
		}
		if longest > time.Minute {
			met = longest.Round(3 * time.Minute).String()
		}
	})
	return met
}

// With the least of everything a small repository is followed all the same.
func TestTheFloorsOfTheLimitsLeaveRoomForASmallRepository(t *testing.T) {
	var low limits
	for _, key := range limitKeys {
		key.put(&low, key.floor)
	}
	c := limited(t, "", "file:///nowhere")
	c.Sources[0].limits = low
	require.Empty(t, firstLook(t, c, served(t, remoteWith(t, kib, 10), func() {}), func() {}))
	require.Empty(t, read(map[string]string{"web/compose.yaml": "services: {web: {image: a, command: [a, b]}}\n"})(t, c))
}

// Each default is one that could be written.
func TestTheDefaultsOfTheLimitsAreWithinTheirBounds(t *testing.T) {
	for _, key := range limitKeys {
		u := key.unit(&limits{})
		again, ok := u.parse(u.text(key.otherwise()))
		require.True(t, ok, key.name)
		require.Equal(t, key.otherwise(), again, key.name)
		require.LessOrEqual(t, key.floor, again, key.name)
		require.LessOrEqual(t, again, key.most(u), key.name)
	}
}

// The reference has a line for each: its key, and its default as one writes it.
func TestTheReferenceNamesEachLimitWithItsDefault(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/configuration.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "## Limits\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(line, "|")
			rows = append(rows, strings.Trim(cells[1], " `")+": "+strings.Trim(cells[2], " `"))
		}
	}
	var want []string
	for _, key := range limitKeys {
		want = append(want, key.name+": "+key.unit(&limits{}).text(key.otherwise()))
	}
	require.Equal(t, want, rows)
}

func TestASourceHasLimitsOfItsOwnOverThoseOfTheHost(t *testing.T) {
	c, err := Parse("c.yaml", []byte(smallConfig+`    limits: {git: {received: 2GiB}, content: {services: 300, mounted_file: 100MiB}}
  - {name: lab, url: file:///srv/lab, trust: {mode: disabled}}
limits:
  git: {objects: 300000, received: 1GiB}
  webhook: {rate: 50}
`), env())
	require.NoError(t, err)
	prod, lab := GitConfig(c, &c.Sources[0]).Limits, GitConfig(c, &c.Sources[1]).Limits
	require.Equal(t, gitsync.Limits{Received: 2 * gib, Objects: 300_000, Blob: 100 * mib}, prod, "a mounted file has to come out of the commit, too")
	require.Equal(t, gitsync.Limits{Received: gib, Objects: 300_000, Blob: 64 * mib}, lab)
	require.Equal(t, 300, SettingsOf(c, &c.Sources[0]).Limits.Services)
	require.Zero(t, SettingsOf(c, &c.Sources[1]).Limits.Services)
	require.Equal(t, 50, c.limits.hooks.Rate)
	require.Equal(t, 300, c.MostServices(), "the policy stands in nobody's way")
}

func TestALimitThatMakesNoSenseIsToldWithItsLine(t *testing.T) {
	for _, tc := range []struct{ limits, want, hint string }{
		{"git: {recieved: 1GiB}", `c.yaml:2: unknown key "recieved"`, `did you mean "received"?`},
		{"gti: {received: 1GiB}", `c.yaml:2: unknown key "gti"`, `did you mean "git"?`},
		{"git: {received: 1GiB, received: 2GiB}", `c.yaml:2: key "received" is given twice, first in line 2`, "keep one"},
		{"git: [received]", "c.yaml:2: limits.git: no mapping", "known here: received, objects"},
		{"git: {received: 512}", `c.yaml:2: limits.git.received: "512" is no size such as 512MiB, a whole number of B, KiB, MiB, GiB or TiB`, "write 512MiB"},
		{"git: {received: 512MB}", `c.yaml:2: limits.git.received: "512MB" is no size`, ""},
		{"git: {received: 9999999999TiB}", `c.yaml:2: limits.git.received: "9999999999TiB" is no size`, ""},
		{"git: {received: 2TiB}", `c.yaml:2: limits.git.received: "2TiB" is no limit any more, the most is 1TiB`, "the default is 512MiB"},
		{"git: {received: 1KiB}", `c.yaml:2: limits.git.received: "1KiB" is too little to work with, the least is 1MiB`, "the default is 512MiB"},
		{"git: {objects: many}", `c.yaml:2: limits.git.objects: "many" is no whole number`, "write 200000"},
		{"git: {objects: 0}", `c.yaml:2: limits.git.objects: "0" is too little`, ""},
		{"git: {objects: -1}", `c.yaml:2: limits.git.objects: "-1" is too little`, ""},
		{"git: {idle: 30}", `c.yaml:2: limits.git.idle: "30" is no duration such as 30s, 10m or 2h`, "write 30s"},
		{"git: {idle: [30s]}", "c.yaml:2: limits.git.idle: this is no duration", ""},
		{"git: {idle: 5m}", "c.yaml:2: limits.git.idle: 5m is more than git.update, which is 2m", "raise git.update too"},
		{"content: {file_size: 128MiB}", "c.yaml:2: limits.content.file_size: 128MiB is more than content.total_size, which is 64MiB", "raise content.total_size too"},
		{"webhook: {rate: }", `c.yaml:2: limits.webhook.rate: "" is no whole number`, "write 10"},
	} {
		_, err := Parse("c.yaml", []byte(strings.Replace(smallConfig, "sources:", "limits: {"+tc.limits+"}\nsources:", 1)), env())
		var ms Mistakes
		require.ErrorAs(t, err, &ms, tc.limits)
		require.Len(t, ms, 1, tc.limits)
		require.Contains(t, ms[0].Error(), tc.want)
		require.Contains(t, ms[0].Hint, tc.hint)
	}
	_, err := Parse("c.yaml", []byte(smallConfig+"    limits: {webhook: {rate: 5}}\n"), env())
	require.EqualError(t, err, "c.yaml:6: limits.webhook: webhooks are counted by address, so their limits are the host's")
	require.True(t, slices.IsSortedFunc(limitKeys, func(a, b limitKey) int {
		return slices.Index(limitGroups, strings.Split(a.name, ".")[0]) - slices.Index(limitGroups, strings.Split(b.name, ".")[0])
	}))
}
