package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePolicyIsReadAgainAndJudgesWhatRuns changes the policy below a running daemon: what
// runs is told of and goes on, a mistake keeps the rules before it, and nothing new is
// accepted meanwhile.
func TestThePolicyIsReadAgainAndJudgesWhatRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("vpn")
	image := idleImage(t, h.engine)
	file := filepath.Join(h.dir, "policy.yaml")
	write := func(body string) { require.NoError(t, os.WriteFile(file, []byte("version: 1\n"+body), 0o600)) }
	granted := "apps: [{name: " + app + ", source: " + h.source()["name"].(string) + ", path: " + app + ", grants: [{feature: capabilities.add, value: NET_ADMIN, service: web, reason: vpn}]}]\n"
	write(granted)
	h.config["policy"] = file
	service := func(label string) files {
		return files{app + "/compose.yaml": "services:\n  web: {image: " + image + ", pull_policy: never, cap_add: [NET_ADMIN], labels: {v: '" + label + "'}}\n"}
	}
	first := h.repo.pushed("Ask for a capability that is granted", service("1"))
	h.start()
	h.synced(first)
	running := h.of(app, "web").ID

	write("")
	h.await("the app in force breaks the policy", func(st status) bool { return st.condition("PolicyViolated") != "" })
	require.Contains(t, h.status().condition("PolicyViolated"), "NET_ADMIN")
	require.Equal(t, running, h.of(app, "web").ID, "what runs goes on")

	write("profil: owner\n")
	h.await("a mistake is told", func(st status) bool { return strings.Contains(st.condition("PolicyInvalid"), "policy.yaml:2") })
	second := h.repo.pushed("Change it meanwhile", service("2"))
	write(granted + "profil: owner\n")
	h.await("the second mistake is told", func(st status) bool { return strings.Contains(st.condition("PolicyInvalid"), "policy.yaml:3") })
	require.Equal(t, running, h.of(app, "web").ID, "nothing new is accepted")

	write(granted)
	h.synced(second)
	require.NotEqual(t, running, h.of(app, "web").ID)
	h.await("all is well", func(st status) bool {
		return st.condition("PolicyViolated") == "" && st.condition("PolicyInvalid") == ""
	})
}

// condition is the reason of a condition of the first source, "" where it does not hold.
func (st status) condition(kind string) string {
	i := slices.IndexFunc(st.Sources[0].Conditions, func(c struct{ Type, Reason string }) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return st.Sources[0].Conditions[i].Reason
}
