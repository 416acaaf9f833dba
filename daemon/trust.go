package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// remembered are the commits that say up to where a source was trusted when the
// anchor is lost or older than they are: the labels of containers, and the
// anchor's file where it and the database tell two stories.
func (d *Daemon) remembered(ctx context.Context, source string) ([]ring.SHA, error) {
	commits, err := d.engine.Commits(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the engine which commits its containers were made from: %w", err)
	}
	// One that cannot be read says nothing more: the store told of it already.
	if file, err := d.store.AnchorFile(source); err == nil && file.SHA != "" {
		commits = append(commits, file.SHA)
	}
	return commits, nil
}

// firstUse is where trust began, while it rests on nobody's word.
func (f *follower) firstUse() *ring.FirstUse {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.last.Anchor; a.FirstUse() {
		return &ring.FirstUse{Commit: a.Began.SHA, At: a.Began.At}
	}
	return nil
}

// trust says whom and what the sources trust now.
func (d *Daemon) trust(ctx context.Context, source string) ([]ring.TrustState, error) {
	fs, err := d.chosen(source)
	if err != nil {
		return nil, err
	}
	st, _ := d.loop.Status()
	out := make([]ring.TrustState, 0, len(fs))
	for _, f := range fs {
		t, err := f.git.Trusted(ctx)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(st.Sources, func(s ring.SourceStatus) bool { return s.Name == f.cfg.Name }); i >= 0 {
			t.Tip, t.Refusal = st.Sources[i].Tip, st.Sources[i].Refusal
		}
		f.mu.Lock()
		t.Host, t.Reason = d.cfg.Host, f.last.Reason
		f.mu.Unlock()
		out = append(out, t)
	}
	return out, nil
}

// reverify holds the trusted history against the present keys. It changes
// nothing but a line of the journal.
func (d *Daemon) reverify(ctx context.Context, p api.Peer, r api.ReverifyRequest) (ring.Reverified, error) {
	f, err := d.one(r.Source)
	if err != nil {
		return ring.Reverified{}, err
	}
	found, err := f.git.Reverify(ctx)
	if err != nil {
		return ring.Reverified{}, err
	}
	if found.To == "" {
		return ring.Reverified{}, api.NotFound("gitring status says why", "nothing is trusted of source %s yet", f.cfg.Name)
	}
	says := fmt.Sprintf("%d of %d commits since %s would not pass now", len(found.Refusals), found.Commits, found.From.Short())
	if n := len(found.Untold); n > 0 {
		says += fmt.Sprintf(", and of %d it cannot be told", n)
	}
	if r.Reason != "" {
		says += ": " + r.Reason
	}
	return found, d.store.Record(ctx, nil, []ring.Event{{
		At: time.Now().UTC(), Kind: ring.TrustReverified, Source: f.cfg.Name, Commit: found.To, Actor: answerable(p), Reason: says,
	}})
}

// answerable names who acts on trust for the audit: a name can be given away, the
// number is the kernel's.
func answerable(p api.Peer) string {
	if p.Name == "" {
		return p.Actor()
	}
	return p.Name + " (uid " + strconv.FormatUint(uint64(p.UID), 10) + ")"
}
