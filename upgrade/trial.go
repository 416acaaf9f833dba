package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// Probation is how long a new program is on trial, where nobody says another time.
const Probation = time.Minute

// StartWithin is how long a new program may take until it does well, where nobody says so.
const StartWithin = 2 * time.Minute

// Grace is how much longer than the upgrade would a program waits for the word of it. After
// that whoever started the upgrade is gone: one that does well believes itself after its
// probation, and any other goes on after Trial.Longest.
const Grace = 30 * time.Second

// trialFile stands in the state folder as long as the program that is started there has to
// prove itself. Its absence says that the program may act: so who removes it decides.
const trialFile = "trial.json"

// tempMark is in the name of each file that is not whole yet.
const tempMark = ".tmp-"

// Trial is what a program on trial is told.
type Trial struct {
	From      string        `json:"from"` // the release before
	To        string        `json:"to"`   // the one on trial
	Probation time.Duration `json:"probation"`
	// StartWithin is how long it may take until it does well.
	StartWithin time.Duration `json:"start_within,omitempty"`
	// Known are the steps that the rehearsals told of: they are no surprise. AllowRoll is a
	// person's yes to all of them.
	Known     []ring.TrialStep `json:"known,omitempty"`
	AllowRoll bool             `json:"allow_roll,omitempty"`
	// Back reports whether the release before is being put back: this one does not believe itself.
	Back bool `json:"back,omitempty"`
}

// For reports whether a release heeds the note: the one that it names, and each where it names
// none. The one of before does not: where it runs, it is back, or was never replaced.
func (t Trial) For(release string) bool { return t.To == "" || release == t.To }

// Stale reports whether the note is about neither a release nor what it would replace: another
// one was put in place by hand since.
func (t Trial) Stale(release string) bool { return !t.For(release) && release != t.From }

// Knows reports whether a step of the new program was told of before.
func (t Trial) Knows(s ring.TrialStep) bool { return known(t.Known, t.AllowRoll, s) }

func known(steps []ring.TrialStep, allowRoll bool, s ring.TrialStep) bool {
	return slices.ContainsFunc(steps, func(k ring.TrialStep) bool { return k.On == s.On && (k.Does == s.Does || allowRoll) })
}

// Longest is when a trial is over, counted from the start of the program, whatever it would do:
// no upgrade watches it as long. A daemon that does nothing for ever is worse than a doubt.
func (t Trial) Longest() time.Duration {
	start := t.StartWithin
	if start <= 0 {
		start = StartWithin
	}
	return start + 2*t.Probation + Grace // well at the last moment, unwell for a while, and well again
}

// ReadTrial reports whether the program of a state folder is on trial. A file that cannot be
// read is a trial, too: then nothing is changed on a doubt.
func ReadTrial(state string) (t Trial, on bool) {
	body, err := os.ReadFile(filepath.Join(state, trialFile))
	if errors.Is(err, fs.ErrNotExist) {
		return t, false
	}
	if err != nil || json.Unmarshal(body, &t) != nil || t.Probation <= 0 {
		t.Probation = Probation
	}
	return t, true
}

// TrialBegan is when the note of a trial was written; the zero time where there is none.
func TrialBegan(state string) (time.Time, error) {
	fi, err := os.Stat(filepath.Join(state, trialFile))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return fi.ModTime(), nil
}

// BeginTrial has the next program that starts on a state folder be on trial.
func BeginTrial(state string, t Trial) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	name := filepath.Join(state, trialFile)
	if err := disk.WriteWhole(name, trialFile+tempMark, body, 0o644); err != nil {
		return fmt.Errorf("cannot begin a trial: %w", err)
	}
	return nil
}

// EndTrial lets the program of a state folder act. It may be repeated.
func EndTrial(state string) error {
	if err := os.Remove(filepath.Join(state, trialFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot end the trial: %w", err)
	}
	return disk.Sync(state)
}
