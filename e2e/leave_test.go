package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gitring starts a shop from a commit, and hands it back; what Compose says of the
// folder then is Compose's own to say. Without Compose here the labels are still looked at.
func handed(t *testing.T) *project {
	t.Helper()
	p := &project{host: newHost(t), program: composeProgram()}
	p.app = p.host.app("shop")
	t.Cleanup(func() {
		p.kill()
		require.NoError(t, p.engine.clear("com.docker.compose.project="+p.app))
	})
	return p
}

func (p *project) commit(subject string, services obj, more files) string {
	p.t.Helper()
	all := files{p.app + "/compose.yaml": p.compose(p.app, services, obj{
		"name": p.app, "volumes": obj{"pg": obj{}}, "networks": obj{"back": obj{"ipam": obj{"config": []any{obj{"subnet": subnet()}}}}},
	})}
	for name, text := range more {
		all[p.app+"/"+name] = text
	}
	return p.repo.pushed(subject, all)
}

// left is the folder of an app that is handed back, and what leave said.
func (p *project) left() (dir, said string) {
	p.t.Helper()
	code, text := p.run("leave", p.app, "--reason", "a test")
	require.Equal(p.t, 0, code, text)
	return filepath.Join(p.dir, "state", "left", p.app), text
}

// composeUp is a plain docker compose up -d. Nothing of the daemon's environment is in it.
func (p *project) composeUp(dir string) string {
	p.t.Helper()
	out := p.docker(dir, "up", "-d")
	for _, complaint := range []string{"was not created", "already exists", "orphan", "variable is not set"} {
		require.NotContains(p.t, out, complaint)
	}
	return out
}

func TestAfterLeavePlainComposeUpChangesNothing(t *testing.T) {
	t.Parallel()
	quick := obj{"restart": "unless-stopped", "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}}}
	base := merged(obj{"image": image, "pull_policy": "never"}, quick)
	healthy := obj{"healthcheck": obj{"test": []any{"CMD", "/app", "check", "http://127.0.0.1:8080/healthz"}, "interval": "1s", "timeout": "5s", "retries": 9}}
	port := freePort(t)
	services := obj{
		"db": merged(merged(base, healthy), obj{"environment": obj{"DATA": "/data"}, "volumes": []any{"pg:/data"}, "networks": obj{"back": obj{"aliases": []any{"postgres"}}}}),
		"web": merged(merged(base, healthy), obj{
			"ports": []any{port + ":8080"}, "volumes": []any{"./uploads:/uploads", obj{"type": "bind", "source": "./cache", "target": "/cache/"}},
			"env_file": []any{".env", "web.env"}, "environment": obj{"PLAIN": "yes", "FROM_ENV": "${TAG}"}, "labels": obj{"team": "blue", "rule": "Host(`a`) && Path(`/b`)"},
			"depends_on": obj{"db": obj{"condition": "service_healthy"}}, "networks": []any{"default", "back"}, "stop_grace_period": "2s",
		}),
		"front": merged(base, obj{
			"command": []any{"serve"}, "entrypoint": []any{"/app"}, "depends_on": []any{"web"},
			"deploy": obj{"replicas": 2, "resources": obj{"limits": obj{"memory": "64M", "cpus": "0.5"}, "reservations": obj{"memory": "16M"}}},
		}),
		"side":   merged(base, obj{"tmpfs": []any{"/scratch"}, "network_mode": "service:db", "command": []any{"job"}, "environment": obj{"TAKES": "3600000"}}),
		"tail":   merged(base, obj{"volumes_from": []any{"front2:ro"}}),
		"front2": merged(base, obj{"volumes": []any{"./shared:/shared"}, "init": true, "cap_drop": []any{"ALL"}}),
	}
	// From a registry the image is pinned, which the handed-back folder says.
	if _, err := exec.LookPath("docker-registry"); err == nil {
		r := newRegistry(t)
		r.push("1")
		services["pinned"] = merged(quick, obj{"image": r.at + "/web:1"})
	}
	p := handed(t)
	more := files{".env": "TAG=7\n", "web.env": "FROM_FILE=1\nQUOTED=\"a b\"\n"}
	sha := p.commit("A shop", services, more)
	p.start()
	p.synced(sha)
	for slot, c := range p.all() {
		l := c.Config.Labels
		require.Equal(t, c.Image, l["com.docker.compose.image"], slot)
		require.NotEqual(t, strings.TrimPrefix(l["gitring.version"], "1:"), l["com.docker.compose.config-hash"], slot)
	}
	ours := runsOf(p.all())
	dir, said := p.left()
	require.Contains(t, said, "docker compose up -d\n", said)
	require.NotContains(t, said, "anew")
	require.NoError(t, p.stop())
	if p.program == nil {
		t.Skip("docker compose is not here, nor bin/docker-compose (scripts/compose.sh): the labels were looked at")
	}

	out := p.composeUp(dir)
	require.Equal(t, ours, runsOf(p.all()), out)
	require.Equal(t, len(ours), strings.Count(out, " Running"), out)
	require.Equal(t, len(ours), strings.Count(p.docker(dir, "ps", "-q"), "\n"))
	require.Equal(t, ours, runsOf(p.all()))

	// And what Compose is told to change it changes, and nothing else.
	file := filepath.Join(dir, "compose.yaml")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(b), "memory: 64M", "memory: 96M", 1)), 0o600))
	out = p.composeUp(dir)
	now := runsOf(p.all())
	for slot, was := range ours {
		if strings.HasPrefix(slot, "front/") {
			require.NotEqual(t, was.ID, now[slot].ID, out)
			continue
		}
		require.Equal(t, was, now[slot], "%s: %s", slot, out)
	}
}

// What has to be made anew is said beforehand, with its reason, and is all that is.
func TestLeaveSaysWhatComposeMakesAnew(t *testing.T) {
	t.Parallel()
	base := obj{"image": image, "pull_policy": "never", "restart": "unless-stopped", "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}}}
	services := obj{
		"db":     merged(base, obj{"environment": obj{"DATA": "/data"}, "volumes": []any{"pg:/data"}}),
		"files":  merged(base, obj{"volumes": []any{"./site.conf:/etc/site.conf:ro"}}),
		"secret": merged(base, obj{"environment": obj{"PASSWORD": "${PASSWORD}"}}),
		"slots":  merged(base, obj{"deploy": obj{"replicas": 2}, "volumes": []any{"/scratch"}}),
		"hand":   merged(base, obj{"restart": "always"}),
		"after":  merged(base, obj{"depends_on": []any{"files"}}),
	}
	p := handed(t)
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "env"), 0o700))
	p.config["env"] = obj{"dir": filepath.Join(p.dir, "env")}
	p.hostValue(p.app+"/.env", "PASSWORD=correct-horse\n")
	p.commit("A shop", services, files{"site.conf": "a=1\n"})
	p.start()
	p.await("the shop runs", func(st status) bool { return st.Sources[0].Sync == "Synced" && len(p.containers()) == 7 })
	// Changed in place: the container is the same one, its label that of before.
	services["hand"] = merged(services["hand"].(obj), obj{"restart": "unless-stopped"})
	p.synced(p.commit("Another restart policy", services, files{"site.conf": "a=1\n"}))

	// A hash of what few could be is found by trying: there is none but the keyed one.
	l := p.all()["secret/1"].Config.Labels
	require.Equal(t, l["gitring.version"], "1:"+l["com.docker.compose.config-hash"])

	ours := runsOf(p.all())
	dir, said := p.left()
	for _, want := range []string{
		"makes files anew once, because it mounts files of the commit at /etc/site.conf",
		"makes secret anew once, because it uses values of the host's env folder, of which gitring writes no hash that Compose could compare",
		"makes slots anew once, because each of its 2 instances has a volume of its own at /scratch",
		"makes hand anew once, because its container was made by an earlier release of gitring, or what Compose takes into its hash was changed in place since",
		"what depends on them: after",
		"docker compose up -d --no-recreate\n",
	} {
		require.Contains(t, said, want)
	}
	require.Equal(t, 4, strings.Count(said, "anew once"), said)
	readme, err := os.ReadFile(filepath.Join(dir, "README.gitring.md"))
	require.NoError(t, err)
	require.Contains(t, string(readme), "makes files anew once")
	require.NoError(t, p.stop())
	if p.program == nil {
		t.Skip("docker compose is not here, nor bin/docker-compose (scripts/compose.sh): what leave says was looked at")
	}
	p.docker(dir, "up", "-d", "--no-recreate")
	require.Equal(t, ours, runsOf(p.all()))
	out := p.composeUp(dir)
	now := runsOf(p.all())
	require.Equal(t, ours["db/1"], now["db/1"])
	require.Equal(t, ours["after/1"].ID, now["after/1"].ID)
	for _, slot := range []string{"files/1", "secret/1", "slots/1", "slots/2", "hand/1"} {
		require.NotEqual(t, ours[slot].ID, now[slot].ID, "%s: %s", slot, out)
	}
}

// What Compose made and gitring never replaced is Compose's as it was.
func TestAnAdoptedProjectIsHandedBackAsComposeMadeIt(t *testing.T) {
	t.Parallel()
	services := shop()
	services["web"] = merged(services["web"].(obj), obj{"volumes": []any{"./uploads:/uploads"}})
	p := composed(t, services)
	folder := filepath.Join(p.clone, p.app)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "uploads"), 0o755))
	p.docker(folder, "up", "-d")
	theirs := runsOf(p.all())
	p.source()["data_root"] = p.clone
	p.start()
	p.await("the app is refused", func(st status) bool { return st.app(p.app).Refusal != nil })
	code, text := p.run("adopt", p.app, "--reason", "a test")
	require.Equal(t, 0, code, text)
	p.adopted("all are adopted", 4)
	dir, said := p.left()
	require.Contains(t, said, "docker compose up -d\n")
	p.composeUp(dir)
	require.Equal(t, theirs, runsOf(p.all()))
	p.composeUp(folder)
	require.Equal(t, theirs, runsOf(p.all()))
}
