package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// Tables of facts that are for people alone: Facts does not read them back, and
// Forget removes none.
const (
	crashTable = "crash"
	runTable   = "run"
)

// What is kept of them, by service, the newest first.
const (
	keepCrashes = 100
	keepRuns    = 50
	keepRecords = 30 * 24 * time.Hour
)

// isRecord reports whether a table holds records.
func isRecord(table string) bool { return table == crashTable || table == runTable }

// keep writes one record, and lets the oldest ones of its service go.
func keep(tx *gorm.DB, kind, key string, id ring.ServiceID, at time.Time, value any, log []string, most int) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode the row %q of table %q: %w", key, kind, err)
	}
	lines, err := json.Marshal(log)
	if err != nil {
		return fmt.Errorf("cannot encode the log of the row %q of table %q: %w", key, kind, err)
	}
	err = tx.Exec(`INSERT INTO records (kind, key, subject, at, value, log) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, log = excluded.log`,
		kind, key, string(id), ns(at), string(body), string(lines)).Error
	if err != nil {
		return err
	}
	of := "kind = ? AND subject = ? AND " + alike(key)
	return tx.Exec("DELETE FROM records WHERE "+of+" AND rowid NOT IN (SELECT rowid FROM records WHERE "+of+" ORDER BY rowid DESC LIMIT ?)",
		kind, string(id), kind, string(id), most).Error
}

// What was skipped has a share of its own: it does not take what ran, and its log,
// away. The order is that in which records came, which no clock can turn round.
const (
	skipped    = "key LIKE '%#skipped'"
	notSkipped = "key NOT LIKE '%#skipped'"
)

// alike are the records that have one share with that of a key.
func alike(key string) string {
	if strings.HasSuffix(key, "#skipped") {
		return skipped
	}
	return notSkipped
}

// RecordQuery chooses crashes or runs.
type RecordQuery struct {
	// Of is "app/service", "app" for all its services, "" for all.
	Of    ring.ServiceID
	Limit int  // at most so many; 0 is all that are kept
	Logs  bool // with the lines of their logs
	Ran   bool // without what was skipped
}

// Crashes are the newest crashes of a service, or of all services of an app, or
// of all, with their logs. The newest is first. A limit of 0 is all that are kept.
func (s *Store) Crashes(ctx context.Context, id ring.ServiceID, limit int) ([]ring.Crash, error) {
	return s.CrashRecords(ctx, RecordQuery{Of: id, Limit: limit, Logs: true})
}

// CrashRecords are the crashes that q chooses, the newest first.
func (s *Store) CrashRecords(ctx context.Context, q RecordQuery) ([]ring.Crash, error) {
	return recordsOf(ctx, s, crashTable, q, func(c *ring.Crash, log []string) { c.Log = log })
}

// Runs are the newest runs of a job or cron job, or of all of an app, or of all,
// with their logs. The newest is first. A limit of 0 is all that are kept.
func (s *Store) Runs(ctx context.Context, id ring.ServiceID, limit int) ([]ring.Run, error) {
	return s.RunRecords(ctx, RecordQuery{Of: id, Limit: limit, Logs: true})
}

// RunRecords are the runs that q chooses, the newest first.
func (s *Store) RunRecords(ctx context.Context, q RecordQuery) ([]ring.Run, error) {
	return recordsOf(ctx, s, runTable, q, func(r *ring.Run, log []string) { r.Log = log })
}

// recordsOf reads records of one kind. A LeftOut names rows that cannot be read, and
// comes with the others.
func recordsOf[R any](ctx context.Context, s *Store, kind string, q RecordQuery, with func(*R, []string)) ([]R, error) {
	columns := "key, value, '' AS log"
	if q.Logs {
		columns = "key, value, log"
	}
	tx := s.db.r.WithContext(ctx).Table("records").Select(columns).Where("kind = ?", kind)
	switch {
	case strings.Contains(string(q.Of), "/"):
		tx = tx.Where("subject = ?", string(q.Of))
	case q.Of != "":
		tx = tx.Where("subject >= ? AND subject < ?", string(q.Of)+"/", string(q.Of)+"0") // '0' follows '/'
	}
	if q.Ran {
		tx = tx.Where(notSkipped)
	}
	if q.Limit > 0 {
		tx = tx.Limit(q.Limit)
	}
	var rows []struct{ Key, Value, Log string }
	if err := tx.Order("rowid DESC").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("cannot read the records of %q: %w", kind, err)
	}
	var out []R
	var bad badRows
	for _, row := range rows {
		var r R
		var log []string
		err := json.Unmarshal([]byte(row.Value), &r)
		if q.Logs {
			err = errors.Join(err, json.Unmarshal([]byte(row.Log), &log))
		}
		if err != nil {
			bad = append(bad, badRow{table: kind, key: row.Key, why: whyUnread(err)})
			continue
		}
		with(&r, log)
		out = append(out, r)
	}
	return out, without(bad)
}

// trimRecords lets go what is too old, or of no age.
func trimRecords(tx *gorm.DB, now time.Time) (int64, error) {
	res := tx.Exec("DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE at < ? OR typeof(at) <> 'integer' LIMIT ?)",
		ns(now.Add(-keepRecords)), stepRows)
	return res.RowsAffected, res.Error
}
