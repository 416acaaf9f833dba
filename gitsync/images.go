package gitsync

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// maxImageFile bounds a file in which images are moved; manifests are smaller.
const maxImageFile = 1 << 20

// imageLine is a line that names an image: what stands before it, the
// repository, the tag and digest, and what follows. A registry's port is part of
// the repository, as no slash follows a tag.
var imageLine = regexp.MustCompile(`^(\s*(?:-\s+)?["']?image["']?:\s+["']?)([A-Za-z0-9][A-Za-z0-9._-]*(?::[0-9]+/)?[A-Za-z0-9._/-]*)(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?(["']?[ \t]*(?:#.*)?\r?)$`)

// imagesOnly holds a commit of a signer with role images to moving tags and
// digests: every file it changes was there before and is there still, with as
// many lines, and each line that differs names the same repository as before.
func (v *verification) imagesOnly(p *parsed, id identity, grants []Binding) (*ring.Refusal, error) {
	changes, refusal, err := v.changes(p)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if refusal := inPaths(p.sha, id, grants, changes); refusal != nil {
		return refusal, nil
	}
	for _, c := range changes {
		why, refusal, err := v.movesImages(c)
		if refusal != nil || err != nil {
			return refusal, err
		}
		if why != "" {
			return notImagesOnly(p.sha, id, c.path, why), nil
		}
	}
	return nil, nil
}

// movesImages is why a change is more than that; "" when it is not.
func (v *verification) movesImages(c change) (why string, _ *ring.Refusal, _ error) {
	if c.old.name == "" || c.new.name == "" || c.old.mode != c.new.mode || !c.new.mode.IsRegular() {
		return "is added, removed or made something else", nil, nil
	}
	var texts [2][]string
	for i, n := range []node{c.old, c.new} {
		kind, body, err := v.o.Raw(n.sha)
		if err != nil {
			return "", nil, fmt.Errorf("cannot read %s: %w", c.path, err)
		}
		sum, collides := objectHash(kind, body)
		if refusal := named(n.sha, sum, collides); refusal != nil {
			return "", refusal, nil
		}
		if kind != "blob" || len(body) > maxImageFile {
			return "is no file of at most 1 MiB", nil, nil
		}
		texts[i] = strings.Split(string(body), "\n")
	}
	if len(texts[0]) != len(texts[1]) {
		return "has more or fewer lines", nil, nil
	}
	for i, line := range texts[0] {
		if other := texts[1][i]; line != other && !sameRepository(line, other) {
			return fmt.Sprintf("line %d is not a tag or digest of the same image", i+1), nil, nil
		}
	}
	return "", nil, nil
}

// sameRepository reports whether two lines name versions of one image, and nothing
// else differs between them. The new one names a version.
func sameRepository(a, b string) bool {
	x, y := imageLine.FindStringSubmatch(a), imageLine.FindStringSubmatch(b)
	if x == nil || y == nil || y[3] == "" && y[4] == "" || x[3] == "" && x[4] == "" {
		return false
	}
	return x[1] == y[1] && x[2] == y[2] && x[5] == y[5]
}
