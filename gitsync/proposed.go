package gitsync

import (
	"errors"
	"time"

	"github.com/gitring/gitring/ring"
)

// Proposed verifies what a head brings that the anchor does not have, by the rules
// that its commits would meet on the branch. The head need not descend from the
// anchor: who signs, and what they may change, is what the anchor says of it, never
// what the head or the place where it began says. Without a refusal and commits the
// head holds nothing new.
func (t *Trust) Proposed(o Objects, aids Aids, anchor, head ring.SHA, now time.Time) (all []ring.Verified, descends bool, _ *ring.Refusal, _ error) {
	if !idForm.MatchString(string(anchor)) || !idForm.MatchString(string(head)) {
		return nil, false, nil, errors.New("cannot verify a pull request: not full commit ids")
	}
	v := &verification{t: t, o: t.effort(o), now: now, aids: aids}
	all, descends, refusal, err := v.proposed(anchor, head)
	if errors.Is(err, errEffort) {
		return nil, false, tooMuchEffort(head), nil
	}
	return all, descends, refusal, err
}

func (v *verification) proposed(anchor, head ring.SHA) ([]ring.Verified, bool, *ring.Refusal, error) {
	if refusal, err := v.present(anchor, "the last trusted commit"); refusal != nil || err != nil {
		return nil, false, refusal, err
	}
	ids, descends, refusal, err := apart(v.o, anchor, head, v.t.cfg.MaxRange)
	if refusal != nil || err != nil || len(ids) == 0 {
		return nil, descends, refusal, err
	}
	if refusal, err := v.begin(anchor); refusal != nil || err != nil {
		return nil, false, refusal, err
	}
	all, refusal, err := v.each(anchor, head, ids)
	if refusal == nil && err == nil {
		refusal = v.awaited()
	}
	if refusal != nil || err != nil {
		return nil, false, refusal, err
	}
	return all, descends, nil, nil
}
