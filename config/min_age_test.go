package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/policy"
)

func TestMinAgeIsATimeOfTheHostsOwn(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "72h": 72 * time.Hour, "3d": 72 * time.Hour, "90m": 90 * time.Minute} {
		l := policy.ListsOf(policy.Compose)
		wrong, _ := PolicySettings["images.min_age"](&l, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
		require.Empty(t, wrong, text)
		require.Equal(t, want, time.Duration(l.MinAge)*time.Second)
	}
	for _, text := range []string{"", "soon", "-1h", "72", "9000h"} {
		l := policy.ListsOf(policy.Compose)
		wrong, hint := PolicySettings["images.min_age"](&l, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
		require.NotEmpty(t, wrong, text)
		require.Contains(t, hint, "72h")
		require.Zero(t, l.MinAge)
	}
}
