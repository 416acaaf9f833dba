package gitsync

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Role is one thing that a signer may do.
type Role string

// The roles of a signer (docs/design/trust.md#roles).
const (
	RoleCommit Role = "commit" // commits with one parent
	RoleMerge  Role = "merge"  // merge commits
	RoleVouch  Role = "vouch"  // answering for commits of others
	RoleTrust  Role = "trust"  // changing the signers that are in the repository
	RoleImages Role = "images" // commits that only move tags and digests of images
)

var roles = []Role{RoleCommit, RoleMerge, RoleVouch, RoleTrust, RoleImages}

// Binding is what one signer may do, where. A signer may have several: each
// grants what it says. One whom no binding names has the default, commit and
// merge everywhere, and the first signer vouch too.
type Binding struct {
	// Signer is a principal, as a pattern with * and ?, or a whole key
	// fingerprint (SHA256:… or 40 hex digits). OpenPGP keys have no principal here:
	// their user id is what their owner writes.
	Signer string `yaml:"signer"`
	Roles  []Role `yaml:"roles"` // none is commit and merge
	// Sources, Branches and Paths are patterns; none is all. In a path * and ?
	// stop at a slash, and ** stands for any number of folders.
	Sources  []string `yaml:"sources"`
	Branches []string `yaml:"branches"`
	Paths    []string `yaml:"paths"`
	// Moves are how far role images lets an image move: digest, patch, minor, major; none is
	// all four, and any is every tag of the same repository. Direction is up, or any; "" is up.
	Moves     []string `yaml:"moves"`
	Direction string   `yaml:"direction"`
}

const anyMove = "any"

var (
	moves      = []string{ring.MoveDigest, ring.MovePatch, ring.MoveMinor, ring.MoveMajor, anyMove}
	directions = []string{"up", anyMove}
)

// check says what is wrong with a binding.
func (b Binding) check() error {
	if strings.TrimSpace(b.Signer) == "" {
		return fmt.Errorf("a binding names no signer; write signer: alice@example.org")
	}
	for _, r := range b.Roles {
		if !slices.Contains(roles, r) {
			return fmt.Errorf("role %q of signer %s is unknown; roles are commit, merge, vouch, trust and images", clip(string(r)), clip(b.Signer))
		}
	}
	for _, move := range b.Moves {
		if !slices.Contains(moves, move) {
			return fmt.Errorf("move %q of signer %s is unknown; moves are %s", clip(move), clip(b.Signer), strings.Join(moves, ", "))
		}
	}
	if b.Direction != "" && !slices.Contains(directions, b.Direction) {
		return fmt.Errorf("direction %q of signer %s is unknown; it is up or any", clip(b.Direction), clip(b.Signer))
	}
	return b.checkPaths()
}

func (b Binding) checkPaths() error {
	for _, p := range b.Paths {
		if p == "" || path.IsAbs(p) || path.Clean(p) != p || strings.HasPrefix(p, "../") || p == ".." {
			return fmt.Errorf("path %q of signer %s is not a clean path inside the repository; write apps/web/** for a folder with all below it", clip(p), clip(b.Signer))
		}
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("path %q of signer %s is no pattern: close the bracket", clip(p), clip(b.Signer))
		}
	}
	return nil
}

func (b Binding) names(id identity) bool {
	return b.Signer == id.fingerprint || !id.openPGP() && matchPattern(b.Signer, id.principal)
}

func (b Binding) has(r Role) bool {
	if len(b.Roles) == 0 {
		return r == RoleCommit || r == RoleMerge
	}
	return slices.Contains(b.Roles, r)
}

func (b Binding) at(source, branch string) bool {
	return matchesAny(b.Sources, source) && matchesAny(b.Branches, branch)
}

// matchesAny reports whether one of the patterns matches; no pattern is all.
func matchesAny(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, s) })
}

func (b Binding) covers(file string) bool {
	return len(b.Paths) == 0 || slices.ContainsFunc(b.Paths, func(p string) bool { return matchPath(p, file) })
}

func matchPath(pattern, file string) bool { return ring.MatchPath(pattern, file) }

// grants are what the bindings say of a signer, or the default. What the
// repository says of a key adds to that, and is all of it for a signer whom the
// configuration does not know.
func (t *Trust) grants(id identity) []Binding {
	var out []Binding
	if !id.repo {
		out = t.configured(id)
	}
	if t.repo != nil {
		out = append(out, t.repo.grants[id.fingerprint]...)
	}
	return out
}

// mayAnswer reports whether what a signer's trailers allow counts: it is about the whole
// source, so one who is bound to paths, or to images, cannot give it. What the repository
// says of the signer is asked of every parent.
func (t *Trust) mayAnswer(o Objects, v ring.Verified) (bool, error) {
	if t.cfg.Mode == Disabled {
		return true, nil
	}
	id := identity{principal: v.Signer, fingerprint: v.Fingerprint}
	if t.cfg.SignersInRepo == "" {
		return t.isWhole(t.grants(id)), nil
	}
	p, refusal, err := readCommit(o, v.SHA)
	if err := worldly(refusal, err); err != nil {
		return false, err
	}
	var at []*Trust
	for _, parent := range p.parents {
		with, err := t.Of(o, parent)
		if err != nil {
			return false, err
		}
		at = append(at, with)
		id.repo = id.repo || with.onlyInRepo(id.fingerprint)
	}
	if len(at) == 0 {
		return t.isWhole(t.grants(id)), nil
	}
	return !slices.ContainsFunc(at, func(with *Trust) bool { return !t.isWhole(with.grants(id)) }), nil
}

// isWhole reports whether one of the bindings is about the whole source.
func (t *Trust) isWhole(grants []Binding) bool {
	return slices.ContainsFunc(grants, func(b Binding) bool {
		return len(b.Paths) == 0 && b.at(t.source, t.branch) && (b.has(RoleCommit) || b.has(RoleMerge))
	})
}

func (t *Trust) configured(id identity) []Binding {
	var out []Binding
	for _, b := range t.cfg.Bindings {
		if b.names(id) {
			out = append(out, b)
		}
	}
	if len(out) > 0 || id.openPGP() && t.bindsHere() {
		return out
	}
	def := Binding{Signer: id.principal, Roles: []Role{RoleCommit, RoleMerge}}
	if t.first != "" && id.fingerprint == t.first {
		def.Roles = append(def.Roles, RoleVouch)
		if t.cfg.SignersInRepo != "" {
			def.Roles = append(def.Roles, RoleTrust) // somebody has to begin the file
		}
	}
	return []Binding{def}
}

// bindsHere reports whether the configuration says of anybody what they may do at
// this source. An OpenPGP key that no binding names then has no rights here.
func (t *Trust) bindsHere() bool {
	return slices.ContainsFunc(t.cfg.Bindings, func(b Binding) bool { return matchesAny(b.Sources, t.source) })
}

// holding are the grants of a role at this source and branch; the refusal says
// which of the three is missing.
func (t *Trust) holding(sha ring.SHA, id identity, r Role) ([]Binding, *ring.Refusal) {
	all := t.grants(id)
	if len(all) == 0 {
		return nil, notBound(sha, id)
	}
	here := slices.DeleteFunc(slices.Clone(all), func(b Binding) bool { return !b.at(t.source, t.branch) })
	if len(here) == 0 {
		return nil, branchNotAllowed(sha, id, t.source, t.branch)
	}
	with := slices.DeleteFunc(slices.Clone(here), func(b Binding) bool { return !b.has(r) })
	if len(with) == 0 {
		return nil, roleNotAllowed(sha, id, r)
	}
	return with, nil
}

// permitted holds a commit to the rights of its signer: role, branch, and every
// path that it changes against its first parent; of a merge, every path that
// its maker decided.
func (v *verification) permitted(t *Trust, p *parsed, id identity) (*ring.Refusal, error) {
	role := RoleCommit
	if len(p.parents) > 1 {
		role = RoleMerge
	}
	with, refusal := t.holding(p.sha, id, role)
	if refusal == nil {
		return v.within(t, p, id, with)
	}
	if role == RoleCommit {
		if images, no := t.holding(p.sha, id, RoleImages); no == nil {
			return v.imagesOnly(p, id, images)
		}
		if trust, no := t.holding(p.sha, id, RoleTrust); no == nil {
			return v.signersOnly(p, trust, refusal)
		}
	}
	return refusal, nil
}

// signersOnly lets a signer with the role trust and no other change the file of
// signers, and nothing else.
func (v *verification) signersOnly(p *parsed, grants []Binding, otherwise *ring.Refusal) (*ring.Refusal, error) {
	changes, refusal, err := v.changes(p)
	if refusal != nil || err != nil {
		return refusal, err
	}
	file := v.t.cfg.SignersInRepo
	if len(changes) == 1 && changes[0].path == file && slices.ContainsFunc(grants, func(b Binding) bool { return b.covers(file) }) {
		return nil, nil
	}
	return otherwise, nil
}

// within holds what a commit changes to the paths of grants. The file of signers
// is open to whoever has the role trust for it.
func (v *verification) within(t *Trust, p *parsed, id identity, grants []Binding) (*ring.Refusal, error) {
	if everywhere(grants) {
		return nil, nil // nothing to read
	}
	changes, refusal, err := v.changes(p)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if file := t.cfg.SignersInRepo; file != "" && t.mayEditSigners(p.sha, id) {
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.path == file })
	}
	return inPaths(p.sha, id, grants, changes), nil
}

// limited reports whether somebody may change only some paths.
func (t *Trust) limited() bool {
	narrow := func(b Binding) bool { return len(b.Paths) > 0 }
	if slices.ContainsFunc(t.cfg.Bindings, narrow) {
		return true
	}
	if t.repo != nil {
		for _, of := range t.repo.grants {
			if slices.ContainsFunc(of, narrow) {
				return true
			}
		}
	}
	return false
}

func everywhere(grants []Binding) bool {
	return slices.ContainsFunc(grants, func(b Binding) bool { return len(b.Paths) == 0 })
}

func inPaths(sha ring.SHA, id identity, grants []Binding, changes []change) *ring.Refusal {
	for _, c := range changes {
		if !slices.ContainsFunc(grants, func(b Binding) bool { return b.covers(c.path) }) {
			return pathNotAllowed(sha, id, c.path, grants)
		}
	}
	return nil
}

// changes are what a commit itself changes: of a merge, what was not decided by
// its parents.
func (v *verification) changes(p *parsed) ([]change, *ring.Refusal, error) {
	bases := make([]ring.SHA, max(1, len(p.parents))) // the first commit changes the empty tree
	for i, id := range p.parents {
		var refusal *ring.Refusal
		var err error
		if bases[i], refusal, err = v.treeOf(id); refusal != nil || err != nil {
			return nil, refusal, err
		}
	}
	if len(bases) > 1 {
		return v.decided(p, bases)
	}
	return changed(v.o, p.sha, bases[0], p.tree)
}

// treeOf is the tree of a commit that may lie behind the anchor, where the
// grammar is not asked for.
func (v *verification) treeOf(sha ring.SHA) (ring.SHA, *ring.Refusal, error) {
	kind, body, err := v.o.Raw(sha)
	if err != nil {
		return "", nil, fmt.Errorf("cannot read commit %s: %w", sha, err)
	}
	sum, collides := objectHash(kind, body)
	if refusal := named(sha, sum, collides); refusal != nil {
		return "", refusal, nil
	}
	const head = len("tree ") + 40
	if kind != "commit" || len(body) <= head || string(body[:5]) != "tree " || body[head] != '\n' || !idForm.Match(body[5:head]) {
		return "", badGrammar(sha, fmt.Errorf("it does not begin with its tree")), nil
	}
	return ring.SHA(body[5:head]), nil, nil
}
