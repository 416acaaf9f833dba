package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// RawLine is a line of the journal as it was written.
type RawLine struct {
	Seq  int64
	Hash []byte
	Body []byte
}

// JournalEnd are the lines that end with last, as many as size bytes hold but at least that one,
// and those since after however many they are, where they are kept. seq and hash are of the
// line before the first of them.
func (s *Store) JournalEnd(ctx context.Context, last, after int64, size int) (seq int64, hash []byte, lines []RawLine, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, err := tx.Raw("SELECT seq, prev, hash, body FROM journal WHERE seq <= ? ORDER BY seq DESC", last).Rows()
		if err != nil {
			return fmt.Errorf("cannot read the journal: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var l RawLine
			var prev []byte
			if err := rows.Scan(&l.Seq, &prev, &l.Hash, &l.Body); err != nil {
				return fmt.Errorf("cannot read the journal: %w", err)
			}
			if size -= len(l.Body); size < 0 && len(lines) > 0 && (after == 0 || l.Seq <= after) {
				break
			}
			seq, hash = l.Seq-1, prev
			lines = append(lines, l)
		}
		return rows.Err()
	})
	if err == nil && (len(lines) == 0 || lines[0].Seq != last) {
		err = fmt.Errorf("cannot read the journal: line %d is not kept", last)
	}
	slices.Reverse(lines)
	return seq, hash, lines, err
}
