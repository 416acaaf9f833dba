package scripts_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each says a line, waits for the other one where it can, and ends as the case has it.
func TestWhatRunsBesideFailsTheWhole(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		code                int
		fails               []string
	}{
		{"both pass", "exit 0", "exit 0", 0, nil},
		{"the first one fails", "exit 3", "exit 0", 3, []string{"failed with 3: sh -c echo one"}},
		{"the second one fails", "exit 0", "exit 4", 4, []string{"failed with 4: sh -c echo two"}},
		{"both fail", "exit 3", "exit 4", 3, []string{"failed with 4: sh -c echo two", "failed with 3: sh -c echo one"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "./beside.sh", "sh", "-c", "echo one; echo of it >&2; "+c.first, "--", "sh", "-c", "echo two; "+c.second)
			out, _ := cmd.CombinedOutput()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", out)
			said := string(out)
			require.Contains(t, said, "two\n")
			require.Contains(t, said, "one\nof it\n", "what ran beside is shown whole")
			require.Less(t, strings.Index(said, "two\n"), strings.Index(said, "one\n"), "and behind the other one")
			require.Equal(t, len(c.fails), strings.Count(said, "==> failed"))
			for _, f := range c.fails {
				require.Contains(t, said, f)
			}
		})
	}
}

// They run at the same time: each waits for a line that only the other one writes.
func TestWhatRunsBesideRunsAtTheSameTime(t *testing.T) {
	pipes := t.TempDir()
	require.NoError(t, exec.Command("mkfifo", pipes+"/a", pipes+"/b").Run())
	cmd := exec.CommandContext(t.Context(), "./beside.sh", "sh", "-c", "echo x >"+pipes+"/a; read y <"+pipes+"/b", "--", "sh", "-c", "read x <"+pipes+"/a; echo y >"+pipes+"/b")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
