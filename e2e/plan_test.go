package e2e

import (
	"encoding/json"
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
