package e2e

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The demo of a fleet waits for the words of its canary, which hosts read every 15 s: a minute
// and more, so GITRING_E2E_LONG asks for it.
func TestTheDemoOfAFleet(t *testing.T) {
	t.Parallel()
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("waits for words that are read every 15 s: GITRING_E2E_LONG=1 asks for it")
	}
	d := newFleetDemo(t)
	canary, edge := regexp.QuoteMeta(d.host+"-canary-1"), regexp.QuoteMeta(d.host+"-edge-")
	code, out := d.verb("status")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "hint: make demo-fleet")
	d.does("up",
		`the canary has it; the edges read its word every 15 s, and wait until then`,
		`(?s)all have it:.*`+canary+` +Synced.*`+edge+`1 +Synced.*`+edge+`2 +Synced`,
		`(?s)Say version 3\n.*`+canary+` +Degraded.*`+edge+`1 +Held.*`+edge+`2 +Held`,
		`The hub shows all of them on one page, and can act on none:\n +http://127\.0\.0\.1:\d+/hosts\nThe token to sign in with:\n +grt_`,
		`make demo-fleet-down`)
	// What the demo says is compared with what the engine has.
	require.Len(t, d.onHosts(), 3)
	for _, c := range d.onHosts() {
		require.Contains(t, c.Config.Env, "VERSION=2", "the bad version runs nowhere: %s", c.Name)
	}
	d.does("status", canary+` +Degraded`)
	d.does("up", `the demo of a fleet is running already`)
	d.does("down", `the demo of a fleet is gone`)
	require.Empty(t, d.onHosts())
}

// onHosts are the containers of the three hosts.
func (d *demo) onHosts() (all []*container) {
	d.t.Helper()
	for _, host := range []string{"-canary-1", "-edge-1", "-edge-2"} {
		cs, err := local.containers("gitring.host=" + d.host + host)
		require.NoError(d.t, err)
		all = append(all, cs...)
	}
	return all
}
