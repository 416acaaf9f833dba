package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gitring/gitring/ring"
)

// Forges take 1000 posts for one (sha, context) and few contexts per commit
// (docs/design/forges.md#posts-for-a-commit): progress beyond these is not said, an outcome always is.
const (
	maxPosts    = 20
	maxContexts = 30
	// maxProgress leaves room for one that is on its way while the next is queued,
	// an outcome, and one that takes it back.
	maxProgress = maxPosts - 3
	// longestWait is more than a forge can ask for: what is due later than that was
	// put off by a clock that was set back since.
	longestWait = 25 * time.Hour
)

// outboxRow is a row of the outbox.
type outboxRow struct {
	Key         string `gorm:"primaryKey"`
	Source      string
	SHA         string
	Context     string
	State       string
	Phase       string
	Description string
	Code        string
	Tally       string
	Turns       int
	At          int64
	// Seq grows with each change of what is to be said; Said is the Seq that the
	// forge heard last.
	Seq, Said                             int64
	SaidState, SaidPhase, SaidDescription string
	Remote                                string
	Sent                                  int
	Attempts                              int
	NextAt                                int64
	Error                                 string
	Dead                                  bool
	Created, Queued                       int64 // of the row; of what is to be said now
	Settled                               int64 // when it was posted or given up
}

// TableName is for gorm.
func (outboxRow) TableName() string { return "outbox" }

func (r outboxRow) post() ring.Post {
	return ring.Post{
		Source: r.Source, SHA: ring.SHA(r.SHA), Context: r.Context,
		State: r.State, Phase: r.Phase, Description: r.Description, At: timeOf(r.At),
		Code: ring.ReasonCode(r.Code), Tally: r.Tally, Turns: r.Turns,
	}
}

func (r outboxRow) row() ring.OutboxRow {
	return ring.OutboxRow{
		Key: r.Key, Seq: r.Seq, Attempts: r.Attempts, Next: timeOf(r.NextAt), Sent: r.Sent,
		SaidState: r.SaidState, SaidPhase: r.SaidPhase, SaidDescription: r.SaidDescription, Remote: r.Remote, Post: r.post(),
	}
}

// queue is what becomes of the row (its zero value when there is none) when p is
// to be said; false when nothing changes.
func queue(r outboxRow, p ring.Post, contexts int, now time.Time) (outboxRow, bool) {
	isNew := r.Key == ""
	if !isNew && r.post().Says() == p.Says() {
		return r, false
	}
	if p.Open() && (r.Sent >= maxProgress || isNew && contexts >= maxContexts && !summary(p)) {
		return r, false
	}
	if isNew {
		r.Key, r.Created = ring.PostKey(p.SHA, p.Context), ns(now)
	}
	r.Source, r.SHA, r.Context = p.Source, string(p.SHA), p.Context
	r.State, r.Phase, r.Description, r.At = p.State, p.Phase, p.Description, ns(p.At)
	r.Code, r.Tally, r.Turns = string(p.Code), p.Tally, p.Turns
	r.Seq, r.Queued = r.Seq+1, ns(now)
	if r.Dead { // given up for what it said before
		r.Dead, r.NextAt, r.Error = false, 0, ""
	}
	if !p.Open() && r.Error == "" { // only put off to spread load, which an outcome is not
		r.NextAt = 0
	}
	// Else NextAt stays: a forge that is away, or asked to be left alone until then,
	// is not there sooner for having something new to hear.
	// What the forge shows already is due too: a post in between may be on its
	// way. Who asks for what is due compares with what was said, and knows.
	r.Attempts, r.Settled = 0, 0
	return r, true
}

// summary reports whether a context is the host's own, gitring/<host>.
func summary(p ring.Post) bool {
	_, deployment := p.Environment()
	return !deployment && strings.Count(p.Context, "/") <= 1
}

// post queues p.
func (s *Store) post(tx *gorm.DB, p ring.Post) error {
	r, err := outboxOf(tx, ring.PostKey(p.SHA, p.Context))
	if err != nil {
		return err
	}
	contexts := 0
	if r.Key == "" {
		_, deployment := p.Environment()
		err := tx.Raw("SELECT count(*) FROM outbox WHERE sha = ? AND (context LIKE ?) = ?", string(p.SHA), ring.DeploymentContext("%", "%"), deployment).Scan(&contexts).Error
		if err != nil {
			return err
		}
	}
	r, changed := queue(r, p, contexts, s.now())
	if !changed {
		return nil
	}
	return save(tx, r)
}

// outboxOf finds a row; its zero value when there is none.
func outboxOf(tx *gorm.DB, key string) (outboxRow, error) {
	var rows []outboxRow
	if err := tx.Where("key = ?", key).Limit(1).Find(&rows).Error; err != nil || len(rows) == 0 {
		return outboxRow{}, err
	}
	return rows[0], nil
}

func save(tx *gorm.DB, r outboxRow) error {
	return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "key"}}, UpdateAll: true}).Create(&r).Error
}

// Due are the posts to be said now, the longest due first, at most max of them.
func (s *Store) Due(ctx context.Context, now time.Time, max int) ([]ring.OutboxRow, error) {
	var rows []outboxRow
	err := s.db.r.WithContext(ctx).Where("said < seq AND dead = 0 AND (next_at <= ? OR next_at > ?)", ns(now), ns(now.Add(longestWait))).
		Order("next_at, created, key").Limit(max).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read the outbox: %w", err)
	}
	due := make([]ring.OutboxRow, len(rows))
	for i, r := range rows {
		due[i] = r.row()
	}
	return due, nil
}

// Posted notes that the forge shows the post that was handed out with seq, or that nobody is
// to be told. A newer one under the same key stays due. No such row is no error.
func (s *Store) Posted(ctx context.Context, key string, seq int64, at time.Time) error {
	return s.answer(ctx, key, func(r outboxRow) (outboxRow, []ring.Event) { return r.posted(seq, at), nil })
}

// Told is Posted of what a forge took just now. The journal has a line of it where it was
// the outcome of a commit.
func (s *Store) Told(ctx context.Context, key string, seq int64, at time.Time) error {
	return s.answer(ctx, key, func(r outboxRow) (outboxRow, []ring.Event) {
		after := r.posted(seq, at)
		if r.Seq != seq || r.Said == seq || r.post().Open() {
			return after, nil
		}
		return after, []ring.Event{r.line(ring.ForgeTold, "", at)}
	})
}

// posted is the row once the forge shows the post with seq.
func (r outboxRow) posted(seq int64, at time.Time) outboxRow {
	if seq < r.Said || seq > r.Seq {
		return r // an answer that comes twice, or to no question
	}
	if r.Said != seq && r.row().Said() != r.post().Says() {
		r.Sent++
	}
	r.Error, r.Attempts, r.NextAt = "", 0, 0
	r.Said, r.SaidState, r.SaidPhase, r.SaidDescription = seq, "", "", ""
	if r.Seq == seq {
		r.SaidState, r.SaidPhase, r.SaidDescription, r.Settled = r.State, r.Phase, r.Description, ns(at)
	}
	return r
}

// line is one of the journal, about what became of the row's newest post.
func (r outboxRow) line(kind, why string, at time.Time) ring.Event {
	p := r.post()
	says := p.State + " as " + p.Context
	if why != "" {
		says += ": " + why
	}
	return ring.Event{Kind: kind, At: at, Source: p.Source, App: p.App(), Commit: p.SHA, Began: timeOf(r.Queued), Reason: says}
}

// Retry says that the post was tried and is to be tried again at next; says is
// why, and holds no secret. Nobody knows what the forge shows now, so whatever
// is newest is due, even what it had been told before. An empty says is no
// attempt: the row is only put off.
func (s *Store) Retry(ctx context.Context, key string, seq int64, says string, next time.Time) error {
	return s.answer(ctx, key, func(r outboxRow) (outboxRow, []ring.Event) {
		if says == "" {
			r.NextAt = ns(next)
			return r, nil
		}
		if r.Seq == seq {
			r.Attempts++
		}
		r.Error, r.NextAt = says, ns(next)
		r.Said, r.SaidState, r.SaidPhase, r.SaidDescription = 0, "", "", ""
		return r, nil
	})
}

// Dead says that the post with seq cannot be said, ever. A newer one under the
// same key is due all the same.
func (s *Store) Dead(ctx context.Context, key string, seq int64, says string) error {
	return s.answer(ctx, key, func(r outboxRow) (outboxRow, []ring.Event) {
		r.Error = says
		if r.Seq != seq {
			return r, nil
		}
		var lines []ring.Event
		if !r.Dead && !r.post().Open() {
			lines = append(lines, r.line(ring.ForgeUntold, says, s.now()))
		}
		r.Dead, r.Settled = true, ns(s.now())
		return r, lines
	})
}

// Remember keeps what the forge calls a row, so that it is not made twice.
func (s *Store) Remember(ctx context.Context, key, remote string) error {
	return s.answer(ctx, key, func(r outboxRow) (outboxRow, []ring.Event) {
		r.Remote = remote
		return r, nil
	})
}

// Unsaid is, by source, why the newest of its statuses will never be said, and of its
// deployments; a source whose newest was said, or still waits, is not in it.
func (s *Store) Unsaid(ctx context.Context) (statuses, deployments map[string]string, err error) {
	var rows []outboxRow
	err = s.db.r.WithContext(ctx).Where("settled > 0").Order("settled, key").Find(&rows).Error
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the outbox: %w", err)
	}
	statuses, deployments = map[string]string{}, map[string]string{}
	for _, r := range rows {
		why := statuses
		if _, deployment := r.post().Environment(); deployment {
			why = deployments
		}
		delete(why, r.Source)
		if r.Dead {
			why[r.Source] = r.Error
		}
	}
	return statuses, deployments, nil
}

// answer writes what a change makes of a row, and its lines of the journal, both or neither.
func (s *Store) answer(ctx context.Context, key string, change func(outboxRow) (outboxRow, []ring.Event)) error {
	var lines []ring.Event
	err := s.write(ctx, func(tx *gorm.DB) error {
		r, err := outboxOf(tx, key)
		if err != nil || r.Key == "" {
			return err
		}
		if r, lines = change(r); len(lines) > 0 {
			if err := s.journal(tx, lines); err != nil {
				return err
			}
		}
		return save(tx, r)
	})
	if err != nil {
		return fmt.Errorf("cannot note the answer to a post: %w", err)
	}
	if len(lines) > 0 {
		s.tell()
	}
	return nil
}

// addPosts adds what was to be said, said or not.
func addPosts(tx *gorm.DB, facts *ring.Facts) (bad badRows, err error) {
	var rows []outboxRow
	if err := tx.Find(&rows).Error; err != nil {
		return nil, err
	}
	for _, r := range rows {
		if p := r.post(); ring.PostKey(p.SHA, p.Context) == r.Key {
			facts.Set(p)
			continue
		}
		bad = append(bad, badRow{table: postTable, key: r.Key, why: "its value is of another row"})
	}
	return bad, nil
}
