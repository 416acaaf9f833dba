package gitsync

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// maxBack is how many commits of a branch are gone back over to find what a push
// vouches for.
const maxBack = 1_000

// Pushed is RangeWith for what is pushed on top of at, where the branch is. Hosts
// may not trust that: somebody vouches for what lies there already. So the range
// begins before the commits that the push vouches for, and they are judged with it.
func (t *Trust) Pushed(o Objects, aids Aids, at, tip ring.SHA, now time.Time) ([]ring.Verified, *ring.Refusal, error) {
	all, refusal, err := t.RangeWith(o, aids, at, tip, now, nil)
	if err != nil || refusal == nil || refusal.Code != ring.VouchOutside {
		return all, refusal, err
	}
	o = t.effort(o)
	before, err := t.beforeVouched(o, at, tip)
	if errors.Is(err, errEffort) || errors.Is(err, ErrMissing) || err == nil && before == "" {
		return nil, refusal, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return t.RangeWith(o, aids, before, tip, now, nil)
}

// beforeVouched is the newest commit of the branch at at that no commit is behind
// which at..tip vouches for; "" when there is none.
func (t *Trust) beforeVouched(o Objects, at, tip ring.SHA) (ring.SHA, error) {
	ids, refusal, err := between(o, at, tip, t.cfg.MaxRange)
	if refusal != nil || err != nil {
		return "", err
	}
	var names []ring.SHA
	for _, id := range ids {
		p, refusal, err := readCommit(o, id)
		if refusal != nil || err != nil {
			return "", err
		}
		if bytes.Contains(p.message, []byte(vouchTrailer)) {
			for _, name := range p.trailers(vouchTrailer) {
				if idForm.MatchString(name) && !slices.Contains(names, ring.SHA(name)) {
					names = append(names, ring.SHA(name))
				}
			}
		}
	}
	for range maxBack {
		behind := false
		for _, name := range names {
			alone, _, refusal, err := apart(o, at, name, t.cfg.MaxRange)
			if refusal != nil || err != nil {
				return "", err
			}
			behind = behind || len(alone) == 0
		}
		if !behind {
			return at, nil
		}
		p, refusal, err := readCommit(o, at)
		if refusal != nil || err != nil || len(p.parents) == 0 {
			return "", err
		}
		at = p.parents[0]
	}
	return "", nil
}
