package gitring_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// forgeFlow is all that the files of forges say: a key beside these is a mistake.
type forgeFlow struct {
	Name string
	On   struct {
		Push struct {
			Branches []string
		}
		PullRequest any `yaml:"pull_request"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn  string `yaml:"runs-on"`
		Timeout int    `yaml:"timeout-minutes"`
		Steps   []struct {
			Uses, Run string
			With      map[string]any
		}
	}
}

// pinned is an action with the version that it is taken in.
var pinned = regexp.MustCompile(`^(https://code\.forgejo\.org/)?actions/(checkout|setup-go)@(v\d+(\.\d+)*|[0-9a-f]{40})$`)

// What a forge runs is what .ci/run runs, and nothing beside it. A forge's token may only read.
func TestForgesOnlyCallTheRunScript(t *testing.T) {
	for file, runner := range map[string]string{".github/workflows/ci.yml": "ubuntu-24.04", ".forgejo/workflows/ci.yml": "docker"} {
		var flow forgeFlow
		known := yaml.NewDecoder(bytes.NewReader([]byte(read(t, file))))
		known.KnownFields(true)
		require.NoError(t, known.Decode(&flow), file)
		require.Equal(t, []string{"main"}, flow.On.Push.Branches, file)
		require.Len(t, flow.Jobs, 1, file)
		job := flow.Jobs["run"]
		require.Equal(t, runner, job.RunsOn, file)
		require.Positive(t, job.Timeout, file)
		var runs []string
		for _, s := range job.Steps {
			require.NotEqual(t, s.Uses == "", s.Run == "", "%s: a step uses an action or runs something", file)
			if s.Run != "" {
				runs = append(runs, s.Run)
				continue
			}
			require.Regexp(t, pinned, s.Uses, file)
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
