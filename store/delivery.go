package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gitring/gitring/ring"
)

// What is kept of deliveries.
const (
	keepTaken       = 24 * time.Hour
	keepUndelivered = 30 * 24 * time.Hour // given up, or of a receiver that is no more
	keepDeliveries  = 20_000
	// mostWaiting is how many may wait for one receiver: what is more is given up,
	// the oldest first, before it fills the disk.
	mostWaiting = 2_000
)

// deliveryRow is a row of deliveries.
type deliveryRow struct {
	ID            string `gorm:"primaryKey"`
	Receiver      string
	Line          int64
	Kind, Subject string
	Body          string
	Queued        int64
	Attempts      int
	NextAt        int64
	Error         string
	Dead          bool
	Settled       int64
}

// TableName is for gorm.
func (deliveryRow) TableName() string { return "deliveries" }

func (r deliveryRow) delivery() ring.Delivery {
	return ring.Delivery{
		ID: r.ID, Receiver: r.Receiver, Kind: r.Kind, Subject: r.Subject, Body: []byte(r.Body), Queued: timeOf(r.Queued),
		Attempts: r.Attempts, Next: timeOf(r.NextAt), Error: r.Error, Dead: r.Dead, Settled: timeOf(r.Settled),
	}
}

// Head is the last line of the journal; 0 before the first.
func (s *Store) Head(ctx context.Context) (int64, error) {
	c, err := chainOf(s.db.r.WithContext(ctx))
	return c.HeadSeq, err
}

// Receiver is what is remembered of a receiver; false when nothing is.
func (s *Store) Receiver(ctx context.Context, name string) (ring.Receiver, bool, error) {
	var rows []struct {
		Cursor int64
		State  string
	}
	err := s.db.r.WithContext(ctx).Raw("SELECT cursor, state FROM receivers WHERE name = ?", name).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return ring.Receiver{}, false, wrapDelivery("read a receiver", err)
	}
	return ring.Receiver{Name: name, Cursor: rows[0].Cursor, State: []byte(rows[0].State)}, true, nil
}

// Advance moves a receiver's cursor and queues what came of the lines before it,
// in one transaction: no line is said twice or left out by a restart.
func (s *Store) Advance(ctx context.Context, r ring.Receiver, queued []ring.Delivery) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		err := tx.Exec(`INSERT INTO receivers (name, cursor, state, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET cursor = excluded.cursor, state = excluded.state, at = excluded.at`,
			r.Name, r.Cursor, string(r.State), ns(s.now())).Error
		if err != nil || len(queued) == 0 {
			return err
		}
		var last int64
		if err := tx.Raw("SELECT coalesce(max(line), 0) FROM deliveries").Scan(&last).Error; err != nil {
			return err
		}
		for i, d := range queued {
			err := tx.Exec(`INSERT INTO deliveries (id, receiver, line, kind, subject, body, queued, attempts, next_at, error, dead, settled)
				VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, '', 0, 0) ON CONFLICT (id) DO NOTHING`,
				d.ID, r.Name, last+1+int64(i), d.Kind, d.Subject, string(d.Body), ns(d.Queued)).Error
			if err != nil {
				return err
			}
		}
		return giveUpOldest(tx, r.Name, len(queued), s.now())
	})
	return wrapDelivery("queue what a receiver is to be told", err)
}

// giveUpOldest gives up what is too much, and no more than was queued: what a person
// asked for again, however much, is not taken back by the next event.
func giveUpOldest(tx *gorm.DB, receiver string, queued int, now time.Time) error {
	var waiting int
	if err := tx.Raw("SELECT count(*) FROM deliveries WHERE settled = 0 AND receiver = ?", receiver).Scan(&waiting).Error; err != nil {
		return err
	}
	over := min(waiting-mostWaiting, queued)
	if over <= 0 {
		return nil
	}
	return tx.Exec(`UPDATE deliveries SET dead = 1, settled = ?, error = 'given up: too many wait for this receiver'
		WHERE id IN (SELECT id FROM deliveries WHERE settled = 0 AND receiver = ? ORDER BY line LIMIT ?)`, ns(now), receiver, over).Error
}

// Waiting is what waits for a receiver, at most max: what is due, the oldest first,
// and then what is due later. Some that are refused one by one keep none from being
// tried.
func (s *Store) Waiting(ctx context.Context, receiver string, max int) ([]ring.Delivery, error) {
	var rows []deliveryRow
	err := s.db.r.WithContext(ctx).Where("settled = 0 AND receiver = ?", receiver).
		Clauses(clause.OrderBy{Expression: clause.Expr{SQL: "CASE WHEN next_at <= ? THEN 0 ELSE next_at END, line", Vars: []any{ns(s.now())}}}).Limit(max).Find(&rows).Error
	if err != nil {
		return nil, wrapDelivery("read what waits for a receiver", err)
	}
	out := make([]ring.Delivery, len(rows))
	for i, r := range rows {
		out[i] = r.delivery()
	}
	return out, nil
}

// Undelivered counts what waits for a receiver and what was given up.
func (s *Store) Undelivered(ctx context.Context, receiver string) (waiting, dead int, err error) {
	var n struct{ Waiting, Dead int }
	err = s.db.r.WithContext(ctx).Raw(`SELECT count(*) FILTER (WHERE settled = 0) AS waiting, count(*) FILTER (WHERE dead = 1) AS dead
		FROM deliveries WHERE receiver = ?`, receiver).Scan(&n).Error
	return n.Waiting, n.Dead, wrapDelivery("count what waits for a receiver", err)
}

// Delivered says that the receiver took it.
func (s *Store) Delivered(ctx context.Context, id string, at time.Time) error {
	return s.settleDelivery(ctx, "UPDATE deliveries SET settled = ?, error = '', dead = 0, attempts = attempts + 1 WHERE id = ?", ns(at), id)
}

// Postpone says that it was tried, why it was not taken, and when it is due
// again. says holds no secret.
func (s *Store) Postpone(ctx context.Context, id, says string, next time.Time) error {
	return s.settleDelivery(ctx, "UPDATE deliveries SET attempts = attempts + 1, error = ?, next_at = ? WHERE id = ? AND settled = 0", says, ns(next), id)
}

// GiveUp says that it will not be tried again unless a person asks.
func (s *Store) GiveUp(ctx context.Context, id, says string, at time.Time) error {
	return s.settleDelivery(ctx, "UPDATE deliveries SET attempts = attempts + 1, error = ?, dead = 1, settled = ? WHERE id = ? AND settled = 0", says, ns(at), id)
}

func (s *Store) settleDelivery(ctx context.Context, sql string, args ...any) error {
	err := s.write(ctx, func(tx *gorm.DB) error { return tx.Exec(sql, args...).Error })
	return wrapDelivery("note what became of a message", err)
}

// NotArrived is everything that has not arrived, statuses and deliveries, the
// longest waiting first.
func (s *Store) NotArrived(ctx context.Context) ([]ring.Unsaid, error) {
	var out []ring.Unsaid
	err := s.read(ctx, func(tx *gorm.DB) error {
		var posts []outboxRow
		if err := tx.Where("dead = 1 OR said < seq").Order("queued, key").Find(&posts).Error; err != nil {
			return err
		}
		for _, r := range posts {
			u := ring.Unsaid{
				ID: r.Key, To: r.Source, What: r.Context + " " + r.State, Commit: ring.SHA(r.SHA), State: ring.UnsaidWaits,
				Attempts: r.Attempts, Reason: r.Error, Queued: timeOf(r.Queued), Next: timeOf(r.NextAt),
			}
			if r.Dead {
				u.State, u.Next = ring.UnsaidDead, time.Time{}
			}
			out = append(out, u)
		}
		var rows []deliveryRow
		if err := tx.Where("settled = 0 OR dead = 1").Order("line").Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			u := ring.Unsaid{
				ID: r.ID, To: r.Receiver, What: r.Kind, State: ring.UnsaidWaits,
				Attempts: r.Attempts, Reason: r.Error, Queued: timeOf(r.Queued), Next: timeOf(r.NextAt),
			}
			if r.Subject != "" {
				u.What += " " + r.Subject
			}
			if r.Dead {
				u.State, u.Next = ring.UnsaidDead, time.Time{}
			}
			out = append(out, u)
		}
		return nil
	})
	return out, wrapDelivery("read what has not arrived", err)
}

// SayAgain makes what has not arrived due at once, and counts its attempts anew:
// the one with that id, or every dead one, or with waiting also those that wait.
// What is for a receiver of but stays as it is. It says how many.
func (s *Store) SayAgain(ctx context.Context, id string, waiting bool, but ...string) (int, error) {
	now, n := ns(s.now()), int64(0)
	err := s.write(ctx, func(tx *gorm.DB) error {
		posts, deliveries, args := "dead = 1", "dead = 1", []any(nil)
		switch {
		case id != "":
			posts, deliveries, args = "(dead = 1 OR said < seq) AND key = ?", "(dead = 1 OR settled = 0) AND id = ?", []any{id}
		case waiting:
			posts, deliveries = "dead = 1 OR said < seq", "dead = 1 OR settled = 0"
		}
		args = append([]any{now}, args...)
		res := tx.Exec("UPDATE outbox SET dead = 0, next_at = 0, attempts = 0, error = '', settled = 0, at = ? WHERE "+posts, args...)
		if res.Error != nil {
			return res.Error
		}
		n = res.RowsAffected
		res = tx.Exec("UPDATE deliveries SET dead = 0, next_at = 0, attempts = 0, error = '', settled = 0, queued = ? WHERE ("+deliveries+") AND receiver NOT IN ?", append(args, append(but, ""))...)
		n += res.RowsAffected
		return res.Error
	})
	if err == nil && n > 0 {
		s.tell()
	}
	return int(n), wrapDelivery("say again what has not arrived", err)
}

// trimDeliveries lets go what arrived, and what nobody asked for again.
func trimDeliveries(tx *gorm.DB, now time.Time) (int64, error) {
	res := tx.Exec(`DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE
		(settled > 0 AND dead = 0 AND settled < ?) OR (dead = 1 AND settled < ?) OR (settled = 0 AND queued < ?) LIMIT ?)`,
		ns(now.Add(-keepTaken)), ns(now.Add(-keepUndelivered)), ns(now.Add(-keepUndelivered)), stepRows)
	if res.Error != nil || res.RowsAffected > 0 {
		return res.RowsAffected, res.Error
	}
	return trimOldest(tx, "deliveries", "line", keepDeliveries)
}

// trimReceivers forgets those that read nothing any more. One that comes back
// begins at the end of the journal, as a new one does.
func trimReceivers(tx *gorm.DB, now time.Time) (int64, error) {
	res := tx.Exec("DELETE FROM receivers WHERE at < ?", ns(now.Add(-keepUndelivered)))
	return res.RowsAffected, res.Error
}

func wrapDelivery(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// Lines are those of the journal after one, in order, at most max.
func (s *Store) Lines(ctx context.Context, after int64, max int) ([]ring.Event, error) {
	return s.Events(ctx, EventQuery{After: after, Limit: max})
}
