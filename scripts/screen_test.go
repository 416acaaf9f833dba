package scripts_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var heredoc = regexp.MustCompile(`(?s)<<-TEXT\n(.*?)\n\t*TEXT\n`)

// What newcomers see first fits a terminal of 80 columns: the help of make, and what the demo says.
func TestWhatScriptsSayFitsATerminal(t *testing.T) {
	fits := func(what, text string) {
		for line := range strings.SplitSeq(text, "\n") {
			require.LessOrEqual(t, len([]rune(line)), 80, "%s: %s", what, line)
		}
	}
	help, err := exec.Command("make", "-s", "-C", "..", "help").Output()
	require.NoError(t, err)
	fits("make help", string(help))
	for _, target := range []string{"demo", "test", "dist-check", "mutants"} {
		require.Regexp(t, `(?m)^  `+target+` +\S`, string(help))
	}
	long := "a " + strings.Repeat("word ", 40) + "end"
	said, err := exec.Command("bash", "-c", `. ./say.sh; say "$1"; say "a   b"; say "$2"`, "say", long, "http://127.0.0.1:1/"+strings.Repeat("a", 90)).Output()
	require.NoError(t, err)
	require.Equal(t, strings.Fields(long), strings.Fields(string(said))[:42])
	require.Contains(t, string(said), "a   b\n")
	require.Contains(t, string(said), "/"+strings.Repeat("a", 90)+"\n", "an address stays whole")
	fits("say", strings.Split(string(said), "http")[0])
	for _, file := range []string{"demo.sh", "demo-fleet.sh"} {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, text := range heredoc.FindAllStringSubmatch(string(body), -1) {
			fits(file, strings.ReplaceAll(text[1], "\t", ""))
		}
	}
}
