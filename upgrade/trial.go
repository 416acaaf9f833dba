package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gitring/gitring/disk"
)

// Probation is how long a new program is on trial, where nobody says another time.
const Probation = time.Minute

// Grace is how much longer than its probation a program waits for the word of the upgrade.
// After that it believes itself: whoever started the upgrade is gone.
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
	// Back says that the release before is being put back: this one never acts.
	Back bool `json:"back,omitempty"`
}

// For reports whether a release heeds the note. The one of before does not: where it runs, it
// is back, or was never replaced. Where both have one name, each does.
func (t Trial) For(release string) bool { return release != t.From || t.From == t.To }

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
