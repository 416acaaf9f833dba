package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reloading is a service that serves what it last read of ./conf/app.conf.
func reloading(reload obj, more ...obj) obj {
	reload["paths"] = []any{"./conf"}
	all := []obj{env("CONF", "/conf/app.conf"), {"volumes": []any{"./conf:/conf:ro"}, "x-gitring": obj{"reload": reload}}}
	return web("1", append(all, more...)...)
}

// reads waits until an instance serves a text.
func (h *host) reads(c *container, want string) {
	h.t.Helper()
	h.until("it serves "+want, func() bool { _, body := h.ask(c, "/conf"); return body == want })
}

// Lesson L58, in place: a file of the commit reaches what runs, by a signal,
// and nothing is replaced for it.
func TestAChangedFileIsReloadedInPlaceAndReplacesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	fs := files{
		app + "/compose.yaml":   h.compose(app, obj{"web": reloading(obj{"signal": "SIGUSR1"}, replicas(2))}),
		app + "/conf/app.conf":  "level=1\n",
		app + "/conf/old/x.txt": "old\n",
	}
	h.repo.pushed("Level 1", fs)
	h.start()
	h.synced(h.repo.head())
	before := identities(h.containers("web"))
	require.Len(t, before, 2)
	for _, c := range h.containers("web") {
		h.reads(c, "level=1\n")
	}

	mark := h.events.mark()
	second := h.deployed("Level 2", files{app + "/conf/app.conf": "level=2\n", app + "/conf/old/x.txt": "", app + "/conf/new/y.txt": "new\n"})
	require.Equal(t, before, identities(h.containers("web")), "no instance is replaced")
	require.Empty(t, h.events.after(mark, "create", "start", "die", "stop", "restart", "destroy"))
	for _, c := range h.containers("web") {
		h.reads(c, "level=2\n")
		_, body := h.ask(c, "/file?path=/conf/new/y.txt")
		require.Equal(t, "new\n", body)
		code, _ := h.ask(c, "/file?path=/conf/old/x.txt")
		require.Equal(t, 404, code, "what left the commit left the folder")
		h.tell(c, "/write?text=mine&path=/conf/app.conf")
		_, body = h.ask(c, "/file?path=/conf/app.conf")
		require.Equal(t, "level=2\n", body, "it is read-only")
	}

	// A daemon that comes back reloads nothing that was read.
	h.kill()
	h.start()
	h.synced(second)
	settled(h)
	mark = h.events.mark()
	h.deployed("Nothing of it", files{"NOTES": "hello"})
	require.Empty(t, h.events.after(mark, mutations...))
	require.Equal(t, before, identities(h.containers("web")))
}

func TestAReloadThatFailsBringsTheOldFilesBackAndFailsTheCommit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	exec := obj{"exec": []any{"/app", "reload", "/conf/app.conf"}}
	good := h.repo.pushed("Level 1", files{
		app + "/compose.yaml":  h.compose(app, obj{"web": reloading(exec, replicas(2))}),
		app + "/conf/app.conf": "level=1\n",
	})
	h.start()
	h.synced(good)
	before := identities(h.containers("web"))

	restored := func(sha, says string) {
		st := h.await("the files of "+sha[:7]+" are restored", func(st status) bool {
			r := st.service(app, "web").Rollout
			return r != nil && r.Phase == "Restored" && r.Commit == sha
		})
		require.Contains(t, st.service(app, "web").Rollout.Reason, says)
		require.Equal(t, "Degraded", st.Sources[0].Sync)
		for _, c := range h.containers("web") {
			h.reads(c, "level=1\n")
			_, body := h.ask(c, "/file?path=/conf/app.conf")
			require.Equal(t, "level=1\n", body)
		}
		code, _ := h.run("status")
		require.Equal(t, 6, code)
		code, out := h.run("inspect", app+"/web")
		require.Equal(t, 0, code, out)
		for _, want := range []string{"because: the newest files to reload failed", "gitring retry " + app + "/web", "files of conf", "CHECK"} {
			require.Contains(t, out, want)
		}
	}
	restored(h.repo.pushed("The command refuses it", files{app + "/conf/app.conf": "broken=1\n"}), "exit code 1: line 1: broken=1")
	restored(h.repo.pushed("The instance does not serve with it", files{app + "/conf/app.conf": "unready=1\n"}), "is not ready any more after it took over the files of conf")

	h.deployed("Level 2", files{app + "/conf/app.conf": "level=2\n"})
	for _, c := range h.containers("web") {
		h.reads(c, "level=2\n")
	}
	require.Equal(t, before, identities(h.containers("web")), "nothing was replaced in all of it")

	// The folders go with their instances.
	lies, err := filepath.Glob(filepath.Join(h.dir, "state", "live", "*"))
	require.NoError(t, err)
	require.Len(t, lies, 2)
	h.deployed("One of two", files{app + "/compose.yaml": h.compose(app, obj{"web": reloading(exec, replicas(1))})})
	h.until("the folder of the one that went is gone", func() bool {
		lies, err := os.ReadDir(filepath.Join(h.dir, "state", "live"))
		return err == nil && len(lies) == 1 && strings.Contains(lies[0].Name(), "-web-1-")
	})
}
