package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
)

// hookMark is in every hook that gitring wrote; one without it is a stranger's.
const hookMark = "# gitring pre-push hook"

// WriteHook writes the hook of a clone. Where it would take the place of another one, the
// lines to add to that go to byHand.
func WriteHook(ctx context.Context, c *checkout.Clone, by checkout.Trustees, configFile string, byHand io.Writer) (file string, changed bool, err error) {
	script, err := hookScript(ctx, c, by, configFile)
	if err != nil {
		return "", false, err
	}
	file, shared, err := hookFile(ctx, c)
	if err != nil {
		return "", false, err
	}
	is, err := os.ReadFile(file)
	switch {
	case err == nil && string(is) == script:
		return file, false, nil
	case err == nil && !strings.Contains(string(is), hookMark):
		return file, false, addByHand(byHand, file, "is there already, and is not of gitring", script)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return file, false, fmt.Errorf("cannot read the hook that is there: %w", err)
	case shared:
		return file, false, addByHand(byHand, file, "would be the hook of every clone, because core.hooksPath is not of this one", script)
	}
	if err := writeWhole(file, script); err != nil {
		return file, false, err
	}
	if err := os.Chmod(file, 0o755); err != nil {
		return file, false, fmt.Errorf("cannot make %s run: %w", file, err)
	}
	return file, true, nil
}

// addByHand leaves a hook alone and says which lines do the same.
func addByHand(out io.Writer, file, why, script string) error {
	_, lines, _ := strings.Cut(script, hookMark+"\n")
	fmt.Fprint(out, lines)
	return &exit.Failure{Code: exit.Conflict, Says: file + " " + why, Hint: "add the lines above to it; git's lines on its stdin are theirs"}
}

// hookFile is where Git looks for the hook, and whether other clones look there.
func hookFile(ctx context.Context, c *checkout.Clone) (file string, shared bool, err error) {
	dir, err := c.Git(ctx, "rev-parse", "--git-path", "hooks")
	if err != nil {
		return "", false, err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.Dir, dir)
	}
	scope, err := c.Git(ctx, "config", "--show-scope", "--get", "core.hooksPath")
	shared = err == nil && !strings.HasPrefix(scope, "local") && !strings.HasPrefix(scope, "worktree")
	return filepath.Join(dir, "pre-push"), shared, nil
}

// hookScript runs verify, then validate, by whom the person named.
func hookScript(ctx context.Context, c *checkout.Clone, by checkout.Trustees, configFile string) (string, error) {
	trust, content, err := hookFlags(ctx, c, by, configFile)
	if err != nil {
		return "", err
	}
	binary, err := ownBinary()
	if err != nil {
		return "", err
	}
	return strings.Join([]string{
		"#!/bin/sh",
		hookMark,
		"# What hosts would refuse is not pushed; git push --no-verify pushes it all the same.",
		"gitring=" + quoted(binary),
		`[ -x "$gitring" ] || gitring=$(command -v gitring) || {`,
		`	printf '%s\n' ` + quoted("error: this push was not checked, because gitring is neither "+binary+" nor on PATH") +
			` ` + quoted("hint: install it and run gitring init --hook again, or push without the check: git push --no-verify") + ` >&2`,
		`	exit 1`,
		`}`,
		"pushed=$(cat)",
		`printf '%s\n' "$pushed" | "$gitring" verify --pre-push` + trust + " || exit",
		`printf '%s\n' "$pushed" | "$gitring" validate --pre-push` + content + " || exit",
		"",
	}, "\n"), nil
}

// ownBinary is this program as it was called: a link that stays where it is says
// more than what it leads to, which an update moves.
func ownBinary() (string, error) {
	file, err := exec.LookPath(os.Args[0])
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		file, err = os.Executable()
	}
	if err != nil {
		return "", fmt.Errorf("cannot find where gitring is: %w", err)
	}
	return file, nil
}

func hookFlags(ctx context.Context, c *checkout.Clone, by checkout.Trustees, file string) (trust, content string, err error) {
	if by.ByHand() {
		if file != "" {
			return "", "", &exit.Failure{Code: exit.Usage, Says: "--config and keys given by hand exclude each other", Hint: "keep one of the two"}
		}
		for _, k := range []struct{ flag, file string }{{" --allowed-signers ", by.AllowedSigners}, {" --openpgp-keys ", by.OpenPGPKeys}} {
			if k.file == "" {
				continue
			}
			abs, err := there(k.file)
			if err != nil {
				return "", "", err
			}
			trust += k.flag + quoted(abs)
		}
		if by.Branch != "" {
			content = " --branch " + quoted(by.Branch)
		}
		return trust + content, content, nil
	}
	if file == "" {
		file = c.Setting(ctx, checkout.ConfigSetting)
	}
	if file == "" {
		return "", "", &exit.Failure{
			Code: exit.Usage, Says: "nothing here says whom to trust",
			Hint: "name --config, or --allowed-signers or --openpgp-keys",
		}
	}
	if file, err = there(file); err != nil {
		return "", "", err
	}
	_, s, err := config.ReadSource(file, by.Source)
	if err != nil {
		return "", "", err
	}
	both := " --config " + quoted(file) + " --source " + quoted(s.Name)
	return both, both, nil
}

// there is the whole name of a file that is there.
func there(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		return "", fmt.Errorf("cannot use it in a hook: %w", err)
	}
	return abs, nil
}

// quoted is a word for a shell.
func quoted(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
