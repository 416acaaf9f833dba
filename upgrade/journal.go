package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// journal is what is under way. It lies beside the program, in a folder of root's, from before
// the daemon is stopped until one of the two programs is settled.
type journal struct {
	From string `json:"from"`
	To   string `json:"to"`
	Old  string `json:"old"` // sha256 of the programs
	New  string `json:"new"`
	// Known are the steps that the rehearsals told of: they are no surprise. AllowRoll is a
	// person's yes to all of them.
	Known     []ring.TrialStep `json:"known,omitempty"`
	AllowRoll bool             `json:"allow_roll,omitempty"`
	// Back reports whether the old one is being put back; Reason is why.
	Back   bool   `json:"back,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Names beside the program.
const (
	nextSuffix    = ".next"
	prevSuffix    = ".prev"
	journalSuffix = ".upgrade"
	lockSuffix    = ".upgrade-lock"
)

// knows reports whether a step of the new program was told of before.
func (j *journal) knows(s ring.TrialStep) bool {
	return known(j.Known, j.AllowRoll, s)
}

// trial is the note that the new program is told by.
func (j *journal) trial(u *Upgrader) Trial {
	return Trial{
		From: j.From, To: j.To, Probation: u.Probation, StartWithin: u.StartWithin, Known: j.Known, AllowRoll: j.AllowRoll, Back: j.Back,
	}
}

func readJournal(program string) (*journal, error) {
	body, err := os.ReadFile(program + journalSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(body, &j)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what an upgrade left: %w", err)
	}
	return &j, nil
}

func (j *journal) write(program string) error {
	body, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := writeBeside(program+journalSuffix, body, 0o644); err != nil {
		return fmt.Errorf("cannot note the upgrade: %w", err)
	}
	return nil
}

func endJournal(program string) error {
	if err := os.Remove(program + journalSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot note that the upgrade is over: %w", err)
	}
	return disk.Sync(filepath.Dir(program))
}

// writeBeside writes a file whole. What a crash left of another one is removed first: this is
// the only upgrade.
func writeBeside(name string, body []byte, mode fs.FileMode) error {
	left, err := filepath.Glob(name + tempMark + "*")
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return disk.WriteWhole(name, filepath.Base(name)+tempMark, body, mode)
}

func sumOf(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:])
}
