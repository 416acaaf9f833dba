package main

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
	"github.com/gitring/gitring/screen"
)

// clone is a repository that a person works in. Commits are written by the real
// git with that person's configuration, so that agents, smart cards and security
// keys work as they do everywhere else; nothing is judged by it.
type clone struct {
	person
	dir string // its top folder
}

// person is who works in a clone, as far as it has to do with them.
type person struct {
	errs   io.Writer // where git asks for a touch, and where a hook's words go
	now    func() time.Time
	notice func(format string, args ...any) // tells what is no result
}

// cloneAt is the clone of that top folder, not looked for.
func cloneAt(dir string, by person) *clone { return &clone{person: by, dir: dir} }

// openClone finds the clone that a folder is in.
func openClone(ctx context.Context, dir string, by person) (*clone, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, &exit.Failure{Code: exit.Error, Says: "cannot find git, which writes the commits of a clone", Hint: "install Git 2.34 or later"}
	}
	c := cloneAt(dir, by)
	top, err := c.git(ctx, "rev-parse", "--show-toplevel")
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
	c.dir = top
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

// git runs git in the clone and gives its output without the last line break.
func (c *clone) git(ctx context.Context, args ...string) (string, error) {
	return c.gitWith(ctx, nil, nil, args...)
}

// gitWith is git with an input and with more of an environment.
func (c *clone) gitWith(ctx context.Context, in io.Reader, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", c.dir}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = in
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	f, terminal := c.errs.(*os.File)
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
		said := &gitError{verb: verbOf(args), says: lastLine(errs.String()), out: out.String(), errs: errs.String()}
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

// lastLine is where git and gpg say what was wrong; advice comes before or is
// marked as such.
func lastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "hint:") {
			last = line
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(last, "fatal: "), "error: ")
}

// setting is one value of git's configuration; "" when nobody set it.
func (c *clone) setting(ctx context.Context, key string) string {
	v, err := c.git(ctx, "config", "--get", key)
	if err != nil {
		return ""
	}
	return v
}

// repo reads the clone as the daemon reads its mirror. It is opened anew for
// commits that git has just written.
func (c *clone) repo() (*gitsync.Repo, error) {
	repo, err := gitsync.OpenRepo(c.dir)
	if err != nil {
		return nil, &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone, or name one with --repo"}
	}
	return repo, nil
}

// commit is the full id of a revision.
func (c *clone) commit(ctx context.Context, rev string) (ring.SHA, error) {
	sha, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("cannot find %q in the repository of %s", rev, c.dir),
			Hint: "git log --oneline lists commits; a shallow clone does not have them all",
		}
	}
	return ring.SHA(sha), nil
}

// has reports whether the commit is in the clone.
func (c *clone) has(ctx context.Context, sha ring.SHA) bool {
	_, err := c.git(ctx, "cat-file", "-e", string(sha)+"^{commit}")
	return err == nil
}

// branch is the one that HEAD is on; "" when it is detached.
func (c *clone) branch(ctx context.Context) string {
	name, err := c.git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return ""
	}
	return name
}

// upstream is where a branch is pushed to.
type upstream struct {
	remote string
	ref    string   // refs/heads/…, there
	seen   ring.SHA // as last fetched; "" when never
}

// upstream of HEAD's branch; false when there is none.
func (c *clone) upstream(ctx context.Context) (upstream, bool) {
	branch := c.branch(ctx)
	if branch == "" {
		return upstream{}, false
	}
	up := upstream{remote: c.setting(ctx, "branch."+branch+".remote"), ref: c.setting(ctx, "branch."+branch+".merge")}
	if up.remote == "" || up.ref == "" {
		return upstream{}, false
	}
	if sha, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "@{upstream}^{commit}"); err == nil {
		up.seen = ring.SHA(sha)
	}
	return up, true
}

// pushable is upstream for who wants to push.
func (c *clone) pushable(ctx context.Context) (upstream, error) {
	up, ok := c.upstream(ctx)
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
func (c *clone) push(ctx context.Context, sha ring.SHA, up upstream) error {
	_, err := c.git(ctx, "push", "--quiet", up.remote, string(sha)+":"+up.ref)
	var said *gitError
	if !errors.As(err, &said) {
		return err
	}
	// A hook, here or there, tells why in as many lines as it likes.
	for line := range strings.Lines(said.out + said.errs) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			fmt.Fprintln(c.errs, screen.Clean(line))
		}
	}
	hint := "nothing was left behind; git pull --ff-only, and try again"
	if said.out != "" {
		hint = "nothing was left behind; a hook says above what is in the way"
	}
	return &exit.Failure{Code: exit.Conflict, Says: fmt.Sprintf("cannot push to %s of %s: %s", up.ref, up.remote, said.says), Hint: hint}
}
