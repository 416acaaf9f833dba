package notify

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// ledger is an Outbox that forgets nothing and can be made to fail, before or
// after the fact took effect.
type ledger struct {
	mu       sync.Mutex
	rows     map[string]*ledgerRow
	failDue  error
	failNote error // Posted fails
	notes    int   // calls of Posted
	dues     int
}

type ledgerRow struct {
	ring.OutboxRow
	said    bool
	dead    string
	errors  []string
	created int
}

func newLedger() *ledger { return &ledger{rows: map[string]*ledgerRow{}} }

// put queues a post; the newest takes the place of an older one.
func (m *ledger) put(p ring.Post) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := ring.PostKey(p.SHA, p.Context)
	r, ok := m.rows[key]
	if !ok {
		r = &ledgerRow{OutboxRow: ring.OutboxRow{Key: key}, created: len(m.rows)}
		m.rows[key] = r
	}
	r.Seq++
	r.Post, r.said, r.dead, r.Attempts = p, false, "", 0
	if !p.Open() && len(r.errors) == 0 {
		r.Next = time.Time{}
	}
}

func (m *ledger) Due(_ context.Context, now time.Time, limit int) ([]ring.OutboxRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dues++
	if m.failDue != nil {
		return nil, m.failDue
	}
	var due []*ledgerRow
	for _, r := range m.rows {
		if !r.said && r.dead == "" && !r.Next.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *ledgerRow) int {
		return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.created, b.created))
	})
	var out []ring.OutboxRow
	for _, r := range due[:min(limit, len(due))] {
		out = append(out, r.OutboxRow)
	}
	return out, nil
}

func (m *ledger) Told(ctx context.Context, key string, seq int64, now time.Time) error {
	return m.Posted(ctx, key, seq, now)
}

func (m *ledger) Posted(_ context.Context, key string, seq int64, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes++
	if m.failNote != nil {
		return m.failNote
	}
	r := m.rows[key]
	r.Sent++
	r.Next = time.Time{}
	if r.Seq == seq {
		r.said, r.SaidState, r.SaidPhase, r.SaidDescription = true, r.Post.State, r.Post.Phase, r.Post.Description
	}
	return nil
}

func (m *ledger) Retry(_ context.Context, key string, seq int64, says string, next time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[key]
	r.Next = next.Truncate(time.Second) // a store may keep no fractions
	if says == "" {
		return nil
	}
	if r.Seq == seq {
		r.Attempts++
	}
	r.errors = append(r.errors, says)
	return nil
}

func (m *ledger) Remember(_ context.Context, key, remote string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[key].Remote = remote
	return nil
}

func (m *ledger) Dead(_ context.Context, key string, seq int64, says string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[key]
	r.errors = append(r.errors, says)
	if r.Seq == seq {
		r.dead = says
	}
	return nil
}

// row is a copy of what stands under a post's key.
func (m *ledger) row(p ring.Post) ledgerRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *m.rows[ring.PostKey(p.SHA, p.Context)]
}

func (m *ledger) fail(due, note error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failDue, m.failNote = due, note
}

func (m *ledger) calls() (dues, notes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dues, m.notes
}
