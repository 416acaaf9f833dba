package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// What is kept. A step of Trim touches at most stepRows rows, so that nobody
// waits long for a turn to write.
const (
	stepRows = 500

	keepLines    = 100_000
	keepLinesFor = 90 * 24 * time.Hour

	keepSaidFor   = 7 * 24 * time.Hour
	keepDeadFor   = 24 * time.Hour
	keepUnsaidFor = 30 * 24 * time.Hour // of a source that nobody posts for any more

	keepCommits = 100_000 // verified ones, and as many that were only seen
	keepMoves   = 10_000
	keepStreaks = 10_000
)

// Trim removes what is older or more than is kept: journal lines, posts,
// commits, records of crashes and runs, and facts of versions and services that are no more. Nothing that a
// plan in force, a rollout or a restore needs goes. It may be called at any
// time; once an hour is enough. What could not be trimmed is in the error, the
// rest was.
func (s *Store) Trim(ctx context.Context, now time.Time) error {
	steps := []struct {
		what string
		step func(tx *gorm.DB) (int64, error)
	}{
		{"journal", func(tx *gorm.DB) (int64, error) { return trimJournal(tx, now, keepLines) }},
		{"outbox", func(tx *gorm.DB) (int64, error) { return trimOutbox(tx, now) }},
		{"deliveries", func(tx *gorm.DB) (int64, error) { return trimDeliveries(tx, now) }},
		{"receivers", func(tx *gorm.DB) (int64, error) { return trimReceivers(tx, now) }},
		{"verified commits", func(tx *gorm.DB) (int64, error) { return trimCommits(tx, true, keepCommits) }},
		{"seen commits", func(tx *gorm.DB) (int64, error) { return trimCommits(tx, false, keepCommits) }},
		{"audit", func(tx *gorm.DB) (int64, error) { return trimOldest(tx, "audit", "id", keepMoves) }},
		{"records", func(tx *gorm.DB) (int64, error) { return trimRecords(tx, now) }},
		{"results", func(tx *gorm.DB) (int64, error) { return trimResults(tx, now) }},
		{"streaks", func(tx *gorm.DB) (int64, error) { return trimOldest(tx, "streaks", "at", keepStreaks) }},
	}
	var all error
	for _, st := range steps {
		if err := s.repeat(ctx, st.step); err != nil {
			all = errors.Join(all, fmt.Errorf("cannot trim the %s: %w", st.what, err))
		}
	}
	if err := s.trimFacts(ctx, now); err != nil {
		all = errors.Join(all, fmt.Errorf("cannot trim the facts: %w", err))
	}
	return all
}

// repeat runs step, each time in a transaction of its own, until it found
// nothing to do.
func (s *Store) repeat(ctx context.Context, step func(tx *gorm.DB) (int64, error)) error {
	for {
		var n int64
		err := s.write(ctx, func(tx *gorm.DB) error {
			var err error
			n, err = step(tx)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// trimJournal lets the oldest lines go and keeps the hash of the last of them:
// the chain can still be checked from there.
func trimJournal(tx *gorm.DB, now time.Time, keep int64) (int64, error) {
	c, err := chainOf(tx)
	if err != nil {
		return 0, err
	}
	var rows []struct{ Seq, At int64 }
	// One without a time is old: it must not keep the others.
	if err := tx.Raw("SELECT seq, CAST(at AS INTEGER) AS at FROM journal ORDER BY seq LIMIT ?", stepRows).Scan(&rows).Error; err != nil {
		return 0, err
	}
	cut := int64(0)
	for _, r := range rows {
		if c.HeadSeq-r.Seq < keep && r.At >= ns(now.Add(-keepLinesFor)) {
			break
		}
		cut = r.Seq
	}
	if cut == 0 {
		return 0, nil
	}
	err = tx.Exec("UPDATE chain SET base_seq = ?, base_hash = (SELECT hash FROM journal WHERE seq = ?)", cut, cut).Error
	if err != nil {
		return 0, err
	}
	res := tx.Exec("DELETE FROM journal WHERE seq <= ?", cut)
	return res.RowsAffected, res.Error
}

func trimOutbox(tx *gorm.DB, now time.Time) (int64, error) {
	res := tx.Exec(`DELETE FROM outbox WHERE key IN (SELECT key FROM outbox WHERE
		(dead = 0 AND said = seq AND settled < ?) OR (dead = 1 AND settled < ?) OR (dead = 0 AND said < seq AND queued < ?)
		LIMIT ?)`,
		ns(now.Add(-keepSaidFor)), ns(now.Add(-keepDeadFor)), ns(now.Add(-keepUnsaidFor)), stepRows)
	return res.RowsAffected, res.Error
}

// trimCommits forgets the commits that were first seen longest ago, but no
// anchor. A commit seen again after that counts as new: the rules only get
// stricter by it.
func trimCommits(tx *gorm.DB, verified bool, keep int64) (int64, error) {
	is := "verified = 0"
	if verified {
		is = "verified > 0"
	}
	var n int64
	if err := tx.Raw("SELECT count(*) FROM commits WHERE " + is).Scan(&n).Error; err != nil || n <= keep {
		return 0, err
	}
	res := tx.Exec(`DELETE FROM commits WHERE rowid IN (SELECT rowid FROM commits c WHERE `+is+`
		AND NOT EXISTS (SELECT 1 FROM anchors a WHERE a.source = c.source AND a.sha = c.sha)
		ORDER BY first_seen LIMIT ?)`, min(n-keep, stepRows))
	return res.RowsAffected, res.Error
}

// trimOldest keeps the rows with the greatest values of a column.
func trimOldest(tx *gorm.DB, table, column string, keep int64) (int64, error) {
	var n int64
	if err := tx.Raw("SELECT count(*) FROM " + table).Scan(&n).Error; err != nil || n <= keep {
		return 0, err
	}
	res := tx.Exec("DELETE FROM "+table+" WHERE rowid IN (SELECT rowid FROM "+table+" ORDER BY "+column+" LIMIT ?)",
		min(n-keep, stepRows))
	return res.RowsAffected, res.Error
}

// trimFacts removes the rows that spent names, a few at a time. When one row
// cannot be read, none goes: it may be the one that needs the others.
func (s *Store) trimFacts(ctx context.Context, now time.Time) error {
	facts, err := s.Facts(ctx)
	if err != nil {
		return err
	}
	var rows []factRow
	if err := s.db.r.WithContext(ctx).Raw("SELECT kind, key, at FROM facts").Scan(&rows).Error; err != nil {
		return err
	}
	gone := spent(rows, &facts, now)
	for len(gone) > 0 {
		n := min(stepRows, len(gone))
		if err := s.dropFacts(ctx, gone[:n]); err != nil {
			return err
		}
		gone = gone[n:]
	}
	return nil
}

// dropFacts removes rows, but for those written since they were looked at.
func (s *Store) dropFacts(ctx context.Context, rows []factRow) error {
	var jobs []string
	err := s.write(ctx, func(tx *gorm.DB) error {
		for _, r := range rows {
			res := tx.Exec("DELETE FROM facts WHERE kind = ? AND key = ? AND at = ?", r.Kind, r.Key, r.At)
			if res.Error != nil {
				return res.Error
			}
			if r.Kind == jobTable && res.RowsAffected > 0 {
				jobs = append(jobs, r.Key)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range jobs {
		if err := s.removeMarkOf(key); err != nil {
			return err
		}
	}
	return nil
}
