package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody who may sign for one source of a host tries to reach the data, the volume
// and the host's value of an app of another source, in one commit or in two, while the
// app runs and after it left. A secret
// of the app is looked for in whatever runs for that source.
func TestAnotherSourceReachesNothingOfAnApp(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	victim, stays := h.app("shop"), h.app("stall")
	guests := newRepo(t, mkdir(t, h.dir, "guests"))
	h.config["sources"] = append(h.config["sources"].([]any), obj{
		"name": "guests", "url": "file://" + guests.bare, "branch": "main", "path": ".",
		"trust": obj{"mode": "strict", "allowed_signers": guests.signers},
	})
	h.config["env"] = obj{"dir": mkdir(t, h.dir, "env")}
	const secret = "only-the-shop-may-read-this"
	env := mkdir(t, h.dir, "env", victim)
	require.NoError(t, os.WriteFile(filepath.Join(env, ".env"), []byte("TOKEN="+secret+"\n"), 0o600))
	mounts := obj{"volumes": []any{"./data:/data", "stock:/stock"}}
	first := h.repo.pushed("A shop", files{victim + "/compose.yaml": h.compose(victim,
		obj{"till": web("1", mounts, obj{"environment": obj{"TOKEN": "${TOKEN}"}})}, obj{"volumes": obj{"stock": obj{}}}), stays + "/compose.yaml": h.compose(stays, obj{"stall": web("1")})})
	guests.pushed("Nothing yet", files{"README.md": "guests\n"})
	h.start()
	h.await("the shop runs", func(st status) bool { return st.Sources[0].Commit == first && st.service(victim, "till").Ready == 1 })
	till := h.one("till")
	for _, dir := range []string{"/data", "/stock"} {
		h.tell(till, "/write?text="+secret+"&path="+dir+"/canary")
		_, body := h.ask(till, "/file?path="+dir+"/canary")
		require.Contains(t, body, secret)
	}
	data := filepath.Join(h.dir, "data")
	volume := victim + "_stock"
	guest := func(app, volumes string, top ...obj) string {
		return h.compose(app, obj{"thief": web("1", obj{"volumes": []any{volumes}}, obj{"environment": obj{"TOKEN": "${TOKEN:-}"}})}, top...)
	}
	tries := []func(app string) files{
		func(app string) files {
			return files{app + "/compose.yaml": guest(app, filepath.Join(data, victim, "data")+":/d")}
		},
		func(app string) files {
			return files{app + "/compose.yaml": guest(app, filepath.Join(data, victim)+"/../"+victim+"/data:/d")}
		},
		func(app string) files { return files{app + "/compose.yaml": guest(app, data+":/d")} },
		func(app string) files {
			return files{app + "/compose.yaml": guest(app, "stolen:/d", obj{"volumes": obj{"stolen": obj{"external": true, "name": volume}}})}
		},
		func(app string) files {
			return files{app + "/compose.yaml": guest(app, "stolen:/d", obj{"volumes": obj{"stolen": obj{"name": volume}}})}
		},
		func(app string) files { // another app in the folder of the same path
			return files{victim + "/compose.yaml": guest(app, "./data:/d", obj{"name": app})}
		},
		func(app string) files { // the shop's own name, with its volume's key
			return files{app + "/compose.yaml": guest(victim, "stock:/d", obj{"name": victim, "volumes": obj{"stock": obj{}}})}
		},
		func(app string) files { // the same, in the shop's folder
			return files{victim + "/compose.yaml": guest(victim, "./data:/d", obj{"name": victim})}
		},
		func(app string) files { // an app that holds the folder of the shop in its own
			return files{"compose.yaml": guest(app, "./"+victim+"/data:/d", obj{"name": app})}
		},
	}
	for i := range amount(t, "WHOSE", 2*len(tries), 200) {
		if i == len(tries) { // what the shop had stays its own after it left
			gone := h.repo.pushed("No shop", files{victim: "", "README.md": "closed\n"})
			h.await("the shop is gone", func(st status) bool { return st.Sources[0].Commit == gone && len(h.containers("till")) == 0 })
		}
		app := h.app(fmt.Sprintf("guest%d", i))
		if i%2 == 1 { // in two steps: an app that is good, and then what it is not
			sha := guests.pushed("Good", files{app + "/compose.yaml": guest(app, "./own:/own"), "compose.yaml": "", victim: ""})
			h.await("the guest runs", func(st status) bool { return st.Sources[1].Commit == sha && st.service(app, "thief").Ready == 1 })
		}
		try := tries[i%len(tries)](app)
		if _, same := try[app+"/compose.yaml"]; !same {
			try[app] = ""
		}
		sha := guests.pushed(fmt.Sprintf("Try %d", i), try)
		h.await(fmt.Sprintf("try %d is judged", i), judged(sha))
		for _, c := range h.containers() {
			if c.Config.Labels["gitring.source"] != "guests" {
				continue
			}
			require.NotContains(t, strings.Join(c.Config.Env, "\n"), secret, "try %d: the value of another app", i)
			for _, file := range []string{"/d/canary", "/d/" + victim + "/data/canary", "/d/data/canary"} {
				_, body := h.ask(c, "/file?path="+file)
				require.NotContains(t, body, secret, "try %d: %s of container %s", i, file, c.Name)
			}
		}
		if i < len(tries) {
			require.Equal(t, till.ID, h.one("till").ID, "try %d: the shop is not touched", i)
		}
		guests.pushed("Away", files{app: "", "compose.yaml": "", victim: ""})
	}
}

// mkdir makes a folder and returns its path.
func mkdir(t *testing.T, at ...string) string {
	t.Helper()
	dir := filepath.Join(at...)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

// judged reports whether the second source has come to its end with a commit: in force, or refused.
func judged(sha string) func(status) bool {
	return func(st status) bool {
		src := st.Sources[1]
		if src.Tip != sha || src.Sync == "Staging" || src.Sync == "Applying" || src.Sync == "Unknown" {
			return false
		}
		for _, a := range src.Apps {
			if a.Refusal != nil && a.Refusal.Commit == sha {
				return true
			}
		}
		return src.Commit == sha
	}
}
