package store

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// Streaks are all that were saved. A LeftOut names rows that cannot be read and
// comes with the others; a streak that is lost only begins anew.
func (s *Store) Streaks(ctx context.Context) ([]ring.Streak, error) {
	var rows []struct{ Instance, Name, Value string }
	err := s.db.r.WithContext(ctx).Table("streaks").Select("instance, name, value").
		Order("instance, name").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read the streaks: %w", err)
	}
	var streaks []ring.Streak
	var bad badRows
	for _, r := range rows {
		var st ring.Streak
		if err := json.Unmarshal([]byte(r.Value), &st); err != nil || st.Instance != r.Instance || st.Check != r.Name {
			bad = append(bad, badRow{table: "streaks", key: r.Instance + " " + r.Name, why: whyUnread(err)})
			continue
		}
		streaks = append(streaks, st)
	}
	return streaks, without(bad)
}

// SaveStreaks replaces the streaks given, by instance and check, and leaves the
// others. Trim removes those of instances that are long gone.
func (s *Store) SaveStreaks(ctx context.Context, streaks []ring.Streak) error {
	if len(streaks) == 0 {
		return nil
	}
	err := s.write(ctx, func(tx *gorm.DB) error {
		for _, st := range streaks {
			value, err := json.Marshal(st)
			if err != nil {
				return err
			}
			err = tx.Exec(`INSERT INTO streaks (instance, name, value, at) VALUES (?, ?, ?, ?)
				ON CONFLICT (instance, name) DO UPDATE SET value = excluded.value, at = excluded.at`,
				st.Instance, st.Check, string(value), ns(s.now())).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot save the streaks: %w", err)
	}
	return nil
}
