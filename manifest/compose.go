package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
	"github.com/sirupsen/logrus"
)

// compose-go warns through this global logger. What there is to tell is told as
// a fault or a note.
func init() { logrus.SetOutput(io.Discard) }

// composeFile is one Compose file of an app, within the limits.
type composeFile struct {
	path string
	root *node
	vars *variables // those that it was expanded with
}

// load hands the files to compose-go, which merges and normalises them. It gets
// plain values, whose variables are replaced already, and never a name to open:
// with YAML it would parse by another library than the one that counted, and by
// itself it would read include, extends, env_file and label_file from the host.
func load(app string, files []composeFile, vars map[string]string, profiles []string) (project *types.Project, err error) {
	defer func() { // it asserts types of what it merges before it validates them
		if p := recover(); p != nil {
			err = fmt.Errorf("the values do not fit together: %v", p)
		}
	}()
	details := types.ConfigDetails{Environment: vars}
	for _, f := range files {
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: f.path, Config: plain(f.root)})
	}
	return loader.LoadWithContext(context.Background(), details, func(o *loader.Options) {
		o.SetProjectName(app, true)
		o.SkipInclude, o.SkipExtends = true, true
		o.SkipConsistencyCheck = true // see consistent
		o.SkipResolveEnvironment, o.SkipResolveLabels = true, true
		o.ResolvePaths, o.ConvertWindowsPaths = false, false
		o.ResourceLoaders = []loader.ResourceLoader{nothing{}}
		o.Profiles = profiles
		o.Interpolate.LookupValue = func(string) (string, bool) { return "", false }
		o.Interpolate.Substitute = func(s string, _ template.Mapping) (string, error) { return s, nil }
	})
}

// plain is a file as compose-go gets it: without what gitring reads itself,
// which are extensions, include and extends, and without the obsolete version.
func plain(root *node) map[string]any {
	out := map[string]any{}
	for _, p := range root.pairs {
		if p.key == "version" || p.key == "name" || p.key == "include" || strings.HasPrefix(p.key, "x-") {
			continue
		}
		if p.key != "services" || p.val.kind != mapping {
			out[p.key] = p.val.value()
			continue
		}
		services := map[string]any{}
		for _, s := range p.val.pairs {
			services[s.key] = plainService(s.val)
		}
		out["services"] = services
	}
	return out
}

func plainService(n *node) any {
	if n.kind != mapping {
		return n.value()
	}
	out := map[string]any{}
	for _, p := range n.pairs {
		if p.key != "extends" && !strings.HasPrefix(p.key, "x-") {
			out[p.key] = p.val.value()
		}
	}
	return out
}

// nothing is the loader that is asked before compose-go's own, which opens
// files of the host: it takes everything and gives nothing.
type nothing struct{}

func (nothing) Accept(string) bool { return true }

func (nothing) Load(context.Context, string) (string, error) {
	return "", errors.New("no file can be read from here")
}

func (nothing) Dir(string) string { return "." }

// keyPath is how compose-go names what an error is about. Names with dots are
// found by the longest way that exists.
var keyPath = regexp.MustCompile(`\b(services|networks|volumes|configs|secrets)[.\[][A-Za-z0-9_.\-\[\]]+`)

// casting and decoding are how compose-go begins before it comes to the point.
var (
	casting  = regexp.MustCompile(`^error while interpolating (\S+): failed to cast to expected type: (?:strconv\.\w+: )?`)
	decoding = regexp.MustCompile(`^decoding failed due to the following error\(s\): `)
)

var quotedService = regexp.MustCompile(`[Ss]ervice "?([A-Za-z0-9._-]+)"?`)

// Each error of compose-go costs a few runs of it over what is read. Most of what
// it would say is said before, with its line.
const (
	composeRuns   = 9         // for one error
	composeErrors = 100       // that are told at most
	composeNodes  = 1_000_000 // that it may go over, beyond the first error
)

// understood is what compose-go makes of the files. It stops at one error; what
// that is about is taken out, and the rest is read. nil where that cannot be found,
// or the app is too large to look for more.
//
// Most errors are about one service, network or the like: each is read alone first, because
// a run over one service costs a hundredth of a run over an app of a hundred.
func (a *appReader) understood() *types.Project {
	project, err := a.load(a.files)
	if err == nil {
		return project
	}
	b := composeBudget{nodes: composeNodes, errors: composeErrors}
	for _, section := range []string{"services", "networks", "volumes", "secrets", "configs"} {
		names := declaredIn(a.files, section)
		if section == "services" && len(names) == 1 {
			continue
		}
		for _, name := range names {
			if _, ok := a.withoutErrors(&b, func() []composeFile { return onlyNamed(a.files, section, name) }); !ok {
				return nil
			}
		}
	}
	project, _ = a.withoutErrors(&b, func() []composeFile { return a.files })
	return project
}

// composeBudget is what compose-go may still be asked about an app with errors.
type composeBudget struct{ nodes, errors int }

// withoutErrors has compose-go read files, and takes out what it finds wrong, until
// nothing is; false where that cannot be found or costs too much.
func (a *appReader) withoutErrors(b *composeBudget, files func() []composeFile) (*types.Project, bool) {
	for {
		read := files()
		if len(read) == 0 {
			return nil, true // it was taken out
		}
		project, err := a.load(read)
		if err == nil {
			return project, true
		}
		for _, f := range read {
			b.nodes -= composeRuns * f.root.size(a.limits.Nodes)
		}
		b.errors--
		if !a.composeFault(read, err) || b.nodes < 0 || b.errors <= 0 {
			return nil, false
		}
	}
}

// onlyNamed are the files with one service, network or the like and nothing else in them.
func onlyNamed(files []composeFile, of, name string) []composeFile {
	var out []composeFile
	for _, f := range files {
		for _, section := range f.root.mappingPairs() {
			if section.key != of || section.val.get(name) == nil {
				continue
			}
			one, root := *section.val, *f.root
			one.pairs = slices.DeleteFunc(slices.Clone(one.pairs), func(p pair) bool { return p.key != name })
			section.val = &one
			root.pairs = []pair{section}
			f.root = &root
			out = append(out, f)
		}
	}
	return out
}

// composeFault gives an error of compose-go a place, and takes out what is there;
// false where nothing can be. Where a file has several errors it differs from run
// to run which is met: the least of a few runs is as good as always the same.
func (a *appReader) composeFault(read []composeFile, err error) bool {
	msgs := messages(err)
	for range composeRuns - 1 {
		if _, err := a.load(read); err != nil {
			if other := messages(err); slices.Compare(other, msgs) < 0 {
				msgs = other
			}
		}
	}
	found := false
	for _, msg := range msgs {
		found = a.composeSays(read, msg) || found
	}
	return found
}

// messages are the errors that compose-go joined into one.
func messages(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range joined.Unwrap() {
		out = append(out, messages(e)...)
	}
	return out
}

func (a *appReader) composeSays(read []composeFile, msg string) bool {
	msg = strings.TrimSuffix(tidy(msg), ": invalid compose project")
	msg = decoding.ReplaceAllString(casting.ReplaceAllString(msg, "$1: "), "")
	for _, f := range read {
		msg = strings.TrimPrefix(msg, "validating "+f.path+": ")
	}
	at := place{file: a.from.files[0]}
	var chain []string
	if m := keyPath.FindString(msg); m != "" {
		chain = steps(m)
	} else if m := quotedService.FindStringSubmatch(msg); m != nil {
		chain = []string{"services", m[1]}
	}
	if chain != nil {
		at = a.place(chain...)
	}
	if chain == nil || !a.lost(chain...) {
		a.faults.add(ring.BadValue, at, "see the Compose specification for what this key takes", "%s", msg)
	} else {
		a.faults.put(untold)
	}
	return chain != nil && a.cutOut(chain)
}

// cutOut takes what an error of compose-go is about out of the files, as near to
// it as it is found: where it names an entry of a list, the list, because it counts
// the entries of all files together.
func (a *appReader) cutOut(chain []string) bool {
	if i := slices.IndexFunc(chain, func(step string) bool { _, number := index(step); return number }); i > 0 && len(a.files) > 1 {
		chain = chain[:i]
	}
	cut := false
	for i, f := range a.files {
		_, took, at := f.root.at(chain)
		if took < 2 {
			continue
		}
		if at.of != nil {
			a.wounds[at.of] = true
		}
		a.files[i].root = f.root.emptied(chain[:took])
		cut = true
	}
	return cut
}

// emptied is n without what chain names; of a service, a network and their like
// only what is in it goes first, for others may name it.
func (n *node) emptied(chain []string) *node {
	if len(chain) == 2 {
		sub := n.get(chain[0]).get(chain[1])
		if sub.asksNothing() && sub.kind == mapping {
			return n.with(chain, nil) // nor may it be empty
		}
		return n.with(chain, &node{kind: mapping, place: sub.place})
	}
	return n.with(chain, nil)
}

// with is a copy of n in which to stands at chain, which is there; nil takes it out.
func (n *node) with(chain []string, to *node) *node {
	out := *n
	out.pairs, out.items = slices.Clone(n.pairs), slices.Clone(n.items)
	replaced := func(val *node) *node {
		if len(chain) == 1 {
			return to
		}
		return val.with(chain[1:], to)
	}
	switch n.kind {
	case mapping:
		i := slices.IndexFunc(out.pairs, func(p pair) bool { return p.key == chain[0] })
		if out.pairs[i].val = replaced(out.pairs[i].val); out.pairs[i].val == nil {
			out.pairs = slices.Delete(out.pairs, i, i+1)
		}
	case list:
		i, _ := index(chain[0])
		if out.items[i] = replaced(out.items[i]); out.items[i] == nil {
			out.items = slices.Delete(out.items, i, i+1)
		}
	}
	return &out
}

func (a *appReader) load(files []composeFile) (*types.Project, error) {
	name := a.name
	if a.nameLost {
		name = "app" // compose-go takes no other, and nobody sees it
	}
	if a.settings.ran != nil {
		a.settings.ran(len(declaredIn(files, "services")))
	}
	return load(name, withoutEmptyNames(files), a.vars.texts(), a.profiles())
}

// withoutEmptyNames are files without a container_name that is left empty, as ${NAME} of an
// .env may leave it: to Compose that is none, and compose-go refuses it. One that the last to
// say it leaves empty takes out those before it.
func withoutEmptyNames(files []composeFile) []composeFile {
	out := slices.Clone(files)
	gone := map[string]bool{} // services, by what a later file says
	for i := len(out) - 1; i >= 0; i-- {
		services := out[i].root.get("services")
		if services == nil {
			continue
		}
		for _, s := range services.pairs {
			n := s.val.get("container_name")
			if n == nil || n.kind != scalar || n.broken {
				continue
			}
			if _, said := gone[s.key]; !said {
				gone[s.key] = n.text == ""
			}
			if gone[s.key] || n.text == "" {
				out[i].root = out[i].root.without([]string{"services", s.key, "container_name"})
			}
		}
	}
	return out
}

// steps splits services.web.ports[0].target into its keys.
func steps(s string) []string {
	s = strings.NewReplacer("[", ".", "]", "").Replace(s)
	return slices.DeleteFunc(strings.Split(s, "."), func(p string) bool { return p == "" })
}
