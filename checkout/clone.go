package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Clone is a repository that a person works in. Commits are written by the real
// git with that person's configuration, so that agents, smart cards and security
// keys work as they do everywhere else; nothing is judged by it.
type Clone struct {
	Person
	Dir string // its top folder
}

// Person is who works in a clone, as far as it has to do with them.
type Person struct {
	Errs   io.Writer // where git asks for a touch, and where a hook's words go
	Now    func() time.Time
	Notice func(format string, args ...any) // tells what is no result
}

// At is the clone of that top folder, not looked for.
func At(dir string, by Person) *Clone { return &Clone{Person: by, Dir: dir} }

// Open finds the clone that a folder is in.
func Open(ctx context.Context, dir string, by Person) (*Clone, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, &exit.Failure{Code: exit.Error, Says: "cannot find git, which writes the commits of a clone", Hint: "install Git 2.34 or later"}
	}
	c := At(dir, by)
	top, err := c.Git(ctx, "rev-parse", "--show-toplevel")
	var said *gitError
	switch {
	case errors.As(err, &said) && !strings.Contains(said.says, "not a git repository"):
		return nil, &exit.Failure{Code: exit.Error, Says: fmt.Sprintf("cannot use the clone of %s: %s", dir, said.says), Hint: "git status there says more"}
	case err != nil:
		return nil, &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("cannot open repository: neither %s nor a folder above it is a clone", dir),
			Hint: "run it inside a clone, or name one with --repo",
		}
	}
	c.Dir = top
	return c, nil
}

// A gitError is what git said when it said no.
type gitError struct {
	verb string
	says string
	out  string // what it printed to stdout: a hook's words
	errs string // and to stderr; "" where it went to the terminal as it came
}

func (e *gitError) Error() string {
	return strings.TrimSuffix("git "+e.verb+": "+e.says, ": ")
}

// Git runs git in the clone and gives its output without the last line break.
func (c *Clone) Git(ctx context.Context, args ...string) (string, error) {
	return c.gitWith(ctx, nil, nil, args...)
}

// gitWith is git with an input and with more of an environment.
func (c *Clone) gitWith(ctx context.Context, in io.Reader, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", c.Dir}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = in
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	f, terminal := c.Errs.(*os.File)
	// Who only asks Git something says itself what the answer means.
	speaks := slices.Contains([]string{"commit-tree", "push", "fetch"}, verbOf(args))
	if terminal = terminal && speaks && term.IsTerminal(int(f.Fd())); terminal {
		cmd.Stderr = io.MultiWriter(f, &errs) // who is asked for a touch has to see it
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		said := &gitError{verb: verbOf(args), says: LastLine(errs.String()), out: out.String(), errs: errs.String()}
		if terminal {
			said.errs = ""
		}
		return "", said
	case err != nil:
		return "", fmt.Errorf("cannot run git: %w", err)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// verbOf is the first word that is no flag of git itself.
func verbOf(args []string) string {
	for i := 0; i < len(args); i++ {
		if args[i] == "-c" {
			i++
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
	}
	return ""
}

// LastLine is where git and gpg say what was wrong; advice comes before or is
// marked as such.
func LastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "hint:") {
			last = line
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(last, "fatal: "), "error: ")
}

// Setting is one value of git's configuration; "" when nobody set it.
func (c *Clone) Setting(ctx context.Context, key string) string {
	v, err := c.Git(ctx, "config", "--get", key)
	if err != nil {
		return ""
	}
	return v
}

// Repo reads the clone as the daemon reads its mirror. It is opened anew for
// commits that git has just written.
func (c *Clone) Repo() (*gitsync.Repo, error) {
	repo, err := gitsync.OpenRepo(c.Dir)
	if err != nil {
		return nil, &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone, or name one with --repo"}
	}
	return repo, nil
}

// CommitOf is the full id of a revision.
func (c *Clone) CommitOf(ctx context.Context, rev string) (ring.SHA, error) {
	sha, err := c.Git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("cannot find %q in the repository of %s", rev, c.Dir),
			Hint: "git log --oneline lists commits; a shallow clone does not have them all",
		}
	}
	return ring.SHA(sha), nil
}

// has reports whether the commit is in the clone.
func (c *Clone) has(ctx context.Context, sha ring.SHA) bool {
	_, err := c.Git(ctx, "cat-file", "-e", string(sha)+"^{commit}")
	return err == nil
}

// Branch is the one that HEAD is on; "" when it is detached.
func (c *Clone) Branch(ctx context.Context) string {
	name, err := c.Git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return ""
	}
	return name
}

// Upstream is where a branch is pushed to.
type Upstream struct {
	Remote string
	Ref    string   // refs/heads/…, there
	seen   ring.SHA // as last fetched; "" when never
}

// Upstream of HEAD's branch; false when there is none.
func (c *Clone) Upstream(ctx context.Context) (Upstream, bool) {
	branch := c.Branch(ctx)
	if branch == "" {
		return Upstream{}, false
	}
	up := Upstream{Remote: c.Setting(ctx, "branch."+branch+".remote"), Ref: c.Setting(ctx, "branch."+branch+".merge")}
	if up.Remote == "" || up.Ref == "" {
		return Upstream{}, false
	}
	if sha, err := c.Git(ctx, "rev-parse", "--verify", "--quiet", "@{upstream}^{commit}"); err == nil {
		up.seen = ring.SHA(sha)
	}
	return up, true
}

// pushable is upstream for who wants to push.
func (c *Clone) pushable(ctx context.Context) (Upstream, error) {
	up, ok := c.Upstream(ctx)
	if !ok {
		return up, &exit.Failure{
			Code: exit.Conflict, Says: "the branch has no upstream to push to",
			Hint: "git push -u origin HEAD sets one; without --push only the commit is made",
		}
	}
	return up, nil
}

// push brings a commit to the upstream, never with force. It is pushed before
// any branch here moves, so that a push that fails leaves nothing behind.
func (c *Clone) push(ctx context.Context, sha ring.SHA, up Upstream) error {
	_, err := c.Git(ctx, "push", "--quiet", up.Remote, string(sha)+":"+up.Ref)
	var said *gitError
	if !errors.As(err, &said) {
		return err
	}
	// A hook, here or there, tells why in as many lines as it likes.
	for line := range strings.Lines(said.out + said.errs) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			fmt.Fprintln(c.Errs, wording.SafeLine(line))
		}
	}
	hint := "nothing was left behind; git pull --ff-only, and try again"
	if said.out != "" {
		hint = "nothing was left behind; a hook says above what is in the way"
	}
	return &exit.Failure{Code: exit.Conflict, Says: fmt.Sprintf("cannot push to %s of %s: %s", up.Ref, up.Remote, said.says), Hint: hint}
}
