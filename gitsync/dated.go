package gitsync

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// SeenBefore says of each commit of a range when it was there at the latest, for somebody
// who sees all of them for the first time now. A signed commit says when it was made, and
// all that it stands on was there by then. Its word counts where its key does, at its own
// date and at the date by which the commits on top of it show that it was there. So a key
// that expired since still counts for what was built on in time, and a thief of it gains
// nothing by a date: somebody who still counts would have to build on what he made.
func (t *Trust) SeenBefore(o Objects, anchor, tip ring.SHA, now time.Time) (func(ring.SHA) time.Time, *ring.Refusal, error) {
	o = t.effort(o)
	ids, refusal, err := between(o, anchor, tip, t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	by := make(map[ring.SHA]time.Time, len(ids))
	at := func(p *parsed) time.Time {
		seen, known := by[p.sha]
		if !known || seen.After(now) {
			seen = now
		}
		if claimed := p.committer.when; claimed.After(seen) { // a clock that went wrong
			seen = claimed
		}
		if seen.After(now) {
			seen = now
		}
		return seen
	}
	times := make(map[ring.SHA]time.Time, len(ids))
	for i := len(ids) - 1; i >= 0; i-- { // children first
		p, refusal, err := readCommit(o, ids[i])
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		seen := at(p)
		times[p.sha] = seen
		_, no := t.signer(p, moments{claimed: p.committer.when, seen: seen, now: now, grace: t.cfg.ExpiryGrace})
		if no == nil && p.committer.when.Before(seen) {
			seen = p.committer.when
		}
		for _, parent := range p.parents {
			if known, ok := by[parent]; !ok || seen.Before(known) {
				by[parent] = seen
			}
		}
	}
	if anchor != "" {
		p, refusal, err := readCommit(o, anchor)
		if refusal == nil && err == nil { // else it is trusted by its id alone
			times[anchor] = at(p)
		}
	}
	return func(sha ring.SHA) time.Time { return times[sha] }, nil, nil
}

// Begins judges a commit with which trust is to begin, on its own word: it has a good
// signature of somebody who may change everything, or is a landing of such content.
func (t *Trust) Begins(o Objects, aids Aids, sha ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) (ring.Verified, *ring.Refusal, error) {
	alone := &Trust{cfg: t.cfg, source: t.source, branch: t.branch, ssh: t.ssh, pgp: t.pgp, revoked: t.revoked, first: t.first}
	alone.cfg.Introduction, alone.cfg.IntroductionSigner, alone.cfg.RequireIntroduction = "", "", false
	alone.cfg.MinCommit, alone.cfg.RequireTarget = "", false
	v := &verification{t: alone, o: alone.effort(o), now: now, aids: aids, firstSeen: firstSeen}
	all, refusal, err := v.firstUse(sha)
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	return all[0], nil, nil
}
