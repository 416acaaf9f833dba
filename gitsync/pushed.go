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
// Nor do they trust what nobody signed: a forced push may take that away.
func (t *Trust) Pushed(o Objects, aids Aids, at, tip ring.SHA, now time.Time) ([]ring.Verified, *ring.Refusal, error) {
	all, refusal, err := t.RangeWith(o, aids, at, tip, now, nil)
	if err != nil || refusal == nil {
		return all, refusal, err
	}
	var from func(o Objects, at, tip ring.SHA) (ring.SHA, error)
	switch refusal.Code {
	case ring.VouchOutside:
		from = t.beforeVouched
	case ring.NonFastForward, ring.Rollback:
		from = func(o Objects, at, tip ring.SHA) (ring.SHA, error) { return t.beforeUntrusted(o, aids, at, tip, now) }
	default:
		return all, refusal, err
	}
	o = t.effort(o)
	before, err := from(o, at, tip)
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

// maxUntrusted is how many commits a forced push may take away that no host trusts.
const maxUntrusted = 50

// beforeUntrusted is the newest commit that the branch at at and tip share, where no host
// can have gone further on that branch: each state of it since then holds a commit
// that nobody signed. "" where one may be trusted.
func (t *Trust) beforeUntrusted(o Objects, aids Aids, at, tip ring.SHA, now time.Time) (ring.SHA, error) {
	var since []ring.SHA // the newest first
	for range maxUntrusted {
		alone, _, refusal, err := apart(o, tip, at, t.cfg.MaxRange)
		if refusal != nil || err != nil {
			return "", err
		}
		if len(alone) == 0 {
			for _, sha := range since {
				_, refusal, err := t.RangeWith(o, aids, at, sha, now, nil)
				if err != nil || refusal == nil || !neverTrusted[refusal.Code] {
					return "", err
				}
			}
			return at, nil
		}
		p, refusal, err := readCommit(o, at)
		if refusal != nil || err != nil || len(p.parents) == 0 {
			return "", err
		}
		since = append(since, at)
		at = p.parents[0]
	}
	return "", nil
}

// neverTrusted are the refusals that do not depend on when a host looked, as that of a key
// which expired, was revoked or taken out since does.
var neverTrusted = map[ring.Code]bool{ring.Unsigned: true, ring.BadSignature: true}
