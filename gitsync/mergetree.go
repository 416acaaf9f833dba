package gitsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// mergeTime bounds one run; merging what people change takes milliseconds.
const mergeTime = 60 * time.Second

// mergeTree is mergeIn with the host's folder for what is gone soon.
func mergeTree(ctx context.Context, ours, theirs ring.SHA, objects ...string) (ring.SHA, error) {
	return mergeIn(ctx, "", ours, theirs, objects...)
}

// mergeIn is the tree of the conflict-free merge of two commits, by the git of
// the host. It is only ever compared with a tree that somebody else made, and is
// asked for only when both commits are trusted, so no bytes of strangers reach
// that git but the shape of history.
//
// Git runs in a repository of its own, in the folder scratch, that has nothing but
// the object folders given, which it does not write to. No configuration,
// attributes, hooks, grafts, replacements or prompts of the host or of the
// repositories count.
//
// Renames, their limit and folders that moved are left at git's defaults, because
// the forges leave them there: with others the trees would differ where somebody
// moved a file. core.commitGraph and core.multiPackIndex are off, because those
// files say things about commits that are not hashed. merge.renormalize is off,
// as is git's default, so that no attribute of a tree turns into a change.
func mergeIn(ctx context.Context, scratch string, ours, theirs ring.SHA, objects ...string) (tree ring.SHA, err error) {
	git, err := gitThatMerges(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(scratch, "gitring-merge-")
	if err != nil {
		return "", fmt.Errorf("cannot merge: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); err == nil && gone != nil {
			err = fmt.Errorf("cannot remove %s: %w", dir, gone)
		}
	}()
	return mergeAt(ctx, git, dir, ours, theirs, objects...)
}

// mergeAt leaves what git made in dir, an empty folder: the tree can be read there.
func mergeAt(ctx context.Context, git, dir string, ours, theirs ring.SHA, objects ...string) (ring.SHA, error) {
	if err := bareRepository(dir); err != nil {
		return "", fmt.Errorf("cannot merge: %w", err)
	}
	said, status, err := runGit(ctx, git, gitEnviron(dir, objects),
		"-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false", "-c", "merge.renormalize=false",
		"merge-tree", "--write-tree", "--no-messages", string(ours), string(theirs))
	if err != nil {
		return "", fmt.Errorf("cannot merge %s and %s: %w", ours.Short(), theirs.Short(), err)
	}
	// A conflict has a tree too, with marks in its files; git also ends with 1 when
	// it cannot read a commit, and then there is none.
	line, _, _ := strings.Cut(string(said.out.b), "\n")
	switch made := idForm.MatchString(line); {
	case made && status == 0:
		return ring.SHA(line), nil
	case made && status == 1:
		return "", ErrConflict
	case bytes.Contains(said.err.b, []byte("refusing to merge unrelated histories")):
		return "", ErrConflict // no forge lands what has no common beginning
	}
	return "", fmt.Errorf("cannot merge %s and %s: git merge-tree ends with %d: %s", ours.Short(), theirs.Short(), status, oneLine(said.err.b))
}

var gitVersion = regexp.MustCompile(`^git version ([0-9]{1,4})\.([0-9]{1,4})`)

// gitThatMerges is git on the PATH of the daemon, if it is new enough. It is
// looked for each time: installing it cures a refusal.
func gitThatMerges(ctx context.Context) (string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return "", ErrNoMergeTree
	}
	said, status, err := runGit(ctx, git, gitEnviron("/nonexistent", nil), "--version")
	if err != nil {
		return "", fmt.Errorf("cannot ask %s for its version: %w", git, err)
	}
	m := gitVersion.FindSubmatch(said.out.b)
	if status != 0 || m == nil {
		return "", ErrNoMergeTree
	}
	major, _ := strconv.Atoi(string(m[1])) // four digits at most
	minor, _ := strconv.Atoi(string(m[2]))
	if major < 2 || major == 2 && minor < 38 {
		return "", ErrNoMergeTree
	}
	return git, nil
}

func bareRepository(dir string) error {
	for _, sub := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), 0o600)
}

// gitEnviron is the whole environment: nothing of the daemon's own is handed on.
func gitEnviron(dir string, objects []string) []string {
	var quoted []string
	for _, o := range objects { // a colon separates the folders
		if _, err := os.Stat(o); err == nil {
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(o)+`"`)
		}
	}
	return []string{
		"LC_ALL=C", "TZ=UTC", "PATH=/nonexistent", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_DIR=" + dir, "GIT_OBJECT_DIRECTORY=" + filepath.Join(dir, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, ":"),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_GRAFT_FILE=/dev/null", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=",
	}
}

// spoken is what a run wrote, the beginning of each.
type spoken struct{ out, err tail }

func runGit(ctx context.Context, git string, env []string, args ...string) (*spoken, int, error) {
	ctx, cancel := context.WithTimeout(ctx, mergeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, args...)
	said := &spoken{}
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", env, bytes.NewReader(nil), &said.out, &said.err
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return said, 0, fmt.Errorf("git does not end: %w", ctx.Err())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return said, exit.ExitCode(), nil
	}
	return said, 0, err
}
