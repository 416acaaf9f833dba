package daemon

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// CheckValues says what is wrong with the values that a configuration names, before a daemon
// starts with it: files of keys, providers, and the env folder itself. It makes nothing, and
// asks no provider. What is wrong with one app's values is that app's refusal, and no error.
func CheckValues(c *config.Config) error {
	user := userOf(c)
	if _, err := readSecretKeys(c, user); err != nil {
		return err
	}
	p, err := providersOf(c, slog.New(slog.DiscardHandler), user)
	if err != nil {
		return err
	}
	if p != nil {
		for _, name := range slices.Sorted(maps.Keys(p.of)) {
			program := p.of[name].Exec[0]
			if err := disk.OwnProgram(program, user(program)); err != nil {
				says := err.Error()
				if errors.Is(err, fs.ErrNotExist) {
					says = "there is no program " + program
				}
				return &ring.HostError{Says: "secrets.providers." + name + ": " + says, Hint: "exec begins with the path of a program that only root and the daemon's user can write", Err: err}
			}
		}
	}
	_, err = (&envFolder{dir: c.Env.Dir, user: user}).read()
	return err
}

// A fileUser says which user may own a file, beside root.
type fileUser func(path string) int

// self is the user that runs this program.
func self(string) int { return os.Geteuid() }

// userOf is the user that the daemon of a configuration runs as. Root may ask for another: the
// one that has the state folder. Before the first start there is none, and any may own a file.
func userOf(c *config.Config) fileUser {
	if os.Geteuid() != 0 {
		return self
	}
	if uid, ok := ownerOf(c.State); ok {
		return func(string) int { return uid }
	}
	return func(path string) int { uid, _ := ownerOf(path); return uid }
}

// ownerOf is who owns what lies at a path; not ok where nothing lies there.
func ownerOf(path string) (uid int, ok bool) {
	st, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	uid, _, ok = disk.OwnersOf(st)
	return uid, ok
}
