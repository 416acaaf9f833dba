package gitsync

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// headTrailer names the head that a landed commit was made from, by its full id.
const headTrailer = "Gitring-Head"

// Aids are what forge-merge asks of the world besides objects. A nil function
// can do nothing.
type Aids struct {
	// Head fetches the head of a pull request and is its commit; the objects of it
	// are readable afterwards. The error wraps ErrMissing when the forge has none.
	Head func(pull int) (ring.SHA, error)
	// Merge is the tree of the conflict-free merge of two commits. The error
	// wraps ErrConflict when there is none, ErrNoMergeTree when this host cannot
	// tell.
	Merge func(ours, theirs ring.SHA) (tree ring.SHA, err error)
}

var (
	// ErrConflict says that two commits do not merge by themselves.
	ErrConflict = errors.New("the merge has conflicts")
	// ErrNoMergeTree says that no git that can merge trees is here.
	ErrNoMergeTree = errors.New("no git of 2.38 or newer")
)

// verdict is what came of one commit of a range.
type verdict struct {
	p       *parsed
	one     ring.Verified
	ok      bool          // it and all that it stands on may run
	refusal *ring.Refusal // of itself; nil where only what it stands on is refused
	landing bool          // the refusal is of a landing
}

// landing judges a range in mode forge-merge (TRUST.md section 5): signed
// content, not signed commits. Only the tip has to be trusted in the end; copies
// that a rebase left between two trusted commits are never carried out.
func (v *verification) landing(anchor, tip ring.SHA, ids []ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	l := &landings{verification: v, verdicts: map[ring.SHA]*verdict{}, heads: true}
	if refusal, err := l.judge(anchor, ids); refusal != nil || err != nil {
		return nil, refusal, err
	}
	if refusal := l.refusal(tip, ids); refusal != nil {
		return nil, refusal, nil
	}
	if refusal := v.t.target(l.verdicts[tip].p); refusal != nil {
		return nil, refusal, nil
	}
	all := make([]ring.Verified, len(ids))
	for i, id := range ids {
		if all[i] = l.verdicts[id].one; !l.verdicts[id].ok {
			all[i].Note = "made by the forge on the way to " + tip.Short() + ", not carried out"
		}
	}
	return all, nil, nil
}

// landings is one range being judged.
type landings struct {
	*verification
	verdicts map[ring.SHA]*verdict // a commit that is not in it was trusted before
	heads    bool                  // heads that no parent names are looked for
}

func (l *landings) judge(base ring.SHA, ids []ring.SHA) (*ring.Refusal, error) {
	vouched, refusal, err := l.vouches(base, ids)
	if refusal != nil || err != nil {
		return refusal, err
	}
	for _, id := range ids {
		d := &verdict{}
		var err error
		d.p, d.one, d.refusal, err = l.answered(id, vouched)
		if err != nil {
			return nil, err
		}
		if d.p == nil {
			if d.p, refusal, err = readCommit(l.o, id); refusal != nil || err != nil {
				return refusal, err
			}
			d.one = l.claimed(d.p)
		}
		l.verdicts[id] = d
		d.ok = d.refusal == nil && !slices.ContainsFunc(d.p.parents, func(p ring.SHA) bool { return !l.trusted(p) })
		if d.ok || !byForge(d.refusal) {
			continue
		}
		if err := l.land(d); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// byForge says that a forge may have made the commit: it has no signature of
// anybody whom we know.
func byForge(r *ring.Refusal) bool {
	return r != nil && (r.Code == ring.Unsigned || r.Code == ring.UnknownSigner)
}

func (l *landings) trusted(id ring.SHA) bool {
	d, ok := l.verdicts[id]
	return !ok || d.ok
}

// land tries to accept d as what a button of the forge made of a signed head.
func (l *landings) land(d *verdict) error {
	if len(d.p.parents) == 0 || len(d.p.parents) > 2 {
		return nil
	}
	base := d.p.parents[0]
	for !l.trusted(base) {
		b := l.verdicts[base]
		if len(b.p.parents) == 0 {
			return nil
		}
		base = b.p.parents[0]
	}
	head, refusal, err := l.head(d.p)
	if err != nil || head == "" && refusal == nil {
		return err
	}
	d.landing = true
	if refusal == nil {
		refusal, err = l.holds(d, base, head)
	}
	if err != nil {
		return err
	}
	if d.refusal = refusal; refusal == nil {
		d.ok = true
	}
	return nil
}

// pullNumber is how forges name a pull or merge request in a message; the last
// of the first line counts, as squash and merge buttons write it.
var pullNumber = regexp.MustCompile(`[#!]([1-9][0-9]{0,8})\b`)

// head is what d was made from: its second parent, else the trailer, else the
// pull request that the message names; "" when there is no sign of any.
func (l *landings) head(p *parsed) (ring.SHA, *ring.Refusal, error) {
	if len(p.parents) == 2 {
		return p.parents[1], nil, nil
	}
	if !l.heads {
		return "", nil, nil
	}
	for _, named := range p.trailers(headTrailer) {
		if !idForm.MatchString(named) {
			return "", headUnavailable(p.sha, "the trailer "+headTrailer+" is no full id"), nil
		}
		if _, _, err := l.o.Raw(ring.SHA(named)); errors.Is(err, ErrMissing) {
			continue // the pull request's ref may still bring it
		} else if err != nil {
			return "", nil, err
		}
		return ring.SHA(named), nil, nil
	}
	pull, ok := pullOf(p)
	if !ok {
		return "", nil, nil
	}
	if l.aids.Head == nil {
		return "", headUnavailable(p.sha, fmt.Sprintf("the head of pull request %d is not at hand", pull)), nil
	}
	head, err := l.aids.Head(pull)
	if errors.Is(err, ErrMissing) {
		return "", headUnavailable(p.sha, fmt.Sprintf("the forge has no head of pull request %d any more", pull)), nil
	}
	return head, nil, err
}

// pullOf is the number that the message names: in its first line, else the last
// one in the rest.
func pullOf(p *parsed) (int, bool) {
	first, rest, _ := strings.Cut(strings.TrimLeft(string(p.message), "\n"), "\n")
	for _, text := range []string{first, rest} {
		if all := pullNumber.FindAllStringSubmatch(text, -1); len(all) > 0 {
			n, err := strconv.Atoi(all[len(all)-1][1])
			return n, err == nil
		}
	}
	return 0, false
}

// holds says whether d holds what was signed at head, brought onto base, and
// nothing else.
func (l *landings) holds(d *verdict, base, head ring.SHA) (*ring.Refusal, error) {
	ids, descends, refusal, err := apart(l.o, base, head, l.t.cfg.MaxRange)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return unsignedHead(d.p.sha, head, refusal), nil
	}
	signers, refusal, err := l.signedHead(base, head, ids)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return unsignedHead(d.p.sha, head, refusal), nil
	}
	want, refusal, err := l.merged(d, base, head, ids, descends)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if want != d.p.tree {
		return notSignedContent(d.p.sha, head, "the trees differ"), nil
	}
	d.one.Signer, d.one.Fingerprint = "", ""
	who := "what was trusted before"
	if len(signers) > 0 {
		last := signers[len(signers)-1]
		d.one.Signer, d.one.Fingerprint = last.Signer, last.Fingerprint
		who = strings.Join(principals(signers), ", ")
	}
	d.one.Note = "content by " + who + ", landed by the forge"
	return nil, nil
}

// merged is the tree that a landing of head on base has to have.
func (l *landings) merged(d *verdict, base, head ring.SHA, ids []ring.SHA, descends bool) (ring.SHA, *ring.Refusal, error) {
	switch {
	case len(ids) == 0: // nothing that base does not have
		return l.treeOf(base)
	case descends:
		return l.treeOf(head)
	}
	if l.aids.Merge == nil {
		return "", needsMergeTree(d.p.sha, head), nil
	}
	tree, err := l.aids.Merge(base, head)
	switch {
	case errors.Is(err, ErrNoMergeTree):
		return "", needsMergeTree(d.p.sha, head), nil
	case errors.Is(err, ErrConflict):
		return "", notSignedContent(d.p.sha, head, "it conflicts with "+base.Short()+", and nobody signed how that was resolved"), nil
	}
	return tree, nil, err
}

// signedHead holds every commit of base..head to the rules of strict, but for
// merges of a trusted commit that the forge made to bring the branch up to date.
func (l *landings) signedHead(base, head ring.SHA, ids []ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	in := l
	if slices.ContainsFunc(ids, func(id ring.SHA) bool { return l.verdicts[id] == nil }) {
		in = &landings{verification: l.verification, verdicts: map[ring.SHA]*verdict{}}
		if refusal, err := in.judge(base, ids); refusal != nil || err != nil {
			return nil, refusal, err
		}
	}
	if refusal := in.refusal(head, ids); refusal != nil {
		return nil, refusal, nil
	}
	var signers []ring.Verified
	for _, id := range ids {
		if d := in.verdicts[id]; d.ok && !d.landing {
			signers = append(signers, d.one)
		}
	}
	return signers, nil, nil
}

// refusal is why tip is not trusted; nil when it is. Of a landing that failed it
// is the tip's own, else that of the first commit that spoils what comes after.
func (l *landings) refusal(tip ring.SHA, ids []ring.SHA) *ring.Refusal {
	if l.trusted(tip) {
		return nil
	}
	if d := l.verdicts[tip]; d.landing && d.refusal != nil {
		return d.refusal
	}
	for _, id := range ids {
		if d := l.verdicts[id]; !d.ok && d.refusal != nil {
			return d.refusal
		}
	}
	return l.verdicts[tip].refusal
}

// principals are the signers, each once, in order.
func principals(all []ring.Verified) []string {
	var out []string
	for _, v := range all {
		if !slices.Contains(out, v.Signer) {
			out = append(out, v.Signer)
		}
	}
	return out
}
