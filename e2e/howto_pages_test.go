package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notFollowed are the pages whose commands no test runs, each with the reason.
var notFollowed = map[string]string{
	"keep-images-new.md":        "refresh is followed on the page of images, and images update needs registries of others: its test has one of its own",
	"from-one-host-to-three.md": "it takes three machines: make swarm runs the road of a commit on three engines, and make demo-swarm what the page ends with",
	"podman.md":                 "its units need a Podman under systemd: make podman has one without",
	"signed-images.md":          "cosign takes half an hour to build, and the tests of signatures have what it made once",
}

// howtos are the pages that are followed.
var howtos = map[string]howto{
	"a-hub.md":                       aHub(),
	"adopt-and-leave.md":             adoptAndLeave(),
	"alerts.md":                      alertsPage(),
	"back-up-and-restore.md":         backUpAndRestore(),
	"give-a-team-access.md":          giveATeamAccess(),
	"give-an-operator-access.md":     giveAnOperatorAccess(),
	"sign-in-with-oidc.md":           signInWithOIDC(),
	"upgrade.md":                     upgrade(),
	"forge-bitbucket-cloud.md":       forgePage("bitbucket"),
	"forge-bitbucket-data-center.md": forgePage("bitbucket-dc"),
	"forge-forgejo.md":               forgePage("forgejo"),
	"forge-gitea.md":                 forgePage("gitea"),
	"forge-github.md":                forgePage("github"),
	"forge-gitlab.md":                forgePage("gitlab"),
	"from-compose.md":                fromCompose(),
	"grant-what-an-app-needs.md":     grantWhatAnAppNeeds(),
	"images.md":                      imagesPage(),
	"install.md":                     install(),
	"jobs.md":                        jobsPage(),
	"look-from-a-laptop.md":          lookFromALaptop(),
	"many-hosts.md":                  manyHosts(),
	"merge-buttons-and-bots.md":      mergeButtons(),
	"notifications.md":               notificationsPage(),
	"traces.md":                      tracesPage(),
	"dashboard.md":                   dashboardPage(),
	"search-logs.md":                 searchLogs(),
	"onboard-a-person.md":            onboardAPerson(),
	"prove-what-runs.md":             proveWhatRuns(),
	"recover-from-a-lost-key.md":     recoverFromALostKey(),
	"rename-an-app-with-data.md":     renameAnAppWithData(),
	"roll-back.md":                   rollBack(),
	"rotate-and-revoke-a-key.md":     rotateAndRevokeAKey(),
	"secrets.md":                     secretsPage(),
	"sign-commits.md":                signCommits(),
	"start-from-a-repository.md":     startFromARepository(),
	"take-over-by-hand.md":           takeOverByHand(),
	"unwedge-after-a-web-edit.md":    unwedge(),
	"webhooks.md":                    webhooksPage(),
	"zero-downtime.md":               zeroDowntime(),
}

// serving deploys an app of one service, called web on the page.
func (d *desk) serving() (app, sha string) {
	d.t.Helper()
	app = d.app("web")
	d.says("web", app)
	d.says("web/web", app+"/web")
	d.says("edge-1", d.name)
	sha = d.repo.pushed("Version 1", files{app + "/compose.yaml": d.compose(app, obj{"web": web("1"), "db": db("1", "data")}, obj{"volumes": obj{"data": obj{}}})})
	d.start()
	d.synced(sha)
	settled(d.host)
	return app, sha
}

// untouched returns a function that holds that nothing was done to any container since.
func (d *desk) untouched() func(*desk, string) {
	mark, before := d.events.mark(), identities(d.containers())
	return func(d *desk, _ string) {
		d.t.Helper()
		require.Equal(d.t, before, identities(d.containers()))
		require.Empty(d.t, d.events.after(mark, mutations...))
	}
}

// --- zero-downtime.md ------------------------------------------------------------

func zeroDowntime() howto {
	var app string
	var untouched func(*desk, string)
	return howto{
		begin: func(d *desk) {
			app = d.app("shop")
			published := obj{"ports": []any{"127.0.0.1:" + d.host.freePort() + ":8080"}}
			write := func(more obj) files {
				return files{app + "/compose.yaml": d.compose(app, obj{"web": web("1", published, more)})}
			}
			d.start()
			d.deployed("Version 1", write(obj{}))
			settled(d.host)
			d.repo.write(write(obj{"x-gitring": obj{"publish": "front"}}))
			untouched = d.untouched()
		},
		steps: []step{
			{line: "gitring plan .", after: func(d *desk, out string) {
				require.Regexp(d.t, app+`/web +roll +1s `, out)
				require.Regexp(d.t, app+`/web gap: last gap 1s`, out)
				require.Regexp(d.t, app+`/web-front +create +- +new: the front of web`, out)
				require.Contains(d.t, out, "the app sees the front's address; X-Forwarded-For names the client")
				require.NotContains(d.t, out, "gitring/front", "its image is not the author's to mind")
				require.NotContains(d.t, out, "does nothing: web-front")
				untouched(d, out)
			}},
		},
	}
}

// --- upgrade.md ------------------------------------------------------------------

// nextRelease is gitring as a later release will be: another version, and a database
// of another form.
func nextRelease(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	sql := filepath.Join(dir, "next.sql")
	require.NoError(t, os.WriteFile(sql, []byte("CREATE TABLE later (id INTEGER PRIMARY KEY);\n"), 0o600))
	overlay, err := json.Marshal(obj{"Replace": obj{filepath.Join(root, "store", "migrations", "9999_later.sql"): sql}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	out := filepath.Join(dir, "next", "gitring")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"),
		"-ldflags=-s -w -X github.com/gitring/gitring/ring.Release=9.9.9", "-o", out, "github.com/gitring/gitring/cmd/gitring")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	b, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", b)
	return out
}

func upgrade() howto {
	const bySystemd = "it wants root and systemd; upgrade_test.go is this, with a systemctl of its own"
	var untouched func(*desk, string)
	says := func(version string) func(*desk, string) {
		return func(d *desk, out string) {
			d.t.Helper()
			require.Equal(d.t, 2, strings.Count(out, version), "the program and the daemon: %s", out)
		}
	}
	same := func(d *desk, out string) { d.t.Helper(); untouched(d, out) }
	return howto{
		begin: func(d *desk) {
			d.says("bin/gitring", nextRelease(d.t, d.dir))
			d.daemonIs(filepath.Join(d.path, "gitring"))
			d.serving()
			untouched = d.untouched()
		},
		steps: []step{
			{line: "sudo gitring version", after: says("0.1.0")},
			{line: "sudo gitring upgrade ./gitring_0.2.0_linux_amd64.tar.gz --check", why: bySystemd},
			{line: "sudo gitring upgrade ./gitring_0.2.0_linux_amd64.tar.gz", why: bySystemd},
			{line: "sudo gitring upgrade --resume", why: bySystemd},
			{line: "sudo bin/gitring rehearse --config /etc/gitring/config.yaml", after: func(d *desk, out string) {
				require.Contains(d.t, out, "gitring 9.9.9 on ")
				require.Contains(d.t, out, "would change nothing")
				same(d, out)
			}},
			{line: "sudo systemctl restart gitring", after: same},
			{line: "sudo gitring version", after: says("9.9.9")},
			{line: "docker ps --filter label=gitring.host=edge-1", after: same},
			{line: "sudo systemctl start gitring", instead: func(d *desk) {
				d.launch()
				d.until("the older program ends", d.gone)
				require.Contains(d.t, d.tail(1), "a newer gitring has written it")
				require.Contains(d.t, d.tail(1), filepath.Join(d.dir, "state", "gitring.db.before-9999_later"))
			}},
			{line: "sudo gitring sync --wait", exit: 3, after: same},
			{line: "sudo systemctl stop gitring", instead: func(d *desk) { d.kill() }},
			{line: "sudo systemctl start gitring", after: func(d *desk, out string) {
				d.t.Helper()
				_, version := d.types("sudo gitring version")
				says("0.1.0")(d, version)
				d.synced(d.repo.head())
				same(d, out)
				_, history := d.types("sudo gitring history")
				require.Contains(d.t, history, "Version 1", "the copy holds what was known before the upgrade")
			}},
		},
	}
}

// --- alerts.md ---------------------------------------------------------------------

func alertsPage() howto {
	const folder = "/var/lib/prometheus/node-exporter"
	return howto{
		begin: func(d *desk) {
			d.serving()
			d.says(folder, filepath.Join(d.dir, "home"))
		},
		steps: []step{
			{line: "sudo mv " + folder + "/gitring.new " + folder + "/gitring.prom", after: func(d *desk, _ string) {
				page, err := os.ReadFile(filepath.Join(d.dir, "home", "gitring.prom"))
				require.NoError(d.t, err)
				require.Contains(d.t, string(page), "\ngitring_engine_up 1\n")
				require.Contains(d.t, string(page), `gitring_source_sync{source="prod",sync="Synced"} 1`)
				require.Contains(d.t, string(page), `gitring_push_to_ready_seconds_count{source="prod"} 2`)
				require.Regexp(d.t, `gitring_engine_requests_total\{call="POST /containers/create",code="201"\} [1-9]`, string(page))
			}},
		},
	}
}

// --- back-up-and-restore.md --------------------------------------------------------

func backUpAndRestore() howto {
	var app, second string
	var untouched func(*desk, string)
	return howto{
		begin: func(d *desk) {
			app, _ = d.serving()
			d.says("/root", filepath.Join(d.dir, "home"))
		},
		steps: []step{
			{line: "sudo gitring backup /root/gitring.tar.gz --with-config", after: func(d *desk, _ string) {
				// What came after the backup is not in it.
				second = d.deployed("Version 2", files{app + "/compose.yaml": d.compose(app, obj{"web": web("2"), "db": db("1", "data")}, obj{"volumes": obj{"data": obj{}}})})
				settled(d.host)
				untouched = d.untouched()
			}},
			{line: "docker volume ls --filter label=gitring.host=edge-1", after: func(d *desk, out string) {
				require.Contains(d.t, out, app+"_data")
			}},
			{line: "sudo gitring restore /root/gitring.tar.gz", after: func(d *desk, out string) {
				require.Contains(d.t, out, "stays trusted up to "+second[:7], "what is here is newer")
			}},
			{line: "sudo gitring sync --wait", after: func(d *desk, out string) {
				untouched(d, out)
				require.Equal(d.t, second, d.status().Sources[0].Trusted)
			}},
			{line: "sudo install -d -m 0700 -o gitring -g gitring /var/lib/gitring", before: func(d *desk) {
				// The host is gone, but for the volumes that were restored.
				require.NoError(d.t, d.stop())
				for _, c := range d.containers() {
					require.NoError(d.t, d.engine.remove(c.ID))
				}
				require.NoError(d.t, os.RemoveAll(filepath.Join(d.dir, "state")))
				require.NoError(d.t, os.RemoveAll(d.etc))
			}},
			{line: "sudo gitring restore /root/gitring.tar.gz --with-config", after: func(d *desk, _ string) {
				require.NoDirExists(d.t, filepath.Join(d.dir, "state", "git"), "the mirror is no part of it")
				require.FileExists(d.t, filepath.Join(d.dir, "state", "gitring.db"))
				require.FileExists(d.t, d.repo.signers)
			}},
			{line: "sudo gitring sync --wait", after: func(d *desk, _ string) {
				require.Equal(d.t, second, d.status().Sources[0].Commit)
				require.Equal(d.t, "2", d.one("web").env("VERSION"))
				require.Equal(d.t, 2, onlyOne(d.t, d.journal(d.one("db"))), "the database began on the data that it had")
			}},
		},
	}
}

// --- look-from-a-laptop.md -----------------------------------------------------------

// laptop has the desk be on another machine than the daemon: ssh alone leads there, and
// no socket here.
func (d *desk) laptop() {
	d.t.Helper()
	url, key, known := d.sshd("SetEnv PATH="+d.path+":/usr/bin:/bin GITRING_SOCKET="+d.socket, "")
	at, err := neturl.Parse(url)
	require.NoError(d.t, err)
	config := filepath.Join(d.dir, "ssh_config")
	require.NoError(d.t, os.WriteFile(config, []byte("Host *\n HostName 127.0.0.1\n User root\n Port "+at.Port()+"\n IdentityFile "+key+"\n IdentitiesOnly yes\n UserKnownHostsFile "+known+"\n"), 0o600))
	d.program("ssh", "#!/bin/sh\nexec /usr/bin/ssh -F "+config+" \"$@\"\n")
	d.with("GITRING_SOCKET=" + filepath.Join(d.dir, "nobody"))
}

// with has the desk's shell know a variable; the function takes it away again.
func (d *desk) with(variable string) (without func()) {
	own := d.shell
	d.shell = func(line string) *exec.Cmd {
		cmd := own(line)
		cmd.Env = append(cmd.Env, variable)
		return cmd
	}
	return func() { d.shell = own }
}

func lookFromALaptop() howto {
	var without func()
	return howto{
		begin: func(d *desk) {
			d.serving()
			d.laptop()
			code, out := d.types("gitring status")
			require.Equal(d.t, 3, code, out)
		},
		steps: []step{
			{line: "gitring --host ssh://edge-1 status", after: func(d *desk, out string) { require.Contains(d.t, out, d.words["web/web"][:8]) }},
			{line: "gitring --host ssh://edge-1 version", after: func(d *desk, out string) { require.Contains(d.t, out, "daemon ") }},
			{line: "gitring --host ssh://edge-1 events --tail 2", after: func(d *desk, out string) {
				require.Contains(d.t, out, "looking at the disk")
				require.Contains(d.t, out, "by root", "the kernel says who asked")
			}},
			{line: "export GITRING_HOST=ssh://edge-1", instead: func(d *desk) { without = d.with("GITRING_HOST=ssh://" + d.name) }},
			{line: "unset GITRING_HOST", instead: func(d *desk) { without() }},
			{line: "gitring --host edge-1 status", before: func(d *desk) {
				file := filepath.Join(d.dir, "home", ".config", "gitring", "fleet.yaml")
				require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(d.t, os.WriteFile(file, []byte(d.here("hosts:\n  edge-1: {at: \"ssh://edge-1\"}\n")), 0o600))
			}},
		},
	}
}

// --- dashboard.md --------------------------------------------------------------------

// dashboard runs the line until its address was opened, and ends it as a person does.
func (d *desk) dashboard(line string, more ...string) (said string) {
	d.t.Helper()
	cmd := d.shell("exec " + d.here(line))
	cmd.Env = append(cmd.Env, more...)
	var notices strings.Builder
	cmd.Stderr = &notices
	out, err := cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, cmd.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		code, page := opened(d.t, strings.TrimSpace(address))
		require.Equal(d.t, 200, code)
		require.Contains(d.t, page, d.words["web"])
	}
	require.NoError(d.t, cmd.Process.Signal(os.Interrupt))
	require.NoError(d.t, cmd.Wait(), "%s", &notices)
	require.NoError(d.t, err, "it printed no address: %s", &notices)
	return notices.String()
}

// tunnel types an ssh that stays, and asks through it what serves on the other end.
func (d *desk) tunnel(line string) {
	d.t.Helper()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the far end") }))
	defer far.Close()
	near := freePort(d.t)
	_, number, err := net.SplitHostPort(near)
	require.NoError(d.t, err)
	cmd := d.shell("exec " + strings.Replace(line, "8081:127.0.0.1:8081", number+":"+far.Listener.Addr().String(), 1))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(d.t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	require.Eventually(d.t, func() bool {
		res, err := http.Get("http://" + near)
		if err != nil {
			return false
		}
		defer res.Body.Close() //nolint:errcheck // only read
		body, err := io.ReadAll(res.Body)
		return err == nil && string(body) == "the far end"
	}, time.Minute, 50*time.Millisecond, "nothing came through %s", line)
}

func dashboardPage() howto {
	const tunnel = "ssh -N -L 8081:127.0.0.1:8081 edge-1"
	var port string
	return howto{
		begin: func(d *desk) {
			d.serving()
			d.laptop()
			port = freePort(d.t)
		},
		steps: []step{
			{line: "gitring ui --host ssh://edge-1", instead: func(d *desk) { d.dashboard("gitring ui --host ssh://edge-1") }},
			{line: "gitring ui", instead: func(d *desk) { d.dashboard("gitring ui --socket " + d.socket) }},
			{line: "gitring ui --listen 127.0.0.1:8081", instead: func(d *desk) {
				d.says("127.0.0.1:8081", port)
				said := d.dashboard("gitring ui --listen 127.0.0.1:8081 --socket "+d.socket, "SSH_CONNECTION=127.0.0.1 50000 127.0.0.1 22")
				_, number, err := net.SplitHostPort(port)
				require.NoError(d.t, err)
				require.Contains(d.t, said, "ssh -N -L "+number+":"+port+" ")
			}},
			{line: tunnel, instead: func(d *desk) { d.tunnel(strings.Replace(d.here(tunnel), "8081:"+port, "8081:127.0.0.1:8081", 1)) }},
			{line: "gitring ui --read-only", instead: func(d *desk) { d.dashboard("gitring ui --read-only --socket " + d.socket) }},
		},
	}
}

// --- a-hub.md --------------------------------------------------------------------------

func aHub() howto {
	var u *hubProcess
	var host, reader string
	return howto{
		begin: func(d *desk) {
			d.serving()
			u = newHub(d.t)
			d.says("/etc/gitring/hub.yaml", u.config())
		},
		steps: []step{
			{line: "sudo gitring token new edge-1 --scope report:edge-1 --add --config /etc/gitring/hub.yaml", after: func(_ *desk, out string) {
				host = aTokenText.FindString(out)
			}},
			{line: "sudo gitring token new alice --scope read --add --config /etc/gitring/hub.yaml", after: func(_ *desk, out string) { reader = aTokenText.FindString(out) }},
			{line: "sudo useradd --system --no-create-home --shell /usr/sbin/nologin gitring-hub", why: "it would change the machine"},
			{line: "sudo cp deploy-examples/systemd/gitring-hub.service /etc/systemd/system/", why: "there is no systemd in a test"},
			{line: "sudo chown gitring-hub: /etc/gitring/hub-tokens /etc/gitring/hub.key", why: "there is no such user in a test"},
			{line: "sudo systemctl enable --now gitring-hub", instead: func(*desk) { u.begin() }},
			{line: "sudo gitring config check", before: func(d *desk) {
				d.config["report"] = obj{"url": "http://" + u.address, "token_file": d.secret("hub-token", host+"\n")}
				d.writeConfig()
			}},
			{line: "sudo systemctl reload gitring", instead: func(d *desk) {
				require.NoError(d.t, d.daemon.Process.Signal(syscall.SIGHUP))
				d.until("the hub shows the host", func() bool {
					code, page := u.get("/hosts", reader)
					return code == 200 && strings.Contains(page, `id="host-`+d.name+`"`) && strings.Contains(page, "Synced")
				})
			}},
		},
	}
}

// aTokenText is a token as the command line prints it.
var aTokenText = regexp.MustCompile(`grt_[a-z2-7]{8}_[A-Za-z0-9_-]{43}`)

// --- traces.md --------------------------------------------------------------------------

func tracesPage() howto {
	var mu sync.Mutex
	var posts []string
	posted := func(words ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(posts, func(p string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(p, w) })
		})
	}
	var app string
	return howto{
		begin: func(d *desk) {
			app, _ = d.serving()
			collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				posts = append(posts, string(body))
			}))
			d.t.Cleanup(collector.Close)
			d.says("http://127.0.0.1:4318", collector.URL)
		},
		steps: []step{
			{line: "sudo gitring config check", before: func(d *desk) {
				d.config["notify"] = []any{obj{"name": "traces", "otlp": obj{"url_file": filepath.Join(d.etc, "otlp-url")}}}
				d.writeConfig()
			}},
			{line: "sudo systemctl reload gitring", instead: func(d *desk) {
				require.NoError(d.t, d.daemon.Process.Signal(syscall.SIGHUP))
				d.until("the receiver is there", func() bool { code, _ := d.run("notify", "test", "traces"); return code == 0 })
			}},
			{line: "sudo gitring notify test traces", after: func(d *desk, _ string) {
				require.True(d.t, posted(`"name":"test"`))
				sha := d.repo.pushed("Version 2", files{app + "/compose.yaml": d.compose(app, obj{"web": web("2"), "db": db("1", "data")}, obj{"volumes": obj{"data": obj{}}})})
				d.synced(sha)
				d.until("the commit's trace is posted", func() bool {
					return posted(`"traceId":"`+sha[:32]+`"`, `"name":"fetch"`, `"name":"verify"`, `"name":"stage `+app+`"`, `"name":"rollout `+app+`/web"`, `"rollout.completed"`)
				})
			}},
		},
	}
}

// --- search-logs.md ------------------------------------------------------------------

func searchLogs() howto {
	return howto{begin: func(d *desk) { d.serving() }}
}

// --- many-hosts.md --------------------------------------------------------------------

func manyHosts() howto {
	both := func(text string) func(*desk, string) {
		return func(d *desk, out string) {
			d.t.Helper()
			for _, host := range []string{d.name, "edge-2"} {
				require.Regexp(d.t, `(?m)^.*`+regexp.QuoteMeta(host)+`.*`+text, out)
			}
		}
	}
	return howto{
		begin: func(d *desk) {
			d.serving()
			d.laptop()
			d.says("'edge-*'", d.name) // both are one daemon, which is held and released once
			d.says("'*'", d.name)
			file := filepath.Join(d.dir, "home", ".config", "gitring", "fleet.yaml")
			require.NoError(d.t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(d.t, os.WriteFile(file, []byte(d.here("hosts: {edge-1: {}, edge-2: {at: \"ssh://edge-2\"}}\n")), 0o600))
		},
		steps: []step{
			{line: "gitring fleet status", after: both("Synced")},
			{line: "gitring fleet version", after: both(`0\.1\.0`)},
			{line: "gitring fleet plan HEAD", after: both("nothing to do")},
			{line: "gitring fleet sync", after: both("asked")},
			{line: `gitring fleet hold web --on 'edge-*' --for 30m --reason "the uplink is being replaced" --yes`, after: func(d *desk, out string) {
				require.Contains(d.t, out, "on 1 host:")
				require.Contains(d.t, out, "held until")
			}},
			{line: `gitring fleet release web --on '*' --reason "done" --yes`, after: func(d *desk, _ string) { d.synced(d.repo.head()) }},
		},
	}
}

// --- give-a-team-access.md --------------------------------------------------------------

func giveATeamAccess() howto {
	answers := func(d *desk, token string) string {
		_, out := d.types(`curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer ` + token + `" http://127.0.0.1:9481/v1/status`)
		return out
	}
	var token, id string
	return howto{
		begin: func(d *desk) {
			d.ownEtc()
			require.NoError(d.t, os.Chmod(d.dir, 0o711)) // the socket's mode decides
			for _, line := range []string{"groupadd --force --system gitring", "for p in ann ben cem dia eli; do useradd --no-create-home $p; done"} {
				code, out := d.types(line)
				require.Equal(d.t, 0, code, "%s: %s", line, out)
			}
			d.serving()
			d.says("127.0.0.1:9481", freePort(d.t))
		},
		steps: []step{
			{line: "sudo -u cem gitring status", after: func(d *desk, _ string) {
				code, out := d.types("sudo -u cem gitring hold web --for 10m --reason r")
				require.Equal(d.t, 5, code, out)
			}},
			{line: "sudo gitring config check", before: func(d *desk) {
				d.config["listen"].(obj)["api"] = obj{"address": d.words["127.0.0.1:9481"]}
				d.config["api"] = obj{"tokens": filepath.Join(d.etc, "tokens")}
				d.writeConfig()
			}},
			{line: "sudo gitring token new dashboard --scope read --for 30d --add | tee dashboard.token", after: func(d *desk, _ string) {
				text, err := os.ReadFile(filepath.Join(d.at, "dashboard.token"))
				require.NoError(d.t, err)
				token = strings.TrimSpace(string(text))
				file, err := os.ReadFile(filepath.Join(d.etc, "tokens"))
				require.NoError(d.t, err)
				require.NotContains(d.t, string(file), token)
				id = strings.Fields(string(file))[0]
			}},
			{line: "sudo systemctl reload gitring", instead: func(d *desk) {
				require.NoError(d.t, d.daemon.Process.Signal(syscall.SIGHUP))
				d.until("the api answers", func() bool { return answers(d, token) == "200" })
			}},
			{line: `curl -fsS -H "Authorization: Bearer $(cat dashboard.token)" http://127.0.0.1:9481/v1/version`, after: func(d *desk, out string) { require.Contains(d.t, out, "0.1.0") }},
			{line: "sudo gitring token list", before: func(d *desk) {
				require.Equal(d.t, "401", answers(d, "grt_aaaaaaaa_"+strings.Repeat("a", 43)))
				// A file that others can write lets nobody in, is told, and is mended without a reload.
				require.NoError(d.t, os.Chmod(filepath.Join(d.etc, "tokens"), 0o666))
				d.until("nobody is let in", func() bool { return answers(d, token) == "401" })
				d.await("it is told", func(st status) bool { return strings.Contains(st.API, "nobody is let in by") })
				require.NoError(d.t, os.Chmod(filepath.Join(d.etc, "tokens"), 0o600))
				d.until("it is mended", func() bool { return answers(d, token) == "200" })
				code, out := d.types("gitring events -o json --tail 50")
				require.Equal(d.t, 0, code)
				require.Contains(d.t, out, `"actor":"ann","via":"socket"`)
			}},
			{line: "sudo gitring token revoke k4bq2rxa", instead: func(d *desk) {
				code, out := d.types("sudo gitring token revoke " + id)
				require.Equal(d.t, 0, code, out)
				require.Equal(d.t, "401", answers(d, token))
			}},
		},
	}
}

// --- sign-in-with-oidc.md ---------------------------------------------------------------

func signInWithOIDC() howto {
	var p *provider
	var home string
	reloads := func(d *desk) {
		require.NoError(d.t, d.daemon.Process.Signal(syscall.SIGHUP))
		d.until("the daemon knows its issuer", func() bool {
			res, err := http.Get(home + "/signin") //nolint:noctx // on loopback
			if err != nil {
				return false
			}
			defer res.Body.Close() //nolint:errcheck // only read
			body, err := io.ReadAll(res.Body)
			return err == nil && strings.Contains(string(body), "Sign in with "+p.issuer())
		})
	}
	var alice *visitor
	return howto{
		begin: func(d *desk) {
			d.serving()
			address, _ := d.opensDoor()
			home = "http://" + address
			d.says("https://edge-1.example.org", home)
			p = newProvider(d.t, home+"/signin/oidc/back")
			p.begin()
		},
		steps: []step{
			{line: "sudo gitring config check", before: func(d *desk) {
				d.config["api"].(obj)["oidc"] = d.signInWith(p, obj{"alice@example.org": []any{"read"}})
				d.writeConfig()
			}},
			{line: "sudo systemctl reload gitring", instead: reloads},
			{line: `curl -sS -o /dev/null -w '%{redirect_url}\n' https://edge-1.example.org/signin/oidc`, after: func(d *desk, out string) {
				require.Contains(d.t, out, p.issuer()+"auth?")
				alice = newVisitor(d.t, home)
				code, page, is := alice.signsIn("/", "alice")
				require.Equal(d.t, http.StatusOK, code, page)
				require.Equal(d.t, home+"/", is.String())
			}},
			{line: "sudo systemctl reload gitring", instead: func(d *desk) { // her row is taken back
				d.config["api"].(obj)["oidc"] = d.signInWith(p, obj{"group:ops": []any{"read"}})
				d.writeConfig()
				reloads(d)
				d.until("her session has ended", alice.signedOut)
			}},
		},
	}
}

// --- give-an-operator-access.md ------------------------------------------------------

// ownEtc gives the desk, and the daemon with it, an /etc of their own above the
// machine's: users and groups that are made there are nowhere else.
func (d *desk) ownEtc() {
	d.t.Helper()
	if os.Geteuid() != 0 {
		d.t.Skip("making users takes root")
	}
	for _, dir := range []string{"upper", "work-of-etc"} {
		require.NoError(d.t, os.Mkdir(filepath.Join(d.dir, dir), 0o755))
	}
	holder := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c",
		`mount -t tmpfs tmpfs "$1/upper" && mkdir "$1/upper/u" "$1/upper/w" && mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper/u,workdir=$1/upper/w" /etc && echo ready && exec sleep 3600`, "sh", d.dir)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := holder.StdoutPipe()
	require.NoError(d.t, err)
	wrong := &strings.Builder{}
	holder.Stderr = wrong
	require.NoError(d.t, holder.Start())
	d.t.Cleanup(func() { d.kill(); _ = holder.Process.Kill(); _ = holder.Wait() })
	ready := make([]byte, 6)
	if n, _ := said.Read(ready); n == 0 {
		_ = holder.Wait()
		d.t.Skipf("no folder can be laid over /etc here: %s", wrong)
	}
	enter := []string{"nsenter", "-t", strconv.Itoa(holder.Process.Pid), "-m", "--"}
	d.program("gitring-there", "#!/bin/sh\nexec "+strings.Join(enter, " ")+" "+filepath.Join(d.path, "gitring")+" \"$@\"\n")
	d.daemonIs(filepath.Join(d.path, "gitring-there"))
	own := d.shell
	d.shell = func(line string) *exec.Cmd {
		cmd := own(line)
		cmd.Args = append(append(enter[:len(enter):len(enter)], "sh", "-c", `cd "$1" && exec sh -c "$2"`, "sh", cmd.Dir), cmd.Args[2])
		cmd.Path, _ = exec.LookPath("nsenter")
		return cmd
	}
	// As sudo, it takes the groups of the user that it becomes.
	d.program("sudo", "#!/bin/sh\nif [ \"$1\" = -u ]; then u=$2; shift 2; exec setpriv --reuid \"$u\" --regid \"$(id -g \"$u\")\" --init-groups \"$@\"; fi\nexec \"$@\"\n")
}

func giveAnOperatorAccess() howto {
	refused := func(d *desk, who, line string, code int, says string) {
		d.t.Helper()
		is, out := d.types("sudo -u " + who + " gitring " + line)
		require.Equal(d.t, code, is, out)
		require.Contains(d.t, out, says)
	}
	return howto{
		begin: func(d *desk) {
			d.ownEtc()
			require.NoError(d.t, os.Chmod(d.dir, 0o711)) // the socket's mode decides
			for _, line := range []string{"groupadd --force --system gitring", "useradd --no-create-home ann", "useradd --no-create-home ben", "useradd --no-create-home eve"} {
				code, out := d.types(line)
				require.Equal(d.t, 0, code, "%s: %s", line, out)
			}
			d.serving()
			refused(d, "ann", "status", 3, "ask as root or as a member of the socket's group")
		},
		steps: []step{
			{line: "sudo -u ann gitring status", after: func(d *desk, _ string) {
				for _, verb := range []string{"inspect web/web", "logs web --tail 1", "events", "history", "crashes web", "jobs", "outdated", "plan", "trust show", "outbox list", "version"} {
					code, out := d.types("sudo -u ann gitring " + verb)
					require.Equal(d.t, 0, code, "%s: %s", verb, out)
				}
				refused(d, "ann", "hold web --for 10m --reason r", 5, "ann may not do this")
				refused(d, "eve", "status", 3, "ask as root or as a member of the socket's group")
			}},
			{line: `sudo -u ben gitring hold web --for 10m --reason "trying my rights"`, after: func(d *desk, _ string) {
				for _, verb := range []string{
					"sync", "refresh web --reason r", "approve 1234567", "run web/web --reason r", "retry web --reason r", "hold web --reason r", "release web --reason r",
					"scale web/web=2 --reason r", "rollout pause web/web --reason r", "rollout resume web/web --reason r", "rollout promote web/web --reason r",
					"rollout abort web/web --reason r", "rollout restart web/web --reason r", "rollout undo web --reason r", "adopt web --reason r", "leave web --reason r",
					"outbox retry --all", "notify test", "trust reverify", "trust accept " + d.repo.head() + " --reason r",
				} {
					refused(d, "ann", verb, 5, "ann may not do this")
				}
			}},
			{line: "sudo gitring events", after: func(d *desk, out string) {
				require.Regexp(d.t, `trying my rights.* by ben`, out)
			}},
			{line: "sudo gpasswd -d ben gitring-admin", after: func(d *desk, _ string) {
				refused(d, "ben", "sync", 5, "ben may not do this")
			}},
			{line: "sudo gpasswd -d ann gitring", after: func(d *desk, _ string) {
				refused(d, "ann", "status", 3, "ask as root or as a member of the socket's group")
			}},
		},
	}
}
