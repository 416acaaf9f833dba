package ring

import (
	"strconv"
	"strings"
	"time"
)

// What a run of a job or cron job is told from its others by, besides what it
// is of: Trigger of a JobRun and of a Run.
const (
	OnChange   = "change"   // its version, or each commit, asked for it
	OnSchedule = "schedule" // it was due
	Before     = "before"   // a rollout of another service waits for it
	Asked      = "asked"    // a person did
)

// JobRun is a run of a job or cron job: under way, or the last of its kind.
type JobRun struct {
	ID      ServiceID `json:"id"`
	Version Version   `json:"version"`
	Commit  SHA       `json:"commit"`
	// State is started, succeeded or failed; "" for one that is to be tried again.
	State    string    `json:"state"`
	Instance string    `json:"instance,omitempty"`
	Tries    int       `json:"tries"`
	ExitCode int       `json:"exit_code"`
	Reason   string    `json:"reason,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Writes is as RolloutRow.Writes: a run is never cut short, and may outlast
	// the plan that has it.
	Writes []string `json:"writes,omitempty"`
	Share  bool     `json:"share,omitempty"` // of what it writes, as the service said when it began
	// Trigger is why it runs, "" is OnChange. For is, of Before, the version that
	// waits: "<service>@<version>". Due is when it should have begun, by the wall's
	// clock, of OnSchedule, and when it was wished for, of Asked, by Actor.
	Trigger string    `json:"trigger,omitempty"`
	For     string    `json:"for,omitempty"`
	Due     time.Time `json:"due,omitzero"`
	Actor   string    `json:"actor,omitempty"`
	// Slot is 1 but for cron jobs that overlap; 0 is 1.
	Slot int `json:"slot,omitempty"`
	// Job is how it was to run when it began: it may outlast the plan. Engine is
	// Seen.Engine then. Cut is how often such a run was interrupted and begun anew.
	Job    Job    `json:"job,omitzero"`
	Engine string `json:"engine,omitempty"`
	Cut    int    `json:"cut,omitempty"`
	// Stopped is why we ended it: "the timeout of 30s"; "" where we did not. Final
	// says that no other try follows.
	Stopped string `json:"stopped,omitempty"`
	Final   bool   `json:"final,omitempty"`
	// Over says, of Before, that the rollout that it was for is: another one to the
	// same version has a run of its own.
	Over bool `json:"over,omitempty"`
	// Aborted says, of Before, that a person aborted the rollout that it was for: how
	// the run ends is no verdict on that any more.
	Aborted bool `json:"aborted,omitempty"`
}

// Row is by service and what tells the run from others of it.
func (f JobRun) Row() (string, string) { return "job", RunKey(f.ID, f.Mark()) }

// RunKey is the key of a run of a service by its mark.
func RunKey(id ServiceID, mark string) string { return string(id) + "@" + mark }

// Mark tells a run from the others of its service: a job runs once per version,
// once per version of what it runs before, and of a cron job there is one run in
// a slot. It is the name of its mark file too.
func (f JobRun) Mark() string {
	switch f.Trigger {
	case OnSchedule:
		return CronMark(f.Slot)
	case Before:
		return BeforeMark(f.For)
	case Asked:
		return AskedMark
	}
	return string(f.Version)
}

// How the marks of others than a version begin: a version begins with its format.
const (
	cronMark   = "cron:"
	beforeMark = "before:"
)

// AskedMark is the mark of the last run of a job that a person asked for.
const AskedMark = "asked"

// CronMark is the mark of the last run of a cron job in a slot that was due.
func CronMark(slot int) string { return cronMark + strconv.Itoa(max(1, slot)) }

// BeforeMark is the mark of the run before a rollout.
func BeforeMark(waits string) string { return beforeMark + waits }

// RunOf is as much of a run as its mark says.
func RunOf(id ServiceID, mark string) JobRun {
	if waits, ok := strings.CutPrefix(mark, beforeMark); ok {
		return JobRun{ID: id, Trigger: Before, For: waits}
	}
	if n, ok := strings.CutPrefix(mark, cronMark); ok {
		slot, _ := strconv.Atoi(n)
		return JobRun{ID: id, Trigger: OnSchedule, Slot: slot}
	}
	if mark == AskedMark {
		return JobRun{ID: id, Trigger: Asked}
	}
	return JobRun{ID: id, Version: Version(mark)}
}

// ForVersion is what JobRun.For says of a service and its version.
func ForVersion(service string, v Version) string { return service + "@" + string(v) }
