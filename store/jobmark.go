package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"gorm.io/gorm"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// jobStarted is the state of a run that has not ended, or of which no end is
// known.
const jobStarted = "started"

// MarkJob writes the mark file of a job's version, whole: before the start with
// state "started", after the end with the outcome. Record does so by itself.
func (s *Store) MarkJob(app, service string, v ring.Version, state string) error {
	run := ring.JobRun{ID: ring.ID(app, service), Version: v}
	name, err := s.markName(run)
	if err != nil {
		return err
	}
	if had, ok, err := readMark(name, run); err != nil {
		return fmt.Errorf("cannot read the mark of job %s: %w", run.ID, err)
	} else if ok {
		run = had
	}
	run.State = state
	if state == jobStarted {
		run.Started = s.now().UTC()
	} else {
		run.Ended = s.now().UTC()
	}
	if err := writeWhole(name, run); err != nil {
		return fmt.Errorf("cannot mark job %s: %w", run.ID, err)
	}
	return nil
}

// JobMarks is every marked run, by its row's key. A mark that cannot be
// understood counts as a run that started and of which no end is known: its job
// is not run a second time by mistake.
func (s *Store) JobMarks() (map[string]ring.JobRun, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "jobs", "*", "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the job marks: %w", err)
	}
	marks := map[string]ring.JobRun{}
	for _, name := range names {
		service := filepath.Dir(name)
		run := ring.RunOf(ring.ID(filepath.Base(filepath.Dir(service)), filepath.Base(service)), filepath.Base(name))
		if element("mark", run.Mark()) != nil {
			continue // a temporary file
		}
		had, ok, err := readMark(name, run)
		if err != nil {
			return nil, fmt.Errorf("cannot read the mark of job %s: %w", run.ID, err)
		}
		if ok {
			_, key := run.Row()
			marks[key] = had
		}
	}
	return marks, nil
}

// readMark reads the mark of a run; false when there is none.
func readMark(name string, of ring.JobRun) (ring.JobRun, bool, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ring.JobRun{}, false, nil
	}
	if err != nil {
		return ring.JobRun{}, false, err
	}
	var run ring.JobRun
	if json.Unmarshal(b, &run) != nil || run.ID != of.ID || run.Mark() != of.Mark() || run.State == "" && run.Tries+run.Cut == 0 {
		of.State, of.Reason = jobStarted, "its mark file cannot be read"
		return of, true, nil
	}
	return run, true, nil
}

func (s *Store) markName(run ring.JobRun) (string, error) {
	app, service := run.ID.Split()
	if err := errors.Join(element("name", app), element("name", service), element("mark", run.Mark())); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, "jobs", app, service, run.Mark()), nil
}

// markRuns writes the marks of the job runs among facts. Undo puts back what was
// there before, for when the facts could not be recorded after all.
func (s *Store) markRuns(facts []ring.Fact) (undo func() error, err error) {
	var back []func() error
	undo = func() error {
		var err error
		for i := len(back) - 1; i >= 0; i-- {
			err = errors.Join(err, back[i]())
		}
		return err
	}
	for _, f := range lastOfJobs(facts) {
		run, ok := f.(ring.JobRun)
		if !ok {
			continue
		}
		name, err := s.markName(run)
		if err != nil {
			return undo, err
		}
		had, ok, err := readMark(name, run)
		if err != nil {
			return undo, err
		}
		if ok && reflect.DeepEqual(had, run) {
			continue
		}
		back = append(back, func() error {
			if ok {
				return writeWhole(name, had)
			}
			return removeMark(name)
		})
		if err := writeWhole(name, run); err != nil {
			return undo, fmt.Errorf("cannot mark job %s: %w", run.ID, err)
		}
	}
	return undo, nil
}

// lastOfJobs is what facts say last of each job run: one may be forgotten and
// started anew in one transaction.
func lastOfJobs(facts []ring.Fact) map[string]ring.Fact {
	last := map[string]ring.Fact{}
	for _, f := range facts {
		if table, key := f.Row(); table == jobTable {
			last[key] = f
		}
	}
	return last
}

// unmark removes the marks of the job runs that facts forget, after their rows.
func (s *Store) unmark(facts []ring.Fact) error {
	for _, f := range lastOfJobs(facts) {
		forget, ok := f.(ring.Forget)
		if !ok {
			continue
		}
		if err := s.removeMarkOf(forget.Key); err != nil {
			return fmt.Errorf("cannot remove the mark of job %s: %w", forget.Key, err)
		}
	}
	return nil
}

// removeMarkOf removes a mark by its key; there need be none.
func (s *Store) removeMarkOf(key string) error {
	run, ok := runOf(key)
	if !ok {
		return nil
	}
	name, err := s.markName(run)
	if err != nil {
		return nil // no mark can have such a name
	}
	return removeMark(name)
}

func removeMark(name string) error {
	if err := os.Remove(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	service := filepath.Dir(name)
	if err := disk.Sync(service); err != nil {
		return err
	}
	_ = os.Remove(service) // the folders go when they are empty
	_ = os.Remove(filepath.Dir(service))
	return nil
}

// takeMarks has the rows of job runs say what their marks say. A mark is written
// before its row, so where they differ the database lost or never got the row.
func (s *Store) takeMarks(ctx context.Context) (notice string, err error) {
	marks, err := s.JobMarks()
	if err != nil || len(marks) == 0 {
		return "", err
	}
	facts, err := s.Facts(ctx)
	if err != nil {
		return "", err
	}
	taken := 0
	for key, m := range marks {
		row, ok := facts.Jobs[key]
		if ok && (sameRun(row, m) || endOf(row, m)) {
			delete(marks, key)
			continue
		}
		taken++
	}
	if taken == 0 {
		return "", nil
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		for _, m := range marks {
			if err := s.put(tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d job runs were taken from their mark files, the database did not have them so", taken), nil
}

// endOf reports whether the row has the end of the very run that the mark saw start:
// a record whose answer got lost put the mark back.
func endOf(row, mark ring.JobRun) bool {
	return mark.State == jobStarted && row.State != jobStarted && row.State != "" &&
		row.Tries == mark.Tries && row.Started.Equal(mark.Started)
}

func sameRun(a, b ring.JobRun) bool {
	return a.State == b.State && a.Tries == b.Tries && a.Instance == b.Instance
}
