package gitring_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// What a forge runs is what .ci/run runs, and nothing beside it. A forge's token may only read.
func TestForgesOnlyCallTheRunScript(t *testing.T) {
	for _, file := range []string{".github/workflows/ci.yml", ".forgejo/workflows/ci.yml"} {
		var flow struct {
			Jobs map[string]struct {
				Steps []struct {
					Uses, Run string
					With      map[string]any
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &flow), file)
		require.Len(t, flow.Jobs, 1, file)
		var runs []string
		for _, s := range flow.Jobs["run"].Steps {
			if s.Run != "" {
				runs = append(runs, s.Run)
			}
			if strings.Contains(s.Uses, "actions/checkout@") {
				require.Equal(t, false, s.With["persist-credentials"], file)
			}
		}
		require.Len(t, runs, 1, file)
		require.True(t, strings.HasSuffix(runs[0], "bash .ci/run"), "%s runs %s", file, runs[0])
		require.NotContains(t, read(t, file), "pull_request_target", file)
	}
	require.Contains(t, read(t, ".github/workflows/ci.yml"), "permissions:\n  contents: read\n")
}
