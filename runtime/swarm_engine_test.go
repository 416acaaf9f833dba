package runtime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestSwarmOfOneNode runs tests of a swarm, which are named TestOnSwarm…, beside an engine of
// their own that is one: never on the engine that the tests share. That is what a service is asked
// and told to be; the stories, too, with GITRING_E2E_LONG. make swarm runs all on three engines.
func TestSwarmOfOneNode(t *testing.T) {
	engineOrSkip(t)
	if os.Getenv("GITRING_SWARM") != "" {
		t.Skip("a swarm is here")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may run engines")
	}
	for _, program := range []string{"dockerd", "docker", "ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
			t.Skip(program + " is not on this machine")
		}
	}
	t.Parallel()
	which := "^TestOnSwarmAService"
	if os.Getenv("GITRING_E2E_LONG") != "" {
		which = "^TestOnSwarm"
	}
	self, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "../scripts/swarm.sh", "1", self, "-test.run", which, "-test.timeout", "5m").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
	require.NotContains(t, string(out), "no tests to run")
}

// swarmOrSkip is the first manager of the swarm beside which the tests run.
func swarmOrSkip(t *testing.T) *client.Client {
	t.Helper()
	at := os.Getenv("GITRING_SWARM")
	if at == "" {
		t.Skip("GITRING_SWARM names no swarm: make swarm")
	}
	c, err := client.NewClientWithOpts(client.WithHost(at), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Whatever is asked is what the swarm then says of the service, field by field: what it made of
// it itself would be taken for somebody's hand, and put back for ever. Nothing runs of it.
func TestOnSwarmAServiceIsAsItWasAsked(t *testing.T) {
	c := swarmOrSkip(t)
	named := map[string]string{}
	for _, name := range []string{"shop_default", "shop_other"} {
		n, err := c.NetworkCreate(t.Context(), name, swarmNetwork("prod", "shop", ring.Network{Key: strings.TrimPrefix(name, "shop_")}))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.NetworkRemove(context.WithoutCancel(t.Context()), name) })
		named[n.ID] = name
	}
	config := swarmFile{Content: strings.Repeat("ab", 32), Path: "app.conf", Target: "/etc/app.conf", As: &ring.FileOwner{UID: 7, GID: 8, Mode: 0o440}}
	secret := swarmFile{Secret: true, Content: strings.Repeat("cd", 32), Path: "value", Target: "/run/secrets/db"}
	madeConfig, err := c.ConfigCreate(t.Context(), configSpec("prod", "shop", config, []byte("a=1")))
	require.NoError(t, err)
	madeSecret, err := c.SecretCreate(t.Context(), secretSpec("prod", "shop", secret, []byte("s3cret")))
	require.NoError(t, err)
	try := func(t *testing.T, a ring.Action) {
		a.Want.Replicas = 0
		sent, err := serviceSpec("prod", a, []swarmFile{config, secret})
		require.NoError(t, err)
		asked := canonical(&sent, nil) // of its own: the IDs come into the other
		sent.TaskTemplate.ContainerSpec.Configs[0].ConfigID = madeConfig.ID
		sent.TaskTemplate.ContainerSpec.Secrets[0].SecretID = madeSecret.ID
		made, err := c.ServiceCreate(t.Context(), sent, swarm.ServiceCreateOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.ServiceRemove(t.Context(), made.ID)) }()
		seen, _, err := c.ServiceInspectWithRaw(t.Context(), made.ID, swarm.ServiceInspectOptions{})
		require.NoError(t, err)
		require.Equal(t, flatOf(asked), flatOf(canonical(&seen.Spec, named)))
		require.Equal(t, sent.Labels[labelSent], sentHash(&seen.Spec, named), "it is not taken for changed by hand")
	}
	t.Run("as it is", func(t *testing.T) { try(t, swarmAction()) })
	for _, k := range SwarmKeys() {
		// Of the same shape, but made up: no engine takes them.
		if len(k.To) == 0 || slices.Contains([]string{"user", "cluster.constraints[]", "cluster.spread[]", "dns[]", "mounts[].propagation", "ulimits[].name"}, k.Field) {
			continue
		}
		t.Run(k.Field, func(t *testing.T) {
			a := swarmAction()
			changeField(t, &a.Want.Spec, k.Field)
			try(t, a)
		})
	}
	for name, change := range map[string]func(s *ring.Spec){
		"a user":        func(s *ring.Spec) { s.User = "1000:1000" },
		"constraints":   func(s *ring.Spec) { s.Cluster.Constraints = []string{"node.labels.disk==ssd", "node.role != manager"} },
		"preferences":   func(s *ring.Spec) { s.Cluster.Spread = []string{"node.labels.zone"} },
		"name servers":  func(s *ring.Spec) { s.DNS = []string{"10.0.0.53"} },
		"a propagation": func(s *ring.Spec) { s.Mounts[1].Propagation = "rslave" },
		"a limit":       func(s *ring.Spec) { s.Ulimits[0].Name = "core" },
		"a driver": func(s *ring.Spec) {
			s.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "data", Target: "/d", NoCopy: true}}
		},
		"two networks": func(s *ring.Spec) {
			s.Networks = []ring.Attachment{{Network: "other", Aliases: []string{"b", "a"}}, {Network: "default"}}
		},
		"no network at all": func(s *ring.Spec) { s.Networks = nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := swarmAction()
			change(&a.Want.Spec)
			try(t, a)
		})
	}
	nets, err := c.NetworkList(t.Context(), network.ListOptions{})
	require.NoError(t, err)
	for _, n := range nets {
		if named[n.ID] != "" {
			require.Equal(t, "overlay", n.Driver)
			require.Equal(t, "swarm", n.Scope)
		}
	}
}
