package gitsync

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// DefaultSignersInRepo is where the signers stand in a repository that has them.
const DefaultSignersInRepo = ".gitring/signers"

// Bounds of a file of signers in the repository.
const (
	maxSignersFile = 1 << 20
	maxRepoSigners = 1_000
)

// repoSigners are the signers that a file in the repository names.
type repoSigners struct {
	ssh    sshSigners
	pgp    []pgpKey
	grants map[string][]Binding // by the fingerprint of a key
}

// parseRepoSigners reads the file. One mistake makes all of it bad.
func parseRepoSigners(file string, b []byte) (*repoSigners, *Mistake) {
	if len(b) > maxSignersFile {
		return nil, &Mistake{1, fmt.Sprintf("it is larger than %d bytes", maxSignersFile), ""}
	}
	if i := aliased(b); i > 0 {
		return nil, &Mistake{i, "an alias stands here", "write out what it stands for"}
	}
	entries, m := parseSignersFile(b, entryKeys)
	if len(entries) > maxRepoSigners {
		m = append(m, Mistake{1, fmt.Sprintf("it names more than %d signers", maxRepoSigners), ""})
	}
	s := &repoSigners{ssh: sshSigners{}, grants: map[string][]Binding{}}
	for _, e := range entries {
		s.take(&m, file, e)
	}
	if len(m) > 0 {
		slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
		return nil, &m[0]
	}
	return s, nil
}

// aliased is the line of the first alias; 0 for none, also where it is no YAML. A
// file without them is never larger than its bytes.
func aliased(b []byte) int {
	var root yaml.Node
	if yaml.Unmarshal(b, &root) != nil {
		return 0
	}
	todo := []*yaml.Node{&root}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.Kind == yaml.AliasNode {
			return n.Line
		}
		todo = append(todo, n.Content...)
	}
	return 0
}

func (s *repoSigners) take(m *mistakes, file string, e signerEntry) {
	if len(e.keys)+len(e.openpgp) == 0 {
		m.wrong(e.node, "add keys: with the line of the .pub file, or openpgp: with the armour", "signer %q has no key", clip(e.Signer))
		return
	}
	if strings.ContainsAny(e.Signer, "*?") {
		m.wrong(e.node, "write one item for each person", "signer %q is a pattern, and a key needs a name", clip(e.Signer))
		return
	}
	for _, n := range e.keys {
		line := sshSigner{place: fmt.Sprintf("%s:%d", file, n.Line), line: n.Line, principals: []string{e.Signer}, repo: true}
		if err := line.readKey(m, n); err != nil {
			m.wrong(n, "", "%v", err)
			continue
		}
		if line.key != nil && s.grant(m, n, ssh.FingerprintSHA256(line.key), e.Binding) {
			id := string(line.key.Marshal())
			s.ssh[id] = append(s.ssh[id], line)
		}
	}
	for _, n := range e.openpgp {
		keys, err := parseOpenPGPKeys("it", []byte(n.Value))
		if err == nil && len(keys) == 0 {
			err = fmt.Errorf("no key in it may sign")
		}
		if err != nil {
			m.wrong(n, "write openpgp: | and below it the output of gpg --armor --export <fingerprint>", "%v", err)
			continue
		}
		for _, k := range keys {
			k.principal, k.place, k.repo = e.Signer, fmt.Sprintf("%s:%d", file, n.Line), true
			s.pgp = append(s.pgp, k)
		}
		primaries := map[string]bool{}
		for _, k := range keys {
			if !primaries[k.primary] {
				primaries[k.primary] = true
				s.grant(m, n, k.primary, e.Binding)
			}
		}
	}
}

// grant notes what a key may do. A key is one person's: under two names it would
// be two of the people whom approvals count.
func (s *repoSigners) grant(m *mistakes, n *yaml.Node, key string, b Binding) bool {
	for _, other := range s.grants[key] {
		if other.Signer != b.Signer {
			m.wrong(n, "a key is one person's", "key %s is signer %s's already", key, other.Signer)
			return false
		}
	}
	s.grants[key] = append(s.grants[key], b)
	return true
}

// readKey reads a public key line, or a mapping with one and its times.
func (s *sshSigner) readKey(m *mistakes, n *yaml.Node) (err error) {
	text := n
	if n.Kind == yaml.MappingNode {
		fields := m.fields(n, "a key", []string{"key", "valid_after", "valid_before"})
		if text = fields["key"]; text == nil {
			return fmt.Errorf("this item has no key")
		}
		for name, at := range map[string]*time.Time{"valid_after": &s.valid.from, "valid_before": &s.valid.until} {
			if v := fields[name]; v != nil {
				if *at, err = parseDay(v.Value); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		if !s.valid.until.IsZero() && s.valid.until.Before(s.valid.from) {
			return fmt.Errorf("valid_before is earlier than valid_after")
		}
	}
	field, rest, err := word(m.text(text))
	if err != nil || field == "" {
		return err
	}
	s.key, err = parseSSHKey(field, rest)
	return err
}

// parseDay reads a day or a moment, in UTC: the file is the same on every host.
func parseDay(v string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, v); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write 2026-01-31 or 2026-01-31T12:00:00Z", clip(v))
}

// repoPath says what is wrong with signers_in_repo.
func repoPath(p string) error {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return fmt.Errorf("signers_in_repo %q is not a clean path inside the repository; write %s", clip(p), DefaultSignersInRepo)
	}
	return nil
}

// with is t, with the signers of a file in the repository besides its own.
func (t *Trust) with(repo *repoSigners) *Trust {
	if repo == nil {
		return t
	}
	return &Trust{
		cfg: t.cfg, source: t.source, branch: t.branch, ssh: t.ssh, pgp: t.pgp, revoked: t.revoked,
		first: t.first, repo: repo,
	}
}

// blobAt is the file of a path in a tree.
type blobAt struct {
	sha     ring.SHA // "" where there is none
	regular bool
}

// fileAt finds a path in a tree.
func (v *verification) fileAt(of, tree ring.SHA, file string) (blobAt, *ring.Refusal, error) {
	c := &comparison{o: v.o}
	parts := strings.Split(file, "/")
	for i, part := range parts {
		list, refusal, err := c.folder(of, tree)
		if refusal != nil || err != nil {
			return blobAt{}, refusal, err
		}
		at := slices.IndexFunc(list, func(n node) bool { return n.name == part })
		switch {
		case at < 0:
			return blobAt{}, nil, nil
		case i == len(parts)-1:
			return blobAt{list[at].sha, list[at].mode.IsRegular()}, nil, nil
		case !list[at].mode.IsDir():
			return blobAt{}, nil, nil
		}
		tree = list[at].sha
	}
	return blobAt{}, nil, nil
}

// signersOf reads the file that a blob holds; the mistake is of who wrote it.
func (v *verification) signersOf(b blobAt) (*repoSigners, *Mistake, *ring.Refusal, error) {
	if b.sha == "" {
		return nil, nil, nil, nil
	}
	if !b.regular {
		return nil, &Mistake{0, "it is no regular file", ""}, nil, nil
	}
	kind, body, err := v.o.Raw(b.sha)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot read %s: %w", v.t.cfg.SignersInRepo, err)
	}
	sum, collides := objectHash(kind, body)
	if refusal := named(b.sha, sum, collides); refusal != nil {
		return nil, nil, refusal, nil
	}
	if last := v.t.lastRepo.Load(); last != nil && last.sha == b.sha {
		return last.signers, nil, nil, nil
	}
	s, mistake := parseRepoSigners(v.t.cfg.SignersInRepo, body)
	if mistake == nil {
		v.t.lastRepo.Store(&repoFile{b.sha, s})
	}
	return s, mistake, nil, nil
}

// repoFile is what one blob holds.
type repoFile struct {
	sha     ring.SHA
	signers *repoSigners
}
