package setup

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/wording"
)

// searchName is the file that says which folders are searched for apps.
const searchName = "gitring.yaml"

// setAside are the names of folders in which people keep what does not run, without what
// stands before the first letter: 00-Archive, _archive.
var setAside = []string{
	"archive", "archives", "archived", "old", "disabled", "deprecated", "unused", "inactive", "retired", "attic", "graveyard",
	"template", "templates", "example", "examples", "sample", "samples",
}

// copies are names of folders of copies, and of the app that makes copies.
var copies = []string{"backup", "backups"}

var beforeName = regexp.MustCompile(`^[^a-z]+`)

func isSetAside(folder string) bool {
	return slices.Contains(setAside, beforeName.ReplaceAllString(strings.ToLower(path.Base(folder)), ""))
}

// isOfCopies reports whether a folder is called as one of copies is.
func isOfCopies(folder string) bool {
	return slices.Contains(copies, beforeName.ReplaceAllString(strings.ToLower(path.Base(folder)), ""))
}

// setAsideAbove is the outermost folder of a path that is set aside; "" where none is. An
// app in backup itself makes copies, and one below it is a copy.
func setAsideAbove(folder string) string {
	at := ""
	for part := range strings.SplitSeq(folder, "/") {
		if at = path.Join(at, part); isSetAside(at) || isOfCopies(at) && at != folder {
			return at
		}
	}
	return ""
}

// A foldersFound is what a repository holds, as far as its folders tell.
type foldersFound struct {
	apps    []string // folders in which apps were found
	notRead []manifest.NotRead
}

// deep are the folders of Compose files that lie deeper than is searched, without those
// that are set aside.
func (f *foldersFound) deep() []string {
	var out []string
	for _, x := range f.notRead {
		if dir := path.Dir(x.File); x.Why == manifest.TooDeep && setAsideAbove(dir) == "" {
			out = append(out, dir)
		}
	}
	return out
}

// commonPath is the folder from which all apps lie within the usual depth, where the
// repository's root is too far above; "." where there is no such folder.
func (f *foldersFound) commonPath() string {
	deep := f.deep()
	if len(deep) == 0 {
		return "."
	}
	all := slices.Clone(deep)
	for _, dir := range f.apps {
		if setAsideAbove(dir) == "" {
			all = append(all, dir)
		}
	}
	for at := path.Dir(deep[0]); at != "."; at = path.Dir(at) {
		if !slices.ContainsFunc(all, func(dir string) bool { return !strings.HasPrefix(dir+"/", at+"/") }) {
			return shallowest(at, all)
		}
	}
	return "."
}

// shallowest goes up from a folder that holds all others as long as all lie within the
// usual depth; "." where they do not even lie so below that folder.
func shallowest(at string, all []string) string {
	within := func(root string) bool {
		return !slices.ContainsFunc(all, func(dir string) bool {
			below := strings.TrimPrefix(dir, root+"/")
			return below != root && strings.Count(below, "/") >= 2
		})
	}
	if !within(at) {
		return "."
	}
	for path.Dir(at) != "." && within(path.Dir(at)) {
		at = path.Dir(at)
	}
	return at
}

// searchFile is a gitring.yaml with which all apps are found that people would want, and
// why; "" where none is needed.
func (f *foldersFound) searchFile() (body string, why []string) {
	depth := 0
	for _, dir := range f.deep() {
		depth = max(depth, 1+strings.Count(dir, "/"))
	}
	read := slices.Clone(f.apps)
	for _, x := range f.notRead { // the depth has these read, too
		if dir := path.Dir(x.File); x.Why == manifest.TooDeep && strings.Count(dir, "/") < depth {
			read = append(read, dir)
		}
	}
	slices.Sort(read)
	var exclude []string
	for _, dir := range read {
		if aside := setAsideAbove(dir); aside != "" && !slices.Contains(exclude, path.Base(aside)) && !strings.ContainsAny(aside, `*?[\`) {
			exclude = append(exclude, path.Base(aside))
		}
	}
	if depth > 0 {
		why = append(why, fmt.Sprintf("searches %d folders deep", depth))
	}
	if len(exclude) > 0 {
		why = append(why, "leaves out "+strings.Join(exclude, ", "))
	}
	if len(why) == 0 {
		return "", nil
	}
	body = "# Written by gitring init; docs/reference/manifest.md has every key.\nversion: 1\n"
	if depth > 0 {
		body += fmt.Sprintf("depth: %d\n", depth)
	}
	if len(exclude) > 0 {
		body += "exclude:\n"
		for _, name := range exclude {
			body += "  - " + scalar(name) + "\n"
		}
	}
	return body, why
}

// findPath proposes the folder that hosts read, by what HEAD holds.
func (in *Setup) findPath(ctx context.Context) string {
	head, err := in.CommitOf(ctx, "HEAD")
	if err != nil {
		return "."
	}
	repo, err := in.Repo()
	if err != nil {
		return "."
	}
	c, err := repo.Commit(head)
	if err != nil {
		return "." // told when it is read for good
	}
	r, notRead := manifest.LookFurther(c, manifest.Settings{Source: "source", Host: "init"})
	found := foldersFound{apps: appFolders(&r), notRead: notRead}
	return found.commonPath()
}

// appFolders are the folders of all apps of a reading, those of refused ones too.
func appFolders(r *manifest.Reading) []string {
	out := slices.Clone(r.Folders)
	slices.Sort(out)
	return slices.Compact(out)
}

// search settles which gitring.yaml counts: that of the commit, that of the work tree,
// or one that is proposed here and written when a person agrees.
func (in *Setup) search(r *manifest.Reading, notRead []manifest.NotRead, settings *manifest.Settings) error {
	in.searchPath = filepath.Join(in.Dir, filepath.FromSlash(in.Result.Path), searchName)
	if r.Plan.Refusal != nil || r.HasGitringYAML {
		return nil
	}
	if body, err := os.ReadFile(in.searchPath); err == nil {
		settings.GitringYAML, in.searchHere = body, true
		return nil
	} else if !os.IsNotExist(err) {
		return fmt.Errorf("cannot read what is there: %w", err)
	}
	found := foldersFound{apps: below(appFolders(r), settings.Path), notRead: notRead}
	for i := range found.notRead {
		found.notRead[i].File = below([]string{found.notRead[i].File}, settings.Path)[0]
	}
	body, why := found.searchFile()
	if body == "" {
		return nil
	}
	in.Result.Search = body
	take := in.options.SearchFile || in.options.Yes
	if !take && in.person.Terminal && !in.person.Machine {
		var err error
		if take, err = in.person.Confirm("write a " + searchName + " here, which " + strings.Join(why, " and ") + "?"); err != nil {
			return err
		}
	}
	if take {
		settings.GitringYAML, in.writeSearch = []byte(body), true
	}
	in.searchWhy = strings.Join(why, " and ")
	return nil
}

// partSetAside parts what nobody misses, by gitring.yaml or by the names of folders, from
// the other Compose files that are not read.
func partSetAside(notRead []manifest.NotRead, root string) (aside, others []manifest.NotRead) {
	for _, x := range notRead {
		dir := path.Dir(below([]string{x.File}, root)[0])
		if x.Why == manifest.Excluded || x.Why == manifest.TooDeep && setAsideAbove(dir) != "" {
			aside = append(aside, x)
			continue
		}
		others = append(others, x)
	}
	return aside, others
}

// saysLeftOut is a sentence for the Compose files that are set aside.
func saysLeftOut(aside []manifest.NotRead) []string {
	if len(aside) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s left out, by exclude: in %s or in folders that are set aside, the first %s", wording.Counted(len(aside), "Compose file"), searchName, aside[0].File)}
}

// below are paths relative to the source's path.
func below(paths []string, root string) []string {
	out := slices.Clone(paths)
	for i := range out {
		if root != "." {
			out[i] = strings.TrimPrefix(out[i], root+"/")
		}
	}
	return out
}
