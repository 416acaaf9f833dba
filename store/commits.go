package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// FirstSeen is when each commit first entered the store of source; now, and
// recorded, for those that were never asked for. A time once given never changes.
func (s *Store) FirstSeen(ctx context.Context, source string, shas []ring.SHA, now time.Time) (map[ring.SHA]time.Time, error) {
	seen := make(map[ring.SHA]time.Time, len(shas))
	if len(shas) == 0 {
		return seen, nil
	}
	list, err := json.Marshal(shas)
	if err != nil {
		return nil, err
	}
	if err := addSeen(s.db.r.WithContext(ctx), source, list, seen); err != nil {
		return nil, fmt.Errorf("cannot read when commits were first seen: %w", err)
	}
	if len(seen) == len(unique(shas)) {
		return seen, nil
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		err := tx.Exec(`INSERT INTO commits (source, sha, first_seen) SELECT ?, value, ? FROM json_each(?) WHERE true
			ON CONFLICT (source, sha) DO NOTHING`, source, ns(now), string(list)).Error
		if err != nil {
			return err
		}
		return addSeen(tx, source, list, seen)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot record when commits were first seen: %w", err)
	}
	return seen, nil
}

func unique(shas []ring.SHA) map[ring.SHA]bool {
	set := make(map[ring.SHA]bool, len(shas))
	for _, sha := range shas {
		set[sha] = true
	}
	return set
}

func addSeen(tx *gorm.DB, source string, list []byte, seen map[ring.SHA]time.Time) error {
	rows, err := tx.Raw(`SELECT sha, first_seen FROM commits
		WHERE source = ? AND sha IN (SELECT value FROM json_each(?))`, source, string(list)).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var sha ring.SHA
		var at int64
		if err := rows.Scan(&sha, &at); err != nil {
			return err
		}
		seen[sha] = timeOf(at)
	}
	return rows.Err()
}

// putVerified records commits that passed every rule. When they were first seen
// stays what it is.
func putVerified(tx *gorm.DB, source string, commits []ring.Verified, now time.Time) error {
	for _, c := range commits {
		seen := c.FirstSeen
		if seen.IsZero() {
			seen = now
		}
		err := tx.Exec(`INSERT INTO commits (source, sha, first_seen, verified, signer, fingerprint, claimed, note, epoch, signed)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (source, sha) DO UPDATE SET verified = excluded.verified, signer = excluded.signer,
			fingerprint = excluded.fingerprint, claimed = excluded.claimed, note = excluded.note, epoch = excluded.epoch,
			signed = max(signed, excluded.signed)`,
			source, string(c.SHA), ns(seen), ns(now), c.Signer, c.Fingerprint, ns(c.ClaimedAt), c.Note, c.Epoch, c.Signed).Error
		for i, payload := range c.Payloads {
			if err != nil {
				break
			}
			err = tx.Exec("INSERT INTO landed (source, payload, by_sha, as_head) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
				source, payload, string(c.SHA), c.Landed && i == 0).Error
		}
		if err != nil {
			return fmt.Errorf("cannot record commit %s: %w", c.SHA.Short(), err)
		}
	}
	return nil
}

// Standing is what is known of a commit of source that lies behind its anchor.
func (s *Store) Standing(ctx context.Context, source string, sha ring.SHA) (ring.Standing, error) {
	var rows []struct {
		Verified int64
		Signed   bool
	}
	err := s.db.r.WithContext(ctx).Table("commits").Select("verified, signed").
		Where("source = ? AND sha = ?", source, string(sha)).Find(&rows).Error
	switch {
	case err != nil:
		return ring.NeverSeen, fmt.Errorf("cannot read commit %s: %w", sha.Short(), err)
	case len(rows) == 0:
		return ring.NeverSeen, nil
	case rows[0].Verified <= 0:
		return ring.SeenOnly, nil
	case rows[0].Signed:
		return ring.OwnSignature, nil
	}
	return ring.LetIn, nil
}

// Carriers are the accepted commits of source that brought a signed content, by the
// hash of its payload; none is no error.
func (s *Store) Carriers(ctx context.Context, source, payload string) ([]ring.Carrier, error) {
	var rows []struct {
		BySHA  string `gorm:"column:by_sha"`
		AsHead bool
	}
	err := s.db.r.WithContext(ctx).Table("landed").Select("by_sha, as_head").
		Where("source = ? AND payload = ?", source, payload).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read what landed: %w", err)
	}
	all := make([]ring.Carrier, len(rows))
	for i, r := range rows {
		all[i] = ring.Carrier{By: ring.SHA(r.BySHA), AsHead: r.AsHead}
	}
	return all, nil
}

// Verified is a commit of source as it was trusted; false when it was not, or
// so long ago that it was let go.
func (s *Store) Verified(ctx context.Context, source string, sha ring.SHA) (ring.Verified, bool, error) {
	var rows []struct {
		Signer, Fingerprint, Note, Epoch string
		Claimed, FirstSeen               int64
	}
	err := s.db.r.WithContext(ctx).Table("commits").Select("signer, fingerprint, note, epoch, claimed, first_seen").
		Where("source = ? AND sha = ? AND verified > 0", source, string(sha)).Find(&rows).Error
	if err != nil {
		return ring.Verified{}, false, fmt.Errorf("cannot read commit %s: %w", sha.Short(), err)
	}
	if len(rows) == 0 {
		return ring.Verified{}, false, nil
	}
	r := rows[0]
	return ring.Verified{
		SHA: sha, Signer: r.Signer, Fingerprint: r.Fingerprint, Note: r.Note, Epoch: r.Epoch,
		ClaimedAt: timeOf(r.Claimed), FirstSeen: timeOf(r.FirstSeen),
	}, true, nil
}
