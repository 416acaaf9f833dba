package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// ranAs reports whether every instance of a service runs that image's version.
func (h *host) ranAs(service, version string) bool {
	cs := h.containers(service)
	for _, c := range cs {
		if c.env("VERSION") != version || !c.State.Running {
			return false
		}
	}
	return len(cs) > 0
}

// An undo brings back the plan before, with the remote gone and the registry
// stopped: nobody is asked. A newer commit waits while it stands, a restarted daemon
// still knows it, and at its end Git wins.
func TestUndoAsksNobody(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	app := h.app("web")
	of := func(digest string) files {
		return files{
			app + "/compose.yaml":  h.compose(app, obj{"web": web("", obj{"image": reg.at + "/web@" + digest, "pull_policy": nil, "environment": nil, "volumes": []string{"./motd:/motd:ro"}})}),
			app + "/motd/said.txt": "for " + digest,
		}
	}
	h.start()
	first := h.deployed("The first", of(reg.push("one")))
	h.deployed("The second", of(reg.push("two")))
	require.True(t, h.ranAs("web", "two"))

	// From here there is no registry and no remote.
	reg.stop()
	hidden := h.repo.bare + ".away"
	require.NoError(t, os.Rename(h.repo.bare, hidden))
	code, out := h.run("rollout", "undo", app)
	require.Equal(t, 2, code, out)
	acts, err := api.NewClient(h.socket).Acts(t.Context(), api.ActsQuery{App: app})
	require.NoError(t, err)
	offered := map[string]api.ActNow{}
	for _, a := range acts {
		offered[a.Verb] = a
	}
	require.Equal(t, "nothing is overridden on "+app, offered["release"].Why)
	require.Empty(t, offered["hold"].Why)
	back := offered["undo"].Back
	require.NotNil(t, back, "what an undo brings back")
	require.Equal(t, []any{first, "The first", "web", ring.ChangeRoll}, []any{string(back.Commit), back.Subject, back.Changes.Services[0].Service, back.Changes.Services[0].Class})
	began := time.Now()
	code, out = h.run("rollout", "undo", app, "--reason", "checkout answers 500")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, app+" undone to "+first[:7]+" until ")
	h.until("the first version starts", func() bool {
		for _, c := range h.containers("web") {
			if c.env("VERSION") == "one" && c.State.Running {
				return true
			}
		}
		return false
	})
	t.Logf("undo: %s from the command to the first start", time.Since(began).Round(time.Millisecond))
	h.await("it is undone", func(st status) bool {
		return h.ranAs("web", "one") && st.Sources[0].Sync == "Held" && st.service(app, "web").Phase == "Ready"
	})
	outcomes := func() (out []string) {
		commits, err := api.NewClient(h.socket).Commits(t.Context(), api.HistoryQuery{App: app, Limit: 9})
		require.NoError(t, err)
		for i := range commits {
			out = append(out, commits[i].Outcome)
		}
		return out
	}
	require.Equal(t, []string{"undone", "live"}, outcomes())
	code, out = h.run("status")
	require.Equal(t, 9, code, out)
	require.Regexp(t, `undo to `+first[:7]+` +`+app+` +\S+ .*checkout answers 500`, out)

	// The daemon is killed, and comes back without either.
	h.kill()
	h.start()
	h.await("it is undone still", func(st status) bool { return strings.Contains(st.app(app).Reason, "undone to "+first[:7]) })
	undone := identities(h.containers("web"))

	// A newer commit arrives and waits.
	require.NoError(t, os.Rename(hidden, h.repo.bare))
	reg.start()
	third := h.repo.pushed("The third", of(reg.push("three")))
	h.await("the third waits", func(st status) bool {
		return st.Sources[0].Next != nil && st.Sources[0].Next.Commit == third
	})
	require.Equal(t, undone, identities(h.containers("web")))

	code, out = h.run("release", app, "--reason", "fixed")
	require.Equal(t, 0, code, out)
	h.synced(third)
	require.True(t, h.ranAs("web", "three"))
	require.Equal(t, []string{"live", "replaced", "replaced"}, outcomes())
	code, out = h.run("events", "-o", "json")
	require.Equal(t, 0, code, out)
	require.Regexp(t, `"kind":"override.began",.*"actor":"[^"]+","via":"socket","reason":"undo to `+first[:7], out)
	require.Regexp(t, `"kind":"override.ended",.*released: fixed`, out)
}

// An undo is judged by the policy of today, and needs what it brings back here.
func TestAnUndoIsRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	h.config["policy"] = obj{"profile": "owner"}
	app := h.app("web")
	service := func(digest string, more obj) files {
		s := obj{"image": reg.at + "/web@" + digest, "pull_policy": nil, "environment": nil}
		for k, v := range more {
			s[k] = v
		}
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("", s)})}
	}
	h.start()
	one := reg.push("one")
	first := h.deployed("The first", service(one, obj{"cap_add": []string{"SYS_TIME"}}))
	second := h.deployed("The second", service(reg.push("two"), nil))
	h.deployed("The third", service(reg.push("three"), nil))
	require.NoError(t, h.stop())
	h.config["policy"] = obj{"profile": "compose"}
	h.start()

	code, out := h.run("rollout", "undo", app, "--to", first[:9], "--reason", "r")
	require.Equal(t, 7, code, out)
	require.Contains(t, out, "SYS_TIME")
	code, out = h.run("rollout", "undo", app, "--to", strings.Repeat("0", 9), "--reason", "r")
	require.Equal(t, 5, code, out)
	require.Contains(t, out, second[:7], "the plans that are there are listed")

	require.NoError(t, h.engine.call("DELETE", "/images/"+h.pinOf(second, reg), nil, nil, nil))
	code, out = h.run("rollout", "undo", app, "--reason", "r")
	require.Equal(t, 5, code, out)
	require.Contains(t, out, "is not on this host any more")
	require.True(t, h.ranAs("web", "three"))
}

// pinOf is the image of the second push, by the engine's list.
func (h *host) pinOf(_ string, reg *registry) string {
	h.t.Helper()
	for digest, version := range reg.images() {
		if version == "two" {
			return reg.at + "/web@" + digest
		}
	}
	require.FailNow(h.t, "no image of version two")
	return ""
}

// A hold is hands off on a real engine; a count, a restart and a pause are as they
// say; and all of it is over with its release.
func TestTakeOverByHandAndGiveBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.start()
	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one", nil)})})
	target := app + "/web"

	code, out := h.run("hold", target, "--for", "1h", "--reason", "restoring a backup")
	require.Equal(t, 0, code, out)
	held := h.one("web")
	require.NoError(t, h.engine.stop(held.ID))
	second := h.repo.pushed("The second", files{app + "/compose.yaml": h.compose(app, obj{"web": web("two", nil), "other": web("one", nil)})})
	h.await("the neighbour comes", func(st status) bool {
		return st.app(app).Commit == second && st.service(app, "other").Phase == "Ready"
	})
	h.kill()
	h.start()
	h.await("it is held still", func(st status) bool { return st.service(app, "web").Phase == "Held" })
	require.Equal(t, held.ID, h.one("web").ID)
	require.False(t, h.one("web").State.Running, "what a person stopped stays stopped")
	code, out = h.run("release", target, "--reason", "done")
	require.Equal(t, 0, code, out)
	h.synced(second)
	require.True(t, h.ranAs("web", "two"))

	code, out = h.run("scale", target+"=3", "--reason", "campaign")
	require.Equal(t, 0, code, out)
	h.await("three run", func(st status) bool { return st.service(app, "web").Ready == 3 && len(h.containers("web")) == 3 })
	code, out = h.run("release", target, "--reason", "over")
	require.Equal(t, 0, code, out)
	h.await("one runs", func(status) bool { return len(h.containers("web")) == 1 })

	before := h.one("web")
	code, out = h.run("rollout", "restart", target, "--reason", "leaks")
	require.Equal(t, 0, code, out)
	h.await("another runs", func(st status) bool {
		cs := h.containers("web")
		return len(cs) == 1 && cs[0].ID != before.ID && st.Sources[0].Sync == "Synced"
	})
	require.Equal(t, before.env("VERSION"), h.one("web").env("VERSION"))

	code, out = h.run("rollout", "pause", target, "--reason", "look")
	require.Equal(t, 0, code, out)
	h.repo.pushed("The third", files{app + "/compose.yaml": h.compose(app, obj{"web": web("three", nil), "other": web("one", nil)})})
	h.await("it is paused", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Paused"
	})
	require.True(t, h.ranAs("web", "two"))
	code, out = h.run("rollout", "abort", target, "--reason", "no")
	require.Equal(t, 0, code, out)
	h.await("it is given up", func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Restored"
	})
	code, out = h.run("retry", app, "--reason", "yes, after all")
	require.Equal(t, 0, code, out)
	h.await("it goes on", func(st status) bool { return h.ranAs("web", "three") && st.Sources[0].Sync == "Synced" })
}

// A source that is observed changes nothing, and says what it would.
func TestAnObservedSourceChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.source()["apply"] = "observe"
	app := h.app("web")
	h.start()
	h.repo.pushed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one", nil)})})
	h.await("it says what it would do", func(st status) bool {
		return st.Sources[0].Sync == "Held" && strings.Contains(st.Sources[0].Reason, "observe: would create 1")
	})
	require.Empty(t, h.containers())
	nets, err := h.engine.networks("gitring.host=" + h.name)
	require.NoError(t, err)
	require.Empty(t, nets)
}

// Images that no plan needs any more are removed when asked, by their digest; one
// that somebody's container uses stays.
func TestImagesThatNothingNamesGo(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	h.config["prune"] = obj{"images": obj{"keep": 2}}
	app := h.app("web")
	h.start()
	digests := map[string]string{}
	deploy := func(version string) {
		digests[version] = reg.push(version)
		h.deployed("Version "+version, files{app + "/compose.yaml": h.compose(app, obj{"web": web("", obj{"image": reg.at + "/web@" + digests[version], "pull_policy": nil, "environment": nil})})})
	}
	here := func() map[string]bool {
		all := map[string]bool{}
		for _, version := range reg.images() {
			all[version] = true
		}
		return all
	}
	deploy("one")
	deploy("two")
	// Somebody has a container of the second, which is not ours and not even started.
	var made struct{ ID string }
	body := strings.NewReader(`{"Image":"` + reg.at + "/web@" + digests["two"] + `"}`)
	require.NoError(t, h.engine.call(http.MethodPost, "/containers/create", nil, body, &made))
	t.Cleanup(func() { _ = h.engine.remove(made.ID) })
	deploy("three")
	h.await("the first is gone", func(status) bool {
		all := here()
		return !all["one"] && all["two"] && all["three"]
	})
	deploy("four")
	deploy("five")
	h.await("the third is gone", func(status) bool { return !here()["three"] })
	require.True(t, here()["two"], "a container uses it")
	code, out := h.run("events", "-o", "json")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "remove image: ")
}

// images are those that the engine has of a registry: their version by digest.
func (r *registry) images() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	var list []struct{ RepoDigests []string }
	require.NoError(r.t, local.call(http.MethodGet, "/images/json", nil, nil, &list))
	for _, i := range list {
		for _, name := range i.RepoDigests {
			digest, ours := strings.CutPrefix(name, r.at+"/web@")
			if !ours {
				continue
			}
			var image struct{ Config struct{ Env []string } }
			if err := local.call(http.MethodGet, "/images/"+name+"/json", nil, nil, &image); err != nil {
				require.ErrorContains(r.t, err, "not found") // gitring removed it since the list
				continue
			}
			for _, e := range image.Config.Env {
				if version, ok := strings.CutPrefix(e, "VERSION="); ok {
					out[digest] = version
				}
			}
		}
	}
	return out
}
