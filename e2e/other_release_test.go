package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// programOf builds the program of a commit of this repository.
func programOf(t *testing.T, commit string) string {
	t.Helper()
	if err := exec.Command("git", "-C", "..", "cat-file", "-e", commit).Run(); err != nil {
		t.Skip("the history of this clone does not hold the older release: " + commit)
	}
	dir := t.TempDir()
	out, err := exec.Command("sh", "-c", "git -C .. archive "+commit+" | tar -x -C "+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := filepath.Join(dir, "gitring")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/gitring")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err = build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// lastRelease is the newest release, or as long as there is none the commit before fronts, which
// is older than the program of the fronts that this release replaces.
func lastRelease() string {
	if tag, err := exec.Command("git", "-C", "..", "describe", "--tags", "--abbrev=0", "--match", "v*").Output(); err == nil {
		return string(tag[:len(tag)-1])
	}
	return oldRelease
}

// What a person asks on a host while its daemon is of another release than the program at hand.
// It compiles the other release, so GITRING_E2E_LONG asks for it.
func TestAProgramAndADaemonOfTwoReleasesWorkTogether(t *testing.T) {
	t.Parallel()
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("compiles an old release: GITRING_E2E_LONG=1 asks for it")
	}
	old := programOf(t, cmp.Or(os.Getenv("GITRING_E2E_LAST_RELEASE"), lastRelease()))
	for name, who := range map[string]struct{ daemon, person string }{
		"an older program asks": {"", old},
		"a newer program asks":  {old, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			app := h.app("web")
			first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2))})})
			h.program = who.daemon
			h.start()
			h.program = who.person
			h.synced(first)
			service := app + "/web"
			for _, verb := range [][]string{
				{"status"},
				{"status", app},
				{"history"},
				{"inspect", service},
				{"logs", service},
				{"crashes", service},
				{"plan", first},
				{"plan", "HEAD"},
				{"jobs"},
				{"trust", "show"},
				{"events"},
				{"outdated"},
				{"sync", "--wait"},
				{"hold", app, "--reason", "a test"},
				{"release", app},
				{"restart", service},
				{"sync", "--wait"},
			} {
				code, out := h.run(verb...)
				if code != 0 {
					t.Errorf("%v: exit %d: %s", verb, code, out)
				}
			}
			for _, verb := range [][]string{{"status", "-o", "json"}, {"history", "-o", "json"}, {"inspect", service, "-o", "json"}} {
				code, out := h.run(verb...)
				require.Equal(t, 0, code, "%v: %s", verb, out)
				require.True(t, json.Valid([]byte(out)), "%v: %s", verb, out)
			}
			second := h.repo.pushed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(2))})})
			h.synced(second)
			code, out := h.run("sync", "--wait")
			require.Equal(t, 0, code, out)
		})
	}
}
