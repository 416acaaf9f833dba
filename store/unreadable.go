package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// badRow is a row that SQLite finds whole and gitring cannot read.
type badRow struct {
	table, key string
	why        string // without a value of the row: it may be anything
	newer      bool   // its table is one that this gitring does not know
}

func (b badRow) Error() string {
	if b.key == "" { // all of them
		return fmt.Sprintf("table %q: %s", b.table, b.why)
	}
	return fmt.Sprintf("row %q of table %q: %s", b.key, b.table, b.why)
}

// badRows are those of one look. They are damage, unless a newer gitring may have
// written them.
type badRows []badRow

// toldRows is how many bad rows a message names.
const toldRows = 3

func (b badRows) Error() string {
	if row, ok := b.newer(); ok {
		return fmt.Sprintf("a newer gitring has written it, this one does not know the table %q of its row %q; run that one, or %s", row.table, row.key, orBeginAnew)
	}
	var says []string
	for _, row := range b[:min(toldRows, len(b))] {
		says = append(says, row.Error())
	}
	if more := len(b) - toldRows; more > 0 {
		says = append(says, fmt.Sprintf("and %d more", more))
	}
	return "cannot read " + strings.Join(says, "; ")
}

// newer is the first row of an unknown table; where there is one, nothing is damaged.
func (b badRows) newer() (badRow, bool) {
	for _, row := range b {
		if row.newer {
			return row, true
		}
	}
	return badRow{}, false
}

// checkRows says what of the database cannot be read, before anybody reads it. To go
// on without single rows is not safe: one may say that a container is adopted, that a
// volume was there, or that an exit was asked for. So one bad row is damage of the whole,
// which is lost as a whole, a case that everything after this is made for. But rows of a
// table that only a newer gitring has are whole: nothing is moved aside. (So a release
// that changes what a row looks like has a migration, by which an older one knows.)
func (s *Store) checkRows(ctx context.Context) error {
	return s.read(ctx, func(tx *gorm.DB) error {
		for _, look := range []func(*gorm.DB) (badRows, error){goneTables, misfits} {
			if bad, err := look(tx); err != nil || len(bad) > 0 {
				return orBad(err, bad)
			}
		}
		facts := ring.NewFacts()
		bad, err := addFacts(tx, &facts)
		if err != nil {
			return err
		}
		if _, ok := bad.newer(); ok {
			return bad
		}
		anchors, err := s.bringAnchors(tx) // before a database is lost that knows more than their files
		if err != nil {
			return err
		}
		chain, err := brokenChain(tx)
		if err != nil {
			return err
		}
		return orBad(nil, append(append(bad, anchors...), chain...))
	})
}

// orBad is err, or else the rows where there are any.
func orBad(err error, bad badRows) error {
	if err != nil || len(bad) == 0 {
		return err
	}
	return bad
}

// goneTables are those that a migration made and that are not there any more.
func goneTables(tx *gorm.DB) (badRows, error) {
	var bad badRows
	for _, table := range append([]string{"journal", "audit", "streaks", "records", "results"}, typedTables...) {
		var n int
		if err := tx.Raw("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", table).Scan(&n).Error; err != nil {
			return nil, err
		}
		if n == 0 {
			bad = append(bad, badRow{table: table, why: "it is gone"})
		}
	}
	return bad, nil
}

// typedTables are the tables without which gitring does not go on, or not on with
// something that it has to do.
var typedTables = []string{"facts", "outbox", "anchors", "commits", "chain", "receivers", "deliveries"}

// misfits are rows with a column that holds another type than it was declared with,
// one for each table: SQLite calls such a row whole, and nothing can take it in.
func misfits(tx *gorm.DB) (badRows, error) {
	var bad badRows
	for _, table := range typedTables {
		var columns []struct{ Name, Type string }
		if err := tx.Raw("SELECT name, type FROM pragma_table_info(?)", table).Scan(&columns).Error; err != nil {
			return nil, err
		}
		var wrong []string
		for _, c := range columns {
			wrong = append(wrong, fmt.Sprintf("typeof(%s) <> '%s'", c.Name, strings.ToLower(c.Type)))
		}
		var at []string
		err := tx.Raw("SELECT CAST(rowid AS TEXT) FROM " + table + " WHERE " + strings.Join(wrong, " OR ") + " LIMIT 1").Scan(&at).Error
		if err != nil {
			return nil, err
		}
		for _, key := range at {
			bad = append(bad, badRow{table: table, key: key, why: "a column of it is of another type"})
		}
	}
	return bad, nil
}

// addFacts adds everything that was recorded, and says what of it cannot be read.
func addFacts(tx *gorm.DB, facts *ring.Facts) (bad badRows, err error) {
	rows, err := tx.Raw("SELECT kind, key, value FROM facts").Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, key string
		var value []byte
		if err := rows.Scan(&kind, &key, &value); err != nil {
			return nil, err
		}
		f, wrong := factOf(kind, key, value)
		if wrong != nil {
			bad = append(bad, *wrong)
			continue
		}
		facts.Set(f)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	posts, err := addPosts(tx, facts)
	return append(bad, posts...), err
}

// factOf reads one row. A value that says another key than its row was not
// understood, however well it decodes.
func factOf(kind, key string, value []byte) (ring.Fact, *badRow) {
	f, known, err := ring.ReadFact(kind, value)
	if !known {
		return nil, &badRow{kind, key, "this gitring does not know the table", true}
	}
	if err != nil {
		return nil, &badRow{table: kind, key: key, why: whyUnread(err)}
	}
	if _, k := f.Row(); k != key {
		return nil, &badRow{table: kind, key: key, why: "its value is of another row"}
	}
	return f, nil
}

// whyUnread says what is wrong with a value without saying the value.
func whyUnread(err error) string {
	if err == nil {
		return "its value is of another row"
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("its value is no JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Sprintf("its field %s is of another type", kind.Field)
	}
	return "a field of it has no meaning"
}

// brokenChain says that no line can be added to the journal, and so nothing recorded:
// its end is unknown, or lines are there behind it.
func brokenChain(tx *gorm.DB) (badRows, error) {
	var ends []int64
	if err := tx.Raw("SELECT head_seq FROM chain").Scan(&ends).Error; err != nil {
		return nil, err
	}
	if len(ends) != 1 {
		return badRows{{table: "chain", key: "1", why: "it is gone, and with it the end of the journal"}}, nil
	}
	var last int64
	if err := tx.Raw("SELECT coalesce(max(seq), 0) FROM journal").Scan(&last).Error; err != nil {
		return nil, err
	}
	if last > ends[0] {
		return badRows{{table: "chain", key: "1", why: fmt.Sprintf("it says that the journal ends at line %d, and there is a line %d", ends[0], last)}}, nil
	}
	return nil, nil
}
