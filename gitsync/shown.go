package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// Shown is what a host has of the way to one commit, so that somebody else can judge it.
type Shown struct {
	// From is where the way begins, and How is what the host's trust in it rests on;
	// "" where it begins later than trust did. LeftOut is why, for people.
	From    ring.SHA
	How     string
	LeftOut string
	// Commits is how many come after From.
	Commits int
	// Heads are those of pull requests that landings were made from, by their refs.
	Heads map[string]ring.SHA
	// Objects are all that was read for it, and for the files of the commit.
	Objects []Object
	// Doubts are of commits that the host's own rules of today would not pass.
	Doubts []*ring.Refusal
}

// Wanted is what is to be shown.
type Wanted struct {
	Commit ring.SHA
	// From is where the way is to begin; "" is where trust began.
	From ring.SHA
	// Read reads of the commit what is to be shown of its files.
	Read func(c *ring.Commit) error
	// Fits reports whether objects and so many heads may be shown. A way that is too long
	// begins later.
	Fits func(all []Object, heads int) bool
}

// Show collects the way to a trusted commit. It needs Run, as Accept does, and the remote
// where a landing names a head that is not here. The error is a *ring.Refusal where the
// commit itself cannot be shown.
func (f *Follower) Show(ctx context.Context, want Wanted) (Shown, error) {
	type result struct {
		shown Shown
		err   error
	}
	answers := make(chan result, 1)
	select {
	case f.works <- func(running context.Context, w *watch) {
		running, cancel := context.WithCancel(running)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)() // nobody waits for it any more
		shown, err := w.show(running, want)
		answers <- result{shown, err}
	}:
	case <-ctx.Done():
		return Shown{}, ctx.Err()
	}
	select {
	case r := <-answers:
		return r.shown, r.err
	case <-ctx.Done():
		return Shown{}, ctx.Err()
	}
}

// mostTries bounds how often a way is begun later.
const mostTries = 12

// show is Show in Run's goroutine.
func (w *watch) show(ctx context.Context, want Wanted) (Shown, error) {
	defer w.mirror.rest()
	defer w.heads.rest()
	if err := w.read(ctx); err != nil {
		return Shown{}, err
	}
	w.heads.begin(w.tip)
	w.heads.all = true
	defer func() { w.heads.all = false; w.heads.empty() }()
	s := &showing{
		trust: w.trust.Load(), o: Until(ctx, w.heads), want: want, now: w.now().UTC(),
		head:     func(pull Pull) (ring.SHA, error) { return w.heads.head(ctx, pull) },
		standing: w.past(ctx, w.mirror, w.anchor.Began.SHA).standing,
		accepted: func(sha ring.SHA) (bool, error) {
			_, ok, err := w.anchors.Verified(ctx, w.cfg.Name, sha)
			return ok, err
		},
	}
	from, how := want.From, ""
	if from == "" {
		from, how = w.anchor.Began.SHA, w.anchor.Began.How
	}
	if from == "" { // trusted by a release that did not write it down
		from, how = want.Commit, ""
	}
	shown, err := s.way(ctx, from, how)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return Shown{}, fmt.Errorf("cannot show the way to %s: %w", want.Commit.Short(), err)
	}
	return shown, nil
}

// showing is one way that is collected.
type showing struct {
	trust    *Trust
	o        Objects
	want     Wanted
	now      time.Time
	head     func(Pull) (ring.SHA, error)
	standing func(ring.SHA) (ring.Standing, error)
	accepted func(ring.SHA) (bool, error)
}

// way begins at from, or as near to it as can be shown.
func (s *showing) way(ctx context.Context, from ring.SHA, how string) (Shown, error) {
	var leftOut string
	began := from
	for range mostTries {
		shown, record, err := s.try(ctx, from)
		if r, ok := errors.AsType[*ring.Refusal](err); ok && r.Code == ring.RangeTooLarge {
			leftOut = "there are more commits than a host verifies at once"
			if from, err = s.near(); err == nil {
				continue
			}
		}
		if err != nil {
			return Shown{}, err
		}
		if from == began {
			shown.How = how
		}
		shown.LeftOut = leftOut
		last := untoldOf(shown.Doubts)
		fits := s.want.Fits == nil || s.want.Fits(shown.Objects, len(shown.Heads))
		if last == nil && fits {
			return shown, nil
		}
		line, err := s.line(from)
		if err != nil {
			return Shown{}, err
		}
		at := len(line) - 1 // of from, the oldest
		switch {
		case last != nil && last.Commit == s.want.Commit:
			return Shown{}, last
		case last != nil:
			for at > 0 && line[at] != last.Commit {
				at--
			}
			leftOut = fmt.Sprintf("what landed up to %s cannot be shown: %s", last.Commit.Short(), last.Says)
		default:
			commits := record.ofKind("commit")
			if at == 0 || len(commits) == 0 {
				return Shown{}, fmt.Errorf("the files of %s alone are larger than a proof may be", s.want.Commit.Short())
			}
			at = max(1, s.fitting(commits, &shown, at))
			leftOut = "a proof of all of them would be too large"
		}
		if from, err = s.beginning(line, at-1); err != nil {
			return Shown{}, err
		}
	}
	return Shown{}, errors.New("no commit was found with which it could begin")
}

// untoldOf is the newest landing that nobody can judge any more; nil is none.
func untoldOf(doubts []*ring.Refusal) (last *ring.Refusal) {
	for _, r := range doubts {
		if r.Code == ring.HeadUnavailable || r.Code == ring.NeedsMergeTree {
			last = r
		}
	}
	return last
}

// fitting is how many commits of the line fit, by how large those are that were read.
func (s *showing) fitting(commits []Object, shown *Shown, most int) int {
	few, many := 0, most                     // few fit, as far as that is known
	for n := 0; n < 8 && many-few > 1; n++ { // each costs a compression
		half := (few + many) / 2
		share := len(commits) * half / most
		if s.want.Fits(append(commits[len(commits)-share:len(commits):len(commits)], notCommits(shown.Objects)...), len(shown.Heads)*half/most) {
			few = half
		} else {
			many = half
		}
	}
	return few - few/50
}

func notCommits(all []Object) (out []Object) {
	for _, o := range all {
		if o.Kind != "commit" {
			out = append(out, o)
		}
	}
	return out
}

// line are the first parents from the commit down to from, the newest first. Where from
// is none of them it ends with the last of the range.
func (s *showing) line(from ring.SHA) ([]ring.SHA, error) {
	line := []ring.SHA{s.want.Commit}
	if s.want.Commit == from {
		return line, nil
	}
	ids, refusal, err := between(s.o, from, s.want.Commit, s.trust.cfg.MaxRange)
	if err := worldly(refusal, err); err != nil {
		return nil, err
	}
	in := make(map[ring.SHA]bool, len(ids))
	for _, id := range ids {
		in[id] = true
	}
	for {
		p, refusal, err := readCommit(s.o, line[len(line)-1])
		if err := worldly(refusal, err); err != nil {
			return nil, err
		}
		if len(p.parents) == 0 {
			return line, nil
		}
		line = append(line, p.parents[0])
		if !in[p.parents[0]] {
			return line, nil
		}
	}
}

// near is a beginning that is not too far away, where all commits are too many.
func (s *showing) near() (ring.SHA, error) {
	line := []ring.SHA{s.want.Commit}
	for len(line) <= s.trust.cfg.MaxRange/2 {
		p, refusal, err := readCommit(s.o, line[len(line)-1])
		if err := worldly(refusal, err); err != nil {
			return "", err
		}
		if len(p.parents) == 0 {
			break
		}
		line = append(line, p.parents[0])
	}
	return s.beginning(line, len(line)-1)
}

// beginning is the oldest commit of the line, from the place at on, that this host
// accepted and that stands alone: somebody signed it who may change everything.
func (s *showing) beginning(line []ring.SHA, at int) (ring.SHA, error) {
	for ; at >= 0; at-- {
		ok, err := s.accepted(line[at])
		if err != nil {
			return "", err
		}
		if !ok && line[at] != s.want.Commit {
			continue
		}
		_, refusal, err := s.trust.Begins(s.o, s.aids(s.o, map[string]ring.SHA{}), line[at], s.now, nil)
		if err != nil {
			return "", err
		}
		if refusal == nil {
			return line[at], nil
		}
	}
	return "", fmt.Errorf("no commit up to %s stands alone", s.want.Commit.Short())
}

// try reads the way from one commit on.
func (s *showing) try(ctx context.Context, from ring.SHA) (Shown, *Recorded, error) {
	record := Record(s.o)
	shown := Shown{From: from, Heads: map[string]ring.SHA{}}
	aids := s.aids(record, shown.Heads)
	// As whoever checks it does: nothing is known of earlier looks.
	seen, refusal, err := s.trust.SeenBefore(record, from, s.want.Commit, s.now)
	if err := worldly(refusal, err); err != nil {
		return Shown{}, nil, err
	}
	earlier := aids
	earlier.Standing = s.standing // only so that one refusal does not hide the rest
	n, refused, untold, err := s.trust.Again(ctx, record, earlier, from, s.want.Commit, s.now, seen)
	if err != nil {
		return Shown{}, nil, err
	}
	shown.Commits, shown.Doubts = n, append(refused, untold...)
	if _, _, err := s.trust.Begins(record, aids, from, s.now, seen); err != nil && !errors.Is(err, ErrMissing) {
		return Shown{}, nil, err
	}
	c, err := record.Commit(ring.Verified{SHA: s.want.Commit})
	if err == nil && s.want.Read != nil {
		err = s.want.Read(c)
	}
	if err != nil {
		return Shown{}, nil, err
	}
	shown.Objects = record.List()
	return shown, record, nil
}

func (s *showing) aids(o Objects, heads map[string]ring.SHA) Aids {
	aids := AidsAlone(o, nil)
	aids.Head = func(pull Pull) (ring.SHA, error) {
		sha, err := s.head(pull)
		if err == nil {
			heads[pull.Ref()] = sha
		}
		return sha, err
	}
	return aids
}

// AidsAlone are those of somebody who has nothing but objects, and heads of pull requests
// by their refs.
func AidsAlone(o Objects, heads map[string]ring.SHA) Aids {
	return Aids{
		Head: func(pull Pull) (ring.SHA, error) {
			if sha, ok := heads[pull.Ref()]; ok {
				return sha, nil
			}
			return "", fmt.Errorf("no head of %s: %w", pull, ErrMissing)
		},
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) { return MergeByFolders(o, ours, theirs) },
	}
}

// ofKind are the objects of one kind, in the order in which they were read.
func (r *Recorded) ofKind(kind string) (out []Object) {
	for _, o := range r.list {
		if o.Kind == kind {
			out = append(out, o)
		}
	}
	return out
}
