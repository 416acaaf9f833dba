package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running are the versions of a service whose instances run, sorted; each instance is one.
func (h *host) running(service string) (versions []string) {
	h.t.Helper()
	for _, c := range h.containers(service) {
		if c.State.Running {
			versions = append(versions, c.env("VERSION"))
		}
	}
	slices.Sort(versions)
	return versions
}

// done runs a verb that has to succeed, and returns what it printed.
func (h *host) done(args ...string) string {
	h.t.Helper()
	code, out := h.run(args...)
	require.Equal(h.t, 0, code, "gitring %v: %s", args, out)
	return out
}

// A person who has seen enough ends what is only time: the hour of a bake, and the hour
// in which a blue-green rollout keeps its old set. Nobody waits for either here.
func TestPromoteEndsABakeAndTheOldSetOfABlueGreenRollout(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"baked":    web(version, rollout(obj{"bake": "1h"})),
			"coloured": web(version, replicas(2), rollout(obj{"strategy": "blue_green", "warm_for": "1h"})),
		})}
	}
	h.start()
	first := h.deployed("The first", of("one"))
	old := identities(h.containers("coloured"))
	second := h.repo.pushed("The second", of("two"))
	h.await("one is watched, and the other serves beside its old set", func(st status) bool {
		return strings.Contains(st.service(app, "baked").Reason, "baking until") && slices.Equal(h.running("coloured"), []string{"one", "one", "two", "two"}) &&
			strings.Contains(st.service(app, "coloured").Reason, "the old set stays until")
	})
	for _, service := range []string{"baked", "coloured"} {
		sv := h.status().service(app, service)
		require.Equal(t, first, sv.LastGood, "%s is not good before it was watched: %+v", service, sv)
		require.NotNil(t, sv.Rollout)
		require.Equal(t, "Progressing", sv.Rollout.Phase)
	}
	for _, was := range old {
		require.Contains(t, identities(h.containers("coloured")), was, "the old set is kept as it was")
	}

	h.done("rollout", "promote", app+"/baked") // it overrides nothing: no reason is needed
	h.await("the bake is over", func(st status) bool { return st.service(app, "baked").LastGood == second })
	require.Equal(t, []string{"one", "one", "two", "two"}, h.running("coloured"), "who promotes one service promotes no other")
	h.done("rollout", "promote", app+"/coloured", "--reason", "seen enough")
	h.synced(second)
	require.Equal(t, []string{"two", "two"}, h.running("coloured"))
	require.Equal(t, []string{"two"}, h.running("baked"))
	_, told := h.journalled("rollout.promoted", app, "coloured", "seen enough")
	require.True(t, told)
	code, out := h.run("rollout", "promote", app+"/baked", "--reason", "again")
	require.Equal(t, 5, code, "nothing of it waits for time: %s", out)
}

// A rollout that a person stopped half way is where it was after the daemon was killed:
// nothing comes or goes, but what runs is kept alive. It ends when the person says so.
func TestAPauseOutlivesTheDaemonAndResumeGoesOn(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	target := app + "/web"
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(version, replicas(3), rollout(obj{"min_ready_time": "2s"}))})}
	}
	h.start()
	h.deployed("The first", of("one"))
	settled(h)
	mark := h.events.mark()
	second := h.repo.pushed("The second", of("two"))
	h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "start" && e.service() == "web" })
	h.done("rollout", "pause", target, "--reason", "the graphs look odd")
	paused := func(st status) bool {
		r := st.service(app, "web").Rollout
		return r != nil && r.Phase == "Paused" && strings.Contains(r.Reason, "the graphs look odd")
	}
	h.await("it is paused", paused)
	// What was on its way when the pause came has come to its end.
	h.until("nothing is under way", func() bool { return len(h.containers("web")) == len(h.running("web")) })
	before := ids(h.containers("web"))
	require.Contains(t, h.running("web"), "one", "the rollout was over before it was paused")
	require.Contains(t, h.running("web"), "two")

	h.kill()
	mark = h.events.mark()
	h.start()
	h.await("it is paused still", paused)
	code, out := h.run("status")
	require.Equal(t, 9, code, out)
	require.Regexp(t, `pause +`+target+` .*the graphs look odd`, out)
	// One that dies while it stands is started again, and nothing else happens.
	victim := h.containers("web")[0]
	require.NoError(t, h.engine.kill(victim.ID))
	h.until("what died runs again", func() bool {
		c, err := h.engine.inspect(victim.ID)
		return err == nil && c.State.Running
	})
	h.await("it is paused still", paused)
	require.Equal(t, before, ids(h.containers("web")))
	require.Empty(t, h.events.after(mark, "create", "destroy"))

	h.done("rollout", "resume", target, "--reason", "it was the graphs")
	h.synced(second)
	require.Equal(t, []string{"two", "two", "two"}, h.running("web"))
	_, told := h.journalled("override.ended", app, "web", "it was the graphs")
	require.True(t, told)
}

// Of a source with apply: approve a person says yes to every commit, the first as well.
func TestACommitOfAnApprovedSourceWaitsForItsYes(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.source()["apply"] = "approve"
	app := h.app("web")
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(version)})}
	}
	h.start()
	waits := func(sha, would string) {
		t.Helper()
		st := h.await("the commit waits for its yes", func(st status) bool {
			return st.Sources[0].Tip == sha && st.Sources[0].Sync == "Held" && strings.Contains(st.Sources[0].Reason, "gitring approve "+sha[:7])
		})
		require.Contains(t, st.Sources[0].Reason, "every plan of this source is approved by a person: would "+would)
		code, out := h.run("status")
		require.Equal(t, 9, code, out)
		require.Contains(t, out, "gitring approve "+sha[:7])
		code, out = h.run("sync", "--wait")
		require.Equal(t, 9, code, out)
	}
	first := h.repo.pushed("The first", of("one"))
	waits(first, "create 1")
	require.Empty(t, h.containers())
	h.done("approve", first[:7], "--reason", "reviewed")
	h.synced(first)
	require.True(t, h.ranAs("web", "one"))
	runs := identities(h.containers())

	// The next waits beside what runs, also for a daemon that was killed meanwhile.
	second := h.repo.pushed("The second", of("two"))
	waits(second, "")
	h.kill()
	h.start()
	waits(second, "")
	require.Equal(t, runs, identities(h.containers()))

	// A newer one takes its place: the yes is to what waits and to nothing else.
	third := h.repo.pushed("The third", of("three"))
	waits(third, "")
	code, out := h.run("approve", second[:7], "--reason", "too late")
	require.Equal(t, 4, code, out)
	require.Equal(t, runs, identities(h.containers()))
	h.done("approve", third[:7], "--reason", "reviewed")
	h.synced(third)
	require.True(t, h.ranAs("web", "three"))

	// What changes nothing on this host asks nobody.
	h.deployed("A word", files{"README.md": "nothing that runs"})
}

// Of a source with apply: commit all apps of a commit change or none does: one cannot be
// pulled, so the other waits, and both go when it can.
func TestACommitThatIsAppliedWholeWaitsForItsLastImage(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	h.source()["apply"] = "commit"
	local, remote := h.app("local"), h.app("remote")
	of := func(version, digest string) files {
		return files{
			local + "/compose.yaml":  h.compose(local, obj{"local": web(version)}),
			remote + "/compose.yaml": h.compose(remote, obj{"remote": web("", obj{"image": reg.at + "/web@" + digest, "pull_policy": nil, "environment": nil})}),
		}
	}
	h.start()
	first := h.deployed("Both", of("one", reg.push("one")))
	settled(h)
	mark, runs := h.events.mark(), identities(h.containers())

	// The registry knows the second and has lost a part of it.
	second := reg.push("two")
	found := reg.lose(second)
	sha := h.repo.pushed("Both again", of("two", second))
	h.await("the commit waits for its image", func(st status) bool {
		return st.Sources[0].Tip == sha && strings.Contains(st.app(remote).Reason+st.Sources[0].Reason, "cannot pull")
	})
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, runs, identities(h.containers()))
	st := h.status()
	require.Equal(t, first, st.app(local).Commit)
	require.Equal(t, first, st.app(remote).Commit)
	require.NotEqual(t, "Synced", st.Sources[0].Sync)

	found()
	h.done("retry", remote, "--reason", "the registry has it again")
	h.synced(sha)
	require.True(t, h.ranAs("local", "two"))
	require.True(t, h.ranAs("remote", "two"))
}

// lose takes the configuration of an image out of the registry, as a disk does: its
// manifest is answered, and cannot be pulled. What it returns puts it back.
func (r *registry) lose(digest string) (found func()) {
	r.t.Helper()
	manifest, err := os.ReadFile(r.file(digest))
	require.NoError(r.t, err)
	config := regexp.MustCompile(`"config":\{"digest":"(sha256:[0-9a-f]{64})"`).FindSubmatch(manifest)
	require.NotNil(r.t, config, "%s", manifest)
	at := r.file(string(config[1]))
	require.NoError(r.t, os.Rename(at, at+".lost"))
	return func() { require.NoError(r.t, os.Rename(at+".lost", at)) }
}

// file is where the registry keeps a blob.
func (r *registry) file(digest string) string {
	_, sum, _ := strings.Cut(digest, ":")
	return filepath.Join(r.dir, "data/docker/registry/v2/blobs/sha256", sum[:2], sum, "data")
}

// A hold that the commit declares stops new plans of that app alone: its neighbour goes
// on, what runs is healed, and with the hold goes the wait.
func TestADeclaredHoldKeepsTheAppAndHealsIt(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	held, free := h.app("held"), h.app("free")
	of := func(version, hold string) files {
		return files{
			"gitring.yaml":         "version: 1\napps:\n- {name: " + free + ", path: " + free + "}\n- {name: " + held + ", path: " + held + hold + "}\n",
			held + "/compose.yaml": h.compose(held, obj{"held": web(version)}),
			free + "/compose.yaml": h.compose(free, obj{"free": web(version)}),
		}
	}
	h.start()
	first := h.deployed("Both", of("one", ""))
	second := h.repo.pushed("Hold one", of("two", `, hold: {reason: "inventory until Monday"}`))
	h.await("the other goes on", func(st status) bool {
		return st.app(free).Commit == second && st.service(free, "free").Phase == "Ready" && h.ranAs("free", "two") &&
			st.Sources[0].Sync == "Held" && strings.Contains(st.app(held).Reason, "held: inventory until Monday")
	})
	require.Equal(t, first, h.status().app(held).Commit)
	was := h.one("held")
	require.NoError(t, h.engine.kill(was.ID))
	h.until("what is held is healed", func() bool { return h.ranAs("held", "one") })
	h.await("and ready again", func(st status) bool { return st.service(held, "held").Phase == "Ready" })
	require.Equal(t, was.ID, h.one("held").ID)
	code, out := h.run("status")
	require.Equal(t, 9, code, out)

	// One that ends by itself.
	until := time.Now().Add(3 * time.Second).UTC()
	third := h.repo.pushed("Hold it for a moment", of("three", `, hold: {reason: "a moment", until: `+until.Format(time.RFC3339)+`}`))
	h.synced(third)
	require.True(t, h.ranAs("held", "three"))
	require.True(t, h.ranAs("free", "three"))
	for _, e := range h.events.after(0, "create") {
		if e.Actor.ID == h.one("held").ID {
			require.False(t, e.at().Before(until.Truncate(time.Second)), "it was made at %s, and held until %s", e.at(), until)
		}
	}
}

// A number that a person asked for a while is the commit's again when the while is over,
// with nobody there.
func TestAScaleEndsByItself(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	h.start()
	sha := h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one", replicas(2))})})
	settled(h)
	mark, runs := h.events.mark(), ids(h.containers())
	out := h.done("scale", app+"/web=4", "--for", "20s", "--reason", "campaign")
	require.Contains(t, out, " until ")
	h.await("four run", func(st status) bool {
		return st.Sources[0].Sync == "Synced" && st.service(app, "web").Ready == 4 && len(h.containers("web")) == 4
	})
	require.Contains(t, h.done("status"), "scale to 4")
	h.kill() // who comes back knows of it
	h.start()
	h.await("it is over", func(st status) bool { return len(h.containers("web")) == 2 && st.service(app, "web").Wanted == 2 })
	h.synced(sha)
	require.Equal(t, runs, ids(h.containers()), "those that a person added went, and no others")
	_, told := h.journalled("override.ended", app, "web", "scale to 4: has run out")
	require.True(t, told)
	require.Len(t, h.events.after(mark, "create"), 2)
	require.NotContains(t, h.done("status"), "scale to 4")
}
