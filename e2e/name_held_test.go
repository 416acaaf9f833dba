package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody takes a container of ours away and runs their own under its name. It is told
// whose it is and what to do about it, theirs is never touched, and when it is gone all is
// as before; of an app with drift: report that it is gone is told too, and no more is done.
func TestAContainerOfSomebodyElseUnderOurNameIsToldAndNotTouched(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	heals, tells := h.app("heals"), h.app("tells")
	sha := h.repo.pushed("Two apps alike", files{
		"gitring.yaml":          "version: 1\napps:\n- {name: " + heals + ", path: " + heals + "}\n- {name: " + tells + ", path: " + tells + ", drift: report}\n",
		heals + "/compose.yaml": h.compose(heals, obj{"taken": web("1"), "named": web("1", obj{"container_name": h.name + "-edge"})}),
		tells + "/compose.yaml": h.compose(tells, obj{"told": web("1")}),
	})
	h.start()
	h.synced(sha)
	settled(h)
	stranger := func(name string) (id string) {
		t.Helper()
		id, err := h.engine.start(name, "none", nil, "serve")
		require.NoError(t, err)
		t.Cleanup(func() { _ = h.engine.remove(id) })
		return id
	}
	replaced := func(service string) (id string) {
		t.Helper()
		ours := h.one(service)
		_, version, _ := strings.Cut(ours.version(), ":") // a new one is made under this name
		name := strings.Join([]string{ours.Config.Labels["gitring.app"], service, "1", version[:8]}, "-")
		id = stranger(name + "-theirs")
		require.NoError(t, h.engine.remove(ours.ID))
		// Whoever is first has the name; gitring may have made its own again already.
		h.until("theirs has the name", func() bool {
			for _, c := range h.containers(service) {
				_ = h.engine.remove(c.ID)
			}
			return h.engine.rename(id, name) == nil
		})
		return id
	}
	held := func(id string) string {
		return "of slot 1 is held by container " + id[:12] + " (image " + image + "), which is not gitring's: docker rm or docker rename it"
	}
	theirs := map[string]string{"taken": replaced("taken"), "told": replaced("told")}
	// The one with a container_name is renamed, and runs on.
	edge := h.one("named")
	require.NoError(t, h.engine.rename(edge.ID, h.name+"-away"))
	theirs["named"] = func() (id string) {
		h.until("theirs has the name", func() bool {
			if id == "" {
				id = stranger(h.name + "-edge-theirs")
			}
			_ = h.engine.rename(edge.ID, h.name+"-away")
			return h.engine.rename(id, h.name+"-edge") == nil
		})
		return id
	}()
	before := map[string]*container{}
	for service, app := range map[string]string{"taken": heals, "named": heals, "told": tells} {
		h.until(service+" is told", func() bool {
			_, ok := h.journalled("drift.seen", app, service, held(theirs[service]))
			return ok
		})
		c, err := h.engine.inspect(theirs[service])
		require.NoError(t, err)
		before[service] = c
	}
	require.True(t, h.one("named").State.Running)
	require.Equal(t, edge.State.StartedAt, h.one("named").State.StartedAt, "what can serve, serves")
	require.Empty(t, h.containers("told"))
	st := h.status()
	require.True(t, slices.ContainsFunc(st.service(tells, "told").Conditions, func(c struct{ Type, Reason string }) bool {
		return c.Type == "Drifted" && strings.Contains(c.Reason, held(theirs["told"]))
	}))

	// They are as they were, and go.
	for service, id := range theirs {
		c, err := h.engine.inspect(id)
		require.NoError(t, err)
		require.Equal(t, identities([]*container{before[service]}), identities([]*container{c}))
		require.Equal(t, before[service].Name, c.Name)
		require.NoError(t, h.engine.remove(id))
	}
	for _, service := range []string{"taken", "named"} {
		h.until(service+" is in order, and that is told", func() bool {
			_, ok := h.journalled("drift.healed", heals, service, "of slot 1 is held by container")
			return ok
		})
	}
	require.True(t, h.ranAs("taken", "1"))
	require.Equal(t, "/"+h.name+"-edge", h.one("named").Name)
	require.Equal(t, edge.ID, h.one("named").ID)
	h.await("of the other it is told that the name is free", func(st status) bool {
		return !slices.ContainsFunc(st.service(tells, "told").Conditions, func(c struct{ Type, Reason string }) bool {
			return strings.Contains(c.Reason, "is held by")
		})
	})
	require.Empty(t, h.containers("told"))
}

// rename is docker rename.
func (e *engine) rename(id, name string) error {
	return e.call("POST", "/containers/"+id+"/rename", map[string][]string{"name": {name}}, nil, nil)
}
