package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASwarmIsKnownByItsClustersName(t *testing.T) {
	body := strings.Replace(smallConfig, "host: edge-1", "host: edge-1\nengine: {kind: swarm, cluster: prod, key_file: cluster-key}", 1)
	c, err := Parse("/etc/gitring/config.yaml", []byte(body), env())
	require.NoError(t, err)
	require.Equal(t, EngineConfig{Kind: KindSwarm, URL: DefaultEngineURL, Cluster: "prod", KeyFile: "/etc/gitring/cluster-key"}, c.Engine)
	require.Equal(t, "prod", c.OwnerName())
	s := SettingsOf(c, c.Source("prod"))
	require.True(t, s.Swarm)
	require.Equal(t, "prod", s.Host, "each manager makes the same plan")

	c, err = Parse("/etc/gitring/config.yaml", []byte(smallConfig), env())
	require.NoError(t, err)
	require.Equal(t, "edge-1", c.OwnerName())
	require.False(t, SettingsOf(c, c.Source("prod")).Swarm)
}

func TestWhatIsWrongWithASwarmIsToldWithItsLine(t *testing.T) {
	for _, tt := range []struct{ engine, says, hint string }{
		{"{kind: swarm, key_file: k}", "c.yaml:2: engine.cluster is missing", "cluster: prod"},
		{"{kind: swarm, cluster: prod}", "c.yaml:2: engine.key_file is missing", "32 random bytes"},
		{"{kind: swarm, cluster: Prod, key_file: k}", `c.yaml:2: engine.cluster: "Prod" is no name for a swarm`, "lower-case"},
		{"{kind: swarm, cluster: " + strings.Repeat("a", 41) + ", key_file: k}", `is no name for a swarm`, "at most 40"},
		{"{kind: docker, cluster: prod}", "c.yaml:2: engine.cluster is of a swarm, and engine.kind is docker", "engine.kind: swarm"},
		{"{key_file: k}", "c.yaml:2: engine.key_file is of a swarm, and engine.kind is docker", "engine.kind: swarm"},
		{"{kind: swarm, cluster: prod, key_file: k}\nsecrets: {host_key_file: h}", "c.yaml:3: secrets.host_key_file", "take it out"},
		{"{kind: swarm, cluster: prod, keyfile: k}", "keyfile", ""},
	} {
		_, err := Parse("c.yaml", []byte(strings.Replace(smallConfig, "host: edge-1", "host: edge-1\nengine: "+tt.engine, 1)), env())
		require.ErrorContains(t, err, tt.says)
		var wrong Mistakes
		require.ErrorAs(t, err, &wrong)
		require.Len(t, wrong, 1)
		require.Contains(t, wrong[0].Hint, tt.hint)
	}
}
