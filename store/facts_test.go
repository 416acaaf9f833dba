package store

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// filler gives every field of a value something that is not its zero value.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(noon.Add(time.Duration(f.n) * time.Nanosecond)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d <&> \"ü\n\x01", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n) + 1<<30)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(k)
			f.fill(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				f.fill(v.Field(i))
			}
		}
	default:
		panic("the test does not know how to fill a " + v.Type().String())
	}
}

// every is one fact of each type that ring.Facts holds, every field set.
func every(t *testing.T) []ring.Fact {
	t.Helper()
	var facts []ring.Fact
	all := reflect.TypeFor[ring.Facts]()
	for i := range all.NumField() {
		field := all.Field(i)
		require.Equal(t, reflect.Map, field.Type.Kind(), field.Name)
		row := field.Type.Elem()
		if row.Kind() == reflect.Pointer { // it is kept so that nobody copies it
			row = row.Elem()
		}
		v := reflect.New(row).Elem()
		(&filler{n: 1000 * i}).fill(v)
		if run, ok := v.Interface().(ring.JobRun); ok { // its names become a path
			run.ID, run.Version = "web/migrate", "1:abcdef"
			v.Set(reflect.ValueOf(run))
		}
		facts = append(facts, v.Interface().(ring.Fact))
	}
	return facts
}

func TestEveryTypeOfFactComesBackAsItWas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	want := ring.NewFacts()
	for _, f := range every(t) {
		want.Set(f)
	}
	require.NoError(t, s.Record(t.Context(), every(t), nil))
	require.NoError(t, s.Close())

	s = opened(t, dir)
	require.Empty(t, s.Notice())
	got, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
	for i := range reflect.TypeOf(got).NumField() {
		require.Equal(t, 1, reflect.ValueOf(got).Field(i).Len(), reflect.TypeOf(got).Field(i).Name)
	}

	var forget []ring.Fact
	for _, f := range every(t) {
		table, key := f.Row()
		forget = append(forget, ring.Forget{Table: table, Key: key})
	}
	require.NoError(t, s.Record(t.Context(), forget, nil))
	got, err = s.Facts(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(ring.NewFacts(), got))
	marks, err := s.JobMarks()
	require.NoError(t, err)
	require.Empty(t, marks)
}

func TestTheZeroValueOfEveryFactComesBack(t *testing.T) {
	s := fresh(t)
	want := ring.NewFacts()
	facts := []ring.Fact{
		ring.InForce{App: ring.App{Name: "web"}},
		ring.Good{AppName: "web", Service: ring.Service{Name: "web"}},
		ring.SlotRow{ID: "web/web", Slot: 1},
		ring.RolloutRow{ID: "web/web"},
		ring.Intent{Instance: "c"},
		ring.JobRun{ID: "web/job", Version: "1:a", State: "started"},
		ring.Post{SHA: sha(1), Context: "gitring/h"},
	}
	for _, f := range facts {
		want.Set(f)
	}
	require.NoError(t, s.Record(t.Context(), facts, nil))
	got, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
}

func TestARowThatCannotBeReadIsNamedAndTheOthersAreThere(t *testing.T) {
	for _, c := range []struct{ name, break_, says string }{
		{"no JSON", "UPDATE facts SET value = '{' WHERE kind = 'good'", `"web/web" of table "good"`},
		{"another type", `UPDATE facts SET value = '{"at": "yesterday"}' WHERE kind = 'good'`, `"web/web" of table "good"`},
		{"its key was renamed", `UPDATE facts SET value = replace(value, 'app_name', 'appname') WHERE kind = 'good'`, `"web/web" of table "good"`},
		{"of another table", "UPDATE facts SET kind = 'override' WHERE kind = 'good'", `"web/web" of table "override"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t)
			require.NoError(t, s.Record(t.Context(), []ring.Fact{
				ring.Good{AppName: "web", Service: ring.Service{Name: "web"}},
				ring.InForce{App: ring.App{Name: "web"}},
			}, nil))
			s.sql(t, c.break_)
			facts, err := s.Facts(t.Context())
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "a restart of gitring moves it aside")
			require.Contains(t, facts.Apps, "web")
			require.ErrorContains(t, s.Trim(t.Context(), noon.Add(10*keepLeftJobs)), c.says, "and nothing is let go meanwhile")
		})
	}
}

func TestARowOfANewerGitringIsNamedAndNoDamage(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ring.Intent{Instance: "c"}, ring.InForce{App: ring.App{Name: "web"}}}, nil))
	s.sql(t, "UPDATE facts SET kind = 'lease' WHERE kind = 'intent'")
	facts, err := s.Facts(t.Context())
	require.ErrorContains(t, err, `a newer gitring has written it, this one does not know the table "lease" of its row "c"; run that one`)
	require.NotContains(t, err.Error(), "moves it aside")
	require.Contains(t, facts.Apps, "web")
}

func TestWhatCannotBeReadBackCannotBeRecorded(t *testing.T) {
	s := fresh(t)
	for name, f := range map[string]ring.Fact{
		"unknown table":  ring.Forget{Table: "apps", Key: "web"},
		"no key":         ring.InForce{},
		"a pointer":      &ring.Post{SHA: sha(1), Context: "x"},
		"nil":            nil,
		"a job outside":  ring.JobRun{ID: "../..", Version: "1:a"},
		"a version path": ring.JobRun{ID: "web/job", Version: "../../x"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Record(t.Context(), []ring.Fact{ring.Intent{Instance: "c"}, f}, nil)
			require.Error(t, err)
			facts, err := s.Facts(t.Context())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(ring.NewFacts(), facts))
		})
	}
}

func TestAFactItsPostAndItsEventsAreOneTransaction(t *testing.T) {
	for _, c := range []struct{ name, fault, heal string }{
		{
			"the journal's line fails",
			"CREATE TRIGGER fault BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'fault'); END", "DROP TRIGGER fault",
		}, {
			"the post fails",
			"CREATE TRIGGER fault BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'fault'); END", "DROP TRIGGER fault",
		}, {
			"the commit itself fails and leaves the transaction open",
			`CREATE TABLE p (id INTEGER PRIMARY KEY);
			 CREATE TABLE c (id INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED);
			 CREATE TRIGGER fault AFTER INSERT ON journal BEGIN INSERT INTO c VALUES (7); END`, "DROP TRIGGER fault",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t)
			s.sql(t, c.fault)
			changed := s.Changed()
			facts, events := record(1)
			facts = append(facts, ring.JobRun{ID: "web/job", Version: "1:a", State: "started"})
			require.Error(t, s.Record(t.Context(), facts, events))
			got, err := s.Facts(t.Context())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(ring.NewFacts(), got))
			require.Zero(t, s.count(t, "SELECT count(*) FROM journal"))
			marks, err := s.JobMarks()
			require.NoError(t, err)
			require.Empty(t, marks)
			select {
			case <-changed:
				t.Fatal("told of nothing")
			default:
			}

			s.sql(t, c.heal)
			require.NoError(t, s.Record(t.Context(), facts, events), "the next one is not held up")
			require.NoError(t, s.CheckJournal(t.Context()))
		})
	}
}

func TestAFailedRecordPutsTheMarkBackThatWasThere(t *testing.T) {
	s := fresh(t)
	run := ring.JobRun{ID: "web/job", Version: "1:a", State: "started", Tries: 1}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{run}, nil))
	s.sql(t, "CREATE TRIGGER fault BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, 'fault'); END")
	ended := run
	ended.State = "succeeded"
	require.Error(t, s.Record(t.Context(), []ring.Fact{ended}, nil))
	marks, err := s.JobMarks()
	require.NoError(t, err)
	require.Equal(t, map[string]ring.JobRun{"web/job@1:a": run}, marks)
}

func TestAJobThatIsForgottenAndStartedAnewKeepsItsMark(t *testing.T) {
	s := fresh(t)
	old := ring.JobRun{ID: "web/job", Version: "1:a", State: "succeeded"}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{old}, nil))
	forget, anew := ring.Forget{Table: "job", Key: "web/job@1:a"}, ring.JobRun{ID: "web/job", Version: "1:a", State: "started"}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{forget, anew}, nil))
	marks, err := s.JobMarks()
	require.NoError(t, err)
	require.Equal(t, map[string]ring.JobRun{"web/job@1:a": anew}, marks)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{old, forget}, nil))
	marks, err = s.JobMarks()
	require.NoError(t, err)
	require.Empty(t, marks)
}

func TestAFactThatDoesNotChangeIsNotWritten(t *testing.T) {
	s := fresh(t)
	f := ring.InForce{App: ring.App{Name: "web"}}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{f}, nil))
	s.now = func() time.Time { return noon.Add(time.Hour) }
	require.NoError(t, s.Record(t.Context(), []ring.Fact{f}, nil))
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM facts WHERE at = ?", ns(noon)))
}

func TestMarksOfJobs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	run := ring.JobRun{ID: "web/migrate", Version: "1:a", State: "started", Tries: 2, Commit: sha(1), Started: noon}
	require.NoError(t, s.Record(t.Context(), []ring.Fact{run}, nil))
	require.NoError(t, s.MarkJob("web", "seed", "1:b", "started"))
	require.NoError(t, s.MarkJob("web", "seed", "1:b", "succeeded"))
	require.NoError(t, s.MarkJob("web", "torn", "1:c", "started"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs/web/torn/1:c"), []byte(`{"id"`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs/web/torn/"+tempMark+"1"), []byte(`x`), 0o600))
	want := map[string]ring.JobRun{
		"web/migrate@1:a": run,
		"web/seed@1:b":    {ID: "web/seed", Version: "1:b", State: "succeeded", Started: noon, Ended: noon},
		"web/torn@1:c":    {ID: "web/torn", Version: "1:c", State: "started", Reason: "its mark file cannot be read"},
	}
	marks, err := s.JobMarks()
	require.NoError(t, err)
	require.Equal(t, want, marks)
	require.NoError(t, s.Close())

	t.Run("a lost database takes them over", func(t *testing.T) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(filepath.Join(dir, fileName+suffix))
		}
		s := opened(t, dir)
		require.Contains(t, s.Notice(), "3 job runs were taken from their mark files")
		facts, err := s.Facts(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, facts.Jobs)
		require.NoFileExists(t, filepath.Join(dir, "jobs/web/torn/"+tempMark+"1"))
		require.NoError(t, s.Close())
	})
	t.Run("and tells of it once", func(t *testing.T) {
		s := opened(t, dir)
		require.Empty(t, s.Notice())
		require.Error(t, s.MarkJob("..", "x", "1:a", "started"))
		require.Error(t, s.MarkJob("web", "a/b", "1:a", "started"))
		require.Error(t, s.MarkJob("web", "x", "", "started"))
	})
}
