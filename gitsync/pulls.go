package gitsync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// Whoever may open a pull request makes this host fetch and verify. What people
// propose is small, so it gets far less than the branch itself.
const (
	maxProposedBytes   = 64 << 20
	maxProposedObjects = 50_000
	maxProposedRange   = 1_000
	maxProposedTime    = 60 * time.Second
)

// A head that is not judged, which is nobody's fault.
var (
	// ErrMoved says that the remote does not have the head any more that the forge
	// named: it was pushed over or deleted.
	ErrMoved = errors.New("the head moved meanwhile")
	// ErrNothingTrusted says that there is nothing to hold a head against.
	ErrNothingTrusted = errors.New("nothing of this source is trusted yet")
	// ErrForkUnread says that a head of another repository was not signed by those
	// whom the source trusts. Nothing is read of it and nothing told about it.
	ErrForkUnread = errors.New("the head of a fork is not signed by an allowed signer")
)

// errUnhashed is of a mirror that was copied from a folder before heads were judged
// here, so that git may not merge what is in it.
var errUnhashed = errors.New("this host copied the repository without hashing it: stop gitring, remove the source's folder below git in the state directory, and start it again")

// Proposal is the head of an open pull request, as a forge names it. Nothing of it
// is believed but where to look.
type Proposal struct {
	Head ring.SHA
	Ref  string // that the source's own remote has it under
	Fork bool   // the branch is somebody else's repository's
}

// Proposed is what came of a head.
type Proposed struct {
	// Trusted is the commit that it was held against.
	Trusted ring.SHA
	// Refusal is why it would not be trusted; Commit is nil then.
	Refusal *ring.Refusal
	// Commit is the head, with the tree that landing it would make: the merge, where
	// Merged says so, else its own. It can be read until the call that gave it ends.
	Commit *ring.Commit
	// Behind is how many trusted commits the head does not have; -1 is too many to
	// count.
	Behind int
	Merged bool
	// Alone is why a head that is behind was not merged; "" where it was, or need not be.
	Alone string
}

// proposals judges heads one at a time, beside Run: with a quarantine and a process
// of its own, so that nothing that strangers propose delays a look at the branch.
type proposals struct {
	turn  chan struct{} // of capacity 1: holds it who judges
	dir   string
	child *child // nil when this process fetches
}

var proposedRef = regexp.MustCompile(`^refs/(pull/[1-9][0-9]{0,9}/head|merge-requests/[1-9][0-9]{0,9}/head|pull-requests/[1-9][0-9]{0,9}/from)$`)

func (f *Follower) newProposals() *proposals {
	p := &proposals{turn: make(chan struct{}, 1), dir: f.cfg.Dir + ".pulls"}
	if f.cfg.Isolated {
		cfg := f.cfg
		cfg.Dir, cfg.Limits = p.dir, f.proposalLimits()
		cfg.Spare = nil // that one is for the branch
		p.child = newChild(cfg, f.address, f.log)
	}
	return p
}

func (f *Follower) proposalLimits() Limits {
	lim := f.cfg.Limits
	lim.Received, lim.Objects = min(lim.Received, maxProposedBytes), min(lim.Objects, maxProposedObjects)
	lim.Object, lim.Update = min(lim.Object, maxProposedBytes), min(lim.Update, maxProposedTime)
	return lim
}

// sweep removes what a crash left, also where no head is ever judged again. Whoever is
// judging one now has done so.
func (p *proposals) sweep() {
	select {
	case p.turn <- struct{}{}:
		p.clear()
		<-p.turn
	default:
	}
}

func (p *proposals) clear() {
	_ = os.RemoveAll(p.dir) // whatever stays is in nobody's way
	_ = os.RemoveAll(p.dir + incomingEnds)
}

// ProposalEdition changes when heads have to be judged again: with the trusted
// commit and with the trust files. It is "" while nothing is trusted.
func (f *Follower) ProposalEdition(ctx context.Context) (string, error) {
	a, err := f.anchors.Anchor(ctx, f.cfg.Name)
	if err != nil || a.SHA == "" {
		return "", err
	}
	sum := sha256.Sum256([]byte(string(a.SHA) + "\n" + fingerprint(f.cfg.Trust)))
	return hex.EncodeToString(sum[:8]), nil
}

// Propose fetches one head into a quarantine, judges it by the rules of the source
// and hands to use what came of it; then the quarantine is gone. It moves no anchor,
// writes no fact and takes no part in Run. The head of a fork that is not trusted is
// ErrForkUnread and never handed on. Other errors are of the world.
func (f *Follower) Propose(ctx context.Context, p Proposal, use func(Proposed) error) error {
	ref, err := p.ref()
	if err != nil {
		return err
	}
	select {
	case f.pulls.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.pulls.turn }()
	trust, anchor, err := f.trustForProposals(ctx, p.Fork)
	if err != nil {
		return err
	}
	q := f.quarantine(trust, anchor.SHA)
	q.began = anchor.Began.SHA
	defer q.drop()
	judging, cancel := context.WithTimeout(ctx, q.lim.Update)
	defer cancel()
	out, err := q.judge(judging, p.Head, ref)
	if q.came && judging.Err() != nil && ctx.Err() == nil { // no remote is at fault: whoever made it that large is
		out, err = Proposed{Refusal: tooLargeToJudge(p.Head, fmt.Errorf("judging it takes longer than %s", q.lim.Update))}, nil
	}
	if err != nil {
		return err
	}
	if out.Refusal != nil && p.Fork {
		return fmt.Errorf("%w: %s", ErrForkUnread, out.Refusal.Code)
	}
	out.Trusted = anchor.SHA
	return use(out)
}

func (p Proposal) ref() (plumbing.ReferenceName, error) {
	if !idForm.MatchString(string(p.Head)) {
		return "", fmt.Errorf("cannot judge %.50q: not a full commit id", p.Head)
	}
	if proposedRef.MatchString(p.Ref) {
		return plumbing.ReferenceName(p.Ref), nil
	}
	branch, ok := strings.CutPrefix(p.Ref, "refs/heads/")
	if !ok {
		return "", fmt.Errorf("cannot judge %s: %.50q is no ref of a pull request", p.Head.Short(), p.Ref)
	}
	return branchRef(branch)
}

// trustForProposals reads the trust files for itself: a set that cannot be used, or
// that is older than the one in use, judges nobody. A fork's commits have to be
// signed, each of them, whatever the source asks of its own branch.
func (f *Follower) trustForProposals(ctx context.Context, fork bool) (*Trust, ring.Anchor, error) {
	a, err := f.anchors.Anchor(ctx, f.cfg.Name)
	if err != nil {
		return nil, a, fmt.Errorf("cannot read the anchor of source %s: %w", f.cfg.Name, err)
	}
	if a.SHA == "" || !f.mirror.has(plumbing.NewHash(string(a.SHA))) {
		return nil, a, ErrNothingTrusted
	}
	cfg := f.cfg.Trust
	if cfg.MaxRange <= 0 || cfg.MaxRange > maxProposedRange {
		cfg.MaxRange = maxProposedRange
	}
	switch {
	case fork && cfg.Mode == Disabled:
		return nil, a, fmt.Errorf("%w: trust is disabled, so there is none", ErrForkUnread)
	case fork: // nobody knows whose button made what is unsigned there
		cfg.Mode = Strict
	}
	t, err := LoadTrust(cfg, f.cfg.Name, f.cfg.Branch)
	if err != nil {
		return nil, a, err
	}
	if t.version < a.TrustVersion {
		return nil, a, fmt.Errorf("cannot judge pull requests: %s: trust_version is below %d, which was in use before", ring.TrustRollback, a.TrustVersion)
	}
	return t, a, nil
}

// quarantine is where one head is judged. What is in it counts for nothing but the
// signatures that are found there.
type quarantine struct {
	*Follower
	lim    Limits
	trust  *Trust
	anchor ring.SHA
	began  ring.SHA // where trust began; "" where that was never written down
	store  *mirror
	came   bool    // the head was fetched
	merged *mirror // what git made of the merge; nil where there is none
}

func (f *Follower) quarantine(t *Trust, anchor ring.SHA) *quarantine {
	q := &quarantine{Follower: f, lim: f.proposalLimits(), trust: t, anchor: anchor}
	f.pulls.clear()
	q.store = newMirror(f.pulls.dir, "", q.lim)
	q.store.under, q.store.careful = f.mirror, true // every object is hashed on its way in
	return q
}

func (q *quarantine) drop() {
	q.pulls.child.rest()
	q.store.rest()
	if q.merged != nil {
		q.merged.rest()
	}
	q.pulls.clear()
}

// Raw is an object of the mirror, else of the quarantine; whoever reads it hashes it.
func (q *quarantine) Raw(sha ring.SHA) (kind string, body []byte, err error) {
	for _, m := range q.layers() {
		if kind, body, err = m.Raw(sha); !errors.Is(err, ErrMissing) {
			return kind, body, err
		}
	}
	return kind, body, err
}

func (q *quarantine) size(sha ring.SHA) (n int64, err error) {
	for _, m := range q.layers() {
		if n, err = m.size(sha); !errors.Is(err, ErrMissing) {
			return n, err
		}
	}
	return n, err
}

// spoiled does nothing: the quarantine is thrown away, and the branch's own look
// finds out about the mirror.
func (q *quarantine) spoiled(error) {}

func (q *quarantine) layers() []*mirror {
	all := []*mirror{q.mirror, q.store}
	if q.merged != nil {
		all = append(all, q.merged)
	}
	return all
}

// judge reads nothing of a head but its commits, and what their signers' rights
// depend on, until it is known who signed them.
func (q *quarantine) judge(ctx context.Context, head ring.SHA, ref plumbing.ReferenceName) (Proposed, error) {
	refusal, err := q.fetch(ctx, head, ref)
	if err != nil || refusal != nil {
		return Proposed{Refusal: refusal}, err
	}
	q.came = true
	past := q.past(ctx, q, q.began)
	aids := Aids{
		Standing: past.standing, Carriers: past.carriers,
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) { return q.merge(ctx, ours, theirs) },
	}
	all, descends, refusal, err := q.trust.Proposed(Until(ctx, q), aids, q.anchor, head, q.now().UTC())
	if over := ctx.Err(); over != nil {
		return Proposed{}, over
	}
	switch {
	case err != nil:
		return Proposed{}, fmt.Errorf("cannot verify %s: %w", head.Short(), err)
	case refusal != nil && (refusal.Code == ring.HashMismatch || refusal.Code == ring.AnchorUnavailable):
		return Proposed{}, fmt.Errorf("cannot verify %s: %s", head.Short(), refusal.Says) // not its author's fault
	case refusal != nil:
		return Proposed{Refusal: refusal}, nil
	}
	if err := wholeIn(ctx, q.store, plumbing.NewHash(string(head)), q.lim.Objects); err != nil && len(all) > 0 {
		return Proposed{}, fmt.Errorf("cannot read %s: %w", head.Short(), err)
	}
	return q.landed(ctx, head, all, descends)
}

// fetch brings the commit that the forge named, and no other that the ref may lead
// to by now.
func (q *quarantine) fetch(ctx context.Context, head ring.SHA, ref plumbing.ReferenceName) (*ring.Refusal, error) {
	want := plumbing.NewHash(string(head))
	if q.mirror.has(want) {
		return nil, nil
	}
	far, err := newRemote(q.address, ref, q.cfg.Auth, q.lim, files{}, nil)
	if err != nil {
		return nil, err
	}
	if q.pulls.child != nil {
		far = q.pulls.child.remote(ref, q.lim)
	}
	defer far.rest()
	v, err := far.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look for %s: %w", ref, said{bare(err)})
	}
	defer v.close()
	switch {
	case v.tip != want:
		return nil, ErrMoved
	case v.shallow:
		return nil, fmt.Errorf("cannot fetch %s: the remote repository is shallow", ref)
	}
	err = v.fetch(ctx, q.store, want)
	switch {
	case errors.Is(err, errLimit), errors.Is(err, errTooBig):
		return tooLargeToJudge(head, said{err}), nil
	case err != nil:
		return nil, fmt.Errorf("cannot fetch %s: %w", ref, said{bare(err)})
	}
	return nil, nil
}

// landed is a head that is trusted, with the tree that landing it would make.
func (q *quarantine) landed(ctx context.Context, head ring.SHA, all []ring.Verified, descends bool) (Proposed, error) {
	var out Proposed
	v := ring.Verified{SHA: head}
	for _, one := range all {
		if one.SHA == head {
			v = one
		}
	}
	c, err := commitOf(q, v, q.lim)
	if err != nil {
		return out, fmt.Errorf("cannot read %s: %w", head.Short(), err)
	}
	whole, err := q.trust.mayAnswer(Until(ctx, q), v)
	if err != nil {
		return out, fmt.Errorf("cannot tell what the signer of %s may answer: %w", head.Short(), err)
	}
	if !whole {
		c.AllowRemove, c.AllowWaves, c.Data = 0, false, nil
	}
	out.Commit = c
	if descends {
		return out, nil
	}
	behind, _, refusal, err := apart(Until(ctx, q), head, q.anchor, q.trust.cfg.MaxRange)
	if err != nil {
		return out, fmt.Errorf("cannot tell how far %s is behind: %w", head.Short(), err)
	}
	if out.Behind = len(behind); refusal != nil {
		out.Behind = -1
	}
	tree, err := q.mergeKept(ctx, head, len(all) == 0)
	switch {
	case errors.Is(err, ErrConflict):
		out.Alone = "it conflicts with what is trusted"
	case errors.Is(err, errUnhashed):
		out.Alone = err.Error()
	case errors.Is(err, ErrNoMergeTree):
		out.Alone = "merging it here needs git 2.38 or newer on this host"
	case err != nil:
		return out, err
	default:
		out.Merged, c.Tree = true, newTree(q, tree, q.lim)
	}
	return out, nil
}

// mergeKept is the tree of the merge of a head with the trusted commit; its objects
// stay in the quarantine for as long as that does. A head that holds nothing new
// changes nothing.
func (q *quarantine) mergeKept(ctx context.Context, head ring.SHA, nothing bool) (ring.SHA, error) {
	if nothing {
		p, refusal, err := (&verification{o: q}).treeOf(q.anchor)
		return p, refusedOr(refusal, err)
	}
	dir := filepath.Join(q.store.dir, "merged")
	tree, err := q.mergeInto(ctx, dir, q.anchor, head)
	if err == nil {
		q.merged = newMirror(dir, "", q.lim)
	}
	return tree, err
}

func (q *quarantine) merge(ctx context.Context, ours, theirs ring.SHA) (ring.SHA, error) {
	dir := filepath.Join(q.store.dir, "merging")
	defer func() { _ = os.RemoveAll(dir) }() // the next one finds it empty or says so
	return q.mergeInto(ctx, dir, ours, theirs)
}

// mergeInto lets git read the quarantine and the mirror. Both commits are trusted.
// What git reads was hashed a moment ago: nobody who fetches may hold a file of
// either open meanwhile, for git believes what is in them.
func (q *quarantine) mergeInto(ctx context.Context, dir string, ours, theirs ring.SHA) (ring.SHA, error) {
	if q.address.scheme == "file" && !q.mirror.hashed() {
		return "", errUnhashed
	}
	git, err := gitThatMerges(ctx)
	if err != nil {
		return "", err
	}
	q.pulls.child.rest()
	before, alone := q.child.still()
	if !alone {
		return "", fmt.Errorf("cannot merge %s: a fetch is under way: %w", theirs.Short(), errLater)
	}
	if err := rehash(Until(ctx, q), ours, theirs, maxProposedRange); err != nil {
		return "", err
	}
	if err := os.MkdirAll(q.store.dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot merge: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot merge: %w", err)
	}
	tree, err := mergeAt(ctx, git, dir, ours, theirs, filepath.Join(q.store.dir, "objects"), filepath.Join(q.mirror.dir, "objects"))
	if after, alone := q.child.still(); !alone || after != before {
		return "", fmt.Errorf("cannot merge %s: a fetch began meanwhile: %w", theirs.Short(), errLater)
	}
	return tree, err
}
