package doctor

import "time"

// Result is what became of a check.
type Result string

// The results.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
	Skip Result = "skip" // it could not be found out
)

// Check is one line of a report.
type Check struct {
	About  string `json:"about"` // engine, reboot, state, clock, trust, source, registry, doors, people, apps
	Name   string `json:"name"`
	Result Result `json:"result"`
	Says   string `json:"says"`
	Hint   string `json:"hint,omitempty"`
}

// Report is the answer to "gitring doctor".
type Report struct {
	Host    string    `json:"host"`
	Gitring string    `json:"gitring"`
	At      time.Time `json:"at"`
	// Daemon reports whether the daemon ran the checks: only it has its credentials and its user.
	Daemon bool    `json:"daemon"`
	Checks []Check `json:"checks"`
}

// Failed reports whether any check failed.
func (r *Report) Failed() bool {
	for _, c := range r.Checks {
		if c.Result == Fail {
			return true
		}
	}
	return false
}
