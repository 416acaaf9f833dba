package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

func TestThePolicyOfTheConfigurationIsTheDaemons(t *testing.T) {
	cfg := lonely(t, "")
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, policy.Compose, d.judge.Rules.Profile)
	require.Contains(t, d.judge.Rules.Own, cfg.State)
	require.Equal(t, d.store.ContentDir(), d.judge.Rules.Content)
	require.True(t, strings.HasPrefix(d.judge.Rules.Content, cfg.State))
}

// A daemon that starts with another policy reads the same commit anew.
func TestAFollowerReadsByThePolicyOfItsHost(t *testing.T) {
	tree := fstest.MapFS{
		"vpn/compose.yaml": {Data: []byte("services: {vpn: {image: a, cap_add: [NET_ADMIN], volumes: ['./c:/c']}}\n"), Mode: 0o644},
		"vpn/c":            {Data: []byte("x"), Mode: 0o644},
		"web/compose.yaml": {Data: []byte("services: {web: {image: nginx, volumes: ['data:/d']}}\nvolumes: {data: }\n"), Mode: 0o644},
	}
	c := &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
	read := func(profile policy.Profile) (ring.Plan, contents, contents) {
		f := &follower{
			d:        &Daemon{cfg: &config.Config{DataRoot: config.DefaultDataRoot}, env: &envFolder{}, judge: admission.Anywhere(profile)},
			settings: manifest.Settings{Source: "prod", Host: "edge-1"},
		}
		plan, files, _ := f.look(c, HostValues{})
		all := f.asked(c, HostValues{}).Contents
		return plan, files, all
	}
	plan, files, all := read(policy.Compose)
	require.Equal(t, ring.PolicyDenied, plan.Refused["vpn"].Code)
	require.Equal(t, c.SHA, plan.Refused["vpn"].Commit)
	require.Len(t, plan.Apps, 1)
	require.Empty(t, files, "what a refused app mounts is not written")
	require.Len(t, all, 1, "what runs is mended all the same")

	plan, files, _ = read(policy.Owner)
	require.Empty(t, plan.Refused)
	vpn, _ := plan.App("vpn")
	require.Len(t, vpn.Powers, 1)
	require.Equal(t, ring.WrittenApp(vpn), vpn.Written)
	require.Len(t, files, 1)
}
