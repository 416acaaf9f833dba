package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// result is what one run measured.
type result struct {
	Listed   bool     `json:"listed"`
	Profiles []string `json:"profiles"`
	Repos    []repo   `json:"repos"`
}

// repo is what was measured of one clone.
type repo struct {
	Name   string `json:"name"`
	Commit string `json:"commit,omitempty"`
	// Elsewhere counts the files with services that have another name than Compose's.
	Elsewhere int     `json:"elsewhere"`
	Answers   int     `json:"answers"` // files of the host's env folder
	Seconds   float64 `json:"seconds"`
	Apps      []app   `json:"apps"` // one for each folder with a Compose file
	// Whole are refusals that belong to no such folder, by profile.
	Whole map[string][]refusal `json:"whole,omitempty"`
	// Accepted counts the apps that gitring names as accepted, by profile.
	Accepted map[string]int `json:"accepted"`

	named map[string]string // app -> folder, as refusals tell
}

// app is one folder with a Compose file.
type app struct {
	Folder string `json:"folder"`
	File   string `json:"file"`
	// Compose reports whether Docker Compose takes the file; nil where it was not asked.
	Compose     *bool              `json:"compose,omitempty"`
	ComposeSays string             `json:"compose_says,omitempty"`
	Profiles    map[string]outcome `json:"profiles"`
}

// outcome is what gitring makes of an app under one profile.
type outcome struct {
	Passes   bool      `json:"passes"`
	Refusals []refusal `json:"refusals,omitempty"`
}

type refusal struct {
	Code string `json:"code"`
	Rule string `json:"rule,omitempty"`
	App  string `json:"app,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Says string `json:"says"`
	Hint string `json:"hint,omitempty"`
}

// notSeen is the reason of an app that gitring does not name at all.
const notSeen = "NotSeen"

// add sorts what gitring said of the clone into its apps. An app without a
// refusal passes where gitring can find it.
func (r *repo) add(profile string, v validated, findable func(folder string) bool) {
	folders := map[string]string{}
	for _, a := range r.Apps {
		folders[a.Folder] = a.File
	}
	if r.named == nil {
		r.named, r.Whole, r.Accepted = map[string]string{}, map[string][]refusal{}, map[string]int{}
	}
	for _, f := range v.Refusals {
		if folder := folderOf(f.File, folders); f.App != "" && folder != "" && r.named[f.App] == "" {
			r.named[f.App] = folder
		}
	}
	byFolder := map[string][]refusal{}
	for _, f := range v.Refusals {
		folder := cmp.Or(r.named[f.App], folderOf(f.File, folders))
		if folder == "" {
			r.Whole[profile] = append(r.Whole[profile], f)
			continue
		}
		byFolder[folder] = append(byFolder[folder], f)
	}
	r.Accepted[profile] = len(v.Apps)
	for i := range r.Apps {
		a := &r.Apps[i]
		refused := byFolder[a.Folder]
		if len(refused) == 0 && (len(v.Apps) == 0 || !findable(a.Folder)) {
			refused = []refusal{{Code: notSeen, File: a.File, Says: "gitring does not name it as an app"}}
		}
		a.Profiles[profile] = outcome{Passes: len(refused) == 0, Refusals: refused}
	}
}

var (
	policySays = regexp.MustCompile(`^services\.[^ ]*?\.([a-z_]+)\b.*?: (.*)$`)
	serviceIs  = regexp.MustCompile(`services\.[^. ]+`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	special    = regexp.MustCompile(`[^ ]*[/0-9=][^ ]*`)
	variableIs = regexp.MustCompile(`^variable \S+ is (not set|required).*`)
	namesOf    = regexp.MustCompile(`\b(network|volume|service|app|container_name|container|secret|config) [^ ,]+`)
)

// reason is a refusal without the names and values that are this file's alone.
func (f refusal) reason() string {
	says := variableIs.ReplaceAllString(f.Says, "variable … is $1")
	if f.Code == "PolicyDenied" && f.Rule != "" {
		return f.Code + " " + f.Rule
	}
	if m := policySays.FindStringSubmatch(says); f.Code == "PolicyDenied" && m != nil {
		says = m[1] + ": " + m[2]
	}
	says = serviceIs.ReplaceAllString(says, "services.…")
	says = quoted.ReplaceAllString(says, "…")
	says = special.ReplaceAllString(says, "…")
	says = namesOf.ReplaceAllString(says, "$1 …")
	return f.Code + " " + says
}

// reasons are the different reasons of an app's refusals, sorted.
func (o outcome) reasons() []string {
	set := map[string]bool{}
	for _, f := range o.Refusals {
		set[f.reason()] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// alternative reports whether an app is refused only because another one of its
// repository has its name on the engine: Compose would run either, and not both.
func (o outcome) alternative() bool {
	return !o.Passes && !slices.ContainsFunc(o.Refusals, func(f refusal) bool {
		return f.Code != "Conflict" || !strings.Contains(f.Says, "would both be called")
	})
}

// passing counts apps, those that Compose takes, and those of them that pass.
func (r repo) passing(profile string) (apps, taken, passing int) {
	for _, a := range r.Apps {
		apps++
		if a.Compose != nil && !*a.Compose {
			continue
		}
		taken++
		if a.Profiles[profile].Passes {
			passing++
		}
	}
	return apps, taken, passing
}

// ninety counts the repositories of which at least 90 % of what Compose takes
// passes, of those that have anything that it takes.
func (res result) ninety(profile string) (reached, of int) {
	return res.ninetyBut(profile, func(outcome) bool { return false })
}

// ninetyBut is ninety without the apps that are left out.
func (res result) ninetyBut(profile string, leftOut func(outcome) bool) (reached, of int) {
	for _, r := range res.Repos {
		r.Apps = slices.DeleteFunc(slices.Clone(r.Apps), func(a app) bool { return leftOut(a.Profiles[profile]) })
		_, taken, passing := r.passing(profile)
		if taken == 0 {
			continue
		}
		of++
		if passing*10 >= taken*9 {
			reached++
		}
	}
	return reached, of
}

// tally is how often a reason is met.
type tally struct {
	reason            string
	refusals          int
	files, repos      map[string]bool
	firstFile, firsts string
}

func (res result) tally(profile string) []tally {
	byReason := map[string]*tally{}
	count := func(r repo, file string, f refusal) {
		t := byReason[f.reason()]
		if t == nil {
			t = &tally{reason: f.reason(), files: map[string]bool{}, repos: map[string]bool{}}
			t.firstFile, t.firsts = fmt.Sprintf("%s %s:%d", r.Name, f.File, f.Line), f.Says
			byReason[f.reason()] = t
		}
		t.refusals++
		t.files[r.Name+"/"+file], t.repos[r.Name] = true, true
	}
	for _, r := range res.Repos {
		for _, a := range r.Apps {
			for _, f := range a.Profiles[profile].Refusals {
				count(r, a.File, f)
			}
		}
		for _, f := range r.Whole[profile] {
			count(r, f.File, f)
		}
	}
	var all []tally
	for _, t := range byReason {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b tally) int {
		return cmp.Or(cmp.Compare(len(b.files), len(a.files)), cmp.Compare(len(b.repos), len(a.repos)), cmp.Compare(a.reason, b.reason))
	})
	return all
}

func (res result) print(w io.Writer) {
	for _, profile := range res.Profiles {
		apps, taken, passing, elsewhere := 0, 0, 0, 0
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(out, "\nprofile %s\nrepository\tCompose files\tCompose takes\tpass\tother names\tseconds\n", profile)
		for _, r := range res.Repos {
			n, t, p := r.passing(profile)
			apps, taken, passing, elsewhere = apps+n, taken+t, passing+p, elsewhere+r.Elsewhere
			fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%.1f\n", r.Name, n, t, p, r.Elsewhere, r.Seconds)
		}
		fmt.Fprintf(out, "all\t%d\t%d\t%d\t%d\n", apps, taken, passing, elsewhere)
		out.Flush()
		reached, of := res.ninety(profile)
		fmt.Fprintf(w, "\n%d of %d repositories pass with at least 90 %% of what Compose takes\n", reached, of)
		reached, of = res.ninetyBut(profile, outcome.alternative)
		fmt.Fprintf(w, "%d of %d without apps whose container_name or network another app of the repository has\n\n", reached, of)
		out = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "files\trepositories\trefusals\treason\tfirst")
		for _, t := range res.tally(profile) {
			fmt.Fprintf(out, "%d\t%d\t%d\t%s\t%s\n", len(t.files), len(t.repos), t.refusals, t.reason, t.firstFile)
		}
		out.Flush()
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
