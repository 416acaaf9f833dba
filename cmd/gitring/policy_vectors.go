package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// builtin are the vectors that this program was shipped with; README.md says how a line
// is read.
//
//go:embed testdata/escapes/*.txt
var builtin embed.FS

// policyVector is one vector of a file: what a commit asks, and what the policy says.
type policyVector struct {
	Name   string            `yaml:"name"`
	Files  map[string]string `yaml:"files"`
	Expect string            `yaml:"expect"` // deny <rule>, power <rule> or pass
}

// vectorResult is a vector that was tried.
type vectorResult struct {
	Name   string `json:"name"`
	Expect string `json:"expect"`
	Got    string `json:"got"`
	Pass   bool   `json:"pass"`
}

func policyTestCmd(g *globals) *cobra.Command {
	var by policyFlags
	var shipped bool
	cmd := &cobra.Command{
		Use:   "test [file]",
		Short: "Try the policy with vectors of your own",
		Long: "test reads a YAML file with a list of vectors and tries the policy of --config\n" +
			"with each: {name: …, files: {web/compose.yaml: …}, expect: deny <rule>}. expect is\n" +
			"deny <rule>, power <rule> or pass. With --builtin it tries the vectors that this\n" +
			"program was shipped with, by profile compose: each is denied.\n" +
			"Exit 7 when one does not hold.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if shipped == (len(given) > 0) {
				return usage(cmd, "name a file of vectors, or say --builtin")
			}
			return g.policyTest(strings.Join(given, ""), by)
		},
	}
	by.add(cmd)
	cmd.Flags().BoolVar(&shipped, "builtin", false, "try the vectors of this program")
	return cmd
}

func (g *globals) policyTest(file string, by policyFlags) error {
	held, err := g.heldTo(".", by.source, by.profile)
	if err != nil {
		return err
	}
	vectors, err := vectorsOf(file)
	if err != nil {
		return err
	}
	if file == "" {
		held.judge = judgeOfVectors()
	}
	var out []vectorResult
	for _, v := range vectors {
		out = append(out, tryVector(held.judge, v, held.settings))
	}
	failed := 0
	s := g.screen()
	for _, r := range out {
		if !r.Pass {
			failed++
			s.Line(0, " ", screen.Painted("failed:", screen.Red), screen.Text(r.Name+": expected "+r.Expect+", got "+r.Got))
		}
	}
	s.Line(0, " ", screen.Text(fmt.Sprintf("%s, %d failed", wording.Counted(len(out), "vector"), failed)))
	if g.machine() {
		err = g.encode(out)
	} else {
		_, err = fmt.Fprint(g.out, s)
	}
	if err == nil && failed > 0 {
		return exit.Outcome(exit.Refused)
	}
	return err
}

// judgeOfVectors is a host for the vectors that are shipped: it has what they reach for.
func judgeOfVectors() admission.Judge {
	j := admission.Anywhere(policy.Compose)
	j.Rules.EngineGroups, j.Rules.Listen = []string{"998"}, "127.0.0.1:9480"
	return j
}

// vectorsOf are those of a file, or with "" those that are shipped.
func vectorsOf(file string) ([]policyVector, error) {
	if file == "" {
		return shippedVectors()
	}
	body, err := config.ReadLimited(file)
	if err != nil {
		return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("cannot read %s: %v", file, err), Hint: "name a file of vectors, or say --builtin"}
	}
	var out []policyVector
	d := yaml.NewDecoder(bytes.NewReader(body))
	d.KnownFields(true)
	if err := d.Decode(&out); err != nil {
		return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%s: %v", file, err), Hint: "write a list of {name, files, expect}"}
	}
	for i, v := range out {
		verdict, rule, _ := strings.Cut(v.Expect, " ")
		known := v.Expect == "pass" || (verdict == "deny" || verdict == "power") && slices.Contains(policy.RuleNames(), rule)
		if !known || len(v.Files) == 0 {
			return nil, &exit.Failure{
				Code: exit.Usage, Says: fmt.Sprintf("%s: vector %d (%s) has no files, or expects %q", file, i+1, v.Name, v.Expect),
				Hint: "expect is deny <rule>, power <rule> or pass; gitring policy explain <rule> tells of a rule",
			}
		}
		for name := range v.Files {
			if !fs.ValidPath(name) {
				return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("%s: vector %d (%s): %q is no path in a commit", file, i+1, v.Name, name), Hint: "such as web/compose.yaml"}
			}
		}
	}
	return out, nil
}

// tryVector holds the policy to one vector.
func tryVector(j admission.Judge, v policyVector, s manifest.Settings) vectorResult {
	out := vectorResult{Name: v.Name, Expect: v.Expect}
	plan, refusals := j.Look(&ring.Commit{Tree: textTree(v.Files)}, s)
	verdict, rule, _ := strings.Cut(v.Expect, " ")
	var got []string
	for _, d := range plan.Decisions {
		if d.Verdict == string(policy.Note) {
			continue
		}
		if says := d.Verdict + " " + d.Rule; !slices.Contains(got, says) {
			got = append(got, says)
		}
	}
	for _, r := range refusals {
		if r.Code != ring.PolicyDenied && r.Code != ring.RouteTaken {
			got = append(got, "refused "+string(r.Code)+": "+r.Says)
		}
	}
	switch v.Expect {
	case "pass":
		out.Pass = len(refusals) == 0 && len(got) == 0
	default:
		out.Pass = slices.Contains(got, verdict+" "+rule) && (verdict == "deny") == (len(refusals) > 0)
	}
	if out.Got = strings.Join(got, ", "); out.Got == "" {
		out.Got = "pass"
	}
	return out
}

// shippedVectors are those of builtin that the policy denies by itself. Chains of two
// commits and what the manifest refuses are not among them.
func shippedVectors() ([]policyVector, error) {
	var out []policyVector
	err := fs.WalkDir(builtin, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := builtin.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(body)) {
			parts := strings.SplitN(strings.TrimRight(line, "\n"), " | ", 3)
			if len(parts) < 3 || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "!") || strings.Contains(line, "@first@") {
				continue
			}
			class := strings.TrimSuffix(path.Base(name), ".txt")
			out = append(out, policyVector{Name: class + ": " + parts[2], Files: filesOfVector(parts[2]), Expect: "deny " + parts[0]})
		}
		return nil
	})
	if len(out) == 0 {
		err = errors.Join(err, errors.New("cannot find the vectors of this program"))
	}
	return out, err
}

var vectorFile = regexp.MustCompile(` ?@([a-z./]+)@ ?`)

// filesOfVector are the files of one line: those of service web first.
func filesOfVector(body string) map[string]string {
	out := map[string]string{}
	names := append([][]string{{"", "web/compose.yaml"}}, vectorFile.FindAllStringSubmatch(body, -1)...)
	for i, text := range vectorFile.Split(body, -1) {
		text = strings.ReplaceAll(text, `\n`, "\n")
		if i == 0 {
			service, top, _ := strings.Cut(text, "@@")
			if !strings.HasPrefix(service, "image:") {
				service = "image: nginx\n" + service
			}
			if !strings.HasPrefix(top, "  ") {
				top = strings.TrimPrefix(top, " ")
			}
			text = "services:\n  web:\n    " + strings.ReplaceAll(strings.TrimSpace(service), "\n", "\n    ") + "\n" + top
		}
		out[names[i][1]] = text + "\n"
	}
	return out
}

// textTree is a tree of files in memory.
type textTree map[string]string

// Open gives a file, or a folder that holds one.
func (t textTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if body, ok := t[name]; ok {
		return &textFile{textInfo{path.Base(name), int64(len(body)), 0o644}, strings.NewReader(body), nil}, nil
	}
	entries := t.below(name)
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{textInfo{path.Base(name), 0, fs.ModeDir | 0o755}, strings.NewReader(""), entries}, nil
}

func (t textTree) below(dir string) []fs.DirEntry {
	by := map[string]fs.DirEntry{}
	for name, body := range t {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			by[first] = fs.FileInfoToDirEntry(textInfo{first, 0, fs.ModeDir | 0o755})
		} else {
			by[first] = fs.FileInfoToDirEntry(textInfo{first, int64(len(body)), 0o644})
		}
	}
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

type textFile struct {
	info textInfo
	*strings.Reader
	entries []fs.DirEntry
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *textFile) Close() error               { return nil }

func (f *textFile) ReadDir(n int) ([]fs.DirEntry, error) {
	out := f.entries
	if n > 0 && len(out) > n {
		out = out[:n]
	}
	f.entries = f.entries[len(out):]
	return out, nil
}

type textInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i textInfo) Name() string       { return i.name }
func (i textInfo) Size() int64        { return i.size }
func (i textInfo) Mode() fs.FileMode  { return i.mode }
func (i textInfo) ModTime() time.Time { return time.Time{} }
func (i textInfo) IsDir() bool        { return i.mode.IsDir() }
func (i textInfo) Sys() any           { return nil }
