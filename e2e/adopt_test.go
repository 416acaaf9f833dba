package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// project is a Compose project that real Compose runs beside a daemon.
type project struct {
	*host
	program []string
	app     string
	clone   string
}

// composed is a repository of a shop, cloned as people have it, and Compose.
func composed(t *testing.T, services obj) *project {
	t.Helper()
	p := &project{host: newHost(t), program: composeProgram()}
	if p.program == nil {
		t.Skip("docker compose is not here, nor bin/docker-compose (scripts/compose.sh)")
	}
	p.app = p.host.app("shop")
	p.clone = filepath.Join(p.dir, "opt")
	t.Cleanup(func() {
		p.kill()
		require.NoError(t, p.engine.clear("com.docker.compose.project="+p.app))
	})
	p.push("A shop", services)
	out, err := exec.Command("git", "clone", "-q", p.repo.bare, p.clone).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return p
}

func (p *project) push(subject string, services obj) string {
	p.t.Helper()
	return p.repo.pushed(subject, files{
		p.app + "/site.conf":    "a=1\n",
		p.app + "/compose.yaml": p.compose(p.app, services, obj{"name": p.app, "volumes": obj{"pg": obj{}}}),
	})
}

// docker runs docker compose in a folder.
func (p *project) docker(dir string, args ...string) string {
	p.t.Helper()
	c := exec.Command(p.program[0], append(slices.Clone(p.program[1:]), args...)...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(p.t, err, "docker compose %v: %s", args, out)
	return string(out)
}

// all are the containers of the project, whoever made them, by service.
func (p *project) all() map[string]*container {
	p.t.Helper()
	cs, err := p.engine.containers("com.docker.compose.project=" + p.app)
	require.NoError(p.t, err)
	out := map[string]*container{}
	for _, c := range cs {
		l := c.Config.Labels
		out[l["com.docker.compose.service"]+"/"+l["com.docker.compose.container-number"]] = c
	}
	require.Len(p.t, out, len(cs), "two in one slot")
	return out
}

// stretch is one run of a container: another one, or another start of it, is not equal.
type stretch struct {
	ID, Name string
	Started  time.Time
	Restarts int
}

func runsOf(cs map[string]*container) map[string]stretch {
	out := map[string]stretch{}
	for slot, c := range cs {
		out[slot] = stretch{c.ID, c.Name, c.State.StartedAt, c.RestartCount}
	}
	return out
}

func shop() obj {
	fast := obj{"restart": "unless-stopped", "x-gitring": obj{"rollout": obj{"min_ready_time": "500ms"}}}
	plain := obj{"image": image, "pull_policy": "never"}
	return obj{
		"db":    merged(merged(plain, fast), obj{"environment": obj{"DATA": "/data"}, "volumes": []any{"pg:/data"}}),
		"web":   merged(merged(plain, fast), obj{"volumes": []any{"./uploads:/uploads", "./site.conf:/etc/site.conf:ro"}, "stop_grace_period": "2s"}),
		"front": merged(merged(plain, fast), obj{"deploy": obj{"replicas": 2}, "environment": obj{"VERSION": "1"}}),
	}
}

func (p *project) adopted(name string, want int) {
	p.t.Helper()
	p.await(name, func(st status) bool {
		n := 0
		for _, s := range st.app(p.app).Services {
			for _, in := range s.Instances {
				if in.Adopted {
					n++
				}
			}
		}
		return n == want && st.Sources[0].Sync == "Synced"
	})
}

// What real Compose runs is taken over without a restart, changes service by
// service as commits do, is handed back, goes on under Compose, and is taken back.
func TestAProjectIsAdoptedWithoutARestartAndHandedBack(t *testing.T) {
	t.Parallel()
	services := shop()
	p := composed(t, services)
	folder := filepath.Join(p.clone, p.app)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "uploads"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "uploads", "1.jpg"), []byte("a picture"), 0o600))
	p.docker(folder, "up", "-d")
	theirs := runsOf(p.all())
	require.Len(t, theirs, 4)

	// Data that would come up empty is in the way, and the hint says what to do.
	p.start()
	st := p.await("the app is refused", func(st status) bool { return st.app(p.app).Refusal != nil })
	require.Equal(t, "ForeignProject", st.app(p.app).Refusal.Code)
	require.Contains(t, st.app(p.app).Refusal.Hint, "gitring adopt "+p.app)
	code, text := p.run("adopt", p.app, "--reason", "a test")
	require.Equal(t, 7, code, text)
	require.Contains(t, text, "has folder "+filepath.Join(folder, "uploads"))
	require.Contains(t, text, "set data_root: "+p.clone)
	code, text = p.run("adopt", p.app, "--compare")
	require.Equal(t, 7, code, text)
	require.Equal(t, theirs, runsOf(p.all()))
	require.NoError(t, p.stop())
	p.source()["data_root"] = p.clone
	p.start()
	p.await("the app is refused again", func(st status) bool { return st.app(p.app).Refusal != nil })

	// Compose made them as gitring would, but for where the commit's file lies.
	code, text = p.run("adopt", p.app, "--compare")
	require.Equal(t, 0, code, text)
	require.Equal(t, 3, strings.Count(text, "nothing differs"), text)
	require.Contains(t, text, "volumes /etc/site.conf: "+filepath.Join(folder, "site.conf")+" read-only -> ")

	code, text = p.run("adopt", p.app, "--reason", "a test")
	require.Equal(t, 0, code, text)
	p.adopted("all are adopted", 4)
	require.Equal(t, theirs, runsOf(p.all()))
	code, text = p.run("prove", p.app+"/web")
	require.Equal(t, 5, code, text)
	require.Contains(t, text, "was taken over from Compose: nothing on it says which commit it was made from")

	// Only the service that a commit changes is replaced.
	services["front"] = merged(services["front"].(obj), env("VERSION", "2"))
	p.push("Another front", services)
	p.adopted("front is replaced", 2)
	now := runsOf(p.all())
	require.Equal(t, theirs["db/1"], now["db/1"])
	require.Equal(t, theirs["web/1"], now["web/1"])
	require.NotEqual(t, theirs["front/1"].ID, now["front/1"].ID)
	require.NotEqual(t, theirs["front/2"].ID, now["front/2"].ID)
	require.Len(t, now, 4)
	services["db"] = merged(services["db"].(obj), env("VERSION", "2"))
	services["web"] = merged(services["web"].(obj), env("VERSION", "2"))
	last := p.push("Another database", services)
	p.adopted("all are replaced", 0)
	file := filepath.Join(p.dir, "proof.json")
	p.done("prove", p.app+"/web", "-o", file)
	code, proved := proofChecked(t, handedOver(t, file, p.repo.signers), "--check", "proof.json", "--allowed-signers", "allowed_signers", p.app+"/web")
	require.Equal(t, 0, code, proved.Faults)
	require.Equal(t, last, proved.Commit.SHA)
	db := p.all()["db/1"]
	require.Equal(t, p.app+"_pg", filepath.Base(filepath.Dir(db.Mounts[0].Source)))
	require.Equal(t, 2, onlyOne(t, p.journal(db)))
	picture := func() {
		t.Helper()
		for _, m := range p.all()["web/1"].Mounts {
			if m.Destination == "/uploads" {
				b, err := os.ReadFile(filepath.Join(m.Source, "1.jpg"))
				require.NoError(t, err)
				require.Equal(t, "a picture", string(b))
				return
			}
		}
		t.Fatal("web has no /uploads")
	}
	picture()
	p.synced(last)

	// Handed back: nothing is touched, and nothing is deployed.
	ours := runsOf(p.all())
	code, text = p.run("leave", p.app, "--reason", "a test")
	require.Equal(t, 0, code, text)
	left := filepath.Join(p.dir, "state", "left", p.app)
	require.Contains(t, text, "project: "+left+"\n")
	require.Contains(t, text, "makes web anew once, because it mounts files of the commit at /etc/site.conf")
	require.Equal(t, 1, strings.Count(text, "anew once"), text)
	require.Contains(t, text, "docker compose up -d --no-recreate\n")
	services["web"] = merged(services["web"].(obj), env("VERSION", "3"))
	p.push("Another web", services)
	code, text = p.run("sync", "--wait")
	require.Equal(t, 9, code, text)
	require.NoError(t, p.engine.stop(p.all()["front/2"].ID))

	code, text = p.run("sync", "--wait")
	require.Equal(t, 9, code, text)
	require.False(t, p.all()["front/2"].State.Running, "what somebody stops stays stopped")
	p.docker(left, "start", "front")
	now = runsOf(p.all())
	now["front/2"] = ours["front/2"]
	require.Equal(t, ours, now)

	// Compose goes on with what runs: as it is, and then on its own.
	ours = runsOf(p.all())
	p.docker(left, "up", "-d", "--no-recreate")
	require.Equal(t, ours, runsOf(p.all()))
	require.Equal(t, 4, strings.Count(p.docker(left, "ps", "-q"), "\n"))
	values, err := os.Stat(filepath.Join(left, ".env"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), values.Mode().Perm())
	p.docker(left, "up", "-d")
	compose := runsOf(p.all())
	require.Len(t, compose, 4)
	require.NotEqual(t, ours["web/1"].ID, compose["web/1"].ID, "site.conf is another file there")
	for _, slot := range []string{"db/1", "front/1", "front/2"} {
		require.Equal(t, ours[slot], compose[slot])
	}
	picture()
	p.docker(left, "up", "-d", "--force-recreate")
	compose = runsOf(p.all())
	require.NotEqual(t, ours["db/1"].ID, compose["db/1"].ID)
	p.until("the database runs on its volume", func() bool { return onlyOne(t, p.journal(p.all()["db/1"])) == 3 })

	// And back once more.
	code, text = p.run("adopt", p.app, "--reason", "a test")
	require.Equal(t, 0, code, text)
	p.adopted("all are adopted again", 4)
	require.Equal(t, compose, runsOf(p.all()))
}
