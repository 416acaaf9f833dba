package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineOf is where a text stands in a file, from 1.
func lineOf(t *testing.T, file, text string) int {
	t.Helper()
	i := strings.Index(file, text)
	require.GreaterOrEqual(t, i, 0, "%q stands nowhere in\n%s", text, file)
	return 1 + strings.Count(file[:i], "\n")
}

func TestWhatMayNotHappenIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	good, bad := h.app("good"), h.app("bad")
	plain := files{
		good + "/compose.yaml": h.compose(good, obj{"web": web("1")}),
		bad + "/compose.yaml":  h.compose(bad, obj{"web": web("1")}),
	}
	h.repo.pushed("Two apps", plain)
	h.start()
	h.synced(h.repo.head())
	settled(h)
	inForce := h.repo.head()
	mark, before := h.events.mark(), identities(h.containers())

	for _, tt := range []struct {
		name string
		asks obj
		at   string // text of the line to blame
		code string
	}{
		{"privileged", obj{"privileged": true}, "privileged:", "PolicyDenied"},
		{"the host's network", obj{"network_mode": "host"}, "network_mode:", "PolicyDenied"},
		{"another's namespace", obj{"pid": "host"}, "pid:", "PolicyDenied"},
		{"a device", obj{"devices": []any{"/dev/kmsg"}}, "- /dev/kmsg", "PolicyDenied"},
		{"a capability", obj{"cap_add": []any{"NET_ADMIN"}}, "- NET_ADMIN", "PolicyDenied"},
		{"a folder of the host", obj{"volumes": []any{"/etc:/host"}}, "- /etc:/host", "PolicyDenied"},
		{"the engine's socket", obj{"volumes": []any{"/var/run/docker.sock:/s"}}, "- /var/run/docker.sock:/s", "PolicyDenied"},
		{"a label of ours", obj{"labels": obj{"gitring.host": "other"}}, "gitring.host:", "PolicyDenied"},
		{"a key that nobody knows", obj{"imagee": "x"}, "imagee:", "UnknownKey"},
		{"a key of a later release", obj{"build": "."}, "build:", "Unsupported"},
		{"a place outside of the commit", obj{"volumes": []any{"../../../etc:/host:ro"}}, "- ../../../etc:/host:ro", "OutsideCommit"},
	} {
		file := h.compose(bad, obj{"web": web("2", tt.asks)})
		sha := h.repo.pushed(tt.name, files{bad + "/compose.yaml": file})
		st := h.await(tt.name+" is refused", func(st status) bool {
			r := st.app(bad).Refusal
			return r != nil && r.Commit == sha
		})
		r := st.app(bad).Refusal
		require.Equal(t, tt.code, r.Code, "%s: %+v", tt.name, r)
		require.Equal(t, bad+"/compose.yaml", r.File, tt.name)
		require.Equal(t, lineOf(t, file, tt.at), r.Line, "%s: %+v\n%s", tt.name, r, file)
		require.NotEmpty(t, r.Says, tt.name)
		require.NotEmpty(t, r.Hint, tt.name)
		require.Equal(t, inForce, st.app(bad).Commit, "%s: its last good plan stays in force", tt.name)
	}
	require.Empty(t, h.events.after(mark, mutations...), "a refusal changes nothing")
	require.Equal(t, before, identities(h.containers()))

	code, out := h.run("status", "-o", "json")
	require.Equal(t, 7, code, out)
	var raw map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &raw))

	// One app that is refused holds nobody else up.
	h.repo.pushed("The other app goes on", files{good + "/compose.yaml": h.compose(good, obj{"web": web("3")})})
	st := h.await("the good app is updated", func(st status) bool {
		return st.app(good).Commit == h.repo.head() && st.app(good).Health == "Healthy"
	})
	require.Equal(t, "Degraded", st.Sources[0].Sync)
	require.Len(t, h.containers(), 2)
	for _, c := range h.containers() {
		want := map[string]string{good: "3", bad: "1"}[c.Config.Labels["gitring.app"]]
		require.Equal(t, want, c.env("VERSION"), c.Name)
	}
	code, out = h.run("validate", h.repo.work)
	require.Equal(t, 7, code, out)
	require.Contains(t, out, bad+"/compose.yaml:")

	h.deployed("And is allowed again", files{bad + "/compose.yaml": h.compose(bad, obj{"web": web("4")})})
	code, out = h.run("status")
	require.Equal(t, 0, code, out)
}
