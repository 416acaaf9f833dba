package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPlanSaysWhatThenHappens(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	volume := obj{"volumes": obj{"pg": obj{}}}
	h.repo.pushed("Before", files{app + "/compose.yaml": h.compose(app, obj{
		"web": web("1"), "db": db("1", "pg"), "cache": web("1"), "scaled": web("1"), "gone": web("1"),
	}, volume)})
	h.start()
	h.synced(h.repo.head())
	settled(h)
	before := map[string]*container{}
	for _, c := range h.containers() {
		before[c.service()] = c
	}

	// Nothing is committed yet: a folder can be asked about.
	h.repo.write(files{app + "/compose.yaml": h.compose(app, obj{
		"web": web("2"), "db": db("2", "pg"), "cache": web("1"), "scaled": web("1", replicas(2)), "fresh": web("1"),
	}, volume)})
	mark := h.events.mark()
	out, err := h.command("plan", h.repo.work, "--detailed-exitcode", "-o", "json").Output()
	require.ErrorContains(t, err, "exit status 2", "there are changes: %s", out)
	var changes struct {
		Apps []struct {
			App      string
			Services []struct{ Service, Class, Reason, Gap string }
		}
	}
	require.NoError(t, json.Unmarshal(out, &changes))
	require.Len(t, changes.Apps, 1)
	said := map[string]string{}
	for _, s := range changes.Apps[0].Services {
		said[s.Service] = s.Class
		switch s.Service {
		case "web":
			require.Contains(t, s.Reason, "env VERSION")
			require.Empty(t, s.Gap)
		case "db":
			require.NotEmpty(t, s.Gap, "one of the two has to stop before the other starts")
		}
	}
	require.Equal(t, map[string]string{
		"web": "roll", "db": "recreate", "cache": "no-op", "scaled": "in place", "gone": "remove", "fresh": "create",
	}, said)
	require.Empty(t, h.events.after(mark, mutations...), "a plan changes nothing")

	h.repo.commit("After")
	h.repo.push()
	h.synced(h.repo.head())
	after := map[string]*container{}
	for _, c := range h.containers() {
		after[c.service()+c.slot()] = c
	}
	require.Len(t, after, 6)
	require.Equal(t, before["cache"].ID, after["cache1"].ID)
	require.Equal(t, before["scaled"].ID, after["scaled1"].ID)
	require.Equal(t, before["scaled"].version(), after["scaled2"].version())
	require.NotContains(t, after, "gone1")
	require.Contains(t, after, "fresh1")
	when := func(c *container, action string) time.Time {
		return h.events.first(t, mark, func(e engineEvent) bool { return e.Actor.ID == c.ID && e.Action == action }).at()
	}
	require.True(t, when(after["web1"], "start").Before(when(before["web"], "kill")), "rolled: the new one was there first")
	require.True(t, when(before["db"], "die").Before(when(after["db1"], "start")), "recreated: the old one was gone first")
	require.True(t, when(after["db1"], "create").Before(when(before["db"], "kill")), "and the new one was made ready to start before that")

	code, text := h.run("plan", "--detailed-exitcode")
	require.Equal(t, 0, code, "there is nothing left to do: %s", text)
}

// Whoever asks on the host is told what goes on, what an app may do and what it finds
// here: all that a pull request does not show.
func TestAPlanTellsThePersonOnTheHostAll(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("shop")
	loose := app + "_pg"
	h.looseVolume(loose)
	shop := func(v string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{
			"web": web(v, replicas(2), rollout(obj{"min_ready_time": "3s"})), "db": db("1", "pg"),
		}, obj{"volumes": obj{"pg": obj{}}})}
	}
	h.repo.pushed("Before", shop("1"))
	h.start()
	h.synced(h.repo.head())
	note := "note: volume " + loose + " was here before, made by neither gitring nor Compose"
	code, text := h.run("plan", "-o", "wide")
	require.Equal(t, 0, code, text)
	require.Contains(t, text, note)
	require.Contains(t, text, "\nnothing to do, 2 unchanged\n")
	_, text = h.run("plan")
	require.Equal(t, "prod  nothing to change: 2 services are as "+h.repo.head()[:7]+" asks\n", text)
	_, text = h.run("inspect", app+"/db")
	require.Contains(t, text, note)
	_, text = h.run("inspect", app+"/web")
	require.NotContains(t, text, note, "it mounts none")
	_, text = h.run("status")
	require.NotContains(t, text, note, "nothing is wrong")

	misspelt := "shpo" + strings.TrimPrefix(app, "shop")
	for _, verb := range [][]string{
		{"status", misspelt},
		{"logs", misspelt},
		{"crashes", misspelt},
		{"jobs", misspelt},
		{"inspect", misspelt + "/web"},
		{"outdated", misspelt},
		{"history", misspelt},
		{"hold", misspelt},
		{"release", misspelt},
		{"retry", misspelt},
		{"refresh", misspelt},
		{"adopt", misspelt},
		{"leave", misspelt},
		{"run", misspelt + "/web"},
		{"scale", misspelt + "/web=1"},
		{"rollout", "undo", misspelt},
		{"rollout", "pause", misspelt + "/web"},
		{"rollout", "restart", misspelt + "/web"},
	} {
		args := verb
		if _, asks := map[string]bool{"status": true, "logs": true, "crashes": true, "jobs": true, "inspect": true, "outdated": true, "history": true}[verb[0]]; !asks {
			args = append(args, "--reason", "test")
		}
		code, text := h.run(args...)
		require.Equal(t, 4, code, "%v: %s", verb, text)
		require.Contains(t, text, `error: no app "`+misspelt+`" on `+h.name, "%v", verb)
		require.Contains(t, text, `hint: did you mean "`+app+`"?`, "%v", verb)
	}
	code, text = h.run("sync", "prdo")
	require.Equal(t, 4, code)
	require.Contains(t, text, `hint: did you mean "prod"?`)

	h.repo.write(files{app + "/compose.yaml": h.compose(app, obj{"once": obj{"image": image, "pull_policy": "never", "restart": "no"}})})
	_, text = h.run("plan", h.repo.work)
	require.Contains(t, text, app+" note: once: a job, because it says restart: no")

	h.repo.pushed("After", shop("2"))
	h.until("the rollout is under way", func() bool {
		code, text = h.run("plan", "--detailed-exitcode")
		return strings.Contains(text, app+"/web under way: ")
	})
	require.Equal(t, 0, code, "it changes nothing more: %s", text)
	require.Regexp(t, app+`/web under way: [0-9a-f]{8} -> [0-9a-f]{8} of commit `+h.repo.head()[:7]+`, [012] of 2 updated, (just now|for \d+s): `, text)
	require.Contains(t, text, "\nnothing more to change, 1 under way, 2 unchanged\n")
	h.synced(h.repo.head())
	_, text = h.run("plan")
	require.NotContains(t, text, "under way")
}
