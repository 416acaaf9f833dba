package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// defaultEvents is how many events a query without a limit gives.
const defaultEvents = 1000

// chainRow is the two ends of the journal.
type chainRow struct {
	BaseSeq, HeadSeq   int64
	BaseHash, HeadHash []byte
}

func chainOf(tx *gorm.DB) (chainRow, error) {
	var c chainRow
	err := tx.Raw("SELECT base_seq, base_hash, head_seq, head_hash FROM chain").Row().
		Scan(&c.BaseSeq, &c.BaseHash, &c.HeadSeq, &c.HeadHash)
	if err != nil {
		return c, fmt.Errorf("cannot read the ends of the journal: %w", err)
	}
	return c, nil
}

// journal appends lines.
func (s *Store) journal(tx *gorm.DB, events []ring.Event) error {
	if len(events) == 0 {
		return nil
	}
	c, err := chainOf(tx)
	if err != nil {
		return err
	}
	seq, prev := c.HeadSeq, c.HeadHash
	for _, e := range events {
		seq++
		e.Seq = seq
		if e.At.IsZero() {
			e.At = s.now()
		}
		e.At = e.At.UTC()
		e.Via = e.ActedVia()
		body, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("cannot encode event %s: %w", e.Kind, err)
		}
		sum := lineHash(prev, body)
		err = tx.Exec("INSERT INTO journal (seq, at, prev, hash, body) VALUES (?, ?, ?, ?, ?)",
			seq, ns(e.At), prev, sum, string(body)).Error
		if err != nil {
			return fmt.Errorf("cannot append to the journal: %w", err)
		}
		prev = sum
	}
	return nil
}

// lineHash binds a line to all before it.
func lineHash(prev, body []byte) []byte {
	h := sha256.New()
	h.Write(prev)
	h.Write(body)
	return h.Sum(nil)
}

// EventQuery chooses lines of the journal.
type EventQuery struct {
	After int64    // only lines with a greater Seq
	App   string   // only of this app; "" is all
	Kinds []string // only of these kinds; none is all
	Limit int      // at most so many; 0 is 1000
	Desc  bool     // the newest first
}

// HashedEvent is a line of the journal with the hash that binds it to all before it.
type HashedEvent struct {
	ring.Event
	Hash []byte
}

// Events are the lines that q chooses, in order of Seq.
func (s *Store) Events(ctx context.Context, q EventQuery) ([]ring.Event, error) {
	lines, err := s.HashedEvents(ctx, q)
	events := make([]ring.Event, len(lines))
	for i := range lines {
		events[i] = lines[i].Event
	}
	return events, err
}

// HashedEvents are the lines that q chooses with their hashes, in order of Seq.
func (s *Store) HashedEvents(ctx context.Context, q EventQuery) ([]HashedEvent, error) {
	tx := s.db.r.WithContext(ctx).Table("journal").Select("seq, hash, body").Where("seq > ?", q.After)
	if q.App != "" {
		tx = tx.Where("app = ?", q.App)
	}
	if len(q.Kinds) > 0 {
		tx = tx.Where("body ->> '$.kind' IN ?", q.Kinds)
	}
	order := "seq"
	if q.Desc {
		order = "seq DESC"
	}
	if q.Limit <= 0 {
		q.Limit = defaultEvents
	}
	var rows []struct {
		Seq  int64
		Hash []byte
		Body string
	}
	if err := tx.Order(order).Limit(q.Limit).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	lines := make([]HashedEvent, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal([]byte(r.Body), &lines[i].Event); err != nil {
			return nil, fmt.Errorf("cannot read line %d of the journal: %w", r.Seq, err)
		}
		lines[i].Hash = r.Hash
	}
	return lines, nil
}

// namedApps are the apps of which lines of the journal are, up to one.
type namedApps struct {
	upTo int64
	apps []string // sorted
}

// AppsNamed are the apps of which any line of the journal is, sorted: those that are here, and
// those that left.
func (s *Store) AppsNamed(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	known := s.named
	s.mu.Unlock()
	var rows []struct {
		App string
		Seq int64
	}
	err := s.db.r.WithContext(ctx).Raw("SELECT coalesce(app, '') AS app, max(seq) AS seq FROM journal WHERE seq > ? GROUP BY 1", known.upTo).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read the apps of the journal: %w", err)
	}
	apps := slices.Clone(known.apps)
	for _, r := range rows {
		known.upTo = max(known.upTo, r.Seq)
		if r.App != "" {
			apps = append(apps, r.App)
		}
	}
	slices.Sort(apps)
	known.apps = slices.Compact(apps)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.upTo > s.named.upTo {
		s.named = known
	}
	return known.apps, nil
}

// CheckJournal walks the hash chain from the oldest line that was kept to the
// newest. The error names the first line that was changed, is missing or was
// put in.
func (s *Store) CheckJournal(ctx context.Context) error {
	return s.read(ctx, func(tx *gorm.DB) error {
		c, err := chainOf(tx)
		if err != nil {
			return err
		}
		rows, err := tx.Raw("SELECT seq, at, prev, hash, body FROM journal ORDER BY seq").Rows()
		if err != nil {
			return fmt.Errorf("cannot read the journal: %w", err)
		}
		defer rows.Close()
		seq, prev := c.BaseSeq, c.BaseHash
		for rows.Next() {
			var l line
			if err := rows.Scan(&l.seq, &l.at, &l.prev, &l.hash, &l.body); err != nil {
				return fmt.Errorf("cannot read the journal: %w", err)
			}
			if err := l.follows(seq, prev); err != nil {
				return err
			}
			seq, prev = l.seq, l.hash
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("cannot read the journal: %w", err)
		}
		if seq != c.HeadSeq {
			return fmt.Errorf("cannot trust the journal: line %d is missing", seq+1)
		}
		if !bytes.Equal(prev, c.HeadHash) {
			return fmt.Errorf("cannot trust the journal: line %d is not the one that was written last", seq)
		}
		return nil
	})
}

type line struct {
	seq, at    int64
	prev, hash []byte
	body       []byte
}

// follows checks that l is the line after (seq, prev), as it was written.
func (l line) follows(seq int64, prev []byte) error {
	if l.seq != seq+1 {
		return fmt.Errorf("cannot trust the journal: line %d is missing", seq+1)
	}
	var e ring.Event
	switch {
	case !bytes.Equal(l.prev, prev):
		return fmt.Errorf("cannot trust the journal: line %d does not follow the one before it", l.seq)
	case !bytes.Equal(l.hash, lineHash(prev, l.body)):
		return fmt.Errorf("cannot trust the journal: line %d was changed", l.seq)
	case json.Unmarshal(l.body, &e) != nil || e.Seq != l.seq || ns(e.At) != l.at:
		return fmt.Errorf("cannot trust the journal: line %d has another number or time than it says", l.seq)
	}
	return nil
}
