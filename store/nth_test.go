package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gitring/gitring/ring"
)

var errFault = errors.New("the disk does not answer")

// faults lets the Nth operation on the database fail: before it took effect, or
// after. N from 1; 0 is none. once says that it has happened.
type faults struct {
	n, at int
	after bool
	once  bool
}

// next counts one operation; do has its effect.
func (f *faults) next(do func() error) error {
	f.n++
	if f.n != f.at {
		return do()
	}
	f.once = true
	if f.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errFault
}

// flaky is a connection whose operations are counted.
type flaky struct {
	driver.Conn
	f *faults
}

func (c *flaky) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.f.next(func() error {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
		return err
	})
	return r, err
}

func (c *flaky) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.f.next(func() error {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
		return err
	})
	if err != nil && r != nil {
		_ = r.Close()
	}
	return r, err
}

func (c *flaky) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	var tx driver.Tx
	err := c.f.next(func() (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &flakyTx{tx, c.f}, nil
}

type flakyTx struct {
	driver.Tx
	f *faults
}

func (t *flakyTx) Commit() error   { return t.f.next(t.Tx.Commit) }
func (t *flakyTx) Rollback() error { return t.f.next(t.Tx.Rollback) }

type flakyDriver struct {
	of  driver.Driver
	dsn string
	f   *faults
}

func (d *flakyDriver) Connect(context.Context) (driver.Conn, error) {
	c, err := d.of.Open(d.dsn)
	return &flaky{c, d.f}, err
}

func (d *flakyDriver) Driver() driver.Driver { return d.of }

// flakily replaces the writer of s by one with faults.
func flakily(t *testing.T, s *Store, f *faults) {
	t.Helper()
	require.NoError(t, s.db.rawW.Close())
	dsn := "file:" + (&url.URL{Path: filepath.Join(s.dir, fileName)}).EscapedPath() + writerQuery
	plain, err := sql.Open(sqlite.DriverName, dsn)
	require.NoError(t, err)
	defer plain.Close()
	raw := sql.OpenDB(&flakyDriver{plain.Driver(), dsn, f})
	raw.SetMaxOpenConns(1)
	db, err := gorm.Open(&sqlite.Dialector{Conn: raw}, &gorm.Config{SkipDefaultTransaction: true, TranslateError: true, Logger: logger.Discard})
	require.NoError(t, err)
	s.db.w, s.db.rawW = db, raw
}

// told is what a store should hold, by a record of its own.
type told struct {
	facts  ring.Facts
	anchor ring.Anchor
	events int
}

// call is one write to the store and what it should mean.
type call struct {
	name string
	do   func(s *Store) error
	mean func(w *told)
}

// calls is a day in the life of a store.
func calls(t *testing.T) []call {
	ctx := t.Context()
	var all []call
	add := func(name string, do func(s *Store) error, mean func(w *told)) {
		all = append(all, call{name, do, mean})
	}
	write := func(name string, facts []ring.Fact, events []ring.Event) {
		add(name, func(s *Store) error { return s.Record(ctx, facts, events) }, func(w *told) {
			for _, f := range facts {
				w.facts.Set(f)
			}
			w.events += len(events)
		})
	}
	for n := range 3 {
		facts, events := record(n)
		write(fmt.Sprintf("record %d", n), facts, events)
	}
	job := ring.JobRun{ID: "web/migrate", Version: "1:a", State: "started", Tries: 1}
	write("a job starts", []ring.Fact{job}, []ring.Event{{Kind: ring.JobStarted, At: noon}})
	a := ring.Anchor{Source: "prod", SHA: sha(1), How: "verified", At: noon}
	add("trust", func(s *Store) error {
		return s.Trust(ctx, a, []ring.Verified{{SHA: sha(1), Signer: "alice"}}, []ring.Event{{Kind: ring.CommitAccepted, At: noon}})
	}, func(w *told) { w.anchor, w.events = a, w.events+1 })
	done := job
	done.State = "succeeded"
	write("the job ends", []ring.Fact{done}, []ring.Event{{Kind: ring.JobSucceeded, At: noon}})
	facts, _ := record(1)
	table, key := facts[0].Row()
	write("forget", []ring.Fact{ring.Forget{Table: table, Key: key}}, nil)
	add("streaks", func(s *Store) error {
		return s.SaveStreaks(ctx, []ring.Streak{{Instance: "c1", Check: "up", Passing: true, At: noon}})
	}, func(*told) {})
	add("the forge was told", func(s *Store) error { return s.Posted(ctx, ring.PostKey(sha(0), "gitring/edge-1"), 1, noon) }, func(*told) {})
	add("a forge took an outcome", func(s *Store) error {
		return s.Told(ctx, ring.PostKey(sha(1), "gitring/edge-1"), 1, noon)
	}, func(w *told) { w.events++ })
	add("trim", func(s *Store) error { return s.Trim(ctx, noon.Add(time.Hour)) }, func(*told) {})
	return all
}

// holds says that s shows what was told, and whether it does.
func (s *Store) holds(t *testing.T, w told) string {
	t.Helper()
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	a, err := s.Anchor(t.Context(), "prod")
	require.NoError(t, err)
	events, err := s.Events(t.Context(), EventQuery{Limit: 1000})
	require.NoError(t, err)
	return cmp.Diff(w.facts, facts) + cmp.Diff(w.anchor, a) + cmp.Diff(w.events, len(events))
}

func clone(w told) told {
	out := told{facts: ring.NewFacts(), anchor: w.anchor, events: w.events}
	for _, v := range w.facts.Verdicts {
		out.facts.Set(v)
	}
	for _, v := range w.facts.Jobs {
		out.facts.Set(v)
	}
	for _, v := range w.facts.Posts {
		out.facts.Set(v)
	}
	return out
}

// day lives a day with a fault at operation n. It reports whether the fault came.
func day(t *testing.T, n int, after bool) bool {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	f := &faults{after: after}
	flakily(t, s, f)
	f.n, f.at = 0, n
	w := told{facts: ring.NewFacts()}
	for _, c := range calls(t) {
		next := clone(w)
		c.mean(&next)
		came := f.once
		err := c.do(s)
		if err == nil {
			require.Empty(t, s.holds(t, next), "%s returned nil, so it is there", c.name)
			w = next
			continue
		}
		require.False(t, came, "%s: one fault, and the store does not answer any more: %v", c.name, err)
		missing := s.holds(t, w)
		if after && missing != "" { // the commit itself landed, and only its answer was lost
			require.Empty(t, s.holds(t, next), "%s returned an error, and half of it is there", c.name)
			w = next
			continue
		}
		require.Empty(t, missing, "%s returned an error, and something of it is there", c.name)
		require.NoError(t, c.do(s), "%s can be repeated", c.name)
		require.Empty(t, s.holds(t, next))
		w = next
	}
	require.NoError(t, s.CheckJournal(t.Context()))
	require.NoError(t, s.Close())
	s = opened(t, dir)
	require.Empty(t, s.Notice(), "nothing was lost, so there is nothing to tell")
	require.Empty(t, s.holds(t, w))
	require.NoError(t, s.CheckJournal(t.Context()))
	require.NoError(t, s.Close())
	return f.once
}

func TestWhicheverOperationOfTheDatabaseFailsNothingIsHalf(t *testing.T) {
	for _, after := range []bool{false, true} {
		n := 1
		for ; day(t, n, after); n++ {
			require.Less(t, n, 1000, "the day does not end")
		}
		require.Greater(t, n, 60, "hardly anything was tried")
		t.Logf("%d operations, after its effect: %v", n-1, after)
	}
}
