package gitsync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// SignedBy is "" where one of the patterns names who signed, or vouched for, the newest
// commit at or behind tip that changed a file; else it says why not. A pattern is a name
// or a fingerprint, as in trust.signers. An error is about the store or the mirror.
func (f *Follower) SignedBy(ctx context.Context, tip ring.SHA, file string, patterns []string) (why string, err error) {
	t, err := f.trustHere(ctx)
	if err != nil {
		return "", err
	}
	if t.cfg.Mode == Disabled {
		return "trust mode disabled verifies no signature", nil
	}
	q := &fileSigner{t: t, o: Until(ctx, f.mirror), now: f.now().UTC(), row: func(sha ring.SHA) (ring.Verified, bool, error) {
		return f.anchors.Verified(ctx, f.cfg.Name, sha)
	}}
	changer, err := f.changers.of(q, tip, file)
	if err == nil {
		why, err = q.says(tip, changer, file, patterns)
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell who signed %s: %w", file, err)
	}
	return why, nil
}

// changers remembers, by file, which commit changed it last: a file that stays as it is is
// not searched for again at each commit.
type changers struct {
	mu sync.Mutex
	by map[string]walked // guarded by mu
}

// walked is up to which commit a file was followed, and what was found.
type walked struct{ tip, changer ring.SHA }

func (c *changers) of(q *fileSigner, tip ring.SHA, file string) (ring.SHA, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changer, err := q.changer(tip, file, c.by[file])
	if err == nil && changer != "" {
		if c.by == nil {
			c.by = map[string]walked{}
		}
		c.by[file] = walked{tip, changer}
	}
	return changer, err
}

// trustHere is the trust set with the signers of the trusted commit.
func (f *Follower) trustHere(ctx context.Context) (*Trust, error) {
	t := f.trust.Load()
	if t.cfg.SignersInRepo == "" || t.cfg.Mode == Disabled {
		return t, nil
	}
	a, err := f.anchors.Anchor(ctx, f.cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchor of source %s: %w", f.cfg.Name, err)
	}
	if a.SHA == "" {
		return t, nil
	}
	if t, err = t.Of(f.mirror, a.SHA); err != nil {
		return nil, fmt.Errorf("cannot read the signers of the trusted commit: %w", err)
	}
	return t, nil
}

// fileSigner is one question after the signer of a file. row is what the store knows of
// an accepted commit.
type fileSigner struct {
	t       *Trust
	o       Objects
	now     time.Time
	row     func(ring.SHA) (ring.Verified, bool, error)
	entries map[folderAt]node // by folder and the path below it
}

// folderAt is a folder of a tree, and a path below it.
type folderAt struct {
	folder ring.SHA
	below  string
}

// changer is the newest commit, walking back from tip, that changed a file; "" where it
// lies too far back. A merge changed it where its maker decided what the file is. known is
// what an earlier walk for the file found.
func (q *fileSigner) changer(tip ring.SHA, file string, known walked) (ring.SHA, error) {
	at := tip
	here, err := q.entry(at, file)
	if err != nil {
		return "", err
	}
	for range q.t.cfg.MaxRange {
		if at == known.tip {
			return known.changer, nil
		}
		p, refusal, err := readCommit(q.o, at)
		if err := worldly(refusal, err); err != nil {
			return "", err
		}
		before := ring.SHA("")
		differs := false
		for _, id := range p.parents {
			there, err := q.entry(id, file)
			if err != nil {
				return "", err
			}
			if there != here {
				differs = true
			} else if before == "" {
				before = id
			}
		}
		if before == "" {
			return at, nil
		}
		if differs {
			if own, err := q.decided(p, file); own || err != nil {
				return at, err
			}
		}
		at = before
	}
	return "", nil
}

// decided reports whether the maker of a merge decided what a file is: both sides have
// changed it since they parted, or never had a beginning in common.
func (q *fileSigner) decided(p *parsed, file string) (bool, error) {
	for _, other := range p.parents[1:] {
		common, refusal, err := bases(q.o, p.parents[0], other, q.t.cfg.MaxRange)
		if err := worldly(refusal, err); err != nil {
			return false, err
		}
		if len(common) == 0 {
			return true, nil
		}
	}
	v := &verification{t: q.t, o: q.o}
	list, refusal, err := v.changes(p)
	if err := worldly(refusal, err); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(c change) bool { return c.path == file }), nil
}

// worldly is a refusal as an error: the commit is one of the trusted history.
func worldly(refusal *ring.Refusal, err error) error {
	if err == nil && refusal != nil {
		return refusal
	}
	return err
}

// entry is what a commit has at a path; the zero node for nothing.
func (q *fileSigner) entry(sha ring.SHA, file string) (node, error) {
	v := &verification{t: q.t, o: q.o}
	root, refusal, err := v.treeOf(sha)
	if err := worldly(refusal, err); err != nil {
		return node{}, err
	}
	return q.below(sha, folderAt{root, file})
}

// below is what a folder of a commit has at a path. Most commits share most folders.
func (q *fileSigner) below(sha ring.SHA, at folderAt) (node, error) {
	if n, known := q.entries[at]; known {
		return n, nil
	}
	c := &comparison{o: q.o}
	list, refusal, err := c.folder(sha, at.folder)
	if err := worldly(refusal, err); err != nil {
		return node{}, err
	}
	name, rest, deeper := strings.Cut(at.below, "/")
	n, ok := list.find(name)
	switch {
	case !ok:
		n = node{}
	case deeper && n.mode.IsDir():
		n, err = q.below(sha, folderAt{n.sha, rest})
	case deeper:
		n = node{}
	}
	if err == nil {
		if q.entries == nil {
			q.entries = map[folderAt]node{}
		}
		q.entries[at] = n
	}
	return n, err
}

// says is "" where one of the patterns names who answers for a commit that changed a
// file, else why not.
func (q *fileSigner) says(tip, changer ring.SHA, file string, patterns []string) (string, error) {
	if changer == "" {
		return fmt.Sprintf("none of the newest %d commits changed %s", q.t.cfg.MaxRange, file), nil
	}
	named := func(id identity) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			p = fingerprintForm(p)
			// A name that the repository gives to a key is the word of whoever may change that file.
			return p == id.fingerprint || !id.repo && Binding{Signer: p}.names(id)
		})
	}
	id, revoked, err := q.signer(changer)
	if err != nil {
		return "", err
	}
	if id.fingerprint != "" && named(id) {
		return "", nil
	}
	vouched, err := q.voucher(tip, changer, file, named)
	if vouched || err != nil {
		return "", err
	}
	what := fmt.Sprintf("commit %s, the newest that changed %s", changer.Short(), file)
	switch {
	case revoked:
		return what + ", was signed with a key that is revoked", nil
	case id.fingerprint == "":
		return what + ", has no signature of one signer", nil
	case id.openPGP():
		return what + ", was signed by " + id.fingerprint, nil
	}
	return what + ", was signed by " + clip(id.principal), nil
}

// signer is who answers for a commit by its own signature, or by what this host accepted
// it for, where the key still counts. A landing of what several people signed has none.
func (q *fileSigner) signer(sha ring.SHA) (id identity, revoked bool, err error) {
	p, refusal, err := readCommit(q.o, sha)
	if err := worldly(refusal, err); err != nil {
		return id, false, err
	}
	v := &verification{t: q.t, o: q.o, now: q.now}
	if id, refusal = v.signer(p); refusal == nil {
		return id, false, nil
	}
	if refusal.Code == ring.Revoked {
		return identity{}, true, nil
	}
	row, known, err := q.row(sha)
	if err != nil || !known || severalSigned(row) {
		return identity{}, false, err
	}
	id = identity{principal: row.Signer, fingerprint: row.Fingerprint}
	known, id.repo = q.t.knowsKey(id.fingerprint)
	if _, revoked = q.t.revoked.has(id.fingerprint); revoked || !known {
		return identity{}, revoked, nil
	}
	return id, false, nil
}

// knowsKey reports whether a key is among those that count now, and whether only the
// repository names it.
func (t *Trust) knowsKey(fingerprint string) (known, repo bool) {
	if t.repo != nil && len(t.repo.grants[fingerprint]) > 0 {
		return true, t.onlyInRepo(fingerprint)
	}
	for _, lines := range t.ssh {
		if slices.ContainsFunc(lines, func(l sshSigner) bool { return !l.authority && ssh.FingerprintSHA256(l.key) == fingerprint }) {
			return true, false
		}
	}
	return slices.ContainsFunc(t.pgp, func(k pgpKey) bool { return k.primary == fingerprint }), false
}

// voucher reports whether somebody whom named knows vouched for a commit since, and may
// do so for the file.
func (q *fileSigner) voucher(tip, changer ring.SHA, file string, named func(identity) bool) (bool, error) {
	ids, refusal, err := between(q.o, changer, tip, q.t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return false, err // too far back to look for one
	}
	for _, sha := range ids {
		p, refusal, err := readCommit(q.o, sha)
		if err := worldly(refusal, err); err != nil {
			return false, err
		}
		if !slices.Contains(p.trailers(vouchTrailer), string(changer)) {
			continue
		}
		v := &verification{t: q.t, o: q.o, now: q.now}
		id, refusal := v.signer(p)
		if refusal != nil || !named(id) {
			continue
		}
		with, refusal := q.t.holding(sha, id, RoleVouch)
		if refusal == nil && slices.ContainsFunc(with, func(b Binding) bool { return b.covers(file) }) {
			return true, nil
		}
	}
	return false, nil
}
