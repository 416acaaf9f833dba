package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// askCompose asks Docker Compose which of the files it takes, with the same
// answers: the host's values lie where Compose looks for them.
func (m *measurement) askCompose(ctx context.Context, r *repo) error {
	if err := m.placeHostFiles(); err != nil {
		return err
	}
	for i := range r.Apps {
		a := &r.Apps[i]
		cmd := exec.CommandContext(ctx, m.compose, "config", "-q")
		cmd.Dir = filepath.Join(m.work, a.Folder)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
		var says bytes.Buffer
		cmd.Stderr = &says
		err := cmd.Run()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		takes := err == nil
		a.Compose = &takes
		if !takes {
			a.ComposeSays = strings.ReplaceAll(lastLine(says.String()), m.work+"/", "")
		}
	}
	return nil
}

// placeHostFiles puts the host's files where Compose looks for them. A file of
// the commit keeps its lines, and the host's win over them.
func (m *measurement) placeHostFiles() error {
	for file, stands := range m.answers.stands {
		target := filepath.Join(m.work, filepath.FromSlash(stands))
		if !filepath.IsLocal(filepath.FromSlash(stands)) {
			continue
		}
		if info, err := os.Lstat(target); err == nil && !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(target)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, fmt.Appendf(text, "\n%s", lines(m.answers.files[file])), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func lastLine(s string) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return all[len(all)-1]
}
