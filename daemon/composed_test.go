package daemon

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// hashesFile holds what docker-compose config --hash of ring.ComposeRelease says of
// the corpus, handed back. Written with -update, where bin/docker-compose is.
const hashesFile = "testdata/compose-hashes.txt"

// A container is left alone by docker compose up only if its label is what Compose
// computes of the folder that leave writes. Compose itself is the judge: it reads each stack
// of the corpus from that folder.
func TestTheHashIsTheOneThatComposeMakesOfTheHandedBackFolder(t *testing.T) {
	program, err := filepath.Abs("../bin/docker-compose")
	require.NoError(t, err)
	judged := exec.Command(program, "version").Run() == nil
	if *updateHashes {
		require.True(t, judged, "bin/docker-compose is not here: make compose")
	}
	golden := map[string]string{}
	if b, err := os.ReadFile(hashesFile); err == nil {
		for line := range strings.Lines(string(b)) {
			what, is, _ := strings.Cut(strings.TrimSpace(line), ": ")
			golden[what] = is
		}
	}
	var out strings.Builder
	known := 0
	for _, name := range slices.Concat(stacksOfCorpus(t), composedStacks(t)) {
		for _, h := range handedStack(t, name) {
			var theirs map[string]string
			if judged {
				theirs = composeHashes(t, program, h)
			}
			for i := range h.app.Services {
				s := &h.app.Services[i]
				what := name + " " + s.Name
				hash, why := h.app.ComposeHash(s, h.by[s.Name])
				if why != "" {
					fmt.Fprintf(&out, "%s: because %s\n", what, why)
					continue
				}
				known++
				if judged && len(s.Spec.VolumesFrom) == 0 { // those up alone resolves: e2e
					require.Equal(t, theirs[s.Name], hash, "%s: %s", what, theirs["config"])
				}
				fmt.Fprintf(&out, "%s: %s\n", what, hash)
			}
		}
	}
	if *updateHashes {
		require.NoError(t, os.WriteFile(hashesFile, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(hashesFile)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
	require.Greater(t, known, 60)
}

// stacksDir has the corpus of the end-to-end tests.
const stacksDir = "../e2e/testdata/corpus"

var updateHashes = flag.Bool("update", false, "write "+hashesFile+" from what docker-compose says")

func stacksOfCorpus(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(stacksDir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// composedStacks are stacks of this test alone: they say what the corpus does not.
func composedStacks(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/composed/*")
	require.NoError(t, err)
	return all
}

// handedStack are the apps of a stack as they are handed back, with an image of
// a registry for each service.
func handedStack(t *testing.T, name string) []*handback {
	t.Helper()
	dir := name
	if !strings.Contains(name, "/") {
		dir = filepath.Join(stacksDir, name)
	}
	tree, err := gitsync.OpenFolder(dir)
	require.NoError(t, err)
	t.Cleanup(func() { tree.Close() })
	all := manifest.Look(&ring.Commit{SHA: "c0ffee", Tree: tree}, manifest.Settings{Source: filepath.Base(name), Path: ".", Host: "edge-1", DataRoots: map[string]string{"": "/srv/data"}})
	if dir == name {
		require.Empty(t, all.Refusals)
	}
	var out []*handback
	for i := range all.Plan.Apps {
		app := &all.Plan.Apps[i]
		h := &handback{app: app, tree: tree, root: ".", project: all.Projects[app.Name], more: map[string][]byte{}, by: map[string]ring.Composing{}}
		for i := range app.Services {
			s := &app.Services[i]
			s.Pin.Image = fmt.Sprintf("%s@sha256:%x", s.Spec.Image, sha256.Sum256([]byte(s.Name)))
			s.Image = ring.Image{Known: true}
			if s.Replicas == 1 {
				s.Image.Volumes = []string{"/var/lib/" + s.Name}
			}
			for _, owner := range s.Spec.Owners() {
				h.by[s.Name] = ring.Composing{Owners: map[string]string{owner: "id-of-" + owner}}
			}
		}
		below, err := composeBeside(app, h.by, map[string]string{}, nil)
		require.NoError(t, err)
		h.more[besideFile] = below
		h.more[".env"] = h.env(nil, nil, nil)
		if own, ok := h.commitsEnv(); ok {
			h.more[ring.LeftEnv] = own
		}
		out = append(out, h)
	}
	return out
}

// composeHashes is what Compose says of a folder. Its config --hash does not read
// env files, so it is asked about the project with all that they say put in.
func composeHashes(t *testing.T, program string, h *handback) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "left")
	w, err := h.write(dir)
	require.NoError(t, err)
	run := func(args ...string) string {
		c := exec.Command(program, args...)
		c.Dir = w.project
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			return "cannot " + strings.Join(args, " ") + ": " + errs.String()
		}
		return string(out)
	}
	config := joined(t, run("config"))
	whole := filepath.Join(t.TempDir(), "whole.yaml")
	require.NoError(t, os.WriteFile(whole, []byte(config), 0o600))
	out := map[string]string{"config": config}
	for line := range strings.Lines(run("-f", whole, "--profile", "*", "config", "--hash", "*")) {
		service, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[service] = hash
	}
	return out
}

// joined is a project with the containers that its services join, as docker compose
// up has it before it makes the hash, and config --hash does not.
func joined(t *testing.T, config string) string {
	t.Helper()
	var project map[string]any
	if yaml.Unmarshal([]byte(config), &project) != nil {
		return config
	}
	services, _ := project["services"].(map[string]any)
	for _, s := range services {
		s, _ := s.(map[string]any)
		for _, key := range []string{"network_mode", "pid", "ipc"} {
			if owner, ok := strings.CutPrefix(fmt.Sprint(s[key]), "service:"); ok {
				s[key] = "container:id-of-" + owner
			}
		}
	}
	b, err := yaml.Marshal(project)
	require.NoError(t, err)
	return string(b)
}
