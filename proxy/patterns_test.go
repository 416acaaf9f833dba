package proxy

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two processes of each front keep what a package does as it begins. A pattern of long names was
// a quarter of a megabyte in each.
func TestTheProgramOfAFrontCompilesNoPattern(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../cmd/front").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/gitring/gitring/proxy")
	require.NotContains(t, deps, "regexp")
}
