package ring

import (
	"strconv"
	"time"
)

// What happens when a cron job is due while its last run has not ended.
const (
	OverlapForbid  = "forbid"  // the due run is skipped, and told
	OverlapAllow   = "allow"   // both run
	OverlapReplace = "replace" // the one under way is stopped first
)

// Cron is when a cron job runs.
type Cron struct {
	Schedule string `json:"schedule"` // five fields, or @daily and its like
	Timezone string `json:"timezone"` // an IANA name; default UTC
	Overlap  string `json:"overlap"`  // default forbid
	// Missed is how late a run that was due while the daemon was away, or the
	// clock jumped, may be caught up, once; 0 is never.
	Missed time.Duration `json:"missed"`
	// Job holds what a run has in common with a job's: timeout, retries.
	Job Job `json:"job"`
}

// Ends reports whether an instance of the kind is a run, which comes to its end.
func (k Kind) Ends() bool { return k == JobK || k == CronK }

// Words are the schedule and its zone in one.
func (c *Cron) Words() string { return c.Timezone + " " + c.Schedule }

// CronRow is where a cron job stands: what is due next survives a restart. Its
// times are of the clock on the wall, which may jump.
type CronRow struct {
	ID       ServiceID `json:"id"`
	Schedule string    `json:"schedule"` // Cron.Words, that Next was computed from
	Next     time.Time `json:"next"`     // zero is never
	// Waits is a time that was due whose run has not begun yet.
	Waits time.Time `json:"waits,omitzero"`
	// Due is the last time whose run was begun, and Begun are all of them, by their
	// ends: whatever the clock says later, no run begins for those again. From is
	// when Next was computed: a clock that shows less was set back.
	Due   time.Time `json:"due,omitzero"`
	Begun []Stretch `json:"begun,omitempty"`
	From  time.Time `json:"from,omitzero"`
	// Last is how the last run that ended came out; "" before the first.
	Last     string    `json:"last,omitempty"` // succeeded, failed
	LastSays string    `json:"last_says,omitempty"`
	LastEnd  time.Time `json:"last_end,omitzero"`
}

// Stretch is due times in a row.
type Stretch struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Row is by service.
func (f CronRow) Row() (string, string) { return "cron", string(f.ID) }

// Ask is a person's wish that a job or cron job runs now; it goes when the run starts.
type Ask struct {
	ID     ServiceID `json:"id"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Row is by service.
func (f Ask) Row() (string, string) { return "ask", string(f.ID) }

// Run is one run of a job or cron job that ended, or was skipped, for people:
// no decision reads it. Retention is bounded by the store.
type Run struct {
	ID       ServiceID `json:"id"`
	Version  Version   `json:"version"`
	Commit   SHA       `json:"commit"`
	Instance string    `json:"instance,omitempty"` // container ID
	// Trigger is why it ran: OnChange, OnSchedule, Before, Asked; For is the service
	// that it ran before.
	Trigger  string `json:"trigger"`
	For      string `json:"for,omitempty"`
	Actor    string `json:"actor,omitempty"` // of Asked
	State    string `json:"state"`           // succeeded, failed, skipped
	Try      int    `json:"try"`             // from 1
	ExitCode int    `json:"exit_code"`
	Reason   string `json:"reason"`
	// Due is when it should have begun, of OnSchedule, and the wish's time, of Asked.
	Due     time.Time `json:"due,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Log is the end of what it wrote, redacted.
	Log []string `json:"log,omitempty"`
}

// Row is by service and end.
func (f Run) Row() (string, string) { return "run", string(f.ID) + "#" + nano(f.Ended) + "#" + f.State }

// Unread is a run that was told and whose log is not read yet: its container stays
// until it is. Or it is a Crash whose log could not be read, and is tried once more:
// nobody waits for that.
type Unread struct {
	Run   Run    `json:"run"`
	Crash *Crash `json:"crash,omitempty"`
	// From and Over bound the log of the run that crashed, by the engine's clock, where
	// they are not zero: the container may run again.
	From time.Time `json:"from,omitzero"`
	Over time.Time `json:"over,omitzero"`
}

// Row is by the container.
func (f Unread) Row() (string, string) { return "unread", f.Key() }

// Key is that of the row.
func (f Unread) Key() string {
	if f.Crash != nil {
		return "crash " + f.Crash.Instance
	}
	return f.Run.Instance
}

// Crash is one crash of an instance, for people: no decision reads it.
type Crash struct {
	ID       ServiceID `json:"id"`
	Slot     int       `json:"slot"`
	Version  Version   `json:"version"`
	Commit   SHA       `json:"commit"`
	Instance string    `json:"instance"`  // container ID
	At       time.Time `json:"at"`        // when it ended, by the decider's clock
	ExitCode int       `json:"exit_code"` // NoExit for one that was alive: it was not live, or never ready
	OOM      bool      `json:"oom,omitempty"`
	Class    string    `json:"class"` // transient, permanent, capacity; unready is no crash: a rollout gave it up
	// Uptime is how long it had run; Crashes how many it is in a row.
	Uptime  time.Duration `json:"uptime"`
	Crashes int           `json:"crashes"`
	Reason  string        `json:"reason"`
	// Log are the last lines it wrote, at most CrashLogLines, redacted.
	Log []string `json:"log,omitempty"`
	// Checked are the last lines of what the check printed that failed, redacted, where it did
	// not exit: at most CheckLines.
	Checked []string `json:"checked,omitempty"`
	// NotRead is why the log could not be read; "" where it was, and where there was none.
	NotRead string `json:"log_not_read,omitempty"`
	// Signature is equal for crashes that are alike: the same exit, and the same
	// last words but for numbers, times and addresses.
	Signature string `json:"signature"`
}

// NoExit stands for the exit code of what did not exit.
const NoExit = -1

// CrashLogLines is how much of an instance's log a crash record keeps (docs/design/rollout.md#restarts).
const CrashLogLines = 200

// Bounds of what is kept, and told, of what a failed check printed.
const (
	CheckLines = 5
	PrintedCap = 4 << 10 // bytes; an engine remembers as many of a HEALTHCHECK
)

// Row is by instance and time.
func (f Crash) Row() (string, string) { return "crash", f.Instance + "#" + nano(f.At) }

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
