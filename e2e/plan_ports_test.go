package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An app in force publishes a port on one address, and a new one asks for the same port on others.
// The plan of the folder, the daemon and the engine come to one decision about each pair.
func TestTheFolderTheDaemonAndTheEngineAgreeOnPorts(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	pairs := []struct {
		held, wants string
		clash       bool
	}{
		{"127.0.0.1:", "", true},
		{"127.0.0.1:", "0.0.0.0:", true},
		{"127.0.0.1:", "127.0.0.1:", true},
		{"127.0.0.1:", "127.0.0.2:", false},
		{"127.0.0.1:", "[::]:", false},
		{"", "127.0.0.1:", true},
		{"[::]:", "", true},
	}
	first, next := files{}, files{}
	held, wants := make([]string, len(pairs)), make([]string, len(pairs))
	for i, c := range pairs {
		port := h.freePort()
		add := func(fs files, name, at string) string {
			app := h.app(fmt.Sprint(name, i))
			fs[app+"/compose.yaml"] = h.compose(app, obj{"w" + app: web("1", obj{"ports": []any{at + port + ":8080"}})})
			return app + "/w" + app
		}
		held[i], wants[i] = add(first, "held", c.held), add(next, "new", c.wants)
	}
	h.start()
	h.deployed("The first", first)
	settled(h)
	h.repo.write(next)
	_, planned := h.run("plan", h.repo.work)
	h.repo.commit("The next")
	h.repo.push()
	app := func(id string) string { a, _, _ := strings.Cut(id, "/"); return a }
	st := h.await("each is ready or refused its port", func(st status) bool {
		for i, c := range pairs {
			s := st.service(app(wants[i]), "w"+app(wants[i]))
			if !c.clash && s.Phase != "Ready" || c.clash && s.Phase != "Degraded" {
				return false
			}
		}
		return true
	})
	for i, c := range pairs {
		t.Run(fmt.Sprintf("%q beside %q", c.wants, c.held), func(t *testing.T) {
			doubt := wants[i] + " cannot start while " + held[i] + " publishes port "
			reason := st.service(app(wants[i]), "w"+app(wants[i])).Reason
			require.Equal(t, "Ready", st.service(app(held[i]), "w"+app(held[i])).Phase, "who has it keeps it")
			if c.clash {
				require.Contains(t, planned, doubt)
				require.Regexp(t, `port \S+ is published by `+held[i]+`: publish one of them on another port`, reason)
				return
			}
			require.NotContains(t, planned, doubt)
		})
	}
}
