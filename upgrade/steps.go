package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// Upgrader puts a program in the place of another one.
//
// On disk there are the program, <program>.next, <program>.prev, the journal beside it, and in
// the state folder the note of a trial and the database of before. Each step leaves the program
// whole, the old one or the new one. What a later run does depends on these alone:
//
//   - no journal: nothing is under way.
//   - the program is not the new one: it never took its place, or was put back. The journal goes.
//   - it is the new one, and there is no note of a trial: it passed. The journal goes.
//   - it is the new one, on trial: it is watched, or the old one is put back.
//
// The note is there before the program is replaced. While it is there the new program changes
// nothing, so the database of before is as good as the one of now. The old program does not
// heed a note that names it as the release before.
type Upgrader struct {
	Manager Manager
	// Ask is the status of the daemon that runs now.
	Ask func(ctx context.Context) (ring.Status, error)
	// Rehearse has a program say what it would do.
	Rehearse func(ctx context.Context, program string, u Unit) (Rehearsal, error)
	// KeepPrev and PutBackPrev are the store's; no daemon runs meanwhile.
	KeepPrev    func(ctx context.Context) error
	PutBackPrev func() error
	State       string // the folder of the daemon's state
	AllowRoll   bool
	// Probation is how long the new daemon has to do well, StartWithin how long it may take
	// until it does, Every how often it is looked at, AskWithin how long one answer may take.
	Probation, StartWithin, Every, AskWithin time.Duration
	// Say tells what is done.
	Say func(format string, args ...any)

	// before is called before each step; tests end the process in it. sync is disk.Sync, or
	// what a test has in place of it.
	before func(step string)
	sync   func(dir string) error
}

// Plan is what an upgrade would be, once rehearsed.
type Plan struct {
	From, To string
	sum      string // of the program that was verified
	rolls    []ring.TrialStep
	known    []Rehearsal
}

// Check has the new program placed beside the old one and rehearsed. The error says what it
// would roll.
func (u *Upgrader) Check(ctx context.Context, unit Unit, program []byte) (Plan, error) {
	u.step("place")
	if err := writeBeside(unit.Program+nextSuffix, program, 0o755); err != nil {
		return Plan{}, fmt.Errorf("cannot place the new program: %w", err)
	}
	sum := sumOf(program)
	if err := isPlaced(unit, sum); err != nil {
		return Plan{}, err
	}
	old, err := u.Rehearse(ctx, unit.Program, unit)
	if err != nil {
		return Plan{}, fmt.Errorf("the running release cannot be rehearsed, so there is nothing to compare with: %w", err)
	}
	u.step("rehearse")
	next, err := u.Rehearse(ctx, unit.Program+nextSuffix, unit)
	if err != nil {
		return Plan{}, fmt.Errorf("the new release fails where it is rehearsed: %w", err)
	}
	p := Plan{From: old.Gitring, To: next.Gitring, sum: sum, known: []Rehearsal{old, next}}
	for _, says := range next.Refuses(old) {
		u.Say("%s would refuse: %s", p.To, says)
	}
	for _, says := range next.Notes {
		u.Say("%s", says)
	}
	if p.rolls = next.Rolls(old); len(p.rolls) > 0 {
		// What began between the two is no roll.
		again, err := u.Rehearse(ctx, unit.Program, unit)
		if err != nil {
			return p, fmt.Errorf("the running release cannot be rehearsed: %w", err)
		}
		p.rolls = next.Rolls(old, again)
		p.known = append(p.known, again)
	}
	if len(p.rolls) == 0 || u.AllowRoll {
		return p, nil
	}
	return p, &exit.Failure{
		Code: exit.Conflict, Says: fmt.Sprintf("gitring %s would, and %s would not: %s", p.To, p.From, Told(p.rolls)),
		Hint: "nothing was changed; --allow-roll is the yes to it, at a time when that may be",
	}
}

// isPlaced is nil where the program that was verified lies beside the old one, in folders where
// nobody but root, or who runs this, can have put another one.
func isPlaced(unit Unit, sum string) error {
	name := unit.Program + nextSuffix
	body, err := disk.ReadOwned(name, disk.Owned{User: os.Geteuid(), Most: 2 * mostRelease})
	if err != nil {
		return err
	}
	if sumOf(body) != sum {
		return fmt.Errorf("cannot trust %s: it is not the program that was verified", name)
	}
	return nil
}

// Forget removes a program that was only rehearsed.
func (u *Upgrader) Forget(unit Unit) error {
	if err := os.Remove(unit.Program + nextSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the new program: %w", err)
	}
	return nil
}

// Run carries out a plan, whose program lies beside the old one. The error says why the old one
// runs again.
func (u *Upgrader) Run(ctx context.Context, unit Unit, p Plan) error {
	defer hold()()
	old, err := os.ReadFile(unit.Program)
	if err != nil {
		return fmt.Errorf("cannot read the program: %w", err)
	}
	j := &journal{From: p.From, To: p.To, Old: sumOf(old), New: p.sum, AllowRoll: u.AllowRoll}
	for _, r := range p.known {
		j.Known = append(j.Known, r.Steps...)
	}
	if j.Old == j.New {
		return &exit.Failure{Code: exit.Conflict, Says: "cannot upgrade: this program runs already", Hint: "gitring version says which"}
	}
	u.step("note")
	if err := j.write(unit.Program); err != nil {
		return err
	}
	if err := u.replace(ctx, unit, j, old); err != nil {
		if is, readErr := os.ReadFile(unit.Program); readErr != nil || sumOf(is) != j.Old {
			j.Back, j.Reason = true, fmt.Sprintf("could not be put in place whole: %v", err)
			return u.goBack(context.WithoutCancel(ctx), unit, j)
		}
		// The old program is as it was.
		err = fmt.Errorf("cannot put gitring %s in place, and left %s: %w", p.To, p.From, err)
		if left := u.abandon(unit); left != nil {
			return unfinished(errors.Join(err, left))
		}
		return err
	}
	return u.try(ctx, unit, j)
}

// unfinished is an error after which there is something left to do.
func unfinished(err error) error {
	return &exit.Failure{Code: exit.Error, Says: err.Error(), Hint: "sudo gitring upgrade --resume finishes it, or puts it back", Why: err}
}

// hold has signals wait that would end this process where the daemon is stopped: a session that
// is closed, a pipe that nobody reads, a second Ctrl-C. The first one still ends the context,
// which is the way back.
func hold() (release func()) {
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	return func() { signal.Stop(unread) }
}

// replace stops the daemon, keeps what it leaves, and puts the new program in its place.
func (u *Upgrader) replace(ctx context.Context, unit Unit, j *journal, old []byte) error {
	u.Say("stopping the daemon; what runs keeps running")
	u.step("stop")
	if err := u.Manager.Stop(ctx); err != nil {
		return err
	}
	u.step("keep the database")
	if err := u.KeepPrev(ctx); err != nil {
		return err
	}
	u.step("keep the program")
	if err := writeBeside(unit.Program+prevSuffix, old, 0o755); err != nil {
		return fmt.Errorf("cannot keep the program: %w", err)
	}
	u.step("begin the trial")
	if err := BeginTrial(u.State, j.trial(u)); err != nil {
		return err
	}
	u.step("replace")
	if err := isPlaced(unit, j.New); err != nil {
		return err
	}
	if err := os.Rename(unit.Program+nextSuffix, unit.Program); err != nil {
		return err
	}
	if u.sync != nil {
		return u.sync(filepath.Dir(unit.Program))
	}
	return disk.Sync(filepath.Dir(unit.Program))
}

// abandon goes on with the old program, which was never replaced. The journal is there until
// the daemon is.
func (u *Upgrader) abandon(unit Unit) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(EndTrial(u.State), u.Forget(unit), u.Manager.Start(ctx)); err != nil {
		return err
	}
	return endJournal(unit.Program)
}

// try starts the new program and watches it. Where it fails, the old one comes back.
func (u *Upgrader) try(ctx context.Context, unit Unit, j *journal) error {
	u.Say("starting gitring %s, on trial for %s", j.To, u.Probation)
	u.step("start")
	why := u.Manager.Start(ctx)
	if why == nil {
		u.step("watch")
		why = u.watch(ctx, j)
	}
	if why == nil {
		return u.settle(ctx, unit, j)
	}
	j.Back, j.Reason = true, why.Error()
	return u.goBack(context.WithoutCancel(ctx), unit, j)
}

// settle lets the new program act.
func (u *Upgrader) settle(ctx context.Context, unit Unit, j *journal) error {
	u.step("end the trial")
	if err := EndTrial(u.State); err != nil {
		return unfinished(err)
	}
	u.step("forget")
	if err := endJournal(unit.Program); err != nil {
		return unfinished(err)
	}
	u.Say("upgraded from %s to %s; %s%s is the program of before", j.From, j.To, unit.Program, prevSuffix)
	return nil
}

// goBack puts the old program back, and the database that it left. Where that fails, what lies
// there is started: a host without a daemon is the worse one.
func (u *Upgrader) goBack(ctx context.Context, unit Unit, j *journal) error {
	u.Say("gitring %s failed: %s", j.To, j.Reason)
	u.step("note the way back")
	if err := j.write(unit.Program); err != nil {
		u.Say("%v; going back all the same", err)
	}
	if err := u.stopNew(ctx, j); err != nil {
		return u.leave(ctx, err)
	}
	if _, on := ReadTrial(u.State); !on {
		return u.stays(ctx, unit, j)
	}
	if err := u.putBack(unit, j); err != nil {
		return u.leave(ctx, err)
	}
	return u.isBack(ctx, unit, j)
}

func (u *Upgrader) stopNew(ctx context.Context, j *journal) error {
	u.step("stop the new")
	if err := u.Manager.Stop(ctx); err != nil {
		return fmt.Errorf("cannot stop gitring %s, which changes nothing while it is on trial: %w", j.To, err)
	}
	return nil
}

// stays goes on with a new program that believed itself, because this run was away for long. It
// may have acted since.
func (u *Upgrader) stays(ctx context.Context, unit Unit, j *journal) error {
	u.Say("gitring %s had ended its trial by itself: it stays", j.To)
	if err := u.Manager.Start(ctx); err != nil {
		return unfinished(fmt.Errorf("gitring %s had ended its trial by itself, and cannot be started: %w", j.To, err))
	}
	return errors.Join(endJournal(unit.Program), fmt.Errorf("gitring %s runs, and was found wanting: %s", j.To, j.Reason))
}

// leave starts what lies there after an error.
func (u *Upgrader) leave(ctx context.Context, err error) error {
	u.step("start what lies there")
	return unfinished(errors.Join(err, u.Manager.Start(ctx)))
}

// putBack changes the files; no daemon runs meanwhile.
func (u *Upgrader) putBack(unit Unit, j *journal) error {
	u.step("begin the way back")
	if err := BeginTrial(u.State, j.trial(u)); err != nil {
		return err
	}
	old, err := os.ReadFile(unit.Program + prevSuffix)
	if err != nil {
		return fmt.Errorf("cannot read the program of before: %w", err)
	}
	if sumOf(old) != j.Old {
		return fmt.Errorf("cannot put the program back: %s%s is another one", unit.Program, prevSuffix)
	}
	u.step("put the database back")
	if err := u.PutBackPrev(); err != nil {
		return err
	}
	u.step("put the program back")
	if err := writeBeside(unit.Program, old, 0o755); err != nil {
		return fmt.Errorf("cannot put the program back: %w", err)
	}
	return nil
}

// isBack goes on with the old program, which is in its place again. The journal is there until
// the daemon is.
func (u *Upgrader) isBack(ctx context.Context, unit Unit, j *journal) error {
	u.step("end the way back")
	if err := EndTrial(u.State); err != nil {
		return u.leave(ctx, err)
	}
	u.step("start the old")
	if err := u.Manager.Start(ctx); err != nil {
		return unfinished(fmt.Errorf("gitring %s is back in its place, and cannot be started: %w", j.From, err))
	}
	u.step("forget the way back")
	if err := endJournal(unit.Program); err != nil {
		return unfinished(err)
	}
	if err := u.answers(ctx, j.From); err != nil {
		return fmt.Errorf("gitring %s is back in its place, and %w", j.From, err)
	}
	return &exit.Failure{
		Code: exit.Error, Says: fmt.Sprintf("gitring %s was put back: %s %s", j.From, j.To, j.Reason),
		Hint: "nothing that runs was touched; journalctl -u " + unit.Name + " has the words of the new release",
	}
}

// answers waits until the daemon of a release answers.
func (u *Upgrader) answers(ctx context.Context, release string) error {
	deadline := time.Now().Add(max(u.StartWithin, time.Minute))
	for {
		asking, cancel := context.WithTimeout(ctx, u.AskWithin)
		st, err := u.Ask(asking)
		cancel()
		if err == nil && st.Gitring == release {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("does not answer: %w", err)
		}
		time.Sleep(u.Every)
	}
}

// Resume finishes what an earlier run left, and reports whether there was anything. The error
// is as with Run.
func (u *Upgrader) Resume(ctx context.Context, unit Unit) (bool, error) {
	defer hold()()
	j, err := readJournal(unit.Program)
	if err != nil || j == nil {
		return false, err
	}
	program, err := os.ReadFile(unit.Program)
	if err != nil {
		return true, fmt.Errorf("cannot read the program: %w", err)
	}
	_, on := ReadTrial(u.State)
	switch {
	case sumOf(program) != j.New && j.Back:
		u.Say("an upgrade to %s broke off when it was put back already", j.To)
		return true, u.isBack(context.WithoutCancel(ctx), unit, j)
	case sumOf(program) != j.New:
		u.Say("an upgrade to %s broke off before it took place: %s runs on", j.To, j.From)
		if err := u.abandon(unit); err != nil {
			return true, unfinished(err)
		}
		return true, nil
	case !on && j.Back:
		return true, u.stays(ctx, unit, j)
	case !on:
		if err := u.Manager.Start(ctx); err != nil {
			return true, unfinished(err)
		}
		return true, u.settle(ctx, unit, j)
	case j.Back:
		return true, u.goBack(context.WithoutCancel(ctx), unit, j)
	}
	return true, u.try(ctx, unit, j)
}

func (u *Upgrader) step(name string) {
	if u.before != nil {
		u.before(name)
	}
}
