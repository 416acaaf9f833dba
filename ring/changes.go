package ring

import "time"

// Changes is what carrying out a plan would do here; the output of "gitring
// plan". The zero value asks for nothing.
type Changes struct {
	Source string       `json:"source"`
	Commit SHA          `json:"commit,omitempty"` // "" for a folder that is no commit
	Apps   []AppChanges `json:"apps"`
	// Refusals are of the whole commit and of its apps; a refused app has no
	// AppChanges.
	Refusals []*Refusal `json:"refusals,omitempty"`
	// NotRead are the Compose files of a folder that no app reads, in words: one sentence
	// for each reason. Of a commit nobody looks for them.
	NotRead []string `json:"not_read,omitempty"`
	// Policy is the hash of the rules by which it was judged.
	Policy string `json:"policy,omitempty"`
	// Decisions are what the policy says of what the apps ask beyond what every app may.
	Decisions []Decision `json:"decisions,omitempty"`
	// Awaiting says why the plan would wait for a person; "" when it would not.
	Awaiting string `json:"awaiting,omitempty"`
	// Waits is why this very commit, or an app of the plan, is not carried out yet, such as a hold
	// that stands, or which hosts it would wait for; "" where nothing is in its way.
	Waits string `json:"waits,omitempty"`
	// Doubts are what of the commit is most likely not meant and breaks no rule: Plan.Doubts.
	Doubts []string `json:"doubts,omitempty"`
	// UnderWay is what goes on here while it is asked, or did not complete: nothing of
	// it is counted as a change once more.
	UnderWay []Move `json:"under_way,omitempty"`
}

// Move is a service on its way to what the plan in force asks, or that did not get
// there.
type Move struct {
	App     string `json:"app"`
	Service string `json:"service"`
	Phase   string `json:"phase"` // of its rollout, else of the service
	// From are the versions that its instances run beside To.
	From []Version `json:"from,omitempty"`
	To   Version   `json:"to,omitempty"` // "" for what goes
	// Commit is the one that asked for To. Updated of Wanted instances run it.
	Commit  SHA       `json:"commit,omitempty"`
	Updated int       `json:"updated"`
	Wanted  int       `json:"wanted"`
	Since   time.Time `json:"since,omitzero"` // when it began, or failed
	Reason  string    `json:"reason,omitempty"`
	// Code is why its rollout stands; ServicePhase is of the service.
	Code         ReasonCode `json:"code,omitempty"`
	ServicePhase Phase      `json:"service_phase,omitempty"`
}

// On reports whether it goes on: what is paused or restored waits for a person or a commit.
func (m *Move) On() bool { return m.Phase != RolloutPaused && m.Phase != RolloutIsRestored }

// AppChanges is what one app would see.
type AppChanges struct {
	App string `json:"app"`
	// Files are the Compose files that the app is read from, inside the commit; none of one that goes.
	Files    []string        `json:"files,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
	Powers   []string        `json:"powers,omitempty"` // App.Powers
	Order    string          `json:"order,omitempty"`  // what the app waits for, in words
	Services []ServiceChange `json:"services"`
}

// Class is how much of a service a plan touches.
type Class string

// The classes, the gentlest first.
const (
	ChangeNone     Class = "no-op"
	ChangeInPlace  Class = "in place" // replicas, checks, rollout knobs: no instance is replaced
	ChangeCreate   Class = "create"
	ChangeRoll     Class = "roll"     // the new one is ready before the old one goes
	ChangeRecreate Class = "recreate" // the old one goes first
	ChangeRemove   Class = "remove"
)

// ServiceChange is what one service would see.
type ServiceChange struct {
	Service string `json:"service"`
	Class   Class  `json:"class"`
	// FrontOf is the service that a front stands before, as in Service; nobody wrote the front.
	FrontOf string `json:"front_of,omitempty"`
	// Reason is the field that decided, such as "image sha256:a… -> sha256:b…".
	Reason string `json:"reason,omitempty"`
	// Fields are all that differs, each with what it does by itself.
	Fields []FieldChange `json:"fields,omitempty"`
	// Gap is how long the service would not answer, in words; "" for no gap.
	// GapSeconds estimates it: the grace of the stop and what the last start took
	// here; 0 where no start was measured.
	Gap        string `json:"gap,omitempty"`
	GapSeconds int    `json:"gap_seconds,omitempty"`
	// Order is what it waits for when the plan is carried out, in words.
	Order string `json:"order,omitempty"`
	// Needs is what the host must have to spare while it goes on, in words; "" for
	// nothing worth telling.
	Needs string `json:"needs,omitempty"`
	// From is "" for a service that is new here, To for one that goes.
	From Version `json:"from,omitempty"`
	To   Version `json:"to,omitempty"`
}

// FieldChange is one field that differs.
type FieldChange struct {
	Field string `json:"field"` // such as "env LOG_LEVEL"
	Class Class  `json:"class"`
	// Values are those of a variable as two commits write them; nil where one is the host's
	// or may be a secret.
	Values *ValueChange `json:"values,omitempty"`
}

// ValueChange is a value before and after; "" is an empty one or none.
type ValueChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Empty reports whether there is nothing to do: every service is a no-op and nothing
// is refused or awaited.
func (c *Changes) Empty() bool {
	if len(c.Refusals) > 0 || c.Awaiting != "" {
		return false
	}
	for _, a := range c.Apps {
		for _, s := range a.Services {
			if s.Class != ChangeNone {
				return false
			}
		}
	}
	return true
}
