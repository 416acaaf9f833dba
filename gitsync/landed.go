package gitsync

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// headTrailer names the head that a landed commit was made from, by its full id.
const headTrailer = "Gitring-Head"

// Aids are what forge-merge asks of the world besides objects. A nil function
// can do nothing.
type Aids struct {
	// Head fetches the head of a pull request and is its commit; the objects of it
	// are readable afterwards. The error wraps ErrMissing when the forge has none,
	// and then says why where it is an *Unavailable.
	Head func(pull Pull) (ring.SHA, error)
	// Merge is the tree of the conflict-free merge of two commits. The error
	// wraps ErrConflict when there is none, ErrNoMergeTree when this host cannot
	// tell.
	Merge func(ours, theirs ring.SHA) (tree ring.SHA, err error)
	// Standing is what the store knows of a commit that lies behind the anchor. Lying
	// there is not having been verified: a landing may have left it out. A nil
	// function knows nothing of any.
	Standing func(sha ring.SHA) (ring.Standing, error)
	// Carriers are the accepted commits of the source that brought the signed content
	// whose payload has this hash: those with it among their Payloads, AsHead where it
	// is the first one of a landing. A nil function knows of none.
	Carriers func(payload string) ([]ring.Carrier, error)
	// NoStore reports that there is no store to ask, as in a person's clone: the first
	// parents of the anchor are taken as trusted, and good signatures as verified.
	NoStore bool
}

var (
	// ErrConflict says that two commits do not merge by themselves.
	ErrConflict = errors.New("the merge has conflicts")
	// ErrNoMergeTree says that no git that can merge trees is here.
	ErrNoMergeTree = errors.New("no git of 2.38 or newer")
)

// Unavailable is why a head cannot be had although nothing is wrong with the
// world. It wraps ErrMissing.
type Unavailable struct{ Why string }

func (u *Unavailable) Error() string { return u.Why }

// Unwrap says that it is absent.
func (u *Unavailable) Unwrap() error { return ErrMissing }

// verdict is what came of one commit of a range.
type verdict struct {
	p       *parsed
	one     ring.Verified
	ok      bool          // it and all that it stands on may run
	refusal *ring.Refusal // of itself; nil where only what it stands on is refused
	landing bool          // it was judged as a landing
	since   bool          // it comes after the anchor
	base    ring.SHA      // the nearest trusted first parent of it; "" is none
	cause   *ring.Refusal // why it is not ok: the oldest refusal that it stands on, or its own
	// speaks is the signed commit whose trailers count for this one: itself, or
	// of a landing the last that a person signed. The forge's message is nobody's
	// word. nil is none.
	speaks *parsed
}

// landing judges a range in mode forge-merge (docs/design/trust.md#landings): signed
// content, not signed commits. Only the tip has to be trusted in the end; copies
// that a rebase left between two trusted commits are not handed back, so they are
// never carried out.
func (v *verification) landing(anchor, tip ring.SHA, ids []ring.SHA) ([]ring.Verified, *ring.Refusal, error) {
	l, refusal, err := v.landings(anchor, tip, ids)
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	var all []ring.Verified
	for _, id := range ids {
		if d := l.verdicts[id]; d.ok {
			all = append(all, d.one)
		}
	}
	return all, nil, nil
}

// landings are the verdicts of a range whose tip may run.
func (v *verification) landings(anchor, tip ring.SHA, ids []ring.SHA) (*landings, *ring.Refusal, error) {
	l := v.landingsOf(anchor, nil)
	l.heads = true
	refusal, err := l.judge(anchor, ids)
	if err == nil {
		err = v.failed
	}
	if refusal != nil || err != nil {
		return nil, refusal, err
	}
	d := l.verdicts[tip]
	if !d.ok {
		return nil, d.cause, nil
	}
	if refusal, err := l.turned(tip); refusal != nil || err != nil {
		return nil, refusal, err
	}
	return l, v.t.target(tip, d.speaks), nil
}

func (v *verification) landingsOf(anchor ring.SHA, outer *landings) *landings {
	return &landings{
		verification: v, anchor: anchor, outer: outer,
		verdicts: map[ring.SHA]*verdict{}, brought: map[string][]ring.Carrier{},
	}
}

// landings is one range being judged. Of what is behind the anchor the store says how
// it came there. The commits of a head have landings of their own, because somebody
// may vouch there for what nobody answers for on the branch.
type landings struct {
	*verification
	anchor   ring.SHA
	verdicts map[ring.SHA]*verdict     // a commit that is not in it lies behind the anchor
	brought  map[string][]ring.Carrier // the signed contents of what was accepted so far
	outer    *landings                 // of the branch that a head is held against; nil at the branch
	heads    bool                      // heads that no parent names are looked for
}

// judge gives every commit a verdict, parents first. base is the trusted commit
// that those who vouch are held against.
func (l *landings) judge(base ring.SHA, ids []ring.SHA) (*ring.Refusal, error) {
	var fresh []ring.SHA
	for _, id := range ids {
		if d := l.outer.accepted(id); d != nil {
			l.verdicts[id] = d
			continue
		}
		fresh = append(fresh, id)
	}
	vouched, refusal, err := l.vouches(base, fresh)
	if refusal != nil || err != nil {
		return refusal, err
	}
	for _, id := range fresh {
		d, refusal, err := l.read(id, vouched)
		if refusal != nil || err != nil {
			return refusal, err
		}
		l.verdicts[id] = d
		d.cause = l.because(d) // a head may lead back here
		if !d.ok && (byForge(d.refusal) || l.byBot(d)) {
			if err := l.land(d); err != nil {
				return nil, err
			}
		}
		d.cause = l.because(d)
		if !d.ok && l.audit != nil && l.outer == nil {
			if err := l.audit.pass(d); err != nil {
				return nil, err
			}
		}
		if d.ok {
			l.bring(d)
		}
	}
	return nil, nil
}

// read is a commit by itself: who answers for it, and whether what it stands on
// is trusted. The refusal is of bytes that are no commit.
func (l *landings) read(id ring.SHA, vouched map[ring.SHA][]voucher) (*verdict, *ring.Refusal, error) {
	d := &verdict{}
	var err error
	if d.p, d.one, d.refusal, err = l.answered(id, vouched); err != nil {
		return nil, nil, err
	}
	if d.p == nil {
		var refusal *ring.Refusal
		if d.p, refusal, err = readCommit(l.o, id); refusal != nil || err != nil {
			return nil, refusal, err
		}
		d.one = l.claimed(d.p)
	}
	d.speaks = d.p
	d.ok = d.refusal == nil && !slices.ContainsFunc(d.p.parents, func(p ring.SHA) bool { return !l.carries(p) })
	d.since = slices.ContainsFunc(d.p.parents, l.since)
	if len(d.p.parents) > 0 {
		switch first := d.p.parents[0]; {
		case l.trusted(first):
			d.base = first
		case l.leftBehind(first):
			d.base = l.verdicts[first].base
		}
	}
	return d, nil, nil
}

// because is what a person has to mend first: of a landing that failed its own
// refusal, else the oldest that d stands on.
func (l *landings) because(d *verdict) *ring.Refusal {
	if d.ok || d.landing && d.refusal != nil {
		return d.refusal
	}
	for _, id := range d.p.parents {
		if l.leftBehind(id) && l.verdicts[id].cause != nil {
			return l.verdicts[id].cause
		}
		if !l.leftBehind(id) && !l.carries(id) {
			return standsOnLeftOut(d.p.sha, id)
		}
	}
	if d.refusal == nil { // never accepted for want of a reason
		return notSignedContent(d.p.sha, d.base, "what it stands on is not trusted")
	}
	return d.refusal
}

// accepted is the verdict of a commit that l trusts already; nil otherwise.
func (l *landings) accepted(id ring.SHA) *verdict {
	if l == nil {
		return nil
	}
	if d := l.verdicts[id]; d != nil && d.ok {
		return d
	}
	return nil
}

// byForge reports whether a forge may have made the commit: it has no signature of
// anybody whom we know.
func byForge(r *ring.Refusal) bool {
	return r != nil && (r.Code == ring.Unsigned || r.Code == ring.UnknownSigner)
}

// byBot reports whether a key made the commit which may only move images. Where a forge
// signs what its dependency bot proposes, the same key is on all that its buttons
// make: that the key is known for images is nothing against these.
func (l *landings) byBot(d *verdict) bool {
	if d.refusal == nil {
		return false
	}
	switch d.refusal.Code {
	case ring.RoleNotAllowed, ring.NotImagesOnly, ring.PathNotAllowed:
		t := l.rules(d.p)
		id, refusal := l.signerBy(t, d.p)
		if refusal != nil {
			return false
		}
		all := t.grants(id)
		return !slices.ContainsFunc(all, func(b Binding) bool {
			return b.has(RoleCommit) || b.has(RoleMerge) || b.has(RoleVouch) || b.has(RoleTrust)
		})
	}
	return false
}

// land tries to accept d as what a button of the forge made of a signed head.
func (l *landings) land(d *verdict) error {
	if len(d.p.parents) == 0 || len(d.p.parents) > 2 || d.base == "" {
		return nil
	}
	var refusal *ring.Refusal
	if len(d.p.parents) == 2 {
		d.landing = true
		head := d.p.parents[1]
		if l.carries(head) {
			refusal, err := l.from(d, head, l)
			return d.landed(refusal, err)
		}
		// It may be the forge's own squash of a branch that the message names.
		if refusal = neverVerified(d.p.sha, head, head); l.leftBehind(head) {
			refusal = unsignedHead(d.p.sha, head, l.verdicts[head].cause)
		}
	}
	head, absent, err := l.named(d.p)
	switch {
	case err != nil:
		return err
	case head != "":
		d.landing = true
		refusal, err = l.holds(d, head)
	case refusal == nil:
		d.landing, refusal = absent != nil, absent
	}
	if !d.landing && len(d.p.parents) == 1 && d.refusal != nil && d.refusal.Code == ring.Unsigned {
		d.refusal = namesNoPull(d.refusal)
	}
	return d.landed(refusal, err)
}

// landed writes down what came of a try; without a sign of a head there was none.
func (d *verdict) landed(refusal *ring.Refusal, err error) error {
	if err == nil && d.landing {
		d.refusal, d.ok = refusal, refusal == nil
	}
	return err
}

// named is the head that the message of a commit names, by the trailer, else by
// its pull request; "" when there is no sign of any.
func (l *landings) named(p *parsed) (ring.SHA, *ring.Refusal, error) {
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
		return "", headUnavailable(p.sha, fmt.Sprintf("the head of %s is not at hand", pull)), nil
	}
	head, err := l.aids.Head(pull)
	if why, ok := errors.AsType[*Unavailable](err); ok {
		return "", headUnavailable(p.sha, why.Why), nil
	}
	if errors.Is(err, ErrMissing) {
		return "", headUnavailable(p.sha, fmt.Sprintf("the forge has no %s", pull.Ref())), nil
	}
	return head, nil, err
}

// holds says whether d holds what was signed at head, a commit that only the
// message names, brought onto d's base, and nothing else.
func (l *landings) holds(d *verdict, head ring.SHA) (*ring.Refusal, error) {
	if h, known := l.verdicts[head]; known && !h.ok {
		return unsignedHead(d.p.sha, head, h.cause), nil
	} else if known {
		return l.from(d, head, l)
	}
	ids, _, refusal, err := apart(l.o, l.anchor, head, l.t.cfg.MaxRange)
	if err != nil {
		return nil, err
	}
	in := l.landingsOf(l.anchor, l)
	if refusal == nil {
		refusal, err = in.judge(d.base, ids)
	}
	if refusal == nil && err == nil && in.leftBehind(head) {
		refusal = in.verdicts[head].cause
	}
	if err != nil {
		return nil, err
	}
	if refusal == nil && !in.carries(head) {
		return neverVerified(d.p.sha, head, head), nil
	}
	if refusal != nil {
		return unsignedHead(d.p.sha, head, refusal), nil
	}
	return l.from(d, head, in)
}

// from holds d to its head, which is trusted by the verdicts of in.
func (l *landings) from(d *verdict, head ring.SHA, in *landings) (*ring.Refusal, error) {
	ids, descends, refusal, err := apart(l.o, d.base, head, l.t.cfg.MaxRange)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return unsignedHead(d.p.sha, head, refusal), nil
	}
	if refusal, err := l.brings(d, head, ids, in); refusal != nil || err != nil {
		return refusal, err
	}
	want, refusal, err := l.merged(d, head, ids, descends)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if want != d.p.tree {
		return notSignedContent(d.p.sha, head, "the trees differ"), nil
	}
	if len(ids) > 0 && !descends {
		switch at, refusal, err := l.followed(d, head); {
		case refusal != nil || err != nil:
			return refusal, err
		case at != "":
			return notSignedContent(d.p.sha, head, "it changes "+clip(at)+", which was moved meanwhile and nobody there changed; update the branch, so that somebody signs it"), nil
		}
	}
	left, err := l.leftOut(d, head)
	if err != nil {
		return nil, err
	}
	if left != "" {
		return notSignedContent(d.p.sha, head, "it comes after "+left.Short()+", and what that holds is not merged into it"), nil
	}
	if refusal, err := l.landsSigners(d.p.sha, d.base, head); refusal != nil || err != nil {
		return refusal, err
	}
	if refusal, err := l.once(d, head, ids, in); refusal != nil || err != nil {
		return refusal, err
	}
	d.attribute(in, ids)
	return nil, nil
}

// followed is a path that d changes on its base and nobody changed at head; "" when
// there is none. Git follows a file that was moved meanwhile, and so what a signer
// changed within his paths could land outside of them.
func (l *landings) followed(d *verdict, head ring.SHA) (string, *ring.Refusal, error) {
	if !l.rules(d.p).limited() {
		return "", nil, nil
	}
	base, refusal, err := l.treeOf(d.base)
	if refusal != nil || err != nil {
		return "", refusal, err
	}
	landed, refusal, err := changed(l.o, d.p.sha, base, d.p.tree)
	if refusal != nil || err != nil {
		return "", refusal, err
	}
	heads, refusal, err := l.treeOf(head)
	if refusal != nil || err != nil {
		return "", refusal, err
	}
	signed, refusal, err := l.touchedSince(d.p.sha, d.base, head, heads)
	if refusal != nil || err != nil {
		return "", refusal, err
	}
	for _, c := range landed {
		if signed[c.path] == 0 {
			return c.path, nil, nil
		}
	}
	return "", nil, nil
}

// leftOut is a trusted commit in d's history that neither its base nor head has; ""
// when there is none. A landing may leave out what nobody signed, and nothing
// else: by way of an unsigned merge a landing on an old base could otherwise
// follow the newest commit, and take everything since back. A landing in between is
// there where what it was made of is.
func (l *landings) leftOut(d *verdict, head ring.SHA) (ring.SHA, error) {
	seen := map[ring.SHA]bool{d.base: true, head: true}
	todo := slices.Clone(d.p.parents)
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		if l.leftBehind(id) {
			todo = append(todo, l.verdicts[id].p.parents...)
			continue
		}
		in := false
		for _, of := range []ring.SHA{d.base, head} {
			beyond, _, refusal, err := apart(l.o, of, id, l.t.cfg.MaxRange)
			if err != nil {
				return "", err
			}
			in = in || refusal == nil && len(beyond) == 0
		}
		if h := l.verdicts[id]; !in && h != nil && h.landing && h.one.Head != "" {
			todo = append(todo, h.base, h.one.Head)
			continue
		}
		if !in {
			return id, nil
		}
	}
	return "", nil
}

// attribute names those who signed the commits of a landing's head.
func (d *verdict) attribute(in *landings, ids []ring.SHA) {
	d.one.Signer, d.one.Fingerprint, d.one.Landed, d.one.Signed, d.speaks = "", "", true, false, nil
	var who []string
	named := map[[2]string]bool{} // by name and key: the owner of an OpenPGP key chooses the name
	for _, id := range ids {
		h := in.verdicts[id]
		if h == nil || !h.ok || h.landing {
			continue
		}
		d.one.Signer, d.one.Fingerprint, d.speaks = h.one.Signer, h.one.Fingerprint, h.p
		if by := [2]string{h.one.Signer, h.one.Fingerprint}; !named[by] {
			named[by] = true
			who = append(who, h.one.Signer)
		}
	}
	if d.speaks == nil {
		who = []string{"what was trusted before"}
	} else {
		d.one.AllowRemove, d.one.AllowWaves, d.one.Data = d.speaks.allowRemove(), d.speaks.allowWaves(), d.speaks.data()
	}
	d.one.Note = contentBy + strings.Join(who, ", ") + landedByForge + ": head " + d.one.Head.Short()
}

// The note of a landing names those whose content it holds.
const (
	contentBy     = "content by "
	landedByForge = ", landed by the forge"
)

// merged is the tree that a landing of head on d's base has to have.
func (l *landings) merged(d *verdict, head ring.SHA, ids []ring.SHA, descends bool) (ring.SHA, *ring.Refusal, error) {
	switch {
	case len(ids) == 0: // nothing that the base does not have
		return l.treeOf(d.base)
	case descends:
		return l.treeOf(head)
	case l.t.cfg.RequireUpToDate:
		return "", notUpToDate(d.p.sha, head, d.base), nil
	}
	if l.aids.Merge == nil {
		return "", needsMergeTree(d.p.sha, head), nil
	}
	tree, err := l.aids.Merge(d.base, head)
	switch {
	case errors.Is(err, ErrNoMergeTree):
		return "", needsMergeTree(d.p.sha, head), nil
	case errors.Is(err, ErrConflict):
		return "", notSignedContent(d.p.sha, head, "it conflicts with "+d.base.Short()+", and nobody signed how that was resolved"), nil
	}
	return tree, nil, err
}
