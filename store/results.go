package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// What is kept of the answers of checks (docs/design/rollout.md#checks).
const (
	keepResults    = 50 // per instance and check
	keepResultsFor = 7 * 24 * time.Hour
)

// SaveResults writes results, each in the place of the one that began at the
// same moment, and lets the oldest of the same check go.
func (s *Store) SaveResults(ctx context.Context, results []ring.Result) error {
	if len(results) == 0 {
		return nil
	}
	err := s.write(ctx, func(tx *gorm.DB) error {
		for _, r := range results {
			value, err := json.Marshal(r)
			if err != nil {
				return err
			}
			err = tx.Exec(`INSERT INTO results (instance, name, first, last, value) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (instance, name, first) DO UPDATE SET last = excluded.last, value = excluded.value`,
				r.Instance, r.Check, ns(r.First), ns(r.Last), string(value)).Error
			if err != nil {
				return err
			}
			err = tx.Exec(`DELETE FROM results WHERE instance = ? AND name = ? AND first NOT IN (
				SELECT first FROM results WHERE instance = ? AND name = ? ORDER BY first DESC LIMIT ?)`,
				r.Instance, r.Check, r.Instance, r.Check, keepResults).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot save what checks answered: %w", err)
	}
	return nil
}

// Results are what the checks of an instance answered, by check and the newest
// first. A LeftOut names rows that cannot be read, and comes with the others.
func (s *Store) Results(ctx context.Context, instance string) ([]ring.Result, error) {
	var rows []struct{ Name, Value string }
	err := s.db.r.WithContext(ctx).Table("results").Select("name, value").
		Where("instance = ?", instance).Order("name, first DESC").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read what checks answered: %w", err)
	}
	var out []ring.Result
	var bad badRows
	for _, row := range rows {
		var r ring.Result
		if err := json.Unmarshal([]byte(row.Value), &r); err != nil || r.Instance != instance || r.Check != row.Name {
			bad = append(bad, badRow{table: "results", key: instance + " " + row.Name, why: whyUnread(err)})
			continue
		}
		out = append(out, r)
	}
	return out, without(bad)
}

// trimResults lets go what is too old, or of no age.
func trimResults(tx *gorm.DB, now time.Time) (int64, error) {
	res := tx.Exec("DELETE FROM results WHERE rowid IN (SELECT rowid FROM results WHERE last < ? OR typeof(last) <> 'integer' LIMIT ?)",
		ns(now.Add(-keepResultsFor)), stepRows)
	return res.RowsAffected, res.Error
}
