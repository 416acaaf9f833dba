package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

const (
	postTable = "post" // of ring.Post: its rows are the outbox
	jobTable  = "job"  // of ring.JobRun: its rows have mark files too
)

// Facts is everything that was recorded, from one moment. An error names
// rows that could not be read, by table and key, and comes with all the others:
// what is missing is unknown, not absent. Open left none of them.
func (s *Store) Facts(ctx context.Context) (ring.Facts, error) {
	facts := ring.NewFacts()
	var bad badRows
	err := s.read(ctx, func(tx *gorm.DB) (err error) {
		bad, err = addFacts(tx, &facts)
		return err
	})
	if err != nil {
		return ring.NewFacts(), fmt.Errorf("cannot read the facts: %w", err)
	}
	if len(bad) > 0 {
		return facts, s.mendable(bad)
	}
	return facts, nil
}

// Record writes facts, the journal's lines of events and the posts among the
// facts, all in one transaction. The mark files of job runs are written before
// it, so a lost database cannot make a job run twice. It may be repeated for
// facts; events are lines of their own each time. Nothing to write is no error.
func (s *Store) Record(ctx context.Context, facts []ring.Fact, events []ring.Event) error {
	if len(facts) == 0 && len(events) == 0 {
		return nil
	}
	if err := valid(facts); err != nil {
		return err
	}
	undo, err := s.markRuns(facts)
	if err == nil {
		err = s.write(ctx, func(tx *gorm.DB) error {
			for _, f := range facts {
				if err := s.put(tx, f); err != nil {
					return err
				}
			}
			return s.journal(tx, events)
		})
	}
	if err != nil {
		return fmt.Errorf("cannot record: %w", errors.Join(err, undo()))
	}
	s.tell()
	return s.unmark(facts)
}

func valid(facts []ring.Fact) error {
	for _, f := range facts {
		if f == nil || reflect.TypeOf(f).Kind() != reflect.Struct {
			return fmt.Errorf("cannot record a %T: a fact is a value", f)
		}
		table, key := f.Row()
		if !ring.IsTable(table) && !isRecord(table) {
			return fmt.Errorf("cannot record a %T: the store has no table %q", f, table)
		}
		if key == "" {
			return fmt.Errorf("cannot record a %T without a key", f)
		}
	}
	return nil
}

// put writes one fact.
func (s *Store) put(tx *gorm.DB, f ring.Fact) error {
	table, key := f.Row()
	switch f := f.(type) {
	case ring.Forget:
		if table == postTable {
			return tx.Exec("DELETE FROM outbox WHERE key = ?", key).Error
		}
		return tx.Exec("DELETE FROM facts WHERE kind = ? AND key = ?", table, key).Error
	case ring.Post:
		return s.post(tx, f)
	case ring.Crash:
		log := f.Log
		f.Log = nil
		return keep(tx, table, key, f.ID, f.At, f, log, keepCrashes)
	case ring.Run:
		log := f.Log
		f.Log = nil
		return keep(tx, table, key, f.ID, f.Ended, f, log, keepRuns)
	}
	value, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("cannot encode the row %q of table %q: %w", key, table, err)
	}
	return tx.Exec(`INSERT INTO facts (kind, key, value, at) VALUES (?, ?, ?, ?)
		ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at
		WHERE value IS NOT excluded.value`, table, key, string(value), ns(s.now())).Error
}
