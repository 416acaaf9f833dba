package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rounds is how often the answers to one run are tried in the next. A variable
// may be used in a file that is read only once others are set.
const rounds = 8

// measurement is the work on one clone.
type measurement struct {
	settings
	clone   clone
	apps    map[string]string // folder -> Compose file
	names   map[string]string // folder -> name, where its own will not do
	work    string            // the copy
	config  string
	answers answers
}

func (f *settings) measure(ctx context.Context, dir string) (r repo, err error) {
	began := time.Now()
	c, err := readClone(ctx, dir)
	if err != nil {
		return r, err
	}
	tmp, remove, err := f.workingFolder(filepath.Base(dir))
	if err != nil {
		return r, fmt.Errorf("cannot make a working folder: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	apps := c.withoutIncluded(c.apps())
	m := &measurement{
		settings: *f, clone: c, apps: apps, names: map[string]string{},
		work: filepath.Join(tmp, filepath.Base(dir)), config: filepath.Join(tmp, "config.yaml"),
		answers: answers{
			dir: filepath.Join(tmp, "env"), clone: dir, apps: apps,
			files: map[string]map[string]string{}, stands: map[string]string{},
		},
	}
	if err := os.MkdirAll(m.work, 0o755); err != nil {
		return r, err
	}
	if err := os.MkdirAll(m.answers.dir, 0o700); err != nil {
		return r, err
	}
	if err := c.copyTo(m.work); err != nil {
		return r, fmt.Errorf("cannot copy: %w", err)
	}
	r = repo{Name: filepath.Base(dir), Commit: c.commit, Elsewhere: c.elsewhere(), Apps: []app{}}
	for _, folder := range slices.Sorted(maps.Keys(m.apps)) {
		r.Apps = append(r.Apps, app{Folder: folder, File: m.apps[folder], Profiles: map[string]outcome{}})
	}
	for _, profile := range f.profiles {
		v, err := m.validateAnswered(ctx, profile)
		if err != nil {
			return r, err
		}
		r.add(profile, v, m.findable)
	}
	r.Answers = len(m.answers.files)
	if f.compose != "" {
		if err := m.askCompose(ctx, &r); err != nil {
			return r, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, ctx.Err()
}

// workingFolder makes the folder for one clone, and says how it is removed.
func (f *settings) workingFolder(name string) (dir string, remove func() error, err error) {
	if f.work != "" {
		dir, err = filepath.Abs(filepath.Join(f.work, name))
		return dir, func() error { return nil }, errors.Join(err, os.MkdirAll(dir, 0o755))
	}
	dir, err = os.MkdirTemp("", "gitring-corpus-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// validated is what "gitring validate -o json" prints, as far as it is used.
type validated struct {
	Apps     []string  `json:"apps"`
	Powers   []string  `json:"powers"`
	Refusals []refusal `json:"refusals"`
}

// validateAnswered asks gitring until nothing is left that a host could answer.
func (m *measurement) validateAnswered(ctx context.Context, profile string) (v validated, err error) {
	for range rounds {
		if err := m.write(profile); err != nil {
			return v, err
		}
		if v, err = m.validate(ctx); err != nil {
			return v, err
		}
		answered := m.answers.answerRefusals(v.Refusals)
		renamed := m.renameRefused(v.Refusals)
		if !answered && !renamed {
			break
		}
	}
	return v, nil
}

// write writes what the host says of the source: configuration, env folder and,
// with -listed, the list of apps.
func (m *measurement) write(profile string) error {
	config := fmt.Sprintf("host: corpus\nenv: {dir: %q}\npolicy: {profile: %s}\nsources:\n"+
		"  - name: %s\n    url: file:///corpus.git\n    trust: {mode: disabled}\n", m.answers.dir, profile, plainName(filepath.Base(m.work)))
	if err := os.WriteFile(m.config, []byte(config), 0o600); err != nil {
		return err
	}
	if err := m.answers.write(); err != nil {
		return err
	}
	if !m.listed || slices.Contains(m.clone.files, "gitring.yaml") || len(m.apps) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("version: 1\napps:\n")
	for _, folder := range slices.Sorted(maps.Keys(m.apps)) {
		fmt.Fprintf(&b, "  - path: %q\n", folder)
		if name := m.names[folder]; name != "" {
			fmt.Fprintf(&b, "    name: %s\n", name)
		}
	}
	return os.WriteFile(filepath.Join(m.work, "gitring.yaml"), []byte(b.String()), 0o644)
}

// renameRefused names the apps whose own name cannot be used or is taken, with
// -listed, and reports whether there were any.
func (m *measurement) renameRefused(refusals []refusal) bool {
	if !m.listed {
		return false
	}
	renamed := false
	rename := func(folder string) {
		if folder == "" || m.names[folder] != "" {
			return
		}
		m.names[folder] = plainName(cmp.Or(strings.Trim(strings.ReplaceAll(folder, "/", "-"), "."), "root"))
		renamed = true
	}
	for _, r := range refusals {
		if r.Code != "AppTaken" && r.Code != "BadName" {
			continue
		}
		rename(folderOf(r.File, m.apps))
		if shared := sharedName.FindStringSubmatch(r.Says); shared != nil { // told once of all that have it
			for folder := range m.apps {
				if plainName(path.Base(folder)) == shared[1] {
					rename(folder)
				}
			}
		}
	}
	return renamed
}

var sharedName = regexp.MustCompile(`^two apps are called ([^ :]+):`)

var notPlain = regexp.MustCompile(`[^a-z0-9_-]+`)

// findable reports whether gitring looks into that folder: two levels deep, or
// wherever its own file names one.
func (m *measurement) findable(folder string) bool {
	return m.listed || slices.Contains(m.clone.files, "gitring.yaml") || strings.Count(folder, "/") < 2
}

// plainName makes a name out of a folder's that gitring accepts.
func plainName(s string) string {
	s = strings.TrimLeft(notPlain.ReplaceAllString(strings.ToLower(s), "-"), "-_")
	if len(s) > 60 { // what is cut off may be all that tells two folders apart
		h := fnv.New32a()
		fmt.Fprint(h, s)
		s = fmt.Sprintf("%s-%08x", s[:51], h.Sum32())
	}
	return cmp.Or(s, "corpus")
}

// folderOf is the app's folder that a file of the commit belongs to, "" when none does.
func folderOf(file string, apps map[string]string) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if apps[dir] != "" {
			return dir
		}
		if dir == "." || dir == "/" {
			return ""
		}
	}
}

func (m *measurement) validate(ctx context.Context) (v validated, err error) {
	cmd := exec.CommandContext(ctx, m.bin, "validate", m.work, "--config", m.config, "-o", "json")
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	ran := cmd.Run()
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		return v, fmt.Errorf("cannot read what gitring says (%w): %s", ran, says.String())
	}
	return v, nil
}
