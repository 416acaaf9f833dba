package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// homelab is one host of one owner, as many people have it: a media stack of
// several apps on one folder, Traefik with its dashboard, an app that joins its
// network, the engine's socket, cadvisor, and a graphics card.
const homelab = "testdata/homelab"

// homelabUnder is the homelab as a host reads it whose engine has that default
// runtime: the refusals, and the apps that pass with their powers.
func homelabUnder(t *testing.T, profile policy.Profile, byDefault string) (map[string][]string, []*ring.Refusal) {
	t.Helper()
	tree, err := gitsync.OpenFolder(homelab)
	require.NoError(t, err)
	defer tree.Close()
	j := admission.Anywhere(profile)
	j.Runtimes = &admission.EngineRuntimes{Ask: func() (string, []string, error) { return byDefault, nil, nil }}
	plan, refusals := j.Look(&ring.Commit{Tree: tree}, manifest.Settings{Source: "homelab", Path: ".", Host: "edge-1"})
	powers := map[string][]string{}
	for _, a := range plan.Apps {
		powers[a.Name] = a.Powers
	}
	return powers, refusals
}

func TestAHomelabPassesUnderOwnerAsItIs(t *testing.T) {
	powers, refusals := homelabUnder(t, policy.Owner, "runc")
	require.Empty(t, refusals)
	require.Len(t, powers, 8)
	for app, says := range map[string]string{
		"proxy":       "services.traefik.volumes /var/run/docker.sock",
		"portainer":   "services.portainer.volumes /var/run/docker.sock",
		"jellyfin":    "services.jellyfin.volumes /mnt/media",
		"sonarr":      "services.sonarr.volumes /mnt/media",
		"qbittorrent": "services.qbittorrent.volumes /mnt/media/downloads",
		"cadvisor":    "services.cadvisor.volumes /sys",
	} {
		require.True(t, slices.ContainsFunc(powers[app], func(p string) bool { return strings.Contains(p, says) }),
			"%s is to be told as a power: %s", says, powers[app])
	}
	require.Empty(t, powers["whoami"], "joining the network of a neighbour in the same repository is no power")
}

// What compose refuses of it is one owner's leave to give. The rest passes with
// nothing written down: a neighbour's default network, and an app without mounts
// of the host.
func TestAHomelabUnderComposeIsRefusedForWhatTouchesTheHost(t *testing.T) {
	powers, refusals := homelabUnder(t, policy.Compose, "runc")
	require.Contains(t, powers, "whoami")
	require.Contains(t, powers, "frigate")
	for _, r := range refusals {
		require.Equal(t, ring.PolicyDenied, r.Code, r.Says)
		require.Contains(t, []string{"cadvisor", "jellyfin", "portainer", "proxy", "qbittorrent", "sonarr"}, r.App, r.Says)
	}
}

// Which runtime the engine takes is the operator's choice. Where it is NVIDIA's,
// variables give the card.
func TestAHomelabOnAHostWhoseDefaultRuntimeIsNvidia(t *testing.T) {
	powers, refusals := homelabUnder(t, policy.Owner, "nvidia")
	require.Empty(t, refusals)
	require.Len(t, powers, 8)
	require.True(t, slices.ContainsFunc(powers["frigate"], func(p string) bool { return strings.Contains(p, "NVIDIA_VISIBLE_DEVICES") }), "%s", powers["frigate"])

	powers, refusals = homelabUnder(t, policy.Compose, "nvidia")
	require.Contains(t, powers, "whoami", "the runtime itself refuses nothing")
	require.NotContains(t, powers, "frigate")
	for _, r := range refusals {
		if r.App == "frigate" {
			require.Contains(t, r.Says, "NVIDIA_")
			require.Equal(t, "frigate/compose.yaml", r.File)
			require.Contains(t, []int{8, 9}, r.Line)
		}
	}
}
