package reconcile

import (
	"maps"
	"time"

	"github.com/gitring/gitring/ring"
)

// World is everything that a decision depends on, besides now. Diff changes
// nothing in it.
type World struct {
	// Wall is what the clock on the wall shows, which may jump: cron jobs are due
	// by it. Zero is now.
	Wall time.Time
	// Awake is since when this process looks without a break: limits of a rollout
	// count from there, because nobody saw it get further before. Zero is for ever.
	Awake   time.Time
	Host    string
	Gitring string // version, for the status
	Sources []Source
	Facts   ring.Facts
	Seen    ring.Seen
	// Health is by container ID; an instance that is not in it is unknown,
	// which is neither ready nor failed.
	Health map[string]ring.Health
	// Fronts is what each front said of itself, by container ID; one that is not in it
	// does not answer, which is no reason to change anything.
	Fronts map[string]ring.FrontSeen
	// Words are what other hosts say of commits at the forge. One that is missing was not
	// answered, which is no reason to go on.
	Words map[ring.WordAt]ring.Word
	// Busy are the steps in flight, by target.
	Busy map[string]ring.Action
	// Queued are those of Busy that wait for their turn, by target.
	Queued map[string]bool
	Recent
	// Progress is how far steps in flight are, by target, for people only.
	Progress map[string]string
	// Signing is what the host asks of images.
	Signing Signing
	// TagRules are what the host's policy says of tags that are followed by the clock, and Zone
	// is the location of the host's clock; nil is UTC.
	TagRules TagRules
	Zone     *time.Location
	// KeepImages is of how many of the newest good plans of each app the images
	// stay when those that nothing names are removed; 0 removes none.
	KeepImages int
}

// Recent is what the loop remembers of steps that ended, and a restart forgets:
// losing it costs a few questions, never safety.
type Recent struct {
	// Tries are the steps that failed, by target.
	Tries map[string]ring.Try
	// Images are the pins known to be on this host, with what each says of itself.
	Images map[string]ring.Image
	// Admitted is, by app, what this host was asked about last and had nothing
	// against, by admission.
	Admitted map[string]string
}

// NewRecent has every map made.
func NewRecent() Recent {
	return Recent{Tries: map[string]ring.Try{}, Images: map[string]ring.Image{}, Admitted: map[string]string{}}
}

func (r Recent) clone() Recent {
	return Recent{Tries: maps.Clone(r.Tries), Images: maps.Clone(r.Images), Admitted: maps.Clone(r.Admitted)}
}

// Source is one source as the daemon knows it now.
type Source struct {
	Name, Branch string
	// Apply is how plans of this source come into force: ApplyAuto ("" too),
	// ApplyApprove, ApplyObserve, ApplyCommit.
	Apply string
	// Trust is a standing warning about how far commits are verified.
	Trust string
	// Reached is when the remote last answered; a plan may remove or lower
	// counts until FreshFor later.
	Reached  time.Time
	FreshFor time.Duration
	// MaxAge is how long ago the newest trusted commit may have been seen first until
	// people are told that none came since; 0 is for ever. Nothing is stopped by it.
	MaxAge   time.Duration
	Checking bool
	Tip      ring.SHA
	Refusal  *ring.Refusal // of the tip, by trust
	// Awaiting is what the tip waits for that breaks no rule, such as a second
	// approval; "" when it does not wait.
	Awaiting string
	Reason   string
	// Commit is the newest trusted commit, Next its plan. Nil: nothing trusted.
	Commit *ring.Commit
	Next   *ring.Plan
	// Ahead is a descendant of Commit that the branch has and that is not trusted here, or
	// not yet; "" is none.
	Ahead ring.SHA
	// Names are, by app, the folders of this source that may take a name over from
	// whoever has it: policy.apps.
	Names map[string]string
	// Silent says that no forge is told of this source.
	Silent bool
	// Deployments says that the forge keeps a list of them, which is told too.
	Deployments bool
}

// How plans come into force.
const (
	ApplyAuto    = "auto"
	ApplyApprove = "approve" // each waits for a person
	ApplyObserve = "observe" // never: everything up to the plan and its statuses, no mutating call
	ApplyCommit  = "commit"  // all apps of a commit or none
)

// isFresh reports whether the source was reached lately enough (docs/design/rollout.md#one-look).
func (s *Source) isFresh(now time.Time) bool {
	return !s.Reached.IsZero() && now.Sub(s.Reached) <= s.FreshFor
}

// Decision is what one look comes to. Facts and Events are on disk before the
// first of Actions starts.
type Decision struct {
	Actions []ring.Action
	Facts   []ring.Fact
	Events  []ring.Event
	// Probes are the instances to watch, with the checks of their own version.
	Probes []ring.Probe
	// Fronts are the fronts to ask: those of containers that run.
	Fronts []ring.FrontAt
	// Words are those to ask forges for, none twice.
	Words  []ring.WordAt
	Status ring.Status
	// Wake is when to look again if nothing happens before; zero is never.
	Wake time.Time
}
