package gitsync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// Hands are the rights that a source's signers have on parts of the tree, as of one
// moment: the configuration's bindings, and those of the trusted commit. The zero value
// knows no limits.
type Hands struct {
	of    [][]Binding // by signer, as the bindings name them
	trust *Trust      // with the signers of the trusted commit
	print string
}

// Hands are the rights of the signers as of the trusted commit. An error is about the
// store or the mirror.
func (f *Follower) Hands(ctx context.Context) (Hands, error) {
	t := f.trust.Load()
	if t.cfg.Mode == Disabled || t.cfg.Mode == Tip {
		return Hands{}, nil // these modes know no rights
	}
	t, err := f.trustHere(ctx)
	if err != nil {
		return Hands{}, err
	}
	return t.hands(), nil
}

// Hands are the rights of the signers as the configuration has them, without what the
// repository says of any.
func (t *Trust) Hands() Hands {
	if t.cfg.Mode == Disabled || t.cfg.Mode == Tip {
		return Hands{}
	}
	return t.hands()
}

// hands groups the bindings that count for the source by the signer whom they name.
func (t *Trust) hands() Hands {
	by := map[string][]Binding{}
	for _, b := range t.cfg.Bindings {
		by["configuration "+b.Signer] = append(by["configuration "+b.Signer], b)
	}
	if t.repo != nil {
		for key, grants := range t.repo.grants {
			by["repository "+key] = grants
		}
	}
	h := Hands{trust: t}
	var print strings.Builder
	for _, signer := range slices.Sorted(maps.Keys(by)) {
		here := slices.DeleteFunc(slices.Clone(by[signer]), func(b Binding) bool { return !b.at(t.source, t.branch) })
		h.of = append(h.of, here)
		fmt.Fprintf(&print, "%q %q\n", signer, here)
	}
	h.print = print.String()
	return h
}

// Print changes whenever the rights do.
func (h Hands) Print() string { return h.print }

// Limited reports whether any signer has rights on some paths only.
func (h Hands) Limited() bool { return h.trust != nil && h.trust.limited() }

// One reports whether no signer has other rights on one of two apps than on the other.
// An app is the Compose file by which it is ruled, inside the commit.
func (h Hands) One(a, b string) bool {
	return !slices.ContainsFunc(h.of, func(grants []Binding) bool { return reachInto(grants, a) != reachInto(grants, b) })
}

// How far somebody reaches into an app.
const (
	reachesNothing = iota
	reachesSome    // a file of its folder
	reachesAll     // its Compose file, and so all that it does
)

func reachInto(grants []Binding, file string) int {
	far := reachesNothing
	for _, b := range grants {
		switch {
		case b.covers(file):
			return reachesAll
		case slices.ContainsFunc(b.Paths, func(p string) bool { return meetsFolder(p, path.Dir(file)) }):
			far = reachesSome
		}
	}
	return far
}

// meetsFolder reports whether a pattern may cover something at or below a folder.
func meetsFolder(pattern, folder string) bool {
	if folder == "." {
		return true
	}
	parts := strings.Split(pattern, "/")
	for i, name := range strings.Split(folder, "/") {
		if i == len(parts) {
			return false
		}
		if parts[i] == "**" {
			return true
		}
		if ok, err := path.Match(parts[i], name); err != nil || !ok {
			return false
		}
	}
	return true
}

// Paths are the patterns of paths to which the signer of a verified commit is limited;
// limited is false for one who may change everything. A commit that the store does not
// know as verified has no rights, and neither has a landing of what several people signed:
// it does not tell whose a change in it is.
func (f *Follower) Paths(ctx context.Context, h Hands, sha ring.SHA) (paths []string, limited bool, err error) {
	if !h.Limited() {
		return nil, false, nil
	}
	v, known, err := f.anchors.Verified(ctx, f.cfg.Name, sha)
	if err != nil {
		return nil, true, fmt.Errorf("cannot read who signed %s: %w", sha.Short(), err)
	}
	if !known || cmp.Or(v.Signer, v.Fingerprint) == "" || severalSigned(v) {
		return []string{}, true, nil
	}
	paths = []string{}
	id := identity{principal: v.Signer, fingerprint: v.Fingerprint, repo: h.trust.onlyInRepo(v.Fingerprint)}
	for _, b := range h.trust.grants(id) {
		if !b.at(h.trust.source, h.trust.branch) {
			continue
		}
		if len(b.Paths) == 0 && (b.has(RoleCommit) || b.has(RoleMerge)) {
			return nil, false, nil
		}
		if b.has(RoleCommit) || b.has(RoleMerge) {
			paths = append(paths, b.Paths...)
		}
	}
	return paths, true, nil
}

var landedHead = regexp.MustCompile(`^(: head [0-9a-f]+)?$`)

// severalSigned reports whether a commit is a landing that holds what others than its
// signer signed. Only its note says so, in which an OpenPGP key's owner chose the name.
func severalSigned(v ring.Verified) bool {
	who, landed := strings.CutPrefix(v.Note, contentBy)
	rest, alone := strings.CutPrefix(who, v.Signer+landedByForge)
	return landed && !(alone && landedHead.MatchString(rest))
}

// onlyInRepo reports whether the repository names a key that the configuration does not.
func (t *Trust) onlyInRepo(fingerprint string) bool {
	if t.repo == nil || len(t.repo.grants[fingerprint]) == 0 {
		return false
	}
	for _, lines := range t.ssh {
		if slices.ContainsFunc(lines, func(l sshSigner) bool {
			return !l.repo && !l.authority && ssh.FingerprintSHA256(l.key) == fingerprint
		}) {
			return false
		}
	}
	return !slices.ContainsFunc(t.pgp, func(k pgpKey) bool { return !k.repo && k.primary == fingerprint })
}
