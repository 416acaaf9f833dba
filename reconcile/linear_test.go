package reconcile

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host ten times as large takes ten times the work: not measured in time, which
// other programs stretch, but counted, as the statements of this package and of
// ring that are carried out. The host of the test is part of it, and linear but
// for its lists of instances, which no statement goes through.
func TestADecisionGrowsNoFasterThanTheHost(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a test program")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "work")
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { // all tests of this package take longer to compile than to run
		return strings.HasSuffix(f, "_test.go") && f != "big_test.go" && f != "work_test.go"
	})
	args := []string{"test", "-c", "-o", program, "-covermode=count", "-coverpkg=command-line-arguments,github.com/gitring/gitring/ring"}
	build := exec.Command("go", append(args, files...)...)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	count := func(services int, what string) int {
		profile := filepath.Join(dir, "profile")
		run := exec.Command(program, "-test.run", "^TestWork$", "-test.coverprofile", profile)
		run.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", workEnv, services, what))
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return statements(t, profile)
	}
	for _, what := range []string{"first", "roll", "leave"} {
		small, large := count(40, what), count(400, what)
		t.Logf("%s: %d statements for 40 services, %d for 400: %.1f times", what, small, large, float64(large)/float64(small))
		require.Less(t, large, small*11, "%s: the work grows faster than the host", what)
	}
}

// statements counts what a profile says was carried out. A line of it is
// "file:from,to statements times".
func statements(t *testing.T, profile string) (total int) {
	f, err := os.Open(profile)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			continue // its head
		}
		n, err := strconv.Atoi(words[1])
		require.NoError(t, err)
		times, err := strconv.Atoi(words[2])
		require.NoError(t, err)
		total += n * times
	}
	return total
}
