package e2e

import (
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is what a list of the engine gives for labels that all must be there.
func (h *host) asked(path string, into any, labels ...string) {
	h.t.Helper()
	b, err := json.Marshal(map[string][]string{"label": labels})
	require.NoError(h.t, err)
	require.NoError(h.t, h.engine.call("GET", path, url.Values{"filters": {string(b)}, "all": {"1"}}, nil, into))
}

// Compose v2 finds all that is a project's by labels, and refuses, or offers to
// make anew, what carries the wrong ones. These are the filters and comparisons
// of its source (v2.17 to v5.0): docs/explanation/beside-compose.md.
func TestComposeFindsTheAppByItsLabels(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	file := h.compose(app, obj{"web": web("1", replicas(2), obj{"labels": obj{"team": "blue"}}), "db": db("1", "pg")}, obj{"volumes": obj{"pg": obj{}}})
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": file})
	h.start()
	h.synced(first)

	// ls: any container that has these two.
	project := "com.docker.compose.project=" + app
	type row struct {
		ID, ImageID string
		Labels      map[string]string
	}
	var rows []row
	h.asked("/containers/json", &rows, "com.docker.compose.project", "com.docker.compose.config-hash", "gitring.host="+h.name)
	require.Len(t, rows, 3)
	// ps, logs, up, down.
	h.asked("/containers/json", &rows, project, "com.docker.compose.config-hash", "com.docker.compose.oneoff=False")
	require.Len(t, rows, 3)
	for _, r := range rows {
		require.Equal(t, "compose.yaml", filepath.Base(r.Labels["com.docker.compose.project.config_files"]))
		require.Equal(t, app, r.Labels["com.docker.compose.project.working_dir"])
	}
	h.asked("/containers/json", &rows, project, "com.docker.compose.service=web", "com.docker.compose.container-number=2")
	require.Len(t, rows, 1)
	l := rows[0].Labels
	_, hex, _ := strings.Cut(l["gitring.version"], ":")
	hash := l["com.docker.compose.config-hash"] // Compose's own, as leave_test.go has it say
	require.Regexp(t, "^[0-9a-f]{64}$", hash)
	require.NotEqual(t, hex, hash)
	require.Equal(t, map[string]string{
		"team": "blue", "gitring.host": h.name, "gitring.source": l["gitring.source"], "gitring.app": app, "gitring.service": "web", "gitring.slot": "2",
		"gitring.version": "1:" + hex, "gitring.commit": first, "gitring.kind": "worker",
		"com.docker.compose.project": app, "com.docker.compose.service": "web", "com.docker.compose.container-number": "2", "com.docker.compose.oneoff": "False",
		"com.docker.compose.config-hash": hash, "com.docker.compose.image": rows[0].ImageID, "com.docker.compose.project.working_dir": app, "com.docker.compose.project.config_files": app + "/compose.yaml",
	}, without(l, "e2e"))

	// up: a network of the name must say the project and its key, else it is an
	// error; a config-hash, and it would be made anew.
	var net struct{ Labels map[string]string }
	require.NoError(t, h.engine.call("GET", "/networks/"+app+"_default", nil, nil, &net))
	require.Equal(t, map[string]string{
		"com.docker.compose.project": app, "com.docker.compose.network": "default",
		"gitring.host": h.name, "gitring.app": app, "gitring.definition": net.Labels["gitring.definition"],
	}, net.Labels)
	// The same of a volume, where making it anew would lose what is in it.
	var vol struct{ Labels map[string]string }
	require.NoError(t, h.engine.call("GET", "/volumes/"+app+"_pg", nil, nil, &vol))
	require.Equal(t, map[string]string{
		"com.docker.compose.project": app, "com.docker.compose.volume": "pg", "com.docker.compose.project.working_dir": app,
		"com.docker.compose.project.config_files": app + "/compose.yaml", "gitring.host": h.name, "gitring.source": l["gitring.source"], "gitring.app": app,
	}, vol.Labels)

	besideCompose(t, h, app)
}

func without(m map[string]string, key string) map[string]string {
	delete(m, key)
	return m
}

// composeProgram is how Compose is run here: what scripts/compose.sh built, else
// the CLI's plugin; nil where there is neither.
func composeProgram() []string {
	if built, err := filepath.Abs("../bin/docker-compose"); err == nil && exec.Command(built, "version").Run() == nil {
		return []string{built}
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	return nil
}

// besideCompose runs Compose itself where it is, in the clone.
func besideCompose(t *testing.T, h *host, app string) {
	program := composeProgram()
	if program == nil {
		t.Log("docker compose is not here, nor bin/docker-compose (scripts/compose.sh): what it filters on was shown, it was not run")
		return
	}
	compose := func(args ...string) string {
		c := exec.Command(program[0], append(program[1:len(program):len(program)], append([]string{"-p", app}, args...)...)...)
		c.Dir = filepath.Join(h.repo.work, app)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "docker compose %v: %s", args, out)
		return string(out)
	}
	require.Contains(t, compose("ls"), app)
	require.Equal(t, 3, strings.Count(compose("ps", "-q"), "\n"))
	compose("logs", "--tail", "1")
	require.NoError(t, h.stop())
	out := compose("up", "-d")
	t.Cleanup(func() {
		c := exec.Command(program[0], append(program[1:len(program):len(program)], "-p", app, "down")...)
		c.Dir = filepath.Join(h.repo.work, app)
		_ = c.Run()
	})
	for _, complaint := range []string{"was not created", "incorrect label", "doesn't match configuration"} {
		require.NotContains(t, out, complaint)
	}
	require.Equal(t, 3, strings.Count(compose("ps", "-q"), "\n"))
}
