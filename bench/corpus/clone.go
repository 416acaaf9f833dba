package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// composeNames are the names that Compose looks for, in its order.
var composeNames = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// servicesKey is how a Compose file of any name is told from other YAML.
var servicesKey = regexp.MustCompile(`(?m)^services:`)

// clonesIn are the folders of a folder, sorted.
func clonesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of clones: %w", err)
	}
	var clones []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			clones = append(clones, filepath.Join(dir, e.Name()))
		}
	}
	return clones, nil
}

// clone is what is read of one repository.
type clone struct {
	dir    string
	commit string   // "" where the folder is no clone
	files  []string // all files but Git's own, slash paths, sorted
}

// readClone lists what Git holds of the folder, or all of it where it is no clone.
func readClone(ctx context.Context, dir string) (clone, error) {
	c := clone{dir: dir}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		head, err := git(ctx, dir, "rev-parse", "HEAD")
		if err != nil {
			return c, err
		}
		list, err := git(ctx, dir, "ls-files", "-z")
		if err != nil {
			return c, err
		}
		c.commit = strings.TrimSpace(head)
		for name := range strings.SplitSeq(list, "\x00") {
			if info, err := os.Lstat(filepath.Join(dir, name)); name != "" && err == nil && !info.IsDir() {
				c.files = append(c.files, name)
			}
		}
		slices.Sort(c.files)
		return c, nil
	}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		c.files = append(c.files, filepath.ToSlash(rel))
		return err
	})
	return c, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cannot run git %s: %w: %s", args[0], err, says.String())
	}
	return out.String(), nil
}

// apps are the folders that hold a Compose file, with the first of its names.
// Folders whose name starts with a dot are no apps.
func (c clone) apps() map[string]string {
	apps := map[string]string{}
	for _, name := range composeNames {
		for _, f := range c.files {
			dir := path.Dir(f)
			if path.Base(f) != name || hidden(dir) || apps[dir] != "" {
				continue
			}
			apps[dir] = f
		}
	}
	return apps
}

var (
	includeKey  = regexp.MustCompile(`(?m)^include:[ \t]*(?:#.*)?\r?\n((?:[ \t]+.*\n|[ \t]*#.*\n|- .*\n|[ \t]*\r?\n)*)`)
	includeFile = regexp.MustCompile(`(?m)^[ \t]*- (?:path: *)?["']?([^"'#\s]+\.ya?ml)`)
)

// withoutIncluded are the apps without those whose file another one includes: Compose runs
// them as part of that, and so does gitring.
func (c clone) withoutIncluded(apps map[string]string) map[string]string {
	out := maps.Clone(apps)
	for folder, file := range apps {
		text, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(file)))
		if err != nil {
			continue
		}
		for _, list := range includeKey.FindAllStringSubmatch(string(text)+"\n", -1) {
			for _, m := range includeFile.FindAllStringSubmatch(list[1], -1) {
				if sub := path.Dir(path.Join(folder, m[1])); sub != folder {
					delete(out, sub)
				}
			}
		}
	}
	return out
}

func hidden(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool {
		return len(part) > 1 && strings.HasPrefix(part, ".")
	})
}

// elsewhere counts the files with services that have another name than Compose's.
func (c clone) elsewhere() (n int) {
	for _, f := range c.files {
		if ext := path.Ext(f); ext != ".yaml" && ext != ".yml" || slices.Contains(composeNames, path.Base(f)) || hidden(path.Dir(f)) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.dir, f))
		if err == nil && servicesKey.Match(text) {
			n++
		}
	}
	return n
}

// copyTo makes a copy of the files in a folder that exists. Links stay links.
func (c clone) copyTo(to string) error {
	for _, f := range c.files {
		source, target := filepath.Join(c.dir, f), filepath.Join(to, f)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		info, err := os.Lstat(source)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			leads, err := os.Readlink(source)
			if err != nil {
				return err
			}
			if err := os.Symlink(leads, target); err != nil {
				return err
			}
			continue
		}
		if !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, text, info.Mode().Perm()|0o600); err != nil {
			return err
		}
	}
	return nil
}
