package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

// anchorRow is an anchor as the database and, in JSON, its file keep it.
type anchorRow struct {
	ring.Anchor
	// Moves counts how often the anchor was set: of two that differ, the one
	// that counted further is the later, whatever the clock did.
	Moves int64 `json:"moves"`
}

// Anchor is up to where source is trusted; its zero value when nothing ever was.
// It is the database's, unless only the file is there or the file has seen more
// moves: then the database is an older state of itself. A file that cannot be
// read is an error when there is nothing else: it must not look like a first
// trust.
func (s *Store) Anchor(ctx context.Context, source string) (ring.Anchor, error) {
	a, err := s.anchor(s.db.r.WithContext(ctx), source)
	return a.Anchor, err
}

func (s *Store) anchor(tx *gorm.DB, source string) (anchorRow, error) {
	row, err := anchorOf(tx, source)
	if err != nil {
		return anchorRow{}, err
	}
	file, err := s.anchorFile(source)
	switch {
	case err != nil && row.SHA == "":
		return anchorRow{}, fmt.Errorf("%w; bring it back from a backup, or remove it: then the labels of containers say up to where", err)
	case err != nil || file.Moves <= row.Moves && row.SHA != "":
		return row, nil
	}
	return file, nil
}

// AnchorFile is what <state>/anchors/<source> says; its zero value without one.
func (s *Store) AnchorFile(source string) (ring.Anchor, error) {
	a, err := s.anchorFile(source)
	return a.Anchor, err
}

func (s *Store) anchorFile(source string) (anchorRow, error) {
	name, err := s.anchorName(source)
	if err != nil {
		return anchorRow{}, err
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return anchorRow{}, nil
	}
	if err != nil {
		return anchorRow{}, fmt.Errorf("cannot read the anchor of %s: %w", source, err)
	}
	var a anchorRow
	if err := json.Unmarshal(b, &a); err != nil {
		return anchorRow{}, fmt.Errorf("cannot read the anchor file %s: %w", name, err)
	}
	if a.Source != source || !isSHA(a.SHA) {
		return anchorRow{}, fmt.Errorf("cannot use the anchor file %s: it names source %q and commit %q", name, a.Source, a.SHA)
	}
	return a, nil
}

func (s *Store) anchorName(source string) (string, error) {
	if err := element("source", source); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, "anchors", source), nil
}

func isSHA(sha ring.SHA) bool {
	return len(sha) == 40 && strings.Trim(string(sha), "0123456789abcdef") == ""
}

// anchorOf is the database's; its zero value when there is none.
func anchorOf(tx *gorm.DB, source string) (anchorRow, error) {
	all, err := anchorsOf(tx.Where("source = ?", source))
	if err != nil || len(all) == 0 {
		return anchorRow{}, err
	}
	return all[0], nil
}

func anchorsOf(tx *gorm.DB) ([]anchorRow, error) {
	var rows []struct {
		Source, SHA, How   string
		BeganSHA, BeganHow string
		At, BeganAt, Moves int64
		TrustVersion       int
		Degraded           bool
	}
	err := tx.Table("anchors").Select("source, sha, how, at, moves, began_sha, began_how, began_at, trust_version, degraded").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors: %w", err)
	}
	var all []anchorRow
	for _, r := range rows {
		all = append(all, anchorRow{
			Anchor: ring.Anchor{
				Source: r.Source, SHA: ring.SHA(r.SHA), How: r.How, At: timeOf(r.At),
				Began:        ring.Beginning{SHA: ring.SHA(r.BeganSHA), How: r.BeganHow, At: timeOf(r.BeganAt)},
				TrustVersion: r.TrustVersion, Degraded: r.Degraded,
			},
			Moves: r.Moves,
		})
	}
	return all, nil
}

// Trust moves the anchor of a source, or changes what goes along with it: the
// commits that were verified, the anchor, its line in the audit when it moved or
// rests on something else, and the events, in one transaction; then the file. An error after the transaction is the file's: the same call again
// writes the file and does not say everything a second time.
func (s *Store) Trust(ctx context.Context, a ring.Anchor, commits []ring.Verified, events []ring.Event) error {
	name, err := s.anchorName(a.Source)
	if err != nil {
		return err
	}
	if !isSHA(a.SHA) {
		return fmt.Errorf("cannot trust %q: not a full commit id", a.SHA)
	}
	a.At, a.Began.At = a.At.UTC(), a.Began.At.UTC()
	file, fileErr := s.anchorFile(a.Source)
	next := anchorRow{Anchor: a}
	err = s.write(ctx, func(tx *gorm.DB) error {
		was, err := anchorOf(tx, a.Source)
		if err != nil {
			return err
		}
		if again := was.SHA != "" && sameBut(was.Anchor, a) && (fileErr != nil || file.Moves < was.Moves); again {
			next = was
			return nil
		}
		from := was.Anchor
		if file.Moves > was.Moves {
			from = file.Anchor
		}
		next.Moves = max(was.Moves, file.Moves) + 1
		if err := moveAnchor(tx, from, next); err != nil {
			return err
		}
		if err := putVerified(tx, a.Source, commits, s.now()); err != nil {
			return err
		}
		return s.journal(tx, events)
	})
	if err != nil {
		return fmt.Errorf("cannot record the trust in %s: %w", a.SHA.Short(), err)
	}
	s.tell()
	if err := writeWhole(name, next); err != nil {
		return fmt.Errorf("cannot write the anchor file of %s: %w", a.Source, err)
	}
	return nil
}

// sameBut compares all but the times: the same call again comes later.
func sameBut(a, b ring.Anchor) bool {
	a.At, a.Began.At = b.At, b.Began.At
	return a == b
}

func moveAnchor(tx *gorm.DB, was ring.Anchor, a anchorRow) error {
	err := putAnchor(tx, a)
	if err != nil || was.SHA == a.SHA && was.How == a.How {
		return err
	}
	return tx.Exec("INSERT INTO audit (source, from_sha, to_sha, how, at) VALUES (?, ?, ?, ?, ?)",
		a.Source, string(was.SHA), string(a.SHA), a.How, ns(a.At)).Error
}

func putAnchor(tx *gorm.DB, a anchorRow) error {
	return tx.Exec(`INSERT INTO anchors (source, sha, how, at, moves, began_sha, began_how, began_at, trust_version, degraded)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source) DO UPDATE SET sha = excluded.sha, how = excluded.how, at = excluded.at, moves = excluded.moves,
		began_sha = excluded.began_sha, began_how = excluded.began_how, began_at = excluded.began_at,
		trust_version = excluded.trust_version, degraded = excluded.degraded`,
		a.Source, string(a.SHA), a.How, ns(a.At), a.Moves,
		string(a.Began.SHA), a.Began.How, ns(a.Began.At), a.TrustVersion, a.Degraded).Error
}

// AnchorMove is one line of an anchor's audit.
type AnchorMove struct {
	Source   string
	From, To ring.SHA // From is "" for the first
	How      string
	At       time.Time
}

// Audit is how the anchor of source came to be, the newest first.
func (s *Store) Audit(ctx context.Context, source string, limit int) ([]AnchorMove, error) {
	var rows []struct {
		FromSHA, ToSHA, How string
		At                  int64
	}
	// One without a time is a move too.
	err := s.db.r.WithContext(ctx).Table("audit").Select("from_sha, to_sha, how, CAST(at AS INTEGER) AS at").
		Where("source = ?", source).Order("id DESC").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit of %s: %w", source, err)
	}
	moves := make([]AnchorMove, len(rows))
	for i, r := range rows {
		moves[i] = AnchorMove{Source: source, From: ring.SHA(r.FromSHA), To: ring.SHA(r.ToSHA), How: r.How, At: timeOf(r.At)}
	}
	return moves, nil
}

// bringAnchors writes the files that a crash kept from being written, and says which
// rows are no anchors: their files count.
func (s *Store) bringAnchors(tx *gorm.DB) (badRows, error) {
	rows, err := anchorsOf(tx)
	if err != nil {
		return nil, err
	}
	var bad badRows
	for _, row := range rows {
		name, err := s.anchorName(row.Source)
		if err != nil || !isSHA(row.SHA) {
			bad = append(bad, badRow{table: "anchors", key: row.Source, why: "it names no source and commit"})
			continue
		}
		if file, err := s.anchorFile(row.Source); err == nil && file.Moves >= row.Moves {
			continue
		}
		if err := writeWhole(name, row); err != nil {
			return nil, err
		}
	}
	return bad, nil
}

// compareAnchors tells when the files know more than the database, which takes that
// over: it is told once.
func (s *Store) compareAnchors(ctx context.Context, fresh bool) (notice string, err error) {
	rows, err := anchorsOf(s.db.r.WithContext(ctx))
	if err != nil {
		return "", err
	}
	inDB := map[string]anchorRow{}
	for _, row := range rows {
		inDB[row.Source] = row
	}
	ahead, err := s.filesAhead(inDB)
	if err != nil || len(ahead) == 0 {
		return "", err
	}
	var behind []string
	err = s.write(ctx, func(tx *gorm.DB) error {
		for _, a := range ahead {
			behind = append(behind, a.Source)
			if err := putAnchor(tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if fresh {
		return "the database is new; trusted up to is taken from the anchor files of " + strings.Join(behind, ", "), nil
	}
	return "the database is older than the anchor files of " + strings.Join(behind, ", ") + ", which count; what was recorded in between is lost", nil
}

// filesAhead are the anchors of the files that saw more moves than the database.
func (s *Store) filesAhead(inDB map[string]anchorRow) ([]anchorRow, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "anchors"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ahead []anchorRow
	for _, e := range entries {
		a, err := s.anchorFile(e.Name())
		if err == nil && a.Moves > inDB[e.Name()].Moves {
			ahead = append(ahead, a)
		}
	}
	return ahead, nil
}
