package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// crew are three hosts that follow one repository and hear of each other by one forge. Git is
// polled by the canary alone: the others look when they are told to, so that what the canary
// said is there to read, and a test waits for one reading less.
type crew struct {
	t      *testing.T
	forge  *forge
	canary *host
	others []*host
}

const gate = "/gate"

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{t: t, forge: &forge{kind: "gitea"}, canary: newHost(t), others: []*host{newHost(t), newHost(t)}}
	s := httptest.NewServer(c.forge)
	t.Cleanup(s.Close)
	for _, h := range c.all() {
		h.tells(c.forge.kind, s.URL)
		h.config["facts"] = obj{"name": h.name}
		h.config["interpolation"] = obj{"SUBNET": subnet(), "GATE": ""}
		if h != c.canary {
			h.config["poll"] = "24h"
			h.repo = c.canary.repo
			h.source()["url"] = "file://" + h.repo.bare
			h.source()["trust"] = c.canary.source()["trust"]
		}
	}
	c.canary.config["interpolation"].(obj)["GATE"] = gate
	return c
}

func (c *crew) all() []*host { return append([]*host{c.canary}, c.others...) }

// push has a version of the one app, which each host has under a name of its own: they share
// an engine.
func (c *crew) push(version string, fs files, more ...obj) (sha string) {
	c.t.Helper()
	apps := "version: 1\napps:\n"
	for _, h := range c.all() {
		apps += fmt.Sprintf("  - {path: web, name: %s, targets: {name: %s}}\n", h.app("web"), h.name)
	}
	network := obj{"networks": obj{"default": obj{"ipam": obj{"config": []any{obj{"subnet": "${SUBNET}"}}}}}}
	all := files{"gitring.yaml": apps, "web/compose.yaml": c.canary.compose("web", obj{"web": web(version, append(more, env("GATE", "${GATE}"))...)}, network)}
	for name, text := range fs {
		all[name] = text
	}
	return c.canary.repo.pushed("Version "+version, all)
}

// look has the others look at what was pushed.
func (c *crew) look() {
	c.t.Helper()
	for _, h := range c.others {
		code, out := h.run("sync", "-q")
		require.Equal(c.t, 0, code, out)
	}
}

// hears waits until the forge has a word of the canary.
func (c *crew) hears(sha, state string) {
	c.t.Helper()
	c.canary.until("the forge hears "+state+" of the canary", func() bool {
		states, _ := c.forge.of(sha, "gitring/"+c.canary.name)
		return len(states) > 0 && states[len(states)-1] == state
	})
}

// open lets the canary's newest version become ready.
func (c *crew) open(version string) {
	c.t.Helper()
	c.canary.until("the canary has version "+version, func() bool {
		for _, in := range c.canary.containers("web") {
			if in.State.Running && in.env("VERSION") == version {
				c.canary.tell(in, "/write?text=open&path="+gate)
				_, said := c.canary.ask(in, "/file?path="+gate)
				return said == "open"
			}
		}
		return false
	})
}

// stands waits until the others say a state and a reason, and finds a version running there
// alone.
func (c *crew) stands(sync, says, version string) {
	c.t.Helper()
	for _, h := range c.others {
		h.until(h.name+" is "+sync+", "+says, func() bool {
			st, err := h.look()
			return err == nil && st.Sources[0].Sync == sync && strings.Contains(st.Sources[0].Reason, says)
		})
		require.Equal(c.t, version, h.one("web").env("VERSION"))
	}
}

// lives waits until a commit is live on hosts.
func (c *crew) lives(sha, version string, on ...*host) {
	c.t.Helper()
	for _, h := range on {
		h.synced(sha)
		require.Equal(c.t, version, h.one("web").env("VERSION"))
	}
}

// It waits for one reading of statuses (15 s) and four rollouts of three hosts, and so runs in
// make e2e only.
func TestACommitGoesToTheCanaryFirstAndAFailureGoesNoFurther(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("longer than 30 s: GITRING_E2E_LONG=1 asks for it")
	}
	t.Parallel()
	c := newCrew(t)
	first := c.push("1", nil)
	for _, h := range c.all() {
		h.start()
	}
	c.open("1")
	c.lives(first, "1", c.all()...) // nobody said anything of waves

	fleet := "hosts:\n"
	for _, h := range c.all() {
		fleet += "  " + h.name + ": {}\n"
	}
	second := c.push("2", files{".gitring/fleet.yaml": fleet + "waves: [{hosts: [" + c.canary.name + "]}]\n"})
	c.hears(second, "pending")
	c.look()
	c.stands("Staging", "waits for "+c.canary.name+": pending", "1")
	c.open("2")
	c.hears(second, "success")
	c.lives(second, "2", c.all()...)

	bad := c.push("3", nil, broken())
	c.hears(bad, "failure")
	c.look()
	c.stands("Held", "failed on "+c.canary.name+": ", "2")
	for _, h := range c.others {
		require.Regexp(t, "not ready within 3s.*; push a commit that mends it, or gitring approve "+bad[:7]+" lets it go on$", h.status().Sources[0].Reason)
	}

	// Version 1 completed on the others, so they wait for nobody: the canary is not ready yet.
	back := c.push("1", nil)
	c.look()
	c.lives(back, "1", c.others...)
	states, _ := c.forge.of(back, "gitring/"+c.canary.name)
	require.NotContains(t, states, "success")
	c.open("1")
	c.lives(back, "1", c.all()...)
	for _, h := range c.all() {
		h.until("the forge hears that "+h.name+" is back", func() bool {
			states, _ := c.forge.of(back, "gitring/"+h.name)
			return slices.Contains(states, "success")
		})
	}
	c.forge.check(t)
	for _, h := range c.all() {
		noSecret(t, h, forgeToken)
	}
}
