package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// opens is a call to the kernel by which a file was opened, as strace writes it, and its path. A call
// that another one came between ends in a line of its own.
var opens = regexp.MustCompile(`(?:openat2?|open|creat)(?:\(| resumed>).*\) = \d+<([^>]*)>`)

// opensWhile are the files that the daemon and the programs that it runs open while do runs.
func (h *host) opensWhile(do func()) (paths []string) {
	h.t.Helper()
	into := filepath.Join(h.t.TempDir(), "opens")
	stop := h.traced("-y", "-e", "trace=open,openat,openat2,creat", "-o", into)
	do()
	stop()
	body, err := os.ReadFile(into)
	require.NoError(h.t, err)
	for _, m := range opens.FindAllStringSubmatch(string(body), -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// Of an app that has values of all four sources, a look that changes nothing opens no file that
// holds a value, a key or ciphertext. Looks are counted by what the engine is asked for, so that no
// question to the daemon opens any.
func TestALookThatChangesNothingOpensNoFileOfSecrets(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace here: scripts/needs.sh names what tests need")
	}
	t.Parallel()
	h := newHost(t)
	recipient := h.secretSources(t)
	c := newCutter(t, h)
	h.config["engine"] = obj{"kind": "docker", "url": c.at}
	of := &rotation{host: h, app: h.app("shop"), recipient: recipient}
	sha := of.next()
	h.start()
	of.live(sha)
	settled(h)
	looked := func(n int64) func() {
		return func() {
			before := c.lists.Load()
			h.until("it looked", func() bool { return c.lists.Load() >= before+n })
		}
	}
	ofSecrets := func(paths []string) (found []string) {
		for _, p := range paths {
			name, below := strings.CutPrefix(p, h.dir+"/")
			kept := strings.HasPrefix(name, "state/git/prod/objects/") && !strings.Contains(name, sha[2:]) && !strings.HasSuffix(name, "/pack")
			if below && (kept || holdsSecrets.MatchString(name)) {
				found = append(found, name)
			}
		}
		return found
	}
	looked(4)() // the folder of values is read once more while it is new
	paths := h.opensWhile(looked(6))
	require.NotEmpty(t, paths, "the test sees what is opened")
	require.Empty(t, ofSecrets(paths))
	t.Logf("in 6 looks that change nothing: %d", len(paths))

	// The test would see them: another value of each source.
	paths = h.opensWhile(func() {
		sha = of.next()
		_, _ = h.run("secret", "refresh", of.app)
		of.live(sha)
	})
	found := strings.Join(ofSecrets(paths), "\n")
	for _, file := range []string{"env/" + of.app + "/.env", "vault", "state/ciphertext/", "state/secrets/", "state/git/prod/objects/"} {
		require.Contains(t, found, file)
	}
}

// holdsSecrets are the places below a host's folder where values, keys and ciphertext lie. The
// folder of placed files is listed now and then, and none of them is opened.
var holdsSecrets = regexp.MustCompile(`^(env|vault|age|state/(ciphertext|sealed|secrets/.|env\.key))`)
