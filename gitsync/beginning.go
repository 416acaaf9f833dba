package gitsync

import (
	"fmt"
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
		v := &verification{t: t, o: o, now: now, aids: aids, firstSeen: func(of ring.SHA) time.Time {
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

// landedAlone judges a tip that the forge made, where trust begins or a person
// says so: what it brought onto its first parent has to be signed content.
// unsigned is what is wrong with the tip by itself.
func (v *verification) landedAlone(tip ring.SHA, unsigned *ring.Refusal) (ring.Verified, *ring.Refusal, error) {
	p, refusal, err := readCommit(v.o, tip)
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	if len(p.parents) == 0 {
		return ring.Verified{}, unsigned, nil
	}
	ids, refusal, err := between(v.o, p.parents[0], tip, v.t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	all, refusal, err := v.landing(p.parents[0], tip, ids)
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	return all[len(all)-1], nil, nil
}
