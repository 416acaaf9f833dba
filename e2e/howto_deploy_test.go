package e2e

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a person does to what runs.

// --- jobs.md -----------------------------------------------------------------------

func jobsPage() howto {
	var app, folder string
	version := func(d *desk, v string) files {
		job := func(kind obj) obj {
			return obj{
				"image": image, "pull_policy": "never", "command": []any{"job"}, "restart": "no",
				"environment": obj{"DATA": "/data"}, "volumes": []any{"./runs:/data"}, "x-gitring": kind,
			}
		}
		return files{app + "/compose.yaml": d.compose(app, obj{
			"web": web(v, obj{
				"depends_on": obj{"migrate": obj{"condition": "service_completed_successfully"}}, "x-gitring": obj{"before": "backup"},
			}),
			"migrate": job(obj{"kind": "job"}),
			"backup":  job(obj{"kind": "job"}),
			"report":  job(obj{"kind": "cron", "cron": obj{"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "missed": "6h"}}),
		})}
	}
	return howto{
		begin: func(d *desk) {
			app = d.app("shop")
			d.says("shop", app)
			folder = filepath.Join(d.dir, "data", app, "runs")
			d.start()
			d.deployed("Version 1", version(d, "1"))
			d.repo.write(version(d, "2"))
		},
		steps: []step{
			{line: "gitring plan .", after: func(d *desk, out string) {
				require.Regexp(d.t, app+`/backup +no-op +- +runs before web`, out)
				require.Regexp(d.t, app+`/web +roll .*backup runs first, and must succeed`, out)
			}},
			{line: "gitring jobs shop/backup", after: func(d *desk, out string) { require.Contains(d.t, out, "before web") }},
			{line: `gitring retry shop/backup --reason "the disk of the backup host has room again"`, before: func(d *desk) {
				// Nothing can be written down while the journal is a folder.
				require.NoError(d.t, os.Rename(filepath.Join(folder, "journal"), filepath.Join(folder, "aside")))
				require.NoError(d.t, os.Mkdir(filepath.Join(folder, "journal"), 0o755))
				d.repo.pushed("Version 2", version(d, "2"))
				code, out := d.types("gitring sync --wait")
				require.Equal(d.t, 6, code, out)
				require.Equal(d.t, "1", d.one("web").env("VERSION"), "the version that served goes on serving")
				require.NoError(d.t, os.Remove(filepath.Join(folder, "journal")))
			}, after: func(d *desk, _ string) {
				d.synced(d.repo.head())
				require.Equal(d.t, "2", d.one("web").env("VERSION"), "the rollout goes on")
			}},
			{line: `gitring run shop/report --reason "numbers for the board" --wait`, after: func(d *desk, out string) {
				require.Regexp(d.t, `report runs now\n.*report succeeded after \d+s: exit code 0`, out)
			}},
			{line: "gitring jobs shop/report", after: func(d *desk, out string) { require.Regexp(d.t, `report +cron +Held`, out) }},
			{line: `gitring release shop/report --reason "there is room"`, after: func(d *desk, _ string) {
				_, out := d.types("gitring jobs shop/report")
				require.NotRegexp(d.t, `report +cron +Held`, out)
			}},
		},
	}
}

// --- images.md ---------------------------------------------------------------------

func imagesPage() howto {
	var reg *registry
	return howto{
		begin: func(d *desk) {
			reg = newRegistry(d.t)
			app := d.app("web")
			d.says("web", app)
			reg.push("one")
			d.start()
			d.deployed("The first", files{app + "/compose.yaml": d.compose(app, obj{"api": web("", obj{"image": reg.at + "/web:1", "pull_policy": nil, "environment": nil})})})
			reg.push("two")
		},
		steps: []step{
			{line: "gitring outdated", after: func(d *desk, out string) { require.Regexp(d.t, `/api +.*/web:1`, out) }},
			{line: "gitring refresh web/api --reason 'base image has a fix'", after: func(d *desk, _ string) {
				d.await("the new image runs", func(st status) bool {
					cs := d.containers("api")
					return len(cs) == 1 && cs[0].env("VERSION") == "two" && st.Sources[0].Sync == "Synced"
				})
			}},
			{
				line: "sudo docker login registry.example.org", as: "echo a-password | sudo docker login -u alice --password-stdin registry.example.org",
				before: func(d *desk) { d.says("registry.example.org", privateRegistry(d.t)) },
				after: func(d *desk, _ string) {
					b, err := os.ReadFile(filepath.Join(d.dir, "home", ".docker", "config.json"))
					require.NoError(d.t, err)
					require.Contains(d.t, string(b), base64.StdEncoding.EncodeToString([]byte("alice:a-password")), "where docker_config looks for it")
				},
			},
		},
	}
}

// privateRegistry lets nobody in but alice. It has no image.
func privateRegistry(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, ok := r.BasicAuth(); !ok || name != "alice" || password != "a-password" {
			w.Header().Set("WWW-Authenticate", `Basic realm="a registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// --- roll-back.md ------------------------------------------------------------------

func rollBack() howto {
	return howto{
		begin: func(d *desk) {
			app, first := d.serving()
			d.says("3f0c1d2", first[:7])
			d.deployed("Version 2", files{app + "/compose.yaml": d.compose(app, obj{"web": web("2"), "db": db("1", "data")}, obj{"volumes": obj{"data": obj{}}}), "NOTES": "else"})
			d.tracks()
		},
		steps: []step{
			{line: "gitring rollback web", after: func(d *desk, out string) {
				require.Regexp(d.t, d.here("3f0c1d2")+` .* good +alice@example.org .*Version 1`, out)
			}},
			{line: `gitring rollback web --to 3f0c1d2 -m "prices were wrong for Norway" --push`, after: func(d *desk, _ string) {
				d.synced(d.repo.head())
				require.Equal(d.t, "1", d.one("web").env("VERSION"))
				require.FileExists(d.t, filepath.Join(d.repo.work, "NOTES"), "what is outside the app's folder stays")
			}},
		},
	}
}

// tracks makes the clone's branch that of the remote, as in a clone that was cloned.
func (d *desk) tracks() {
	d.repo.git("fetch", "-q", "origin")
	d.repo.git("branch", "-q", "--set-upstream-to", "origin/main")
}

// --- rename-an-app-with-data.md ------------------------------------------------------

func renameAnAppWithData() howto {
	var old, renamed string
	return howto{
		begin: func(d *desk) {
			old, renamed = d.app("shop"), d.app("store")
			d.says("shop", old)
			d.says("store", renamed)
			file := d.compose(old, obj{"db": db("1", "pgdata")}, obj{"volumes": obj{"pgdata": obj{}}})
			d.start()
			d.deployed("Version 1", files{old + "/compose.yaml": file})
			d.repo.pushed("Rename the app", files{old + "/compose.yaml": "", renamed + "/compose.yaml": file})
			st := d.await("the app waits", func(st status) bool { return st.app(renamed).Refusal != nil })
			require.Equal(d.t, "VolumeLeftBehind", st.app(renamed).Refusal.Code)
		},
		steps: []step{
			{line: `git commit --allow-empty -S -m "Rename shop" -m "Gitring-Data: store from shop"`, after: func(d *desk, _ string) {
				d.repo.push()
				d.synced(d.repo.head())
				c := d.one("db")
				require.Equal(d.t, renamed, c.Config.Labels["gitring.app"])
				require.Equal(d.t, 2, onlyOne(d.t, d.journal(c)), "it began on the data of the old app, never with two on it")
			}},
		},
	}
}

// --- take-over-by-hand.md ------------------------------------------------------------

func takeOverByHand() howto {
	var app, database string
	var second string
	version := func(d *desk, v string, more ...obj) files {
		return files{app + "/compose.yaml": d.compose(app, obj{"web": web(v, more...)})}
	}
	serves := func(v string) func(*desk, string) {
		return func(d *desk, _ string) {
			d.t.Helper()
			d.until("version "+v+" alone serves", func() bool {
				cs := d.containers("web")
				return len(cs) == 1 && cs[0].env("VERSION") == v && cs[0].State.Running
			})
		}
	}
	return howto{
		begin: func(d *desk) {
			app, database = d.app("web"), d.app("db")
			d.says("web", app)
			d.says("web/web", app+"/web")
			d.says("db", database)
			d.start()
			d.deployed("Version 1", version(d, "1"))
			second = d.deployed("Version 2", files{
				app + "/compose.yaml":      version(d, "2")[app+"/compose.yaml"],
				database + "/compose.yaml": d.compose(database, obj{"db": db("1", "data")}, obj{"volumes": obj{"data": obj{}}}),
			})
		},
		steps: []step{
			{line: `gitring undo web --reason "checkout answers 500"`, after: serves("1")},
			{line: `gitring pause web/web --reason "error rate"`, before: func(d *desk) {
				code, out := d.types("gitring release web --reason fixed")
				require.Equal(d.t, 0, code, out)
				serves("2")(d, "")
				d.synced(second)
				d.repo.pushed("Version 3", version(d, "3", env("BROKEN", "1")))
				d.until("version 3 began", func() bool { return len(d.containers("web")) == 2 })
			}},
			{line: `gitring rollout abort web/web --reason "it is the release"`, after: serves("2")},
			{line: "docker stop …", as: "docker stop $(docker ps -q --filter label=gitring.app=db)", after: func(d *desk, _ string) {
				d.deployed2("A word", files{"README.md": "a word"})
				require.False(d.t, d.one("db").State.Running, "held means hands off")
			}},
			{line: "gitring release db --reason done", after: func(d *desk, _ string) {
				d.until("the database runs again", func() bool { return d.one("db").State.Running })
			}},
			{line: `gitring scale web/web=6 --for 1h --reason "campaign"`, after: func(d *desk, _ string) {
				d.until("six run", func() bool { return len(d.containers("web")) == 6 })
			}},
		},
	}
}

// deployed2 pushes and waits until the commit was looked at.
func (d *desk) deployed2(subject string, fs files) {
	sha := d.repo.pushed(subject, fs)
	d.await("the commit was looked at", func(st status) bool { return st.Sources[0].Trusted == sha })
}

// --- grant-what-an-app-needs.md --------------------------------------------------------

func grantWhatAnAppNeeds() howto {
	return howto{
		begin: func(d *desk) {
			infra := filepath.Join(d.dir, "home", "infra")
			require.NoError(d.t, os.MkdirAll(filepath.Join(infra, "films"), 0o755))
			require.NoError(d.t, os.MkdirAll(filepath.Join(infra, "proxy"), 0o755))
			for name, text := range map[string]string{
				"films/compose.yaml": "services:\n  films:\n    image: films:1\n    volumes: [/mnt/media/films:/films]\n",
				"proxy/compose.yaml": "services:\n  proxy:\n    image: proxy:1\n    cap_add: [NET_ADMIN]\n",
			} {
				require.NoError(d.t, os.WriteFile(filepath.Join(infra, name), []byte(text), 0o600))
			}
			d.source()["name"] = "infra"
			d.writeConfig()
			code, out := d.types("gitring validate ~/infra --config /etc/gitring/config.yaml")
			require.Equal(d.t, 7, code, out)
			require.Contains(d.t, out, "PolicyDenied")
		},
		steps: []step{
			{line: "gitring policy suggest ~/infra", after: func(d *desk, out string) {
				require.Contains(d.t, out, "/mnt/media")
			}},
			{line: "gitring policy suggest ~/infra --bind-root /mnt/media", after: func(d *desk, out string) {
				require.Contains(d.t, out, "NET_ADMIN")
				require.NotContains(d.t, out, "/mnt/media/films", "the folder is open")
			}},
			{line: "gitring policy suggest ~/infra --bind-root /mnt/media --write policy.yaml --reason 'it serves films'", after: func(d *desk, _ string) {
				b, err := os.ReadFile(filepath.Join(d.at, "policy.yaml"))
				require.NoError(d.t, err)
				require.Contains(d.t, string(b), `reason: "it serves films"`)
				require.NoError(d.t, os.WriteFile(filepath.Join(d.etc, "policy.yaml"), b, 0o600))
				d.config["policy"] = filepath.Join(d.etc, "policy.yaml")
				d.writeConfig()
			}},
			{line: "gitring validate ~/infra --config /etc/gitring/config.yaml", after: func(d *desk, out string) {
				require.Contains(d.t, out, "NET_ADMIN", "each grant that is used is told as a power")
			}},
		},
	}
}

// --- from-compose.md -------------------------------------------------------------------

// composedShop is a shop that Compose runs from a clone that holds what Git ignores. An app
// at the root of its repository is taken for a project with equal services, so each test
// has a name of its own for one.
func (d *desk) composedShop(web string) (app, clone string, theirs []string) {
	app = d.app("shop")
	clone = filepath.Join(d.dir, "opt", app)
	d.says("/opt/shop", clone)
	d.says("shop", app)
	d.t.Cleanup(func() {
		d.kill()
		_ = d.engine.clear("gitring.host=" + d.name)
		_ = d.engine.clear("gitring-e2e=" + d.name)
	})
	service := func(o obj) obj {
		return merged(obj{"image": image, "pull_policy": "never", "restart": "unless-stopped", "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}}}, o)
	}
	d.repo.pushed("A shop", files{
		".gitignore": ".env\nuploads/\n", "site.conf": "a=1\n",
		"compose.yaml": d.compose(app, obj{
			"db": service(obj{"environment": obj{"DATA": "/data", "PASSWORD": "${DB_PASSWORD}"}, "volumes": []any{"db:/data"}}),
			web:  service(obj{"depends_on": []any{"db"}, "volumes": []any{"./uploads:/uploads", "./site.conf:/etc/site.conf:ro"}}),
		}, obj{"name": app, "volumes": obj{"db": obj{}}}),
	})
	require.NoError(d.t, os.MkdirAll(filepath.Dir(clone), 0o755))
	d.repo.run(d.dir, "clone", "-q", d.repo.bare, clone)
	for _, kv := range [][2]string{{"user.name", "Alice"}, {"user.email", "alice@example.org"}, {"gpg.format", "ssh"}, {"user.signingKey", filepath.Join(d.dir, "key")}} {
		d.repo.run(clone, "config", kv[0], kv[1])
	}
	require.NoError(d.t, os.Mkdir(filepath.Join(clone, "uploads"), 0o700))
	require.NoError(d.t, os.WriteFile(filepath.Join(clone, ".env"), []byte("DB_PASSWORD=hunter2\n"), 0o600))
	theirs = d.up(app, clone, web)
	d.config["env"] = obj{"dir": filepath.Join(d.etc, "env")}
	d.source()["data_root"] = clone
	d.writeConfig()
	return app, clone, theirs
}

// composePlugin has docker compose mean what make compose built, where that is here.
func composePlugin(d *desk) {
	program := composeProgram()
	if len(program) != 1 {
		return
	}
	plugins := filepath.Join(d.dir, "home", ".docker", "cli-plugins")
	require.NoError(d.t, os.MkdirAll(plugins, 0o755))
	require.NoError(d.t, os.Symlink(program[0], filepath.Join(plugins, "docker-compose")))
}

func fromCompose() howto {
	var app, clone string
	var theirs []string
	down := step{line: "docker compose down", before: composePlugin, after: func(d *desk, _ string) {
		left, err := d.engine.containers("com.docker.compose.project=" + app)
		require.NoError(d.t, err)
		require.Empty(d.t, left)
	}}
	if composeProgram() == nil {
		down = step{line: down.line, why: "Compose is not on this machine (make compose); the test does what it does", before: func(d *desk) { d.down(theirs) }}
	}
	return howto{
		begin: func(d *desk) { app, clone, theirs = d.composedShop("site") },
		steps: []step{
			{line: "gitring validate", exit: 7, after: func(d *desk, out string) {
				require.Contains(d.t, out, "UndefinedVariable: variable DB_PASSWORD is not set and has no default")
			}},
			{line: "sudo -u gitring gitring plan --config /etc/gitring/config.yaml .", after: func(d *desk, out string) {
				require.Contains(d.t, out, "2 to create")
			}},
			{line: `git add -A && git commit -S -m "Let gitring run this" && git push`, before: func(d *desk) {
				require.NoError(d.t, os.WriteFile(filepath.Join(clone, "site.conf"), []byte("a=2\n"), 0o600))
			}},
			{line: "sudo gitring status", before: func(d *desk) {
				d.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
			}, exit: 7, after: func(d *desk, out string) {
				require.Contains(d.t, out, app+" refused ForeignProject")
				require.Empty(d.t, d.containers())
			}},
			down,
			{line: "sudo gitring sync --wait", after: func(d *desk, _ string) {
				require.Equal(d.t, 2, onlyOne(d.t, d.journal(d.one("db"))))
				require.Equal(d.t, "hunter2", d.one("db").env("PASSWORD"))
			}},
			{line: "docker volume ls --filter label=com.docker.compose.project=shop", after: func(d *desk, out string) {
				require.Contains(d.t, out, app+"_db")
			}},
			{line: `docker inspect -f '{{range .Mounts}}{{.Source}} -> {{.Destination}}{{println}}{{end}}' $(docker ps -q --filter label=gitring.app=shop)`, after: func(d *desk, out string) {
				require.Contains(d.t, out, filepath.Join(clone, "uploads")+" -> /uploads")
				require.Contains(d.t, out, app+"_db/_data -> /data")
			}},
			{line: "cd /opt/shop && git pull && docker compose up -d", as: "cd /opt/shop && git pull"},
		},
	}
}

// --- adopt-and-leave.md ------------------------------------------------------------------

func adoptAndLeave() howto {
	var app string
	var theirs []string
	same := func(d *desk, _ string) {
		d.t.Helper()
		for _, id := range theirs {
			c, err := d.engine.inspect(id)
			require.NoError(d.t, err)
			require.True(d.t, c.State.Running, "nothing of Compose is stopped")
		}
	}
	adopted := func(d *desk, out string) {
		d.t.Helper()
		d.await("all of it is adopted", func(st status) bool {
			n := 0
			for _, s := range st.app(app).Services {
				for _, in := range s.Instances {
					if in.Adopted {
						n++
					}
				}
			}
			return n == len(theirs) && st.Sources[0].Sync == "Synced"
		})
		same(d, out)
	}
	return howto{
		begin: func(d *desk) {
			app, _, theirs = d.composedShop("front")
			own := filepath.Join(d.etc, "env", app)
			require.NoError(d.t, os.MkdirAll(own, 0o700))
			require.NoError(d.t, os.WriteFile(filepath.Join(own, ".env"), []byte("DB_PASSWORD=hunter2\n"), 0o600))
			d.start()
			st := d.await("the app is refused", func(st status) bool { return st.app(app).Refusal != nil })
			require.Equal(d.t, "ForeignProject", st.app(app).Refusal.Code)
		},
		steps: []step{
			{line: "sudo gitring adopt shop --compare", after: func(d *desk, out string) {
				require.Contains(d.t, out, "2 containers of "+app+" would be adopted")
				same(d, out)
			}},
			{line: `sudo gitring adopt shop --reason "from Compose to Git"`, after: adopted},
			{line: "sudo gitring status", after: same},
			{line: `sudo gitring leave shop --reason "the host goes to another team"`, after: func(d *desk, out string) {
				require.Contains(d.t, out, "gitring keeps its hands off until gitring adopt "+app)
				require.FileExists(d.t, filepath.Join(d.dir, "state", "left", app, "compose.gitring.yaml"))
				same(d, out)
			}},
			{line: `sudo gitring adopt shop --reason "back again"`, after: adopted},
		},
	}
}
