package gitsync

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Range verifies every commit that tip reaches and anchor does not, oldest
// first, and hands all of them back, or the refusal of the first that breaks a
// rule. Equal anchor and tip are nothing to do. Without an anchor it is the first
// trust (docs/design/trust.md#first-trust): the introduction and what came after it, or else
// the tip alone. firstSeen is when the daemon first saw a commit; nil or a zero
// time is now. The error is of the world (an object that cannot be read); it says
// nothing about the commits.
func (t *Trust) Range(o Objects, anchor, tip ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) ([]ring.Verified, *ring.Refusal, error) {
	return t.RangeWith(o, Aids{}, anchor, tip, now, firstSeen)
}

// RangeWith is Range with what mode forge-merge needs besides objects.
func (t *Trust) RangeWith(o Objects, aids Aids, anchor, tip ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) ([]ring.Verified, *ring.Refusal, error) {
	for _, sha := range []ring.SHA{anchor, tip} {
		if sha != "" && !idForm.MatchString(string(sha)) || tip == "" {
			return nil, nil, fmt.Errorf("cannot verify %q..%q: not full commit ids", anchor, tip)
		}
	}
	if anchor == tip {
		return nil, nil, nil
	}
	v := &verification{t: t, o: t.effort(o), now: now, firstSeen: firstSeen, aids: aids}
	all, refusal, err := v.from(anchor, tip)
	if errors.Is(err, errEffort) {
		return nil, tooMuchEffort(tip), nil
	}
	return all, refusal, err
}

// from verifies what comes after the anchor, or where trust begins.
func (v *verification) from(anchor, tip ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	if anchor != "" {
		return v.since(anchor, "the last trusted commit", tip)
	}
	if v.t.cfg.Introduction != "" {
		return v.introduced(tip)
	}
	return v.firstUse(tip)
}

// One verifies one commit on its own: its bytes, signature and signer, not where
// it stands in history nor which source it is for.
func (t *Trust) One(o Objects, sha ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) (ring.Verified, *ring.Refusal, error) {
	if !idForm.MatchString(string(sha)) {
		return ring.Verified{}, nil, fmt.Errorf("cannot verify %q: not a full commit id", sha)
	}
	v := &verification{t: t, o: o, now: now, firstSeen: firstSeen}
	_, _, one, refusal, err := v.one(sha)
	return one, refusal, err
}

// Of is t with the signers that a trusted commit of the repository names too, for
// a commit that is verified on its own. Without signers in the repository it is t.
func (t *Trust) Of(o Objects, trusted ring.SHA) (*Trust, error) {
	v := &verification{t: t, o: o}
	refusal, err := v.begin(trusted)
	switch {
	case err != nil:
		return nil, err
	case refusal != nil:
		return nil, refusal
	case v.editions.anchored == nil:
		return t, nil
	}
	return v.editions.anchored.t, nil
}

// OneOfHistory is One for somebody who takes the history of a clone as it is: by
// the signers that the commit's first parent names, and held to what its signer
// may change against its parents, as in a range. How many people answer for it is
// a range's to say.
func (t *Trust) OneOfHistory(o Objects, sha ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) (ring.Verified, *ring.Refusal, error) {
	if !idForm.MatchString(string(sha)) {
		return ring.Verified{}, nil, fmt.Errorf("cannot verify %q: not a full commit id", sha)
	}
	v := &verification{t: t, o: t.effort(o), now: now, firstSeen: firstSeen}
	p, refusal, err := readCommit(v.o, sha)
	if refusal == nil && err == nil && len(p.parents) > 0 {
		refusal, err = v.begin(p.parents[0])
		v.editions.alone = true
	}
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	_, one, refusal, err := v.answered(sha, nil)
	if errors.Is(err, errEffort) {
		refusal, err = tooMuchEffort(sha), nil
	}
	if refusal != nil || err != nil {
		return ring.Verified{}, refusal, err
	}
	return one, nil, nil
}

// Binds reports whether what signers may do is written down, for some of them at least;
// else all may commit and merge everywhere.
func (t *Trust) Binds() bool { return len(t.cfg.Bindings) > 0 || t.cfg.SignersInRepo != "" }

// verification is one run over a repository.
type verification struct {
	t         *Trust
	o         Objects
	now       time.Time
	firstSeen func(ring.SHA) time.Time
	aids      Aids
	failed    error                // of the store that aids ask
	line      map[ring.SHA]bool    // the first parents of the anchor, where there is no store
	assumed   map[ring.SHA]voucher // for Unanswered; else nil
	audit     *audit               // for Again; else nil
	editions  editions
	vouching  map[ring.SHA]*vouching // the commits that vouch, where who may depends on what for
	short     []shortfall
	person    bool // somebody on the host answers for the tip, whoever signed it
}

// since verifies anchor..tip.
func (v *verification) since(anchor ring.SHA, what string, tip ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	if refusal, err := v.present(anchor, what); refusal != nil || err != nil {
		return nil, refusal, err
	}
	ids, refusal, err := between(v.o, anchor, tip, v.t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	if refusal, err := v.aboveFloor(anchor, tip, ids); refusal != nil || err != nil {
		return nil, refusal, err
	}
	if refusal, err := v.begin(anchor); refusal != nil || err != nil {
		return nil, refusal, err
	}
	all, refusal, err := v.each(anchor, tip, ids)
	if refusal == nil && err == nil {
		refusal = v.awaited()
	}
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	v.t.floored.Store(&tip) // the next look's anchor
	return all, nil, nil
}

// each judges the commits of a range, parents first.
func (v *verification) each(anchor, tip ring.SHA, ids []ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	if v.t.cfg.Mode == ForgeMerge {
		return v.landing(anchor, tip, ids)
	}
	if v.t.cfg.Mode == Tip {
		return v.tipAlone(tip, ids)
	}
	vouched, refusal, err := v.vouches(anchor, ids)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	all := make([]ring.Verified, 0, len(ids))
	for _, id := range ids {
		p, one, refusal, err := v.answered(id, vouched)
		if refusal == nil && err == nil && id == tip {
			refusal = v.t.target(id, p)
		}
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		all = append(all, one)
	}
	return all, nil, nil
}

// tipAlone is mode tip: what lies between is laundered by the next one who signs,
// which is why status calls it weak.
func (v *verification) tipAlone(tip ring.SHA, ids []ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	all := make([]ring.Verified, 0, len(ids))
	for _, id := range ids {
		if id != tip {
			p, refusal, err := readCommit(v.o, id)
			if refusal != nil || err != nil {
				return nil, refusal, err
			}
			one := v.claimed(p)
			one.Note = "not verified: trust mode tip"
			all = append(all, one)
			continue
		}
		p, one, refusal, err := v.answered(id, nil)
		if refusal == nil && err == nil {
			refusal = v.t.target(id, p)
		}
		if refusal != nil || err != nil {
			return nil, refusal, err
		}
		all = append(all, one)
	}
	return all, nil, nil
}

// answered finds who answers for a commit: its own signer and those who vouched,
// by the rules that count for it. One of them has to; how many have to besides is
// noted for the end of the range.
func (v *verification) answered(id ring.SHA, vouched map[ring.SHA][]voucher) (*parsed, ring.Verified, *ring.Refusal, error) {
	p, refusal, err := readCommit(v.o, id)
	if refusal != nil || err != nil {
		return nil, ring.Verified{}, refusal, err
	}
	v.carry(p)
	one := v.claimed(p)
	rules, refusal, err := v.rulesOf(p)
	if refusal != nil || err != nil {
		return nil, ring.Verified{}, refusal, err
	}
	if _, ok := v.assumed[id]; ok {
		one.Note = "as if somebody vouched for it"
		refusal, err = v.assume(p)
		return p, one, refusal, err
	}
	by, own, refusal, err := v.answering(rules, p, vouched[id])
	if refusal != nil || err != nil {
		return nil, ring.Verified{}, refusal, err
	}
	first := by[0]
	one.Signer, one.Fingerprint, one.Note = first.principal, first.fingerprint, first.note
	if !own {
		one.Note, one.Vouched = "vouched by "+first.principal+": "+first.sha.Short(), first.principal
	} else if len(by) > 1 {
		one.Note = strings.TrimPrefix(one.Note+"; approved by "+strings.Join(places(by[1:]), ", "), "; ")
	}
	if v.t.cfg.Mode == Disabled {
		return p, one, nil, nil
	}
	one.Signed = own && v.t.cfg.Mode != Tip
	who := make([]identity, len(by))
	for i, a := range by {
		who[i] = a.identity
	}
	if refusal, err = v.edit(p, rules, who); refusal == nil && err == nil {
		err = v.approve(p, who)
	}
	return p, one, refusal, err
}

// answering are all who answer for a commit, its own signer first where own says
// that there is one; the refusal is why there is nobody. Each of rules has to let
// them.
func (v *verification) answering(rules []*Trust, p *parsed, vouched []voucher) (by []voucher, own bool, _ *ring.Refusal, _ error) {
	id, refusal, err := v.signerUnder(rules, p)
	if in := v.vouching[p.sha]; in != nil && refusal == nil && err == nil {
		_, refusal, err = v.vouchesUnder(rules, p, in.base)
	} else if in != nil && err == nil && in.open == 0 {
		// What it vouches for was its signer's to answer for, and it brings nothing:
		// so people can answer for the commit that takes them out.
		var empty bool
		if empty, err = v.empty(p); empty {
			id, refusal = in.by, nil
		}
	}
	if err != nil {
		return nil, false, nil, err
	}
	if own = refusal == nil; own {
		by = append(by, voucher{identity: id, sha: p.sha})
	}
	for _, a := range vouched {
		if a.p != nil {
			var no *ring.Refusal
			in := v.vouching[a.sha]
			a.identity, no, err = v.vouchesUnder(rules, a.p, in.base)
			for _, t := range rules {
				if no == nil && err == nil {
					no, err = v.mayVouchFor(t, a.p, p, a.identity)
				}
			}
			if err != nil {
				return nil, false, nil, err
			}
			if no != nil {
				if refusal != nil && v.t.cfg.Mode != ForgeMerge {
					refusal = no // nearer to what its author has to do
				}
				continue
			}
			in.by, in.open = a.identity, in.open-1
		}
		by = append(by, a)
	}
	if len(by) > 0 {
		refusal = nil
	}
	return by, own, refusal, nil
}

// signerUnder is the signer of a commit who may make it under each of rules.
func (v *verification) signerUnder(rules []*Trust, p *parsed) (first identity, _ *ring.Refusal, _ error) {
	for i, t := range rules {
		id, refusal := v.signerBy(t, p)
		if refusal != nil {
			return id, refusal, nil
		}
		if refusal, err := v.rightly(t, p, id); refusal != nil || err != nil {
			return id, refusal, err
		}
		if i == 0 {
			first = id
		}
	}
	return first, nil, nil
}

// vouchesUnder is the signer of a commit who may vouch with it under each of rules.
func (v *verification) vouchesUnder(rules []*Trust, p *parsed, base ring.SHA) (first identity, _ *ring.Refusal, _ error) {
	for i, t := range rules {
		id, refusal, err := v.mayVouch(t, p, base)
		if refusal != nil || err != nil {
			return id, refusal, err
		}
		if i == 0 {
			first = id
		}
	}
	return first, nil, nil
}

// empty reports whether a commit has what its only parent has.
func (v *verification) empty(p *parsed) (bool, error) {
	if len(p.parents) != 1 {
		return false, nil
	}
	before, refusal, err := v.treeOf(p.parents[0])
	return refusal == nil && err == nil && before == p.tree, err
}

func places(by []voucher) []string {
	out := make([]string, len(by))
	for i, a := range by {
		out[i] = a.principal + ": " + a.sha.Short()
	}
	return out
}

// present asks for the commit that trust rests on. When it is gone nothing may
// take its place.
func (v *verification) present(sha ring.SHA, what string) (*ring.Refusal, error) {
	_, refusal, err := readCommit(v.o, sha)
	if errors.Is(err, ErrMissing) {
		return anchorUnavailable(sha, what), nil
	}
	if refusal != nil && refusal.Code == ring.Grammar {
		return nil, err // trusted by configuration or a person, whatever its form
	}
	return refusal, err
}

// introduced begins trust at the configured introduction, which needs no
// signature of its own unless the configuration names who signed it.
func (v *verification) introduced(tip ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	intro := v.t.cfg.Introduction
	p, refusal, err := readCommit(v.o, intro)
	if errors.Is(err, ErrMissing) {
		return nil, anchorUnavailable(intro, "the introduction of the configuration,"), nil
	}
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	id, refusal := v.introducer(p)
	if refusal != nil {
		return nil, refusal, nil
	}
	first := v.claimed(p)
	first.Note = "introduction: trusted by configuration"
	first.Signer, first.Fingerprint = id.principal, id.fingerprint
	if tip == intro {
		refusal, err := v.aboveFloor(intro, tip, nil)
		return []ring.Verified{first}, refusal, err
	}
	rest, refusal, err := v.since(intro, "the introduction", tip)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	return append([]ring.Verified{first}, rest...), nil, nil
}

// cameFirst is the note of a tip that was trusted because it came first.
const cameFirst = "first use"

// firstUse trusts a tip that verifies on its own.
func (v *verification) firstUse(tip ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	p, id, one, refusal, err := v.one(tip)
	switch {
	case v.t.cfg.Mode == ForgeMerge && byForge(refusal):
		one, refusal, err = v.landedAlone(tip, refusal)
	case refusal == nil && err == nil:
		if refusal, err = v.rightly(v.t, p, id); refusal == nil && err == nil {
			refusal = v.t.target(tip, p)
		}
		if refusal == nil && err == nil {
			refusal = v.whole(tip, tip, id)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if refusal != nil {
		return nil, neverSigned(tip, refusal), nil
	}
	if refusal, err := v.aboveFloor("", tip, nil); refusal != nil || err != nil {
		return nil, refusal, err
	}
	if v.t.cfg.RequireIntroduction { // only a tip that could be the introduction is proposed as one
		return nil, introductionMissing(tip, one.Signer), nil
	}
	if need := v.t.cfg.Require.Approvals; need > 1 { // nobody vouches for history that is not looked at
		return nil, awaiting(shortfall{tip, 1, need, ", because first use looks at one commit alone: name an introduction, or"}), nil
	}
	one.Note = strings.TrimSuffix(cameFirst+"; "+one.Note, "; ")
	return []ring.Verified{one}, nil, nil
}

// one reads one commit and finds its signer.
func (v *verification) one(sha ring.SHA) (*parsed, identity, ring.Verified, *ring.Refusal, error) {
	p, refusal, err := readCommit(v.o, sha)
	if refusal != nil || err != nil {
		return nil, identity{}, ring.Verified{}, refusal, err
	}
	id, refusal := v.signer(p)
	if refusal != nil {
		return nil, identity{}, ring.Verified{}, refusal, nil
	}
	one := v.claimed(p)
	one.Signer, one.Fingerprint, one.Note = id.principal, id.fingerprint, id.note
	return p, id, one, nil, nil
}

// rightly holds a commit to what its signer may change, where signatures count.
func (v *verification) rightly(t *Trust, p *parsed, id identity) (*ring.Refusal, error) {
	if t.cfg.Mode == Disabled {
		return nil, nil
	}
	return v.permitted(t, p, id)
}

// claimed is what a commit says of itself and when it was first seen.
func (v *verification) claimed(p *parsed) ring.Verified {
	return ring.Verified{SHA: p.sha, ClaimedAt: p.committer.when, FirstSeen: v.seen(p.sha)}
}

func (v *verification) seen(sha ring.SHA) time.Time {
	if v.firstSeen != nil {
		if at := v.firstSeen(sha); !at.IsZero() {
			return at.UTC()
		}
	}
	return v.now.UTC()
}

// signer is who answers for a commit under the source's mode. What that signer
// may change is asked by the mode's own rules, after this.
func (v *verification) signer(p *parsed) (identity, *ring.Refusal) { return v.signerBy(v.t, p) }

// signerBy is signer among those whom t knows.
func (v *verification) signerBy(t *Trust, p *parsed) (identity, *ring.Refusal) {
	if t.cfg.Mode == Disabled {
		return identity{}, nil
	}
	return t.signer(p, moments{claimed: p.committer.when, seen: v.seen(p.sha), now: v.now, grace: v.t.cfg.ExpiryGrace})
}

// target holds a tip to "Gitring-Target: <source>" where the source asks for it:
// the tip of another environment descends from this anchor just as well.
// p is the commit that somebody signed for it; nil is none.
func (t *Trust) target(tip ring.SHA, p *parsed) *ring.Refusal {
	if !t.cfg.RequireTarget {
		return nil
	}
	var named []string
	if p != nil {
		named = p.trailers("Gitring-Target")
	}
	if len(named) == 0 {
		return targetMissing(tip, t.source)
	}
	for _, n := range named {
		if n == t.source {
			return nil
		}
	}
	return targetMismatch(tip, t.source, named[0])
}

// aboveFloor holds a tip to min_commit, the floor that survives the loss of all
// state. An anchor that descends from it vouches for everything on top.
func (v *verification) aboveFloor(anchor, tip ring.SHA, fresh []ring.SHA) (*ring.Refusal, error) {
	floor := v.t.cfg.MinCommit
	if floor == "" || floor == tip || floor == anchor {
		return nil, nil
	}
	for _, id := range fresh {
		if id == floor {
			return nil, nil
		}
	}
	from := tip
	if anchor != "" {
		from = anchor
	}
	if known := v.t.floored.Load(); known != nil && *known == from {
		return nil, nil
	}
	ok, refusal, err := descends(v.o, from, floor)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if !ok {
		return belowFloor(floor, tip), nil
	}
	v.t.floored.Store(&from)
	return nil, nil
}
