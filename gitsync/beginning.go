package gitsync

import (
	"fmt"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// checkBeginning is check, of what says where trust begins.
func (c TrustConfig) checkBeginning() error {
	if c.IntroductionSigner != "" && c.Introduction == "" {
		return fmt.Errorf("introduction names signer %s and no commit; write introduction: {commit: <full id>, signer: %s}", clip(c.IntroductionSigner), clip(c.IntroductionSigner))
	}
	if c.IntroductionSigner != "" && c.Mode == Disabled {
		return fmt.Errorf("introduction names signer %s, and mode disabled looks at no signature; take the signer out, or set another mode", clip(c.IntroductionSigner))
	}
	if c.Version < 0 {
		return fmt.Errorf("trust_version %d is negative; begin with 1", c.Version)
	}
	return nil
}

// introducer is who signed the introduction, which may be nobody where the
// configuration names no signer. Where it does, the commit's date is not held
// against when it was first seen: its id is in the configuration, so nobody
// gains by another date.
func (v *verification) introducer(p *parsed) (identity, *ring.Refusal) {
	want := v.t.cfg.IntroductionSigner
	if want == "" {
		id, refusal := v.signer(p)
		if refusal != nil {
			return identity{}, nil
		}
		return id, nil
	}
	id, refusal := v.t.signer(p, moments{claimed: p.committer.when, seen: p.committer.when, now: v.now, grace: v.t.cfg.ExpiryGrace})
	if refusal != nil {
		return identity{}, refusal
	}
	if !(Binding{Signer: want}).names(id) {
		return identity{}, introductionMismatch(p.sha, id, want)
	}
	return id, nil
}

// Answered is One, for a commit that a person answers for. The person stands in
// for when it was first seen: a host that was away too long, or whose clock was
// wrong that day, would refuse it for good. What is dated in the future even now
// stays refused.
func (t *Trust) Answered(o Objects, aids Aids, sha ring.SHA, now, seen time.Time) (ring.Verified, *ring.Refusal, error) {
	at := func(when time.Time) (ring.Verified, *ring.Refusal, error) {
		return t.One(o, sha, now, func(ring.SHA) time.Time { return when })
	}
	one, refusal, err := at(seen)
	if t.cfg.Mode == ForgeMerge && byForge(refusal) {
		v := &verification{t: t, o: o, now: now, aids: aids, person: true, firstSeen: func(of ring.SHA) time.Time {
			if of == sha {
				return seen
			}
			return time.Time{}
		}}
		return v.landedAlone(sha, refusal)
	}
	if refusal == nil || err != nil || refusal.Code != ring.KeyExpiredFirstSeen && refusal.Code != ring.FutureDated {
		return one, refusal, err
	}
	p, unread, err := readCommit(o, sha)
	if unread != nil || err != nil {
		return ring.Verified{}, unread, err
	}
	claimed := p.committer.when
	if claimed.After(now) {
		claimed = now
	}
	one, refusal, err = at(claimed)
	one.FirstSeen = seen
	return one, refusal, err
}

// maxAlone is how many landings on top of each other are looked through for a tree
// that somebody signed.
const maxAlone = 100

// landedAlone judges a tip that the forge made, where trust begins or a person
// says so. Nothing below it is trusted yet, so that a landing is signed content is
// not enough: all that is in its tree has to be signed by somebody. It is where the
// tree is the very one that somebody signed, or where what it was landed on stands
// alone too. unsigned is what is wrong with the tip by itself.
func (v *verification) landedAlone(tip ring.SHA, unsigned *ring.Refusal) (ring.Verified, *ring.Refusal, error) {
	one, base, refusal, err := v.landedOn(tip, unsigned)
	for n := 0; base != "" && refusal == nil && err == nil; n++ {
		var below *ring.Refusal
		var id identity
		switch _, id, _, below, err = v.one(base); {
		case err == nil && below == nil:
			return one, v.whole(tip, base, id), nil
		case err != nil:
			return one, nil, err
		case !byForge(below) || n == maxAlone:
			return ring.Verified{}, beginsUnsigned(tip, base, below), nil
		}
		was := base
		if _, base, below, err = v.landedOn(was, below); below != nil {
			refusal = beginsUnsigned(tip, was, below)
		}
	}
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	return one, nil, nil
}

// landedOn holds what a landing brought onto its first parent to its signatures.
// base is that parent where the tree holds something of it that nobody signed with
// the rest; "" where somebody signed the tree as it is.
func (v *verification) landedOn(tip ring.SHA, unsigned *ring.Refusal) (one ring.Verified, base ring.SHA, _ *ring.Refusal, _ error) {
	p, refusal, err := readCommit(v.o, tip)
	if refusal == nil && err == nil && len(p.parents) == 0 {
		refusal = unsigned
	}
	if refusal != nil || err != nil {
		return one, "", refusal, err
	}
	base = p.parents[0]
	ids, refusal, err := between(v.o, base, tip, v.t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return one, "", refusal, err
	}
	l, refusal, err := v.landings(base, tip, ids)
	if refusal != nil || err != nil {
		return one, "", refusal, err
	}
	d := l.verdicts[tip]
	if d.speaks == nil {
		return d.one, base, nil, nil
	}
	if refusal := v.whole(tip, tip, identity{principal: d.one.Signer, fingerprint: d.one.Fingerprint}); refusal != nil {
		return d.one, "", refusal, nil
	}
	if d.speaks.tree == p.tree {
		base = ""
	}
	return d.one, base, nil, nil
}

// whole refuses to trust all that a first tip holds by the word of a signer, of the
// tip or of what it was landed on, who may change only a part of it.
func (v *verification) whole(tip, of ring.SHA, id identity) *ring.Refusal {
	if v.person || v.t.everything(id) {
		return nil
	}
	return introductionNeeded(tip, of, id, v.t.source)
}

// everything reports whether a signer may make commits of any path here. Whose rights
// are for a part, or for images or the list of signers alone, says nothing about the
// rest of a tree that nobody looked at before.
func (t *Trust) everything(id identity) bool {
	return t.cfg.Mode == Disabled || slices.ContainsFunc(t.grants(id), func(b Binding) bool {
		return len(b.Paths) == 0 && b.at(t.source, t.branch) && (b.has(RoleCommit) || b.has(RoleMerge))
	})
}
