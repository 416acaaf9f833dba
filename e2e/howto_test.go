package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A howto is what the commands of a page of docs/how-to need of the world. The page's own
// lines are run, in their order, and each has to exit with 0.
type howto struct {
	begin func(d *desk) // makes the world in which the page begins
	steps []step        // the lines that need more, in the page's order
}

// A step is a line of the page that is not only run.
type step struct {
	line    string // as the page has it, without its comment
	why     string // it is not run, and why
	as      string // what the reader types in its place, where the page has a blank to fill in
	exit    int
	before  func(d *desk)
	instead func(d *desk) // what the test does in its place
	after   func(d *desk, out string)
}

// A desk is where a person sits who follows a page: a shell in a clone, and a host
// whose files lie in a folder of the test.
type desk struct {
	*host
	at    string            // the shell's folder
	path  string            // of programs, before the machine's own
	words map[string]string // what the page calls a thing, and what it is called here
	shell func(line string) *exec.Cmd
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	h := newHost(t)
	d := &desk{host: h, at: h.repo.work, path: filepath.Join(h.dir, "bin"), words: map[string]string{}}
	require.NoError(t, os.MkdirAll(d.path, 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "home", ".ssh"), 0o700))
	b, err := os.ReadFile(binary)
	require.NoError(t, err)
	d.program("gitring", string(b))
	// It runs what it is given, as whoever runs the test.
	d.program("sudo", "#!/bin/sh\nwhile :; do case $1 in -u) shift 2;; -*) shift;; *) break;; esac; done\nexec \"$@\"\n")
	d.says("/usr/bin/gitring", filepath.Join(d.path, "gitring"))
	h.etc = filepath.Join(h.dir, "etc")
	require.NoError(t, os.MkdirAll(h.etc, 0o755))
	signers := filepath.Join(h.etc, "allowed_signers")
	require.NoError(t, os.Rename(h.repo.signers, signers))
	h.repo.signers = signers
	h.source()["trust"].(obj)["allowed_signers"] = signers
	h.writeConfig()
	d.says("/etc/gitring", h.etc)
	d.says("/var/lib/gitring", filepath.Join(h.dir, "state"))
	d.says("/srv/gitring", filepath.Join(h.dir, "data"))
	d.says("-o gitring -g gitring ", "") // there is no such user here
	d.shell = func(line string) *exec.Cmd {
		// The shell's folder is that of the line before.
		cmd := exec.Command("sh", "-c", "trap 'pwd > \"$HOME/.pwd\"' EXIT\n"+line)
		cmd.Dir = d.at
		cmd.Env = append(bareEnviron(), "PATH="+d.path+":"+os.Getenv("PATH"), "HOME="+filepath.Join(h.dir, "home"), "GITRING_SOCKET="+h.socket, "GITRING_CONFIG="+h.configFile(), "DOCKER_HOST="+h.engine.url,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true")
		return cmd
	}
	return d
}

// program puts a program where the shell looks first.
func (d *desk) program(name, text string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(filepath.Join(d.path, name), []byte(text), 0o755))
}

// daemonIs says which program the daemon is, and who asks it.
func (d *desk) daemonIs(program string) { d.host.program = program }

// says: what the page calls by the one name is called by the other here.
func (d *desk) says(page, here string) { d.words[page] = here }

var aWord = regexp.MustCompile(`^\w+$`)

// here is a line of the page in the words of this host. Of two names that fit, the longer
// one counts.
func (d *desk) here(line string) string {
	names := slices.SortedFunc(maps.Keys(d.words), func(a, b string) int { return len(b) - len(a) })
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
		if aWord.MatchString(name) {
			names[i] = `\b` + name + `\b`
		}
	}
	return regexp.MustCompile(strings.Join(names, "|")).ReplaceAllStringFunc(line, func(name string) string { return d.words[name] })
}

// ofSystemd are the lines for systemd, of which a test has none: they are done to the
// daemon of the test.
var ofSystemd = regexp.MustCompile(`^(?:sudo )?systemctl (enable --now|start|stop|restart|disable --now|reload) gitring$`)

// types runs a line as the page has it.
func (d *desk) types(line string) (code int, out string) {
	d.t.Helper()
	if m := ofSystemd.FindStringSubmatch(line); m != nil {
		switch m[1] {
		case "restart":
			require.NoError(d.t, d.stop())
			d.start()
		case "stop", "disable --now":
			require.NoError(d.t, d.stop())
		case "reload":
			require.FailNow(d.t, "no page reloads yet")
		default:
			d.start()
		}
		return 0, ""
	}
	cmd := d.shell(d.here(line))
	b, err := cmd.CombinedOutput()
	if at, failed := os.ReadFile(filepath.Join(d.dir, "home", ".pwd")); failed == nil {
		d.at = strings.TrimSpace(string(at))
	}
	if cmd.ProcessState == nil {
		require.NoError(d.t, err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

var (
	block    = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	comment  = regexp.MustCompile(`\s+# .*$`)
	howtoDir = filepath.Join("..", "docs", "how-to")
)

// commandsOf are the lines of the blocks that are for a shell, without comments; a line
// that ends in a backslash goes on in the next one. A block that begins with #! is a file.
func commandsOf(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(howtoDir, page))
	require.NoError(t, err)
	return commandsIn(string(text))
}

func commandsIn(text string) (lines []string) {
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(strings.TrimSpace(m[1]), "#!") {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(m[1], "\\\n", "")) {
			line = strings.TrimSpace(comment.ReplaceAllString(strings.TrimRight(line, "\n"), ""))
			if line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// Who follows a page of docs/how-to line by line gets through.
func TestWhoFollowsAHowToGetsThrough(t *testing.T) {
	t.Parallel()
	for page, of := range howtos {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			of.begin(d)
			steps := of.steps
			for _, line := range commandsOf(t, page) {
				var s step
				if len(steps) > 0 && steps[0].line == line {
					s, steps = steps[0], steps[1:]
				}
				if s.before != nil {
					s.before(d)
				}
				if s.why != "" {
					t.Logf("not run, %s: %s", s.why, line)
					continue
				}
				if s.as != "" {
					line = s.as
				}
				if s.instead != nil {
					s.instead(d)
					continue
				}
				code, out := d.types(line)
				t.Logf("$ %s\n%s", line, out)
				require.Equal(t, s.exit, code, "%s\n%s", line, out)
				if s.after != nil {
					s.after(d, out)
				}
			}
			require.Empty(t, steps, "%s has no such line, or in another place", page)
		})
	}
}

// Each page with commands is followed, or says here why it is not.
func TestEachHowToIsFollowedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(howtoDir, "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	seen := map[string]bool{}
	run, left := 0, 0
	for _, path := range paths {
		page := filepath.Base(path)
		seen[page] = true
		lines := commandsOf(t, page)
		of, followed := howtos[page]
		switch {
		case len(lines) == 0:
			require.False(t, followed, "%s has no command", page)
			require.Empty(t, notFollowed[page], "%s has no command", page)
		case followed:
			require.Empty(t, notFollowed[page], page)
			run += len(lines)
			for _, s := range of.steps {
				if s.why != "" {
					run, left = run-1, left+1
				}
			}
		default:
			require.NotEmpty(t, notFollowed[page], "%s has commands: say in howtos what they need, or in notFollowed why they cannot run", page)
			left += len(lines)
		}
	}
	for page := range howtos {
		require.True(t, seen[page], "there is no page %s", page)
	}
	for page := range notFollowed {
		require.True(t, seen[page], "there is no page %s", page)
	}
	t.Logf("%d commands of the how-to pages are run, %d are not", run, left)
}

// The packaged daemon runs as the user gitring, and reads no file of root's that is closed to others.
func TestAFileThatIsMadeForTheDaemonIsTheDaemons(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(howtoDir, "*.md"))
	require.NoError(t, err)
	closed := regexp.MustCompile(`\binstall -m 0?600 .*/etc/gitring/`)
	seen := 0
	for _, path := range paths {
		for _, line := range commandsOf(t, filepath.Base(path)) {
			if closed.MatchString(line) {
				seen++
				require.Contains(t, line, "sudo install -m 0600 -o gitring -g gitring ", path)
			}
		}
	}
	require.NotZero(t, seen)
}

func TestCommandsOfAPageAreFound(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"one   two", "echo '#'", "three"}, commandsIn("```sh\none \\\n  two   # why\n\n# alone\necho '#'\n```\n```sh\n#!/bin/sh\nno\n```\n```\nno\n```\n- so:\n\n  ```sh\n  three\n  ```\n"))
}
