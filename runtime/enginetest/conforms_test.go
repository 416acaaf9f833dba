package enginetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachStoryHasANameThatCanBeAFolder(t *testing.T) {
	names := map[string]bool{}
	for _, s := range slices.Concat(HostStories(), InstanceStories()) {
		require.False(t, strings.ContainsAny(s.name, ",:/"), s.name)
		require.False(t, names[s.name], s.name)
		names[s.name] = true
	}
}

func TestEachCapabilityIsNeededByAStory(t *testing.T) {
	var needed []Capability
	for _, s := range slices.Concat(HostStories(), InstanceStories()) {
		needed = append(needed, s.needs...)
	}
	require.ElementsMatch(t, Capabilities, needed)
}
