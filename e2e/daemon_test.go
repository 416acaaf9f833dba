package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutations are the engine's words for what somebody did to a container.
var mutations = []string{"create", "start", "restart", "kill", "die", "stop", "destroy", "rename", "update", "pause", "unpause"}

func TestASecondDaemonChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2))})})
	h.start()
	h.synced(first)
	settled(h)
	mark, before := h.events.mark(), identities(h.containers())

	code, out := h.run("serve", "--config", h.configFile())
	require.Equal(t, 1, code, out)
	require.Contains(t, out, fmt.Sprintf("another gitring (pid %d) holds this state directory", h.daemon.Process.Pid))

	// Another state directory does not make it another host.
	other := &host{t: t, name: h.name, dir: filepath.Join(h.dir, "other"), socket: filepath.Join(h.dir, "s2"), repo: h.repo, config: maps.Clone(h.config)}
	other.config["state"] = filepath.Join(h.dir, "other", "state")
	other.config["listen"] = obj{"socket": other.socket, "http": ""}
	other.writeConfig()
	code, out = other.run("serve", "--config", other.configFile())
	require.Equal(t, 1, code, out)
	require.Contains(t, out, fmt.Sprintf("cannot start as host %q", h.name))

	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))
	h.deployed("Version 2", files{app + "/compose.yaml": h.compose(app, obj{"web": web("2", replicas(2))})})
}

// settled waits until the last thing that follows a rollout has happened, and
// the engine told of it: the restart policy of every instance is the Compose
// file's, and it has the name that Compose gives.
func settled(h *host) {
	h.t.Helper()
	h.until("the restart policies are set, and the names given", func() bool {
		told := map[string]bool{}
		for _, e := range h.events.after(0, "update", "rename") {
			told[e.Action+" "+e.Actor.ID] = true
		}
		for _, c := range h.containers() {
			l := c.Config.Labels
			if l["gitring.kind"] != "worker" || strings.HasPrefix(c.Config.Image, "gitring/front:") {
				continue // a front has its policy and its name from its creation on
			}
			short := strings.Join([]string{l["gitring.app"], l["gitring.service"], l["gitring.slot"]}, "-")
			long := strings.HasPrefix(c.Name, "/"+short+"-")
			if c.HostConfig.RestartPolicy.Name != "always" || !told["update "+c.ID] || long || c.Name == "/"+short && !told["rename "+c.ID] {
				return false
			}
		}
		return true
	})
}

func TestSIGTERMEndsTheDaemonAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	version := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(v, replicas(2)), "db": db(v, "./pg")})}
	}
	first := h.repo.pushed("Version 1", version("1"))
	h.start()
	h.synced(first)
	settled(h)
	mark, before := h.events.mark(), identities(h.containers())
	require.NoError(t, h.stop())
	code, out := h.run("status")
	require.Equal(t, 3, code, "the daemon is gone: %s", out)
	require.Equal(t, before, identities(h.containers()))

	// Nobody is needed for what runs; and who comes back has nothing to do.
	h.start()
	h.synced(first)
	code, out = h.run("sync", "--wait")
	require.Equal(t, 0, code, out)
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers()))

	// Within a rollout: the step under way is seen through, the rest is the
	// next daemon's.
	second := h.repo.pushed("Version 2", version("2"))
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "kill" })
	began := time.Now()
	require.NoError(t, h.stop())
	require.Less(t, time.Since(began), 30*time.Second, "longer than the unit's TimeoutStopSec")
	h.start()
	h.synced(second)
	require.Len(t, h.containers(), 3)
	require.Equal(t, 2, onlyOne(t, h.journal(h.one("db"))))
}

func TestAFileOfTheCommitIsMountedReadOnlyAndAChangeRollsOnlyItsService(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	mounted := obj{"volumes": []any{"./conf:/conf:ro", "./motd:/etc/motd"}}
	fs := files{
		app + "/compose.yaml":     h.compose(app, obj{"web": web("1", mounted), "other": web("1", obj{"volumes": []any{"./else:/else:ro"}})}),
		app + "/conf/app.conf":    "level=1\n",
		app + "/conf/deep/x.conf": "x\n",
		app + "/motd":             "welcome\n",
		app + "/else/e":           "else\n",
	}
	first := h.repo.pushed("Version 1", fs)
	h.start()
	h.synced(first)
	web1, other := h.one("web"), h.one("other")
	for path, want := range map[string]string{"/conf/app.conf": "level=1\n", "/conf/deep/x.conf": "x\n", "/etc/motd": "welcome\n"} {
		_, body := h.ask(web1, "/file?path="+path)
		require.Equal(t, want, body, path)
		h.tell(web1, "/write?text=mine&path="+path)
		_, body = h.ask(web1, "/file?path="+path)
		require.Equal(t, want, body, "%s is not read-only", path)
	}
	for _, m := range web1.Mounts {
		require.False(t, m.RW, "%+v", m)
	}

	second := h.deployed("Another level", files{app + "/conf/app.conf": "level=2\n"})
	require.NotEqual(t, web1.ID, h.one("web").ID, "a changed file is a new version of who mounts it")
	require.Equal(t, other.ID, h.one("other").ID, "and of nobody else")
	_, body := h.ask(h.one("web"), "/file?path=/conf/app.conf")
	require.Equal(t, "level=2\n", body)

	// A file that nobody mounts, and a commit that changes nothing.
	settled(h)
	mark := h.events.mark()
	h.deployed("A word in the README", files{app + "/README.md": "hello", "NOTES": "hello"})
	h.deployed("Nothing at all", nil)
	require.Empty(t, h.events.after(mark, mutations...), "a no-op is a no-op")

	// The way back: the first version's content, byte for byte.
	h.repo.git("revert", "--no-edit", second)
	h.repo.push()
	h.synced(h.repo.head())
	_, body = h.ask(h.one("web"), "/file?path=/conf/app.conf")
	require.Equal(t, "level=1\n", body)
	require.Equal(t, web1.version(), h.one("web").version())
}

func TestReplicasChangeInPlace(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	scaled := func(n int) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(n))})}
	}
	first := h.repo.pushed("Two", scaled(2))
	h.start()
	h.synced(first)
	two := identities(h.containers())
	require.Len(t, two, 2)

	h.deployed("Four", scaled(4))
	four := identities(h.containers())
	require.Len(t, four, 4)
	require.Equal(t, two, four[:2], "who was there stays")

	h.deployed("One", scaled(1))
	require.Equal(t, four[:1], identities(h.containers()), "the highest slots go")

	h.deployed("Three", scaled(3))
	three := identities(h.containers())
	require.Len(t, three, 3)
	require.Equal(t, four[0], three[0])
}

func TestWhatOthersTakeAwayComesBack(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2))})})
	h.start()
	h.synced(first)
	settled(h)
	cs := h.containers()

	healed := func(what string) {
		t.Helper()
		h.await(what, func(st status) bool {
			return st.Sources[0].Sync == "Synced" && st.service(app, "web").Ready == 2
		})
		cs = h.containers()
		require.Len(t, cs, 2)
	}
	untouched := func(c *container) {
		t.Helper()
		require.Contains(t, identities(h.containers()), identity{c.ID, c.State.StartedAt, c.RestartCount})
	}

	// docker stop: the same container runs again. The engine's own policy does
	// not bring it back after a stop by hand.
	require.NoError(t, h.engine.stop(cs[0].ID))
	h.until("it was started again", func() bool {
		c, err := h.engine.inspect(cs[0].ID)
		return err == nil && c.State.Running && c.State.StartedAt.After(cs[0].State.StartedAt)
	})
	untouched(cs[1])
	healed("a stopped instance is ready again")

	// docker rm -f: another one in its slot.
	gone := cs[1]
	require.NoError(t, h.engine.remove(gone.ID))
	h.until("its slot is filled", func() bool {
		now := h.containers()
		return len(now) == 2 && now[1].ID != gone.ID && now[1].State.Running
	})
	healed("a removed instance is replaced")
	require.Equal(t, gone.version(), cs[1].version())
	require.Equal(t, gone.Name, cs[1].Name)

	// Everything: containers and their network.
	was := ids(cs)
	for _, c := range cs {
		require.NoError(t, h.engine.remove(c.ID))
	}
	// gitring may be quicker, and the network be in use again: then that is the proof.
	_ = h.engine.call("DELETE", "/networks/"+app+"_default", nil, nil, nil)
	h.until("both slots are filled", func() bool {
		now := h.containers()
		return len(now) == 2 && now[0].State.Running && now[1].State.Running
	})
	healed("an app that was removed by hand is back")
	require.NotContains(t, was, cs[0].ID)
	require.NotEmpty(t, cs[0].address())

	// docker stop and docker network prune, while nobody looks.
	h.kill()
	for _, c := range cs {
		require.NoError(t, h.engine.stop(c.ID))
	}
	require.NoError(t, h.engine.call("DELETE", "/networks/"+app+"_default", nil, nil, nil))
	was = ids(cs)
	h.start()
	healed("what was stopped is back on a new network")
	require.Equal(t, was, ids(cs))
	for _, c := range cs {
		code, body := h.ask(c, "/")
		require.Equal(t, 200, code, body)
	}
}

func TestACrashIsRestartedAtOnceAndThenWithBackoff(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	first := h.repo.pushed("Version 1", files{app + "/compose.yaml": h.compose(app, obj{"web": web("1", replicas(2))})})
	h.start()
	h.synced(first)
	settled(h)
	crashing := h.containers()[0]
	calm := identities(h.containers())[1]

	crash := func() engineEvent {
		mark := h.events.mark()
		h.tell(crashing, "/exit?code=3")
		return h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "die" && e.Actor.ID == crashing.ID })
	}
	again := func(mark int) engineEvent {
		return h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.Actor.ID == crashing.ID })
	}
	ready := func() {
		h.await("it is ready again", func(st status) bool { return st.service(app, "web").Ready == 2 })
	}

	mark := h.events.mark()
	crash()
	again(mark) // by the engine or by us, but at once
	ready()
	h.until("the backoff is ours", func() bool {
		c, err := h.engine.inspect(crashing.ID)
		return err == nil && c.HostConfig.RestartPolicy.Name == "no"
	})

	mark = h.events.mark()
	died := crash()
	h.await("it backs off", func(st status) bool {
		for _, in := range st.service(app, "web").Instances {
			if in.ID == crashing.ID {
				return in.State == "BackingOff" && in.Restarts == 2
			}
		}
		return false
	})
	code, out := h.run("status")
	require.Equal(t, 6, code, out)
	require.Contains(t, out, "exited with code 3")
	started := again(mark)
	require.GreaterOrEqual(t, started.at().Sub(died.at()), 9*time.Second, "10 s, a tenth either way")
	ready()
	require.Equal(t, calm, identities(h.containers())[1], "the neighbour is untouched")
}
