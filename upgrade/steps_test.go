package upgrade

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
)

// newHost is a host on which release 0.1.0 runs.
func newHost(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gr") // a socket's path is short
	require.NoError(t, err)
	s := supervised{dir}
	t.Cleanup(func() { _ = s.Stop(context.Background()); _ = os.RemoveAll(dir) })
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state", "db"), []byte("one"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gitring"), script(dir, "0.1.0", ""), 0o755))
	require.NoError(t, s.Start(t.Context()))
	until(t, "0.1.0 acts", func() bool { return noted(dir, "acts") == "0.1.0 " && noted(dir, "pid") > "0" })
	return dir
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(late), "not within a minute: %s", what)
	}
}

// upgradeTo is one upgrade, told as the command line has it.
func upgradeTo(t *testing.T, u *Upgrader, program []byte) error {
	t.Helper()
	unit, err := u.Manager.Unit(t.Context())
	require.NoError(t, err)
	p, err := u.Check(t.Context(), unit, program)
	if err != nil {
		return errors.Join(err, u.Forget(unit))
	}
	return u.Run(t.Context(), unit, p)
}

// runs is what is so when one release is settled, whatever came before.
func runs(t *testing.T, dir, version string, program []byte) {
	t.Helper()
	until(t, version+" acts", func() bool { return strings.HasPrefix(noted(dir, "acts"), version+" ") })
	require.Equal(t, string(program), noted(dir, "gitring"))
	require.Equal(t, map[string]string{"0.1.0": "one", "0.2.0": "two"}[version], noted(dir, "state/db"), "the database is that of the program")
	for _, left := range []string{"gitring.next", "gitring.upgrade", "state/trial.json"} {
		require.NoFileExists(t, filepath.Join(dir, left))
	}
}

func TestAReleaseThatDoesWellTakesThePlaceOfTheOldOne(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	old, next := script(dir, "0.1.0", ""), script(dir, "0.2.0", "also") // it goes on with what 0.1.0 does
	u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(s string) { t.Log(s) })
	require.NoError(t, upgradeTo(t, u, next))
	runs(t, dir, "0.2.0", next)
	require.Equal(t, string(old), noted(dir, "gitring.prev"))
	require.Equal(t, "one", noted(dir, "state/db.prev"))

	var f *exit.Failure
	require.ErrorAs(t, upgradeTo(t, u, next), &f)
	require.Equal(t, exit.Conflict, f.Code, "it runs already")
}

// sabotaged are releases that are wrong, by what is told of each. startWithin is short where
// it is what ends the wait.
var sabotaged = []struct {
	wrong, says string
	waits       bool
}{
	{"crash", "it ended", false},
	{"migrate", "it ended", false},
	{"hang", "does not answer", true},
	{"version", "gitring 0.9.9, and not 0.2.0", false},
	{"exits", "it ended", false},
	{"deaf", "does not answer", true},
	{"blind", "it has not looked|does not answer", true},
	{"engine", "engine is not well: no engine|does not answer", true},
	{"store", "store is not well: disk full|does not answer", true},
	{"untold", "does not say that it is on trial", false},
	{"lies", `would stop web/web slot 1 \(image\)`, false},
	{"rehearsal fails", "cannot read the configuration: unknown key", false},
	{"rehearsal hangs", "not done within 1s", false},
	{"rehearsal babbles", "no rehearsal", false},
	{"rolls", `0.2.0 would, and 0.1.0 would not: roll web/web \(environment\)$`, false},
	{"another architecture", "exec format error", false},
}

func TestASabotagedReleaseIsPutBackAndTouchesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range sabotaged {
		t.Run(s.wrong, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			next := script(dir, "0.2.0", s.wrong)
			if s.wrong == "another architecture" {
				next = []byte("\x7fELF\x02\x01\x01 of another machine")
			}
			startWithin := time.Minute
			if s.waits {
				startWithin = 3 * time.Second
			}
			u := upgraderOf(dir, startWithin, time.Minute, func(s string) { t.Log(s) })
			err := upgradeTo(t, u, next)
			require.Error(t, err)
			require.Regexp(t, s.says, err.Error())
			runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
			require.NotContains(t, noted(dir, "acts"), s.wrong, "the new release acted")
			var f *exit.Failure
			if s.wrong == "rolls" {
				require.ErrorAs(t, err, &f)
				require.Equal(t, exit.Conflict, f.Code)
				require.NoFileExists(t, filepath.Join(dir, "gitring.prev"), "nothing was changed")
			}
		})
	}
}

func TestAPersonMayLetAReleaseRoll(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	next := script(dir, "0.2.0", "rolls")
	u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(s string) { t.Log(s) })
	u.AllowRoll = true
	require.NoError(t, upgradeTo(t, u, next))
	runs(t, dir, "0.2.0", next)
}

// steps are all that an upgrade goes through, those of the way back last.
var steps = []string{
	"place", "rehearse", "note", "stop", "keep the database", "keep the program", "begin the trial", "replace", "start", "watch",
	"end the trial", "forget",
}

var stepsBack = []string{
	"note the way back", "stop the new", "begin the way back", "put the database back", "put the program back", "end the way back",
	"start the old", "forget the way back",
}

// killedAt runs an upgrade in a process of its own that dies before a step, as by kill -9.
func killedAt(t *testing.T, dir string, program []byte, step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "UPGRADE_ROLE=upgrade", "UPGRADE_DIR="+dir, "UPGRADE_PROGRAM="+string(program), "UPGRADE_KILL="+step)
	err := cmd.Run()
	require.Error(t, err)
	require.Equal(t, "signal: killed", err.Error(), "it never came to step %q", step)
}

func TestAnUpgradeThatIsKilledAtAnyStepIsFinishedByALaterRun(t *testing.T) {
	t.Parallel()
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			old, next := script(dir, "0.1.0", ""), script(dir, "0.2.0", "also")
			killedAt(t, dir, next, step)
			is := noted(dir, "gitring")
			require.Contains(t, []string{string(old), string(next)}, is, "one of them is whole")
			u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(s string) { t.Log(s) })
			unit, err := u.Manager.Unit(t.Context())
			require.NoError(t, err)
			_, err = u.Resume(t.Context(), unit)
			require.NoError(t, err)
			require.NoError(t, u.Forget(unit))
			if is == string(old) {
				runs(t, dir, "0.1.0", old)
			} else {
				runs(t, dir, "0.2.0", next)
			}
			left, err := u.Resume(t.Context(), unit)
			require.NoError(t, err)
			require.False(t, left, "there is nothing more to do")
		})
	}
}

// The host starts again in between, which starts whatever program lies there.
func TestAWayBackThatIsKilledAtAnyStepIsFinishedByALaterRun(t *testing.T) {
	t.Parallel()
	for i, step := range stepsBack {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			old, next := script(dir, "0.1.0", ""), script(dir, "0.2.0", "lies")
			killedAt(t, dir, next, step)
			require.Contains(t, []string{string(old), string(next)}, noted(dir, "gitring"), "one of them is whole")
			u := upgraderOf(dir, time.Minute, time.Minute, func(s string) { t.Log(s) })
			if i%2 == 0 { // a boot
				require.NoError(t, u.Manager.Stop(t.Context()))
				require.NoError(t, u.Manager.Start(t.Context()))
				until(t, "whatever lies there answers", func() bool { _, err := u.Ask(t.Context()); return err == nil })
			}
			unit, err := u.Manager.Unit(t.Context())
			require.NoError(t, err)
			left, err := u.Resume(t.Context(), unit)
			require.True(t, left, "the journal is there until the daemon is")
			require.ErrorContains(t, err, "0.1.0 was put back: 0.2.0 it would stop web/web")
			runs(t, dir, "0.1.0", old)
			require.NotContains(t, noted(dir, "acts"), "lies")
		})
	}
}

// Whoever ran the upgrade was away for so long that the new release believed itself: what it
// recorded since is not taken from it.
func TestAReleaseThatEndedItsTrialByItselfStays(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	next := script(dir, "0.2.0", "exits")
	u := upgraderOf(dir, time.Minute, time.Minute, func(s string) { t.Log(s) })
	u.before = func(step string) {
		if step == "stop the new" {
			require.NoError(t, EndTrial(u.State))
		}
	}
	require.ErrorContains(t, upgradeTo(t, u, next), "0.2.0 runs, and was found wanting")
	require.Equal(t, string(next), noted(dir, "gitring"))
	until(t, "it has its database", func() bool { return noted(dir, "state/db") == "two" })
	require.NoFileExists(t, filepath.Join(dir, "gitring.upgrade"))
}

// The session is closed, nobody reads what is said, and somebody is impatient: all that at each
// step after the daemon is stopped.
func TestNoSignalEndsAnUpgradeWhileTheDaemonIsStopped(t *testing.T) {
	t.Parallel()
	for wrong, runsThen := range map[string]string{"also": "0.2.0", "lies": "0.1.0"} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			next := script(dir, "0.2.0", wrong)
			read, write, err := os.Pipe()
			require.NoError(t, err)
			require.NoError(t, read.Close())
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "UPGRADE_ROLE=upgrade", "UPGRADE_DIR="+dir, "UPGRADE_PROGRAM="+string(next), "UPGRADE_SIGNALS=all")
			cmd.Stdout = write
			_ = cmd.Run() // 1 where the old one came back
			require.NoError(t, write.Close())
			require.True(t, cmd.ProcessState.Exited(), "it ended by itself: %s", cmd.ProcessState)
			program := next
			if runsThen == "0.1.0" {
				program = script(dir, "0.1.0", "")
			}
			runs(t, dir, runsThen, program)
		})
	}
}

// Nothing of the old release is lost yet, and what the disk holds is not known: the new one is
// not started without a trial.
func TestAProgramThatMayNotBeOnTheDiskIsPutBack(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	u := upgraderOf(dir, time.Minute, time.Minute, func(s string) { t.Log(s) })
	u.sync = func(string) error { return errors.New("input/output error") }
	err := upgradeTo(t, u, script(dir, "0.2.0", "unsynced"))
	require.ErrorContains(t, err, "0.1.0 was put back: 0.2.0 could not be put in place whole: input/output error")
	runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
	require.NotContains(t, noted(dir, "acts"), "unsynced")
}

// A way back that fails leaves a daemon, on trial, and says what to do.
func TestAWayBackThatFailsLeavesADaemonAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, u *Upgrader, dir string){
		"the disk is full": func(_ *testing.T, u *Upgrader, _ string) {
			put, full := u.PutBackPrev, true
			u.PutBackPrev = func() error {
				if full {
					full = false
					return errors.New("no space left on device")
				}
				return put()
			}
		},
		"the program of before is another one": func(t *testing.T, u *Upgrader, dir string) {
			u.before = func(step string) {
				if step == "stop the new" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, "gitring.prev"), []byte("another"), 0o755))
				}
			}
		},
		"the program of before is gone": func(t *testing.T, u *Upgrader, dir string) {
			u.before = func(step string) {
				if step == "stop the new" {
					require.NoError(t, os.Remove(filepath.Join(dir, "gitring.prev")))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			old := script(dir, "0.1.0", "")
			u := upgraderOf(dir, time.Minute, time.Minute, func(s string) { t.Log(s) })
			spoil(t, u, dir)
			err := upgradeTo(t, u, script(dir, "0.2.0", "lies"))
			var f *exit.Failure
			require.ErrorAs(t, err, &f)
			require.Contains(t, f.Hint, "gitring upgrade --resume")
			until(t, "the new release answers", func() bool {
				st, err := u.Ask(t.Context())
				return err == nil && st.Gitring == "0.2.0" && st.Trial != nil
			})
			require.NotContains(t, noted(dir, "acts"), "lies", "it is on trial")

			u.before = nil
			require.NoError(t, os.WriteFile(filepath.Join(dir, "gitring.prev"), old, 0o755))
			unit, err := u.Manager.Unit(t.Context())
			require.NoError(t, err)
			left, err := u.Resume(t.Context(), unit)
			require.True(t, left)
			require.ErrorContains(t, err, "0.1.0 was put back: 0.2.0 it would stop web/web")
			runs(t, dir, "0.1.0", old)
		})
	}
}

// A daemon that cannot be started again is not forgotten.
func TestAnUpgradeIsNotForgottenBeforeTheDaemonIsStarted(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	u := upgraderOf(dir, time.Minute, time.Minute, func(s string) { t.Log(s) })
	u.KeepPrev = func(context.Context) error { return errors.New("no space left on device") }
	u.Manager = unwilling{supervised{dir}}
	err := upgradeTo(t, u, script(dir, "0.2.0", ""))
	var f *exit.Failure
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Says, "no space left on device")
	require.Contains(t, f.Hint, "gitring upgrade --resume")

	u.Manager = supervised{dir}
	require.NoError(t, os.Remove(filepath.Join(dir, "acts")))
	unit, err := u.Manager.Unit(t.Context())
	require.NoError(t, err)
	left, err := u.Resume(t.Context(), unit)
	require.NoError(t, err)
	require.True(t, left)
	runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
}

type unwilling struct{ supervised }

func (unwilling) Start(context.Context) error { return errors.New("it does not start") }

// What was verified is what is put in place, whoever writes beside it in between.
func TestAProgramThatWasExchangedAfterItWasVerifiedTakesNoPlace(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"note", "replace"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := newHost(t)
			u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(s string) { t.Log(s) })
			u.before = func(step string) {
				if step == at {
					require.NoError(t, os.WriteFile(filepath.Join(dir, "gitring.next"), script(dir, "0.2.0", "exchanged"), 0o755))
				}
			}
			require.ErrorContains(t, upgradeTo(t, u, script(dir, "0.2.0", "")), "it is not the program that was verified")
			runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
			require.NotContains(t, noted(dir, "acts"), "exchanged")
		})
	}
}

func TestAFolderThatOthersMayWriteTakesNoProgram(t *testing.T) {
	t.Parallel()
	dir := newHost(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(s string) { t.Log(s) })
	u.before = func(step string) { require.Equal(t, "place", step, "it goes no further") }
	require.ErrorContains(t, upgradeTo(t, u, script(dir, "0.2.0", "")), "can be written by others")
	runs(t, dir, "0.1.0", script(dir, "0.1.0", ""))
}
