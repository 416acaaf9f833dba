package gitsync

import (
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// Unanswered is what a commit on top of tip would have to vouch for, so that the
// range anchor..tip is accepted: a refusal for each commit that nobody answers
// for, in the order in which they would be met. The second refusal is one that no
// vouch cures. That the tip says whom it is for is not asked here: the commit on
// top of it has to.
func (t *Trust) Unanswered(o Objects, aids Aids, anchor, tip ring.SHA, now time.Time) ([]*ring.Refusal, *ring.Refusal, error) {
	if !idForm.MatchString(string(anchor)) || !idForm.MatchString(string(tip)) {
		return nil, nil, fmt.Errorf("cannot look at %q..%q: not full commit ids", anchor, tip)
	}
	assumed := map[ring.SHA]voucher{}
	var all []*ring.Refusal
	for anchor != tip {
		v := &verification{t: t, o: o, now: now, aids: aids, assumed: assumed} // what one run noted is not the next one's
		_, refusal, err := v.since(anchor, "the last trusted commit", tip)
		if err != nil {
			return nil, nil, err
		}
		if refusal == nil || refusal.Code == ring.TargetMissing || refusal.Code == ring.TargetMismatch {
			return all, nil, nil
		}
		if _, again := assumed[refusal.Commit]; again || incurable(refusal) {
			return all, refusal, nil
		}
		all = append(all, refusal)
		if t.cfg.Mode == Tip {
			return all, nil, nil // who signs on top of it is the new tip
		}
		assumed[refusal.Commit] = voucher{sha: refusal.Commit}
	}
	return all, nil, nil
}

// incurable reports whether a refusal is about history itself, whoever answers for what.
func incurable(r *ring.Refusal) bool {
	switch r.Code {
	case ring.Rollback, ring.NonFastForward, ring.RangeTooLarge, ring.AnchorUnavailable, ring.Grammar,
		ring.HashMismatch, ring.Sha1Collision, ring.NotACommit, ring.Shallow, ring.VouchNotAllowed, ring.VouchOutside:
		return true
	}
	return false
}
