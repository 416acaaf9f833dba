package admission

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// builtin are the vectors that this program was shipped with; README.md says how a line
// is read.
//
//go:embed testdata/escapes/*.txt
var builtin embed.FS

// Vector is one vector of a file: what a commit asks, and what the policy says.
type Vector struct {
	Name   string            `yaml:"name"`
	Files  map[string]string `yaml:"files"`
	Expect string            `yaml:"expect"` // deny <rule>, power <rule> or pass
}

// VectorResult is a vector that was tried.
type VectorResult struct {
	Name   string `json:"name"`
	Expect string `json:"expect"`
	Got    string `json:"got"`
	Pass   bool   `json:"pass"`
}

// JudgeOfVectors is a host for the vectors that are shipped: it has what they reach for.
func JudgeOfVectors() Judge {
	j := Anywhere(policy.Compose)
	j.Rules.EngineGroups, j.Rules.Listen = []string{"998"}, "127.0.0.1:9480"
	return j
}

// ReadVectors are those of a file, or with "" those that are shipped.
func ReadVectors(file string) ([]Vector, error) {
	if file == "" {
		return ShippedVectors()
	}
	body, err := config.ReadLimited(file)
	if err != nil {
		return nil, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("cannot read %s: %v", file, err), Hint: "name a file of vectors, or say --builtin"}
	}
	var out []Vector
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

// TryVector holds the policy to one vector.
func TryVector(j Judge, v Vector, s manifest.Settings) VectorResult {
	out := VectorResult{Name: v.Name, Expect: v.Expect}
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

// ShippedVectors are those of builtin that the policy denies by itself. Chains of two
// commits and what the manifest refuses are not among them.
func ShippedVectors() ([]Vector, error) {
	var out []Vector
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
			out = append(out, Vector{Name: class + ": " + parts[2], Files: filesOfVector(parts[2]), Expect: "deny " + parts[0]})
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
