package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody who may sign for another source takes the name of an app to reach its secrets: by a
// folder of that name, by name: in a Compose file, and by a second commit that renames an app that
// ran before. It is tried while the app runs and after it left, and again after a restart of the
// daemon. Nothing of the app's three sources of values is had, and its provider is not asked.
func TestWhoTakesAnAppsNameReachesNoneOfItsSecrets(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	shop, stays, guest := h.app("shop"), h.app("stall"), h.app("guest")
	recipient := h.secretSources(t)
	h.config["secrets"].(obj)["keys"] = []any{obj{"age_file": filepath.Join(h.dir, "age.key"), "sources": []any{"prod"}, "paths": []any{shop + "/**"}}}
	vault, asked := filepath.Join(h.dir, "vault"), filepath.Join(h.dir, "vault.asked")
	body, err := os.ReadFile(vault)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(vault, []byte(strings.Replace(string(body), "\n", "\necho \"$1\" >>"+asked+"\n", 1)), 0o755))
	h.hostValue(shop+"/.env", "HOSTV='"+secretValue("host", 1)+"'\n")
	guests := newRepo(t, mkdir(t, h.dir, "guests"))
	h.config["sources"] = append(h.config["sources"].([]any), obj{
		"name": "guests", "url": "file://" + guests.bare, "branch": "main", "path": ".",
		"trust": obj{"mode": "strict", "allowed_signers": guests.signers},
	})
	sealed := encrypted(t, "db.env", "SOPSV='"+secretValue("sops", 1)+"'\n", recipient)
	ref := "vault:secret/" + shop + "/pw"
	first := h.repo.pushed("A shop", files{
		shop + "/compose.yaml":  h.compose(shop, obj{"till": web("1", obj{"environment": obj{"HOSTV": "${HOSTV}", "PROVV": "${PROVV}"}, "env_file": []any{"db.enc.env"}})}, obj{"x-gitring": obj{"secrets": obj{"PROVV": ref}}}),
		shop + "/db.enc.env":    sealed,
		stays + "/compose.yaml": h.compose(stays, obj{"stall": web("1")}),
	})
	guests.pushed("Nothing yet", files{"README.md": "guests\n"})
	h.start()
	h.await("the shop runs", func(st status) bool { return st.Sources[0].Commit == first && st.service(shop, "till").Ready == 1 })
	till := h.one("till")
	require.Equal(t, []string{secretValue("host", 1), secretValue("sops", 1), secretValue("prov", 1)}, []string{till.env("HOSTV"), till.env("SOPSV"), till.env("PROVV")})
	calls := func() string {
		b, err := os.ReadFile(asked)
		require.NoError(t, err)
		return string(b)
	}
	require.Contains(t, calls(), "secret/"+shop+"/pw")

	// Each way asks for one source of values at a time: a refusal for one would hide the others.
	wants := map[string]obj{
		"the host's value":     {"environment": obj{"HOSTV": "${HOSTV:-}"}},
		"the file":             {"env_file": []any{"db.enc.env"}},
		"the provider's value": {"environment": obj{"PROVV": "${PROVV}"}},
	}
	of := func(name string, want obj) string {
		return h.compose(name, obj{"thief": web("1", want)}, obj{"name": name, "x-gitring": obj{"secrets": obj{"PROVV": ref}}})
	}
	good := func() files { return files{guest + "/compose.yaml": h.compose(guest, obj{"thief": web("1")})} }
	ways := map[string]func(want obj) files{
		"a folder of its name": func(want obj) files {
			return files{shop + "/compose.yaml": of(shop, want), shop + "/db.enc.env": sealed}
		},
		"its name in a file": func(want obj) files {
			return files{guest + "/compose.yaml": of(shop, want), guest + "/db.enc.env": sealed}
		},
		"a second commit that renames": func(want obj) files {
			sha := guests.pushed("Good", good())
			h.await("the guest runs", func(st status) bool { return st.Sources[1].Commit == sha && st.service(guest, "thief").Ready == 1 })
			return files{guest + "/compose.yaml": of(shop, want), guest + "/db.enc.env": sealed}
		},
	}
	try := func(when string) {
		before := strings.Count(calls(), "\n")
		refused := 0
		for way, files := range ways {
			for what, want := range wants {
				name := fmt.Sprintf("%s, by %s, %s", what, way, when)
				sha := guests.pushed(name, files(want))
				st := h.await(name+" is judged", judged(sha))
				for _, a := range st.Sources[1].Apps {
					if a.Refusal != nil && a.Refusal.Commit == sha {
						refused++
						t.Logf("%s: %s: %s", name, a.Refusal.Code, a.Refusal.Says)
					}
				}
				for _, c := range h.containers() {
					if c.Config.Labels["gitring.source"] == "guests" {
						require.NotContains(t, strings.Join(c.Config.Env, "\n"), "cana.ry", name)
					}
				}
				require.NotContains(t, fmt.Sprint(st), "cana.ry", name)
				guests.pushed("Away", filesOff(shop, guest))
			}
		}
		require.Equal(t, len(ways)*len(wants), refused, when)
		require.Equal(t, before, strings.Count(calls(), "\n"), "the provider was asked %s", when)
	}
	restarted := func() {
		h.kill()
		h.start()
	}
	long := amount(t, "NAMES", 2, 4) > 2 // of the four moments the first and the last
	try("while it runs")
	if long {
		restarted()
		try("after a restart")
	}
	require.Equal(t, till.ID, h.one("till").ID, "the shop is not touched")
	gone := h.repo.pushed("No shop", files{shop: "", "README.md": "closed\n"})
	h.await("the shop is gone", func(st status) bool { return st.Sources[0].Commit == gone && len(h.containers("till")) == 0 })
	if long {
		try("after it left")
	}
	restarted()
	try("after it left and a restart")
	h.nowhere("cana.ry")
}

// filesOff take folders out of a repository.
func filesOff(names ...string) files {
	out := files{"README.md": "away\n"}
	for _, name := range names {
		out[name] = ""
	}
	return out
}
