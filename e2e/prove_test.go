package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// onItsOwn runs the program in a folder of its own, with nothing of the host in its reach: no
// socket, no configuration, no repository, no git.
func onItsOwn(t *testing.T, dir string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/nonexistent", "HOME=" + dir}
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(b)
	}
	require.NoError(t, err, "%s", b)
	return 0, string(b)
}

// handedOver copies files into a folder that has nothing else.
func handedOver(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o600))
	}
	return dir
}

// proven is the answer of "gitring prove --check -o json".
type proven struct {
	Holds  bool `json:"holds"`
	Faults []struct {
		Code string `json:"code"`
		Says string `json:"says"`
	} `json:"faults"`
	Commit struct {
		SHA, Signer, Note string
	} `json:"commit"`
	Chain struct {
		From    string
		Known   bool
		Commits int
		Landed  int
	} `json:"chain"`
	Word    []string `json:"word"`
	LeftOut []string `json:"left_out"`
}

func proofChecked(t *testing.T, dir string, args ...string) (code int, p proven) {
	t.Helper()
	code, out := onItsOwn(t, dir, append([]string{"prove", "-o", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &p), out)
	return code, p
}

func TestAProofOfWhatRunsIsCheckedWithNothingElseThere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.config["env"] = obj{"dir": filepath.Join(h.dir, "env")}
	h.config["interpolation"] = obj{"LEVEL": "info", "UNUSED": "canary-unused"}
	h.config["secrets"] = obj{"keys": []any{obj{"age_file": filepath.Join(h.dir, "age.key")}}, "at_rest": "disk"}
	h.hostValue(app+"/.env", "PASSWORD=canary-password\nOTHER=canary-other\n")
	key := ageKey(t, filepath.Join(h.dir, "age.key"))
	version := func(v string) files {
		return files{
			app + "/compose.yaml": h.compose(app, obj{
				"api": web(v, obj{
					"environment": obj{"LEVEL": "${LEVEL}", "PASSWORD": "${PASSWORD}"}, "env_file": []any{"db.enc.env"},
					"labels": obj{"shown": "yes", "hidden": "${PASSWORD}"}, "volumes": []any{"./api.conf:/etc/api.conf:ro"},
				}),
				"beside": web("1"),
			}),
			app + "/api.conf": "version " + v + "\n", app + "/db.enc.env": encrypted(t, "db.env", "TOKEN=canary-token\n", key),
			h.app("other") + "/compose.yaml": h.compose(h.app("other"), obj{"neighbour": web("1")}),
			"README.md":                      "of people\n",
		}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.source()["trust"].(obj)["introduction"] = first
	h.start()
	h.synced(first)
	for range 40 {
		h.repo.commit("Nothing new")
	}
	second := h.deployed("Version 2", version("2"))
	settled(h)

	file := filepath.Join(h.dir, "proof.json")
	code, out := h.run("prove", app+"/api", "-o", file)
	require.Equal(t, 0, code, out)
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(body), "canary", "no secret, and no value that nothing depends on")
	require.Less(t, len(body), 1<<20)

	dir := handedOver(t, file, h.repo.signers)
	by := []string{"--check", "proof.json", "--allowed-signers", "allowed_signers"}
	code, p := proofChecked(t, dir, append(by, "--from", first, "--of-host", h.name, app+"/api")...)
	require.Equal(t, 0, code, p.Faults)
	require.True(t, p.Holds && p.Chain.Known)
	require.Equal(t, second, p.Commit.SHA)
	require.Equal(t, "alice@example.org", p.Commit.Signer)
	require.Equal(t, 41, p.Chain.Commits)
	word := strings.Join(p.Word, "\n")
	for _, says := range []string{"PASSWORD of .env", "TOKEN of " + app + "/db.enc.env", "LEVEL=info"} {
		require.Contains(t, word, says)
	}
	require.NotContains(t, word, "UNUSED")
	require.Contains(t, strings.Join(p.LeftOut, "\n"), "hidden")

	// What people read.
	code, out = onItsOwn(t, dir, append([]string{"prove"}, by...)...)
	require.Equal(t, 0, code, out)
	for _, says := range []string{"the proof holds", "signed by", "alice@example.org", "the host's word, which nobody can check", "name a commit that you know"} {
		require.Contains(t, out, says)
	}

	// By a host's own rules: its introduction, and the branch and folder that it follows.
	code, out = h.run("prove", "--check", file, "--config", h.configFile())
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "which you named")
	h.source()["branch"] = "release"
	h.writeConfig()
	code, out = h.run("prove", "--check", file, "--config", h.configFile())
	require.Equal(t, 7, code, out)
	require.Contains(t, out, "OtherSource: the proof is of branch main, and your configuration follows release")

	// A smaller one begins later, says so, and is not taken for the whole.
	small := filepath.Join(h.dir, "small.json")
	code, out = h.run("prove", app+"/api", "--most", "9500", "-o", small)
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "left out: the commits before")
	b, err := os.ReadFile(small)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 9500)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small.json"), b, 0o600))
	code, p = proofChecked(t, dir, "--check", "small.json", "--allowed-signers", "allowed_signers", "--from", first)
	require.Equal(t, 7, code)
	require.Equal(t, "NoBeginning", p.Faults[0].Code)
	code, p = proofChecked(t, dir, "--check", "small.json", "--allowed-signers", "allowed_signers")
	require.Equal(t, 0, code, p.Faults)
	require.Less(t, p.Chain.Commits, 41)
	require.Positive(t, p.Chain.Commits)
	require.Contains(t, strings.Join(p.LeftOut, "\n"), "Whoever checks has to know that one")

	// The container by its name, and the same of the service beside it.
	code, out = h.run("prove", strings.TrimPrefix(h.one("beside").Name, "/"), "-o", file)
	require.Equal(t, 0, code, out)
	dir = handedOver(t, file, h.repo.signers)
	code, p = proofChecked(t, dir, append(by, "--from", first)...)
	require.Equal(t, 0, code, p.Faults)
	require.Equal(t, first, p.Commit.SHA, "the commit that last changed it")

	// A label that somebody changed, and a host that is another one.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proof.json"), []byte(strings.Replace(string(body), `"shown":"yes"`, `"shown":"no"`, 1)), 0o600))
	code, p = proofChecked(t, dir, by...)
	require.Equal(t, 7, code)
	require.Equal(t, "StatementEdited", p.Faults[0].Code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proof.json"), body, 0o600))
	code, p = proofChecked(t, dir, append(by, "--of-host", "elsewhere")...)
	require.Equal(t, 7, code)
	require.Equal(t, "OtherHost", p.Faults[0].Code)

	// A newer proof continues an older one, and not the other way round.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "older.json"), body, 0o600))
	newer := filepath.Join(h.dir, "newer.json")
	code, out = h.run("prove", app+"/api/1", "-o", newer, "--after", filepath.Join(dir, "older.json"))
	require.Equal(t, 0, code, out)
	b, err = os.ReadFile(newer)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "newer.json"), b, 0o600))
	code, p = proofChecked(t, dir, "--check", "newer.json", "--after", "older.json", "--allowed-signers", "allowed_signers")
	require.Equal(t, 0, code, p.Faults)
	code, p = proofChecked(t, dir, "--check", "older.json", "--after", "newer.json", "--allowed-signers", "allowed_signers")
	require.Equal(t, 7, code)
	require.Equal(t, "OlderProof", p.Faults[0].Code)
	code, out = h.run("events", "-o", "json", "--tail", "5")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "proof.made")

	code, out = h.run("prove", app+"/nothing")
	require.Equal(t, 4, code, out)
}

// A squash by a forge's button: the signed commits are those of the pull request, which only
// its ref has.
func TestAProofOfALandingHoldsItsSignedContent(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	port := h.freePort()
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"api": web(v), "shop": fronted("1", port)})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	trust := h.source()["trust"].(obj)
	trust["introduction"], trust["mode"] = first, "forge-merge"
	h.start()
	h.synced(first)

	h.repo.git("switch", "-q", "-c", "topic")
	h.repo.write(version("2"))
	head := h.repo.commit("Version 2")
	h.repo.git("push", "-q", "origin", "HEAD:refs/pull/7/head")
	h.repo.git("switch", "-q", "main")
	h.repo.git("merge", "-q", "--squash", "topic")
	h.repo.git("-c", "user.name=forge", "-c", "commit.gpgSign=false", "commit", "-q", "-m", "Version 2 (#7)")
	landed := h.repo.head()
	h.repo.push()
	h.synced(landed)
	settled(h)

	file := filepath.Join(h.dir, "proof.json")
	code, out := h.run("prove", app+"/api", "-o", file)
	require.Equal(t, 0, code, out)
	dir := handedOver(t, file, h.repo.signers)
	by := []string{"--check", "proof.json", "--allowed-signers", "allowed_signers", "--from", first}
	code, p := proofChecked(t, dir, append(by, "--mode", "forge-merge")...)
	require.Equal(t, 0, code, p.Faults)
	require.Equal(t, landed, p.Commit.SHA)
	require.Equal(t, "alice@example.org", p.Commit.Signer)
	require.Contains(t, p.Commit.Note, "landed by the forge: head "+head[:7])
	require.Equal(t, 1, p.Chain.Landed)

	code, p = proofChecked(t, dir, by...)
	require.Equal(t, 7, code, "who does not say that a forge lands, asks for a signature of each commit")
	require.Equal(t, "Unsigned", p.Faults[0].Code)

	// The branch is gone at the forge: what landed before cannot be shown any more.
	h.repo.git("push", "-q", "origin", ":refs/pull/7/head")
	code, out = h.run("prove", app+"/api")
	require.Equal(t, 5, code, out)
	require.Contains(t, out, "cannot prove")
	h.repo.git("push", "-q", "origin", head+":refs/pull/7/head")

	// A merge by the button, of a branch that was not up to date: its content is of two.
	h.repo.git("switch", "-q", "-c", "other", first)
	h.repo.write(files{app + "/README.md": "of another\n"})
	h.repo.commit("Words")
	h.repo.git("switch", "-q", "main")
	h.repo.git("-c", "user.name=forge", "-c", "commit.gpgSign=false", "merge", "-q", "--no-ff", "-m", "Merge pull request #8", "other")
	h.repo.write(files{app + "/README.md": "of another\n"})
	h.repo.push()
	third := h.repo.pushed("Version 3", version("3"))
	h.synced(third)
	settled(h)
	code, out = h.run("prove", app+"/api", "-o", file)
	require.Equal(t, 0, code, out)
	dir = handedOver(t, file, h.repo.signers)
	code, p = proofChecked(t, dir, append(by, "--mode", "forge-merge")...)
	require.Equal(t, 0, code, p.Faults)
	require.Equal(t, 2, p.Chain.Landed)

	// A service behind a front is proved as any other; the front itself is gitring's own.
	code, out = h.run("prove", app+"/shop", "-o", file)
	require.Equal(t, 0, code, out)
	dir = handedOver(t, file, h.repo.signers)
	code, p = proofChecked(t, dir, append(by, "--mode", "forge-merge", app+"/shop")...)
	require.Equal(t, 0, code, p.Faults)
	require.Equal(t, first, p.Commit.SHA)
	code, out = h.run("prove", app+"/shop-front")
	require.Equal(t, 5, code, out)
	require.Contains(t, out, "is a front, which gitring makes of its own program")
	require.Contains(t, out, "gitring prove "+app+"/shop")
}

// --- prove-what-runs.md --------------------------------------------------------------------

func proveWhatRuns() howto {
	holds := func(d *desk, out string) {
		require.Contains(d.t, out, "the proof holds")
		require.Contains(d.t, out, "alice@example.org")
	}
	return howto{
		begin: func(d *desk) {
			_, sha := d.serving()
			d.says("1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b", sha)
			b, err := os.ReadFile(d.repo.signers)
			require.NoError(d.t, err)
			require.NoError(d.t, os.WriteFile(filepath.Join(d.at, "allowed_signers"), b, 0o600))
		},
		steps: []step{
			{line: "gitring prove --check proof.json --allowed-signers allowed_signers --from 1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b", as: "GITRING_CONFIG= gitring prove --check proof.json --allowed-signers allowed_signers --from 1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b", after: holds},
			{line: "gitring prove web/web --check proof.json --allowed-signers allowed_signers --of-host edge-1 --max-age 24h", after: holds},
			{line: "gitring prove --check newer.json --after proof.json --allowed-signers allowed_signers", after: holds},
		},
	}
}
