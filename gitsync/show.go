package gitsync

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// Trusted is whom and what the source trusts now; Tip, Refusal and Reason are the
// caller's to fill in.
func (f *Follower) Trusted(ctx context.Context) (ring.TrustState, error) {
	a, err := f.anchors.Anchor(ctx, f.cfg.Name)
	if err != nil {
		return ring.TrustState{}, fmt.Errorf("cannot read the anchor of source %s: %w", f.cfg.Name, err)
	}
	t := f.trust.Load()
	s := ring.TrustState{
		Source: f.cfg.Name, Branch: f.cfg.Branch, Mode: t.cfg.Mode, Version: t.version, Epoch: t.epoch, Warning: t.Warning(),
		Introduction: t.cfg.Introduction, MinCommit: t.cfg.MinCommit, Trusted: a.SHA, How: a.How, Since: a.At,
		Signers: t.signers(time.Now()), Revoked: t.revoked.count(), Files: t.cfg.files(),
	}
	if a.SHA == "" {
		return s, nil
	}
	if t.cfg.SignersInRepo != "" {
		all, file := t.signersAt(f.mirror, a.SHA, time.Now())
		s.Signers, s.Files = all, append(s.Files, file)
	}
	if a.Began.SHA != "" {
		s.Began = &a.Began
	}
	v, _, err := f.anchors.Verified(ctx, f.cfg.Name, a.SHA)
	if err != nil {
		return ring.TrustState{}, fmt.Errorf("cannot read who signed %s: %w", a.SHA.Short(), err)
	}
	s.Signer = v.Signer
	return s, nil
}

// signers are the keys of the configuration, in the order of its files.
func (t *Trust) signers(now time.Time) []ring.TrustedSigner {
	return append(t.shownSSH(t.ssh), t.shownPGP(t.pgp, now)...)
}

// signersAt are all keys that count after a trusted commit: the configuration's,
// with what the repository adds to them, and those that only the repository names;
// and the file that names them.
func (t *Trust) signersAt(o Objects, trusted ring.SHA, now time.Time) ([]ring.TrustedSigner, ring.TrustFile) {
	file := ring.TrustFile{Key: "signers_in_repo", Path: t.cfg.SignersInRepo + " at " + trusted.Short(), Owner: -1}
	s, err := t.repoSignersAt(o, trusted)
	if err != nil {
		file.Wrong = err.Error()
	}
	if s == nil {
		return t.signers(now), file
	}
	with := t.with(s)
	all := with.signers(now)
	known := map[string]bool{}
	for _, one := range all {
		known[one.Fingerprint] = true
	}
	for _, one := range append(with.shownSSH(s.ssh), with.shownPGP(s.pgp, now)...) {
		if !known[one.Fingerprint] {
			one.InRepo = true
			all = append(all, one)
		}
	}
	return all, file
}

// repoSignersAt reads the file of signers of a trusted commit; nil where it has none.
func (t *Trust) repoSignersAt(o Objects, trusted ring.SHA) (*repoSigners, error) {
	v := &verification{t: t, o: o, editions: editions{blobs: map[ring.SHA]blobAt{}}}
	blob, refusal, err := v.signersBlob(trusted)
	var s *repoSigners
	var mistake *Mistake
	if refusal == nil && err == nil {
		s, mistake, refusal, err = v.signersOf(blob)
	}
	switch {
	case err != nil:
		return nil, err
	case refusal != nil:
		return nil, refusal
	case mistake != nil:
		return nil, fmt.Errorf("line %d: %s", mistake.Line, mistake.Says)
	}
	return s, nil
}

func (t *Trust) shownSSH(keys sshSigners) []ring.TrustedSigner {
	var lines []sshSigner
	for _, l := range keys {
		lines = append(lines, l...)
	}
	slices.SortFunc(lines, func(a, b sshSigner) int { return a.line - b.line })
	out := []ring.TrustedSigner{}
	for _, l := range lines {
		one := t.shown(identity{principal: l.principal(), fingerprint: ssh.FingerprintSHA256(l.key), repo: l.repo}, "ssh", l.valid)
		if l.authority {
			one.Kind = "cert-authority"
		}
		one.Revoked, _ = t.revoked.hasKey(l.key)
		one.Place = l.place
		out = append(out, one)
	}
	return out
}

func (t *Trust) shownPGP(keys []pgpKey, now time.Time) []ring.TrustedSigner {
	var out []ring.TrustedSigner
	for i := range keys {
		k := &keys[i]
		one := t.shown(k.identity(), "openpgp", k.span(now))
		one.Fingerprint, one.Place = k.fingerprint, k.place
		one.Revoked, _ = t.revoked.has(k.fingerprint, k.primary)
		if one.Revoked == "" && slices.ContainsFunc(k.chain, func(s selfSigned) bool { return s.revokedAt(now) }) {
			one.Revoked = "by its owner"
		}
		if k.revoker != "" {
			one.Refused = ring.Revoker
		}
		out = append(out, one)
	}
	return out
}

func (t *Trust) shown(id identity, kind string, valid span) ring.TrustedSigner {
	one := ring.TrustedSigner{
		Principal: id.principal, Kind: kind, Fingerprint: id.fingerprint, From: valid.from, Until: valid.until, Grants: []ring.Grant{},
	}
	for _, b := range t.grants(id) {
		if !b.at(t.source, t.branch) {
			continue
		}
		g := ring.Grant{Paths: b.Paths}
		for _, r := range roles {
			if b.has(r) {
				g.Roles = append(g.Roles, string(r))
			}
		}
		one.Grants = append(one.Grants, g)
	}
	return one
}

// span is when the key counts, by what its owner says of it now.
func (k *pgpKey) span(now time.Time) span {
	var out span
	for _, s := range k.chain {
		if s.created.After(out.from) {
			out.from = s.created
		}
		if until := s.until(now); !until.IsZero() && (out.until.IsZero() || until.Before(out.until)) {
			out.until = until
		}
	}
	return out
}

// count is how many entries a list of revoked keys has.
func (r *revocations) count() int {
	n := len(r.keys) + len(r.sha1)
	for _, c := range r.certs {
		n += len(c.ids) + len(c.serials) + len(c.ranges) + len(c.bitmaps)
	}
	return n
}

// files are those that trust rests on, as they are on disk now.
func (c TrustConfig) files() []ring.TrustFile {
	out := []ring.TrustFile{}
	for _, f := range []struct{ key, path string }{
		{"allowed_signers", c.AllowedSigners}, {"openpgp_keys", c.OpenPGPKeys}, {"signers", c.SignersFile}, {"revoked_keys", c.RevokedKeys},
	} {
		if f.path == "" {
			continue
		}
		one := ring.TrustFile{Key: f.key, Path: f.path, Owner: -1}
		if st, err := os.Lstat(f.path); err == nil {
			one.Owner, one.Mode = owner(st), fmt.Sprintf("%04o", st.Mode().Perm())
		}
		if _, err := readTrustFile(f.path, os.Geteuid(), c.AnyOwner); err != nil {
			one.Wrong = err.Error()
		}
		out = append(out, one)
	}
	return out
}
