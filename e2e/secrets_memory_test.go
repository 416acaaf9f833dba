package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// anonymous is the memory of the daemon's own, in KiB: what of its program is in memory depends
// on what the machine did before.
func (h *host) anonymous() int {
	h.t.Helper()
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.daemon.Process.Pid))
	require.NoError(h.t, err)
	for line := range strings.Lines(string(body)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			n, err := strconv.Atoi(f[1])
			require.NoError(h.t, err)
			return n
		}
	}
	return 0
}

// A hundred encrypted files of ten values each need little more memory at rest than a hundred in
// clear: at most 2 MiB, and as much again for what a collector leaves here and there.
func TestAHundredEncryptedFilesNeedLittleMemory(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("it waits for two daemons to rest: GITRING_E2E_LONG=1 asks for it")
	}
	atRest := func(sealed bool) int {
		h := newHost(t)
		recipient := h.secretSources(t)
		app := h.app("shop")
		fs, names := files{}, []any{}
		for i := range 100 {
			var lines strings.Builder
			for j := range 10 {
				fmt.Fprintf(&lines, "V%d_%d=a value of some length, as they are: %d\n", i, j, i*j)
			}
			name := fmt.Sprintf("v%d.env", i)
			names, fs[app+"/"+name] = append(names, name), lines.String()
			if sealed {
				fs[app+"/"+name] = encrypted(t, name, lines.String(), recipient)
			}
		}
		fs[app+"/compose.yaml"] = h.compose(app, obj{"web": web("1", obj{"env_file": names})})
		h.start()
		h.deployed("A hundred files", fs)
		least, tick := 0, time.NewTicker(time.Second)
		defer tick.Stop()
		for range 60 { // the least of a minute: a look in between leaves garbage
			<-tick.C
			if now := h.anonymous(); least == 0 || now < least {
				least = now
			}
		}
		return least
	}
	clear, sealed := atRest(false), atRest(true)
	t.Logf("a hundred files in clear: %d KiB, encrypted: %d KiB", clear, sealed)
	require.LessOrEqual(t, sealed-clear, 4<<10)
}
