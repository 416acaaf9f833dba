package ring

import "time"

// Explained answers "why is this not running" for one service, or one slot of it:
// what is wanted, what is seen, which rule decides now, and what comes next. It is
// the output of "gitring inspect".
type Explained struct {
	App     string `json:"app"`
	Service string `json:"service"`
	Slot    int    `json:"slot,omitempty"` // 0 is all
	Source  string `json:"source,omitempty"`
	// Phase, Code and Says are the service's, as the status has them; Next is what
	// happens, or what to do, next. Code is empty where nothing is to be explained.
	Phase Phase      `json:"phase"`
	Code  ReasonCode `json:"code,omitempty"`
	Says  string     `json:"says"`
	Next  string     `json:"next"`
	// Rule is the rule that decides now, with what it waits for, until when.
	Rule  string    `json:"rule"`
	Waits []string  `json:"waits,omitempty"`
	Until time.Time `json:"until,omitzero"`

	Wanted   *ExplainedWant   `json:"wanted,omitempty"` // nil for what no plan in force has
	LastGood *ExplainedGood   `json:"last_good,omitempty"`
	Rollout  *RolloutStatus   `json:"rollout,omitempty"`
	Refusal  *Refusal         `json:"refusal,omitempty"` // of its app, at the present tip
	Steps    []ExplainedStep  `json:"steps,omitempty"`   // under way, or decided now
	Tries    []ExplainedTry   `json:"tries,omitempty"`   // that failed, and are made again
	Inputs   []ExplainedInput `json:"inputs,omitempty"`  // of the version
	// Ports are published by what runs, such as "8080:80/tcp"; those of its front where it has one.
	Ports []string `json:"ports,omitempty"`
	// Instances are those that are seen, by slot.
	Instances  []ExplainedInstance `json:"instances"`
	Conditions []Condition         `json:"conditions,omitempty"`
	Overrides  []Override          `json:"overrides,omitempty"`
	// Notes are worth knowing and nothing wrong; the daemon adds them.
	Notes []string `json:"notes,omitempty"`
	// Trace is which rules were asked, in their order, where somebody asked for them.
	Trace []AskedRule `json:"trace,omitempty"`
	// Crash is the last one that is recorded; the daemon adds it.
	Crash *Crash `json:"crash,omitempty"`
}

// AskedRule is a rule that was asked about a service, and what came of it.
type AskedRule struct {
	Rule string `json:"rule"`
	// Then is "skip", "note", "try" or "stop"; a try ends the pass where its move was made.
	Then  string     `json:"then"`
	Moved bool       `json:"moved"` // it decided a step
	Code  ReasonCode `json:"code,omitempty"`
	On    ServiceID  `json:"on,omitempty"`
	Says  string     `json:"says,omitempty"`
}

// ExplainedWant is what the plan in force asks.
type ExplainedWant struct {
	Kind     Kind    `json:"kind"`
	Replicas int     `json:"replicas"`
	Version  Version `json:"version"`
	Commit   SHA     `json:"commit"`  // that last changed it
	Image    string  `json:"image"`   // as written
	Pin      string  `json:"pin"`     // what it means here
	Pinned   string  `json:"pinned"`  // how that was found: "in force", or since when
	File     string  `json:"file"`    // where it is said
	Differs  string  `json:"differs"` // from the last good version; "" for nothing, or none
}

// ExplainedGood is what a restore brings back.
type ExplainedGood struct {
	Version Version   `json:"version"`
	Commit  SHA       `json:"commit"`
	At      time.Time `json:"at"`
}

// ExplainedStep is a step under way, or decided at this moment.
type ExplainedStep struct {
	Kind   ActionKind `json:"kind"`
	Slot   int        `json:"slot,omitempty"`
	Reason string     `json:"reason"`
	Far    string     `json:"far,omitempty"` // how far it is
	Now    bool       `json:"under_way"`     // else decided
}

// ExplainedTry is a step that failed.
type ExplainedTry struct {
	Kind  ActionKind `json:"kind"`
	Name  string     `json:"name,omitempty"` // of the container
	N     int        `json:"n"`
	Err   string     `json:"error"`
	Cause string     `json:"cause,omitempty"`
	Hint  string     `json:"hint,omitempty"`
	Next  time.Time  `json:"next"`
}

// ExplainedInput is one thing that the version is made of. Values of the
// environment are named, never told.
type ExplainedInput struct {
	Name string `json:"name"`
	Says string `json:"says,omitempty"`
}

// ExplainedInstance is one instance with what is known of it.
type ExplainedInstance struct {
	InstanceStatus
	// Stands is what its version is: wanted, last good, or superseded.
	Stands  string    `json:"stands"`
	Engine  State     `json:"engine"` // the engine's own word
	Started time.Time `json:"started,omitzero"`
	Ready   time.Time `json:"ready_since,omitzero"`
	// Crashes are in a row; ExitCode, OOM and Class are of the last, NextTry when a
	// restart follows.
	Crashes  int       `json:"crashes,omitempty"`
	ExitCode int       `json:"exit_code,omitempty"`
	OOM      bool      `json:"oom,omitempty"`
	Class    string    `json:"class,omitempty"`
	NextTry  time.Time `json:"next_try,omitzero"`
	Policy   string    `json:"restart_policy"` // in force on the engine
	// Checks are its last results; the daemon adds them.
	Checks []Result `json:"checks,omitempty"`
	// Printed is what its checks printed that fail; the daemon adds it.
	Printed []CheckPrinted `json:"printed,omitempty"`
}

// CheckPrinted are the last lines of what a check printed that failed, redacted. A check
// without a name is the HEALTHCHECK that the engine runs.
type CheckPrinted struct {
	Check string   `json:"check,omitempty"`
	Lines []string `json:"lines"`
}
