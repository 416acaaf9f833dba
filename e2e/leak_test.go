package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// canaries begin each secret of these tests: those that are made here, and that of a file
// which age encrypted once for ageTestKey.
var canaries = []string{"cana.ry", "canary-of-an-age-file"}

const (
	ageTestKey = "AGE-SECRET-KEY-1YGK9KZMGY99MKSVSN0VAVGQ6GCMH29HZSPWMRLC9J6C2M4UUXK6SFRU2HX"
	// TOKEN=canary-of-an-age-file
	ageTestFile = `-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBURHdhUmtGTDVGZTVBUnNy
czZBY3RzR2JFQnEwTjFmWkc4a2hDeHhlN1VjCnJDZjdsMzIrc0xPc3p2MFpBdG81
S1FVV242TnQzQVllVWRPZm1wMzFDZlUKLS0tIFh0OFk5d0FkYjg5eHJyWXRlYmNi
WmlQY2xMN2ZQQUJhTjhpMDlSQ2g0Wm8Kz9y6hDZtq4m/QI1Nx18mTUdt/xWR31oJ
Jkf0kzV1awMiE9lrJo4tlcobM7Dm52Z1y6CwpusH+wuX9DyC
-----END AGE ENCRYPTED FILE-----
`
)

// leaked is the form in which a text has the beginning of a secret; "" where it has none.
func leaked(b []byte) string {
	text := strings.ToLower(string(b))
	for _, c := range canaries {
		for _, form := range []string{c, hex.EncodeToString([]byte(c)), strings.ToLower(url.QueryEscape(c))} {
			if strings.Contains(text, form) {
				return form
			}
		}
		for before := range 3 { // what stands before it moves the letters of base64
			all := append(make([]byte, before), c...)
			form := base64.RawStdEncoding.EncodeToString(all)[(before*8+5)/6 : len(all)*8/6]
			if bytes.Contains(b, []byte(form)) {
				return form
			}
		}
	}
	return ""
}

// heard is all that receivers outside of the host were sent.
type heard struct {
	*httptest.Server
	hub *hub

	mu  sync.Mutex // guards all
	all map[string][]string
}

// newHeard answers as a forge below /api, and takes everything else.
func newHeard(t *testing.T) *heard {
	r := &heard{hub: &hub{comments: map[string][]obj{}}, all: map[string][]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		kind := strings.Split(strings.Trim(q.URL.Path, "/"), "/")[0]
		r.mu.Lock()
		r.all[kind] = append(r.all[kind], q.Method+" "+q.URL.String()+"\n"+string(body))
		r.mu.Unlock()
		if kind == "api" {
			q.Body = io.NopCloser(bytes.NewReader(body))
			r.hub.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *heard) of(kind string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[kind])
}

// toldEverybody has a host tell a forge, a chat and a web hook all that there is.
func (h *host) toldEverybody(t *testing.T) *heard {
	r := newHeard(t)
	h.source()["status"] = obj{"forge": "github", "token_file": h.secret("token", forgeToken+"\n"), "api_url": r.URL + "/api", "repo": "acme/infra", "pull_requests": true}
	h.config["notify"] = []any{
		obj{"name": "team", "url_file": h.secret("chat", "generic://"+strings.TrimPrefix(r.URL, "http://")+"/chat?disabletls=yes\n")},
		obj{"name": "audit", "webhook": obj{"url_file": h.secret("hook", r.URL+"/hook"), "secret_file": h.secret("hookkey", "thirty-two bytes that are a key!"), "allow_private": true}},
	}
	return r
}

// answers are those of each GET of the socket's API, about everything and about an app.
func (h *host) answers(app string) map[string][]byte {
	h.t.Helper()
	spec, err := os.ReadFile("../docs/reference/openapi.json")
	require.NoError(h.t, err)
	var of struct {
		Paths map[string]map[string]struct{ Parameters []struct{ Name string } }
	}
	require.NoError(h.t, json.Unmarshal(spec, &of))
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", h.socket)
	}}}
	out := map[string][]byte{}
	for path, methods := range of.Paths {
		get, ok := methods["get"]
		if !ok || path == "/v1/stream" || path == "/v1/logs" { // one never ends; the other is the container's own output
			continue
		}
		queries := []string{""}
		for _, p := range get.Parameters {
			switch p.Name {
			case "app":
				queries = append(queries, "app="+app)
			case "service":
				for _, s := range []string{"crash", "sick", "db"} {
					queries = append(queries, "app="+app+"&service="+s+"&logs=1&trace=1&slot=0")
				}
			}
		}
		for _, q := range queries {
			res, err := c.Get("http://gitring" + path + "?" + q)
			require.NoError(h.t, err, path)
			b, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			require.NoError(h.t, err, path)
			out[path+"?"+q] = b
		}
	}
	return out
}

// holdNothing looks for the beginning of a secret wherever it may not be, and returns how
// many places it looked at.
func (h *host) holdNothing(r *heard, app string, services ...string) (places int) {
	h.t.Helper()
	look := func(where string, b []byte) {
		h.t.Helper()
		places++
		if form := leaked(b); form != "" {
			text := string(b)
			at := max(0, strings.Index(strings.ToLower(text), strings.ToLower(form)))
			require.Fail(h.t, "a secret is in "+where, "as %s: …%s…", form, text[max(0, at-300):min(len(text), at+200)])
		}
	}
	for _, kind := range []string{"api", "chat", "hook"} {
		for _, said := range r.of(kind) {
			look("what "+kind+" was told", []byte(said))
		}
	}
	h.lookAtFiles(look)
	for where, b := range h.answers(app) {
		look(where, b)
	}
	for _, args := range [][]string{
		{"status", "-o", "wide"},
		{"events", "-n", "0"},
		{"history"},
		{"crashes"},
		{"jobs"},
		{"outbox", "list"},
		{"doctor"},
		{"plan"},
		{"plan", "-o", "json"},
		{"plan", h.repo.work},
		{"metrics"},
		{"traffic"},
		{"outdated"},
		{"policy", "explain", "--config", h.configFile(), h.repo.work},
		{"validate", "--config", h.configFile(), h.repo.work},
		{"validate", h.repo.work},
		{"secret", "check", h.repo.work},
		{"config", "check", "--config", h.configFile()},
	} {
		_, out := h.run(args...)
		look("gitring "+strings.Join(args, " "), []byte(out))
	}
	look("the daemon's process", []byte(h.ofDaemon()))
	archive := filepath.Join(h.dir, "backup.tar.gz")
	_ = os.Remove(archive)
	code, out := h.run("backup", "--config", h.configFile(), archive)
	require.Zero(h.t, code, out)
	f, err := os.Open(archive)
	require.NoError(h.t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(h.t, err)
	body, err := io.ReadAll(z)
	require.NoError(h.t, err)
	look("the backup", body)
	for _, s := range services {
		file := filepath.Join(h.dir, "proof.json")
		_ = os.Remove(file)
		if code, out := h.run("prove", app+"/"+s, "-o", file); code != 0 {
			look("why there is no proof of "+s, []byte(out))
			continue
		}
		b, err := os.ReadFile(file)
		require.NoError(h.t, err)
		look("the proof of "+s, b)
	}
	for _, c := range h.containers() {
		labels := map[string]string{}
		for k, v := range c.Config.Labels {
			if k != "shop.secret" { // which asked for it
				labels[k] = v
			}
		}
		b, err := json.Marshal([]any{labels, c.Name})
		require.NoError(h.t, err)
		look("labels of "+c.Name, b)
	}
	return places
}

// lookAtFiles reads the log, and all below the state but the files with values themselves.
func (h *host) lookAtFiles(look func(where string, b []byte)) {
	h.t.Helper()
	log, err := os.ReadFile(filepath.Join(h.dir, "log"))
	require.NoError(h.t, err)
	look("the log", log)
	state := filepath.Join(h.dir, "state")
	require.NoError(h.t, filepath.WalkDir(state, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && p == filepath.Join(state, "secrets") {
			return fs.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // it went meanwhile
		}
		if b, err := os.ReadFile(p); err == nil {
			look(p, b)
		}
		return nil
	}))
}

// secretSources gives a host each source of secrets. HOSTV, SOPSV and PROVV are variables of
// an app that has what secretsOf returns; TOKEN is in its token.age.
func (h *host) secretSources(t *testing.T) (recipient string) {
	vault := filepath.Join(h.dir, "vault")
	// It says what it was asked for on its other output, too, and fails where the reference says so.
	require.NoError(t, os.WriteFile(vault, []byte("#!/bin/sh\nread -r v < "+vault+".value\nfor o in 1 2; do printf '%s\\n' \"$v\" >&$o; done\ncase $1 in *bad) exit 3;; *long) head -c 2000000 /dev/zero | tr '\\0' x;; esac\n"), 0o755))
	require.NoError(t, os.WriteFile(vault+".value", []byte(secretValue("prov", 1)+"\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "env"), 0o700))
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	h.config["secrets"] = obj{
		"at_rest": "disk", "providers": obj{"vault": obj{"exec": []any{vault, "{ref}"}}},
		"keys": []any{obj{"age_file": filepath.Join(h.dir, "age.key")}, obj{"age_file": h.secret("age2.key", ageTestKey+"\n")}},
	}
	return ageKey(t, filepath.Join(h.dir, "age.key"))
}

// secretValue is the nth value of a source. Quotes, a backslash and more are what forms differ by.
func secretValue(source string, n int) string {
	return fmt.Sprintf(`cana.ry/"%s" \%d<&>`, source, n)
}

// secretsOf are the files of an app that has all sources of secrets.
func secretsOf(app, recipient string, n int, t *testing.T) files {
	return files{app + "/.env": encrypted(t, ".env", "SOPSV='"+secretValue("sops", n)+"'\n", recipient), app + "/token.age": ageTestFile, app + "/tls.enc": encrypted(t, "tls.key", secretValue("file", n)+"\nline two\n", recipient)}
}

// TestNoSecretIsAnywhereElse has a secret of each source in each place where it may stand, and
// each thing go wrong that repeats one.
func TestNoSecretIsAnywhereElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r, recipient := h.toldEverybody(t), h.secretSources(t)
	app := h.app("shop")
	h.hostValue(app+"/.env", "HOSTV='"+secretValue("host", 1)+"'\nLONGV='"+secretValue("long", 1)+strings.Repeat("x", 300)+"'\n")
	top := obj{
		"x-gitring": obj{"secrets": obj{"PROVV": "vault:secret/" + app + "/pw"}},
		"secrets":   obj{"host": obj{"environment": "HOSTV"}, "sops": obj{"environment": "SOPSV"}, "prov": obj{"environment": "PROVV"}, "tls": obj{"file": "./tls.enc"}, "token": obj{"file": "./token.age"}},
	}
	mounted := []any{"host", "sops", "prov", "tls", "token"}
	variables := obj{"VERSION": "1", "HOSTV": "${HOSTV}", "SOPSV": "${SOPSV}", "PROVV": "${PROVV}", "URL": "pg://u:${SOPSV}@db"}
	words := []any{"${HOSTV}", "${SOPSV}", "${PROVV}", "$$TOKEN", "@/run/secrets/tls", "@/run/secrets/token", "@/run/secrets/host"}
	telling := func(first ...any) []any { return append(first, words...) }
	with := func(more ...obj) obj {
		return web("1", append([]obj{{"environment": variables, "env_file": []any{"token.age"}, "secrets": mounted}}, more...)...)
	}
	start := secretsOf(app, recipient, 1, t)
	start[app+"/compose.yaml"] = h.compose(app, obj{
		"db":    with(obj{"command": telling("serve"), "labels": obj{"shop.secret": "${SOPSV}"}}),
		"sick":  with(obj{"healthcheck": obj{"test": telling("CMD", "/app", "tell", "1"), "interval": "1s", "retries": 1}}, rollout(obj{"start_timeout": "4s"})),
		"hook":  with(obj{"post_start": []any{obj{"command": slices.Insert(telling("/app", "tell", "4"), 3, any("@/run/secrets/tls"))}}}, rollout(obj{"start_timeout": "4s"})),
		"crash": with(obj{"command": telling("tell", "3"), "x-gitring": obj{"checks": nil}}),
		"job":   obj{"image": image, "pull_policy": "never", "restart": "no", "command": telling("tell", "5"), "environment": variables, "env_file": []any{"token.age"}, "secrets": mounted, "x-gitring": obj{"kind": "job"}},
		"log":   with(obj{"logging": obj{"driver": "json-file", "options": obj{"max-size": "${SOPSV}"}}}),
		"check": with(obj{"x-gitring": obj{"checks": []any{obj{"name": "told", "for": "readiness", "exec": telling("/app", "tell", "1")[:3], "interval": "500ms"}}}}, rollout(obj{"start_timeout": "4s"})),
		"plain": web("1"),
	}, top)
	// Apps that are refused, or wait, each for another reason.
	wrong := func(name string, service obj, more ...obj) string {
		other := h.app(name)
		h.hostValue(other+"/.env", "HOSTV='"+secretValue("host", 1)+"'\nLONGV='"+secretValue("long", 1)+strings.Repeat("x", 300)+"'\n")
		for f, text := range secretsOf(other, recipient, 1, t) {
			start[f] = text
		}
		start[other+"/compose.yaml"] = h.compose(other, obj{"web": web("1", service)}, append([]obj{{"x-gitring": obj{"secrets": obj{"PROVV": "vault:secret/" + other + "/pw"}}}}, more...)...)
		return other
	}
	refused := []string{
		wrong("port", obj{"ports": []any{"${HOSTV}:80"}}), wrong("name", obj{"hostname": "${LONGV}"}), wrong("image", obj{"image": "${HOSTV}"}), wrong("place", obj{"image": "${SOPSV}"}), wrong("exec", obj{"hostname": "${PROVV}"}),
		wrong("denied", obj{"cap_add": []any{"${HOSTV}"}}), wrong("size", obj{"mem_limit": "${HOSTV}"}), wrong("folder", obj{"volumes": []any{"/etc/${HOSTV}:/x"}}), wrong("must", obj{"environment": obj{"A": "${NOPE:?needs ${HOSTV} and ${SOPSV}}"}}),
		wrong("split", obj{"command": "run '${SOPSV}' '"}), wrong("mac", obj{}),
	}
	broken := refused[len(refused)-1] + "/.env"
	i := strings.Index(start[broken], "data:") + len("data:")
	other := "A"
	if start[broken][i] == 'A' {
		other = "B"
	}
	start[broken] = start[broken][:i] + other + start[broken][i+1:]
	waits := []string{wrong("bad", obj{"environment": obj{"A": "${PROVV}"}}, obj{"x-gitring": obj{"secrets": obj{"PROVV": "vault:secret/" + h.app("bad") + "/bad"}}}), wrong("long", obj{"environment": obj{"A": "${PROVV}"}}, obj{"x-gitring": obj{"secrets": obj{"PROVV": "vault:secret/" + h.app("long") + "/long"}}})}
	first := h.repo.pushed("All secrets", start)
	// A branch that uses them elsewhere, with a file that changed.
	h.repo.git("checkout", "-q", "-B", "work", first)
	branch := secretsOf(app, recipient, 2, t)
	branch[app+"/compose.yaml"] = h.compose(app, obj{"db": with(obj{"image": "${HOSTV}", "command": telling("tell", "0")}), "plain": web("2", obj{"environment": obj{"P": "${PROVV}"}, "container_name": "${HOSTV}"})}, top)
	branch[h.app("denied")+"/compose.yaml"] = h.compose(h.app("denied"), obj{"web": web("1", obj{"hostname": "${HOSTV}", "working_dir": "/${HOSTV}"})})
	h.repo.write(branch)
	head := h.repo.commit("A branch")
	h.repo.git("checkout", "-q", "main")
	r.hub.open(h, 7, head, false)

	h.start()
	h.await("all that goes wrong has", func(st status) bool {
		for _, name := range refused {
			if st.app(name).Refusal == nil {
				return false
			}
		}
		for _, name := range waits {
			if !strings.Contains(st.app(name).Reason, "attempt") {
				return false
			}
		}
		failed := func(service string) bool {
			p := st.service(app, service).Phase
			return p == "Failed" || p == "Degraded"
		}
		return failed("sick") && failed("hook") && failed("crash") && failed("log") && failed("check") && st.service(app, "db").Ready == 1
	})
	h.until("everybody outside heard of it", func() bool { return len(r.of("chat")) > 0 && len(r.of("hook")) > 0 && len(r.hub.said("7")) == 1 })
	for source, name := range map[string]string{"host": "HOSTV", "sops": "SOPSV", "prov": "PROVV"} {
		require.Equal(t, secretValue(source, 1), h.one("db").env(name))
	}
	require.Equal(t, "canary-of-an-age-file", h.one("db").env("TOKEN"))
	_, body := h.ask(h.one("db"), "/file?path=/run/secrets/tls")
	require.Equal(t, secretValue("file", 1)+"\nline two\n", body)
	require.NotEmpty(t, leaked([]byte(body)), "else nothing would be found")
	h.until("the words of the crash are kept", func() bool { _, out := h.run("crashes", "-o", "json"); return strings.Contains(out, "it is") })
	require.Greater(t, h.holdNothing(r, app, "db", "crash", "plain"), 100)
}
