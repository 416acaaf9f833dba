package main

import (
	"fmt"
	"io"
	"slices"
)

// comparison is what a later run says of the files that an earlier one had too.
type comparison struct {
	Profiles []profileComparison `json:"profiles"`
}

type profileComparison struct {
	Profile string `json:"profile"`
	Files   int    `json:"files"` // in both runs
	// Refused passed before. Reasons were refused before as well, now for one more reason.
	Refused []change `json:"refused"`
	Reasons []change `json:"reasons"`
	Passing []change `json:"passing"` // were refused before
	// Gone are files of the earlier run that the later one does not have, and the other way round.
	Gone []string `json:"gone,omitempty"`
}

// change is one file, with the refusals that are new; those that are gone for
// a file that passes now.
type change struct {
	Repo     string    `json:"repo"`
	File     string    `json:"file"`
	Refusals []refusal `json:"refusals"`
}

func compare(before, after result) comparison {
	var c comparison
	for _, profile := range after.Profiles {
		if !slices.Contains(before.Profiles, profile) {
			continue
		}
		c.Profiles = append(c.Profiles, compareProfile(before.files(profile), after.files(profile), profile))
	}
	return c
}

// fileOutcome is what became of one file.
type fileOutcome struct {
	repo, file string
	outcome
}

// files are the outcomes by repository and file. Refusals of the whole
// commit count for each of its files.
func (res result) files(profile string) map[string]fileOutcome {
	files := map[string]fileOutcome{}
	for _, r := range res.Repos {
		for _, a := range r.Apps {
			files[r.Name+"/"+a.File] = fileOutcome{r.Name, a.File, a.Profiles[profile]}
		}
		if whole := r.Whole[profile]; len(whole) > 0 {
			files[r.Name+"/"] = fileOutcome{r.Name, "", outcome{Refusals: whole}}
		}
	}
	return files
}

func compareProfile(before, after map[string]fileOutcome, profile string) profileComparison {
	c := profileComparison{Profile: profile}
	for _, key := range sortedKeys(after) {
		now, was := after[key], before[key]
		if _, there := before[key]; !there && now.file != "" {
			c.Gone = append(c.Gone, "only after: "+key)
			continue
		}
		if now.file != "" {
			c.Files++
		}
		added := now.without(was.outcome)
		switch {
		case !now.Passes && was.Passes:
			c.Refused = append(c.Refused, change{now.repo, now.file, now.Refusals})
		case len(added) > 0:
			c.Reasons = append(c.Reasons, change{now.repo, now.file, added})
		case now.Passes && !was.Passes:
			c.Passing = append(c.Passing, change{now.repo, now.file, was.Refusals})
		}
	}
	for _, key := range sortedKeys(before) {
		if _, there := after[key]; !there && before[key].file != "" {
			c.Gone = append(c.Gone, "only before: "+key)
		}
	}
	return c
}

// without are the refusals whose reason the other does not have.
func (o outcome) without(other outcome) (added []refusal) {
	known := other.reasons()
	for _, f := range o.Refusals {
		if !slices.Contains(known, f.reason()) {
			added = append(added, f)
		}
	}
	return added
}

func (c comparison) print(w io.Writer) {
	for _, p := range c.Profiles {
		fmt.Fprintf(w, "profile %s: of %d files %d newly refused (%.1f in 100), %d more with a new reason, %d newly pass\n",
			p.Profile, p.Files, len(p.Refused), 100*float64(len(p.Refused))/float64(max(p.Files, 1)), len(p.Reasons), len(p.Passing))
		for _, says := range p.Gone {
			fmt.Fprintf(w, "  %s\n", says)
		}
		printChanges(w, "newly refused", p.Refused)
		printChanges(w, "with a new reason", p.Reasons)
		printChanges(w, "newly passing", p.Passing)
	}
}

func printChanges(w io.Writer, what string, changes []change) {
	if len(changes) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", what)
	for _, ch := range changes {
		fmt.Fprintf(w, "  %s %s\n", ch.Repo, ch.File)
		for _, f := range ch.Refusals {
			fmt.Fprintf(w, "    %s:%d %s %s\n", f.File, f.Line, f.Code, f.Says)
		}
	}
	fmt.Fprintln(w)
}
