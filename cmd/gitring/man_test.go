package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryCommandHasAManPage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, writeMan(program(), dir))
	for _, command := range leaves(program()) {
		name := "gitring-" + strings.ReplaceAll(command, " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		require.NoError(t, err, command)
		require.Contains(t, string(page), ".SH NAME\n"+strings.ReplaceAll(name, "-", `\-`)+` \- `)
		require.Contains(t, string(page), `\-\-socket`)
	}
	page, err := os.ReadFile(filepath.Join(dir, "gitring-scale.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), "gitring scale web/api=4 \\-\\-for 2h")
	require.NotContains(t, string(page), "\n.fi\n.SH EXAMPLES")
	for _, tool := range [][]string{{"mandoc", "-Tlint", "-Werror"}, {"groff", "-man", "-ww", "-z"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			continue
		}
		pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
		require.NoError(t, err)
		out, err := exec.Command(tool[0], append(tool[1:], pages...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Empty(t, string(out))
	}
}

func TestTextOfAManPageIsNoRequest(t *testing.T) {
	require.Equal(t, "\\&.env \\e\\-x\n\\&'q'", roff(".env \\-x\n'q'"))
	require.Equal(t, `\[u2026]`, roff("…"))
}
