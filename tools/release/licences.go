package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile is what projects call the files that their licences ask to be kept.
var licenceFile = regexp.MustCompile(`(?i)^(.*-)?(licen[cs]e|copying|notice|copyright|patents|unlicense)([.-].*)?$`)

// collectLicences is one text with the licence and notice files of every module that is
// linked into the target's program, and of Go itself. A module without one is an error.
func collectLicences(source string, t target) ([]byte, error) {
	packages, err := linkedPackages(source, t)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("gitring links the works below. Each is under the licence that stands with it;\n" +
		"their sources are at the addresses that their names begin with.\n")
	for _, m := range slices.Sorted(maps.Keys(packages)) {
		texts, err := licencesIn(packages[m])
		if err != nil {
			return nil, err
		}
		if len(texts) == 0 {
			return nil, fmt.Errorf("%s is linked and has no licence file: look at it and at tools/release/licences.go", m)
		}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&b, "\n%s\n%s: %s\n%s\n\n%s\n", strings.Repeat("=", 80), m, name, strings.Repeat("=", 80),
				strings.TrimSpace(texts[name]))
		}
	}
	return b.Bytes(), nil
}

// folders are where a module is, and the folders of its linked packages in it.
type folders struct {
	root string
	in   []string
}

func linkedPackages(source string, t target) (map[string]folders, error) {
	cmd := exec.Command("go", "list", "-mod=readonly", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/gitring")
	cmd.Dir, cmd.Env, cmd.Stderr = source, buildEnv(t), os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what is linked: %w", err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask for Go's folder: %w", err)
	}
	goRoot := strings.TrimSpace(string(root))
	out := map[string]folders{"Go, its library and runtime": {root: goRoot, in: []string{goRoot}}}
	for line := range strings.Lines(string(list)) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) != 3 {
			continue
		}
		m := out[parts[0]]
		m.root, m.in = parts[1], append(m.in, parts[2])
		out[parts[0]] = m
	}
	return out, nil
}

// licencesIn are the texts by their path in the module: in the folder of each package that
// is linked, and in those above it.
func licencesIn(m folders) (map[string]string, error) {
	out, looked := map[string]string{}, map[string]bool{}
	for _, dir := range m.in {
		for ; !looked[dir] && len(dir) >= len(m.root); dir = filepath.Dir(dir) {
			looked[dir] = true
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
					continue
				}
				text, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					return nil, err
				}
				name, err := filepath.Rel(m.root, filepath.Join(dir, e.Name()))
				if err != nil {
					return nil, err
				}
				out[filepath.ToSlash(name)] = string(text)
			}
		}
	}
	return out, nil
}
