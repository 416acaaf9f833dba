package setup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// LeftOut is an app that was left out for another one, and why no host runs both.
type LeftOut struct {
	App     string `json:"app"`
	Kept    string `json:"kept"`
	Because string `json:"because"`
	folder  string // below the source's path
}

// keepBoth is the answer of who decides later.
const keepBoth = "both"

// alternatives asks which of two apps is kept that have a container_name or a network of one
// name: repositories hold a stack with and one without a proxy, say, and Compose runs the one
// that is started first. What is left out goes into exclude: of the gitring.yaml that is
// written. A host that is set up already has one of them, and is not asked.
func (in *Setup) alternatives(ctx context.Context, c *ring.Commit, settings *manifest.Settings) error {
	r := manifest.Look(c, *settings)
	if r.HasGitringYAML || in.searchHere || in.there != nil || in.Result.Search != "" && !in.writeSearch {
		return nil
	}
	body, settled := in.Result.Search, map[[2]string]bool{}
	for {
		folders := manifest.Folders(c, *settings)
		at := slices.IndexFunc(r.Refusals, func(f *ring.Refusal) bool {
			return f.Beside != "" && !settled[[2]string{f.Beside, f.App}] && apart(folders[f.Beside], folders[f.App])
		})
		if at < 0 {
			break
		}
		refused := r.Refusals[at]
		settled[[2]string{refused.Beside, refused.App}] = true
		left, err := in.chosen(ctx, c, *settings, refused)
		if err != nil {
			return err
		}
		if left == nil {
			continue
		}
		left.folder = below([]string{folders[left.App]}, settings.Path)[0]
		in.Result.LeftOut = append(in.Result.LeftOut, *left)
		settings.GitringYAML = []byte(excluding(body, in.Result.LeftOut))
		r = manifest.Look(c, *settings)
	}
	if len(in.Result.LeftOut) == 0 {
		return nil
	}
	in.Result.Search, in.writeSearch = string(settings.GitringYAML), true
	in.searchWhy = strings.TrimPrefix(in.searchWhy+" and leaves out what no host runs beside the rest", " and ")
	return nil
}

// apart reports whether none of two folders lies in the other: then one can be left out.
func apart(a, b string) bool {
	return a != "" && b != "" && a != "." && b != "." && !strings.HasPrefix(a+"/", b+"/") && !strings.HasPrefix(b+"/", a+"/") &&
		!strings.ContainsAny(a+b, `*?[\`)
}

// chosen is which of two apps is left out: as a person says, else the one that does not run
// here, else the one that comes second. nil leaves both.
func (in *Setup) chosen(ctx context.Context, c *ring.Commit, settings manifest.Settings, refused *ring.Refusal) (*LeftOut, error) {
	first, second := refused.Beside, refused.App
	if !in.options.Yes && !in.asks() {
		return nil, nil // it is refused, which says so
	}
	proposal := first
	if in.runsHere(ctx, c, settings, second) && !in.runsHere(ctx, c, settings, first) {
		proposal = second
	}
	kept := proposal
	for tries := 0; in.asks(); tries++ {
		var err error
		question := fmt.Sprintf("%s. One host runs one of them: which is kept, %s or %s? (%s decides later)", refused.Says, first, second, keepBoth)
		if kept, err = in.person.Ask(question, proposal); err != nil {
			return nil, err
		}
		if slices.Contains([]string{first, second, keepBoth}, kept) {
			break
		}
		if tries == wrongAnswers {
			kept = keepBoth
			break
		}
		in.Notice("%q will not do: %s, %s or %s", kept, first, second, keepBoth)
	}
	switch kept {
	case first:
		return &LeftOut{App: second, Kept: first, Because: refused.Says}, nil
	case second:
		return &LeftOut{App: first, Kept: second, Because: refused.Says}, nil
	}
	return nil, nil
}

// runsHere reports whether Compose runs an app on the engine here already.
func (in *Setup) runsHere(ctx context.Context, c *ring.Commit, settings manifest.Settings, app string) bool {
	if in.runs == nil {
		in.runs = map[string]bool{}
		r := manifest.Look(c, settings)
		apps := in.Result.Apps
		for name := range manifest.Folders(c, settings) {
			in.Result.Apps = append(in.Result.Apps, name)
		}
		for _, f := range in.foreign(ctx, &r.Plan, c, settings) {
			in.runs[f.App] = in.runs[f.App] || f.Code == ring.ForeignProject
		}
		in.Result.Apps = apps
	}
	return in.runs[app]
}

// excluding is a gitring.yaml that leaves out more folders.
func excluding(body string, out []LeftOut) string {
	if body == "" {
		body = "# Written by gitring init; docs/reference/manifest.md has every key.\nversion: 1\n"
	}
	if !strings.Contains(body, "\nexclude:\n") {
		body += "exclude:\n"
	}
	for _, l := range out {
		body += "  - " + scalar("./"+path.Clean(l.folder)) + " # " + l.Kept + " is kept\n"
	}
	return body
}
