package ring

import (
	"slices"
	"time"
)

// Status is the truth about this host, one pure function of facts and what is
// seen; GET /v1/status and "status -o json" are its JSON form.
type Status struct {
	Host    string         `json:"host"`
	Gitring string         `json:"gitring"`
	At      time.Time      `json:"at,omitzero"`
	Sources []SourceStatus `json:"sources"`
	// Policy is the hash of the rules in effect on the host.
	Policy    string     `json:"policy,omitempty"`
	Overrides []Override `json:"overrides,omitempty"`
	// Receivers are those that could not be told everything.
	Receivers []ReceiverStatus `json:"receivers,omitempty"`
	// Engine is what is wrong with the engine; "" when it answers.
	Engine string `json:"engine,omitempty"`
	// Cluster is set where the engine schedules by itself; nil elsewhere.
	Cluster *ClusterStatus `json:"cluster,omitempty"`
	// Store is why nothing can be written down, and so nothing is done; "" when it can.
	Store string `json:"store,omitempty"`
	// Config is why the configuration as it lies on disk could not be read anew, so that
	// the one before is in force; "" when nothing is wrong with it, or nobody asked.
	Config string `json:"config,omitempty"`
	// Backup is how old the last backup is, where it is too old; "" also where none was made.
	Backup string `json:"backup,omitempty"`
	// Doctor is how many checks failed when somebody asked doctor last, and when that was; ""
	// where none did, and where nobody asked since this gitring runs.
	Doctor string `json:"doctor,omitempty"`
	// API is what is wrong with the tokens of listen.api; "" where nothing is, and where
	// nothing listens.
	API string `json:"api,omitempty"`
	// Hub is since when the hub took no report, and why; "" where it takes them, and where no report
	// is configured.
	Hub string `json:"hub,omitempty"`
	// ConfigDiffers reports whether its file says something else by now, besides the policy,
	// which is read again by itself.
	ConfigDiffers bool `json:"config_differs,omitempty"`
	// Trial is set while this gitring is on trial after an upgrade; nil otherwise.
	Trial *Trial `json:"trial,omitempty"`
}

// Trial is the time after an upgrade in which gitring looks and decides, and changes nothing:
// the release before it can still come back without a loss.
type Trial struct {
	From string `json:"from"` // the release before
	// Looks are the whole looks of this process so far, each with a decision.
	Looks int `json:"looks"`
	// Would are the steps of the last decision, none of which is carried out.
	Would []TrialStep `json:"would,omitempty"`
}

// TrialStep is a step that a decision asks for.
type TrialStep struct {
	Does   string `json:"does"`             // the kind of an Action
	On     string `json:"on"`               // "app/service", or what else it is about
	Slot   int    `json:"slot,omitempty"`   // of the service
	Ends   bool   `json:"ends,omitempty"`   // something that runs now would not run on as it is
	Reason string `json:"reason,omitempty"` // as with the Action
}

// Sync is the state of the desired state, the first that applies.
type Sync string

// The states of a source.
const (
	SyncUnknown  Sync = "Unknown"
	SyncRefused  Sync = "Refused"
	SyncHeld     Sync = "Held"
	SyncStaging  Sync = "Staging"
	SyncApplying Sync = "Applying"
	SyncDegraded Sync = "Degraded"
	SyncSynced   Sync = "Synced"
)

// SourceStatus is one source.
type SourceStatus struct {
	Name    string `json:"name"`
	Branch  string `json:"branch"`
	Tip     SHA    `json:"tip,omitempty"`
	Commit  SHA    `json:"commit,omitempty"`
	Subject string `json:"subject,omitempty"`
	Signer  string `json:"signer,omitempty"`
	// Note is how Commit came to be trusted, where that is worth telling.
	Note      string    `json:"note,omitempty"`
	Committed time.Time `json:"committed,omitzero"` // the time the commit claims
	Trusted   SHA       `json:"trusted,omitempty"`  // the anchor: "trusted up to"
	Trust     string    `json:"trust,omitempty"`    // a warning about the trust mode; "" for strict
	// Followed is the trusted commit, where an app that is refused keeps Commit behind it; nil
	// elsewhere.
	Followed *Followed `json:"followed,omitempty"`
	// FirstUse is the commit that was trusted because it came first, for as long
	// as all rests on it; nil once an introduction or a person took its place.
	FirstUse *FirstUse `json:"first_use,omitempty"`
	Checking bool      `json:"checking"`
	Checked  time.Time `json:"checked,omitzero"` // when the remote last answered
	// Forge is why the forge does not take statuses; "" when it does.
	Forge string `json:"forge,omitempty"`
	// Unconfined is what this host does not keep the process that fetches from; "" when
	// that is nothing.
	Unconfined string `json:"unconfined,omitempty"`

	Sync   Sync   `json:"sync"`
	Reason string `json:"reason"`
	// Code and On are of the reason; both are "" where it has none. So it is below.
	Code    ReasonCode `json:"code,omitempty"`
	On      ServiceID  `json:"on,omitempty"`
	Next    *Next      `json:"next,omitempty"`
	Refusal *Refusal   `json:"refusal,omitempty"`
	// Conditions are what is to be known of the source besides: ConditionOld and ConditionStale.
	Conditions []Condition `json:"conditions,omitempty"`
	// Doubts are what of its commit is most likely not meant and breaks no rule: Plan.Doubts.
	Doubts []string    `json:"doubts,omitempty"`
	Apps   []AppStatus `json:"apps"`
}

// Condition is what holds of a source by its type, ConditionOld or ConditionStale; nil
// where it does not.
func (s *SourceStatus) Condition(kind string) *Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// Followed is a commit that is followed though not every app is at it.
type Followed struct {
	Commit    SHA       `json:"commit"`
	Subject   string    `json:"subject,omitempty"`
	Signer    string    `json:"signer,omitempty"`
	Committed time.Time `json:"committed,omitzero"` // the time the commit claims
	App       string    `json:"app"`                // that is refused
}

// HeldUp is who keeps the commit from being carried out whole, as a sentence; behind is the
// newest one that every app is at.
func (f *Followed) HeldUp(behind SHA) string {
	return "held up by app " + f.App + ", which is refused; all apps are at " + behind.Short() + " or later"
}

// FirstUse is where trust began without anybody's word.
type FirstUse struct {
	Commit SHA       `json:"commit"`
	At     time.Time `json:"at"`
}

// Next is the commit that is being resolved and pulled, or waits.
type Next struct {
	Commit SHA        `json:"commit"`
	Reason string     `json:"reason"`
	Code   ReasonCode `json:"code,omitempty"`
	On     ServiceID  `json:"on,omitempty"`
}

// AwaitsYes reports whether a person's yes would have it come into force sooner.
func (n *Next) AwaitsYes() bool {
	return n.Code == WhyAwaitingApproval || n.Code == WhyWaveWaiting || n.Code == WhyWaveFailed
}

// States of an app.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Held        = "Held"
	Unknown     = "Unknown"
)

// AppStatus is one app.
type AppStatus struct {
	Name     string          `json:"name"`
	Health   string          `json:"health"`
	Commit   SHA             `json:"commit,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Code     ReasonCode      `json:"code,omitempty"`
	On       ServiceID       `json:"on,omitempty"`
	Refusal  *Refusal        `json:"refusal,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
	Powers   []string        `json:"powers,omitempty"` // of the plan in force: App.Powers
	Services []ServiceStatus `json:"services"`
}

// Phase of a service.
type Phase string

// The phases.
const (
	PhasePending     Phase = "Pending"
	PhaseProgressing Phase = "Progressing"
	PhaseReady       Phase = "Ready"
	PhaseDegraded    Phase = "Degraded"
	PhaseFailed      Phase = "Failed"
	PhaseHeld        Phase = "Held"
	PhaseRemoving    Phase = "Removing"
	PhaseCompleted   Phase = "Completed"
)

// ServiceStatus is one service. Ready counts ready instances of any version,
// Updated live ones of the wanted version.
type ServiceStatus struct {
	Name      string           `json:"name"`
	Kind      Kind             `json:"kind"`
	Phase     Phase            `json:"phase"`
	Wanted    int              `json:"wanted"`
	Ready     int              `json:"ready"`
	Updated   int              `json:"updated"`
	Version   Version          `json:"version,omitempty"`
	Commit    SHA              `json:"commit,omitempty"`
	LastGood  SHA              `json:"last_good,omitempty"`
	Reason    string           `json:"reason"`
	Code      ReasonCode       `json:"code,omitempty"`
	On        ServiceID        `json:"on,omitempty"`
	Health    string           `json:"health,omitempty"` // "inferred" without any check
	Rollout   *RolloutStatus   `json:"rollout,omitempty"`
	Instances []InstanceStatus `json:"instances"`
	// Running is the commit of the version that runs, the older one while a rollout
	// moves it; "" where nothing runs. Image is that version's, as its file has it, and
	// Digest what it is pinned to; those of the wanted one where nothing runs. Ports are
	// published, such as "8080:80/tcp" and "127.0.0.1:53:53/udp".
	Running SHA      `json:"running,omitempty"`
	Image   string   `json:"image,omitempty"`
	Digest  string   `json:"digest,omitempty"`
	Ports   []string `json:"ports,omitempty"`
	// Front is how the front of the service does; nil where it has none.
	Front *FrontStatus `json:"front,omitempty"`
	// Tag is how its tag is followed by the clock; nil where it is not.
	Tag *TagStatus `json:"tag,omitempty"`
	// NextRun is when a cron job is due next; zero is never. LastRun is how its
	// last run came out; nil before the first.
	NextRun time.Time `json:"next_run,omitzero"`
	// Timezone is the IANA name of the zone that its schedule is in; "" of what has none.
	Timezone string      `json:"timezone,omitempty"`
	LastRun  *RunOutcome `json:"last_run,omitempty"`
	// DueSince is when a run of a cron job was due that waits; zero where none does.
	DueSince time.Time `json:"due_since,omitzero"`
	// Conditions are absent for one that is well and at rest.
	Conditions []Condition `json:"conditions,omitempty"`
}

// TagStatus is how a tag is followed by the clock.
type TagStatus struct {
	Image  string `json:"image"`  // as its file has it
	Policy string `json:"policy"` // pull_policy, as written
	// Asked is when the registry answered last, or when the tag was resolved for a commit.
	Asked time.Time `json:"asked"`
	// Digest is what the tag means, and Seen since when this host knows that; zero before the
	// first answer. The service's own digest is what runs.
	Digest string    `json:"digest,omitempty"`
	Seen   time.Time `json:"seen,omitzero"`
	// Waits is why the service does not have it yet, and Until when that ends by itself; both
	// are zero where it has it.
	Waits string    `json:"waits,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Error is why the registry did not answer the last question; "" where it did.
	Error string `json:"error,omitempty"`
}

// Phases of a front, as its service has them.
const (
	FrontPending = "Pending" // it does not run yet, or not any more
	FrontBehind  = "Behind"  // it runs, and has not taken the table that is wanted
	FrontServes  = "Ready"   // it has the wanted table
	FrontUnseen  = "Unseen"  // it runs and does not answer
)

// FrontStatus is how the front of a service does.
type FrontStatus struct {
	Phase string `json:"phase"`
	// Ports are those that it listens on, such as "8080/tcp".
	Ports []string `json:"ports"`
	// Generation is of its table, Build of the program that carries. Both are zero as long
	// as it has not answered.
	Generation  int64  `json:"generation"`
	Build       string `json:"build,omitempty"`
	Connections int    `json:"connections"`
	Queued      int    `json:"queued"`
	// QueuedSince is since when the oldest request waits; zero where none does.
	QueuedSince time.Time `json:"queued_since,omitzero"`
}

// How a run comes out.
const (
	RunSucceeded = "succeeded"
	RunFailed    = "failed"
)

// RunOutcome is how a run of a cron job came out.
type RunOutcome struct {
	State  string    `json:"state"`
	Reason string    `json:"reason"`
	Ended  time.Time `json:"ended"`
}

// Types of conditions (docs/design/rollout.md#states).
const (
	ConditionAvailable     = "Available"     // as many serve as its rollouts have to leave
	ConditionProgressing   = "Progressing"   // a rollout, or the way back, is under way
	ConditionImageResolved = "ImageResolved" // its next plan has its image here
	ConditionAdmitted      = "Admitted"      // the host has room for it
	ConditionCrashLooping  = "CrashLooping"
	ConditionQuarantined   = "Quarantined"
	ConditionContested     = "Contested"
	ConditionDrifted       = "Drifted"
	ConditionFrontUnseen   = "FrontUnseen"   // its front runs and does not answer: nothing that it serves by is stopped
	ConditionFrontFull     = "FrontFull"     // its front has as many connections as it may have: new clients wait
	ConditionFrontCrashing = "FrontCrashing" // the proxy of its front ended again and again: each time it cuts what is in flight
	// Of a source: the policy of its host cannot be read, or an app in force breaks it.
	ConditionPolicyInvalid  = "PolicyInvalid"
	ConditionPolicyViolated = "PolicyViolated"
	ConditionGrantExpires   = "GrantExpires" // of a source: a grant of an app in force ends soon; nothing is wrong yet
	ConditionKeysInvalid    = "KeysInvalid"  // of a source: a file of keys is not what was read at the start; those of before count
	ConditionOld            = "Old"          // of a source: no commit came for longer than its max_age
	ConditionStale          = "Stale"        // of a source: its remote was not reached for longer than its fresh_for
)

// Whether a condition holds.
const (
	ConditionTrue  = "True"
	ConditionFalse = "False"
)

// Condition is one of a service: what is wrong with it, or a rollout that moves it;
// or one of a source.
type Condition struct {
	Type   string    `json:"type"`
	Status string    `json:"status"` // True, or False of what should hold
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Commit SHA       `json:"commit,omitempty"`
	// ExitCode is how the last run ended, of what crashes in a loop; 0 of all else.
	ExitCode int `json:"exit_code,omitempty"`
}

// Phases of a rollout.
const (
	RolloutProgressing = "Progressing"
	RolloutPaused      = "Paused"
	RolloutRestoring   = "Restoring"
	RolloutIsRestored  = "Restored"
)

// RolloutStatus is there while a rollout runs, and after one that did not
// complete until another version is wanted.
type RolloutStatus struct {
	Phase   string     `json:"phase"`
	Version Version    `json:"version"`
	Commit  SHA        `json:"commit"`
	Reason  string     `json:"reason"`
	Code    ReasonCode `json:"code,omitempty"`
	// Canary is the step under way of a canary; nil where none is.
	Canary *CanaryStatus `json:"canary,omitempty"`
}

// CanaryStatus is the step under way of a canary. Errors are percent of the answers of this
// step, P99 milliseconds until an answer's head, at most; both are of the canary.
type CanaryStatus struct {
	Step    int       `json:"step"` // from 1
	Weight  int       `json:"weight"`
	Since   time.Time `json:"since,omitzero"` // zero until all its instances serve
	Answers int64     `json:"answers"`
	Errors  float64   `json:"errors"`
	P99     int       `json:"p99"`
	Judged  int       `json:"judged"` // windows
}

// States of an instance (docs/design/rollout.md#states).
const (
	SlotStarting   = "Starting"
	SlotReady      = "Ready"
	SlotNotReady   = "NotReady"
	SlotDraining   = "Draining"
	SlotStopping   = "Stopping"
	SlotStopped    = "Stopped"
	SlotCrashed    = "Crashed"
	SlotBackingOff = "BackingOff"
	SlotCreating   = "Creating"
	SlotCompleted  = "Completed"
)

// InstanceStatus is one instance.
type InstanceStatus struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Slot     int     `json:"slot"`
	State    string  `json:"state"`
	Version  Version `json:"version"`
	Commit   SHA     `json:"commit"`
	Restarts int     `json:"restarts"`
	Reason   string  `json:"reason,omitempty"`
	// Failing reports whether a startup or readiness check of it failed as often in a row as its
	// threshold asks. While it starts that is no verdict yet.
	Failing bool `json:"failing,omitempty"`
	// InFlight is what its front has not seen the end of, of one that drains.
	InFlight int `json:"in_flight,omitempty"`
	// Adopted says that Compose made it, and that it runs until its service changes.
	Adopted bool `json:"adopted,omitempty"`
	// Started is when it was last started, by the engine; zero while it does not run.
	// Address is its own in the first of its networks; "" on the host's.
	Started time.Time `json:"started,omitzero"`
	Address string    `json:"address,omitempty"`
	// Node is the name of the node of a cluster that it runs on; "" elsewhere.
	Node string `json:"node,omitempty"`
}

// Usage is what an instance takes of the host at a moment. CPU 1 is one core, whole.
type Usage struct {
	CPU    float64 `json:"cpu"`
	Memory int64   `json:"memory"` // bytes, without what the kernel may drop at any time
}

// Override is a person's act that stands.
type Override struct {
	Kind   string    `json:"kind"`
	Target string    `json:"target"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	// Replicas of a scale; Commit that an undo brought back.
	Replicas *int `json:"replicas,omitempty"`
	Commit   SHA  `json:"commit,omitempty"`
}

// Undoing reports whether an undo is being carried out: the source is held, because its newest
// commit waits, and the earlier plan is not there yet.
func (s *SourceStatus) Undoing(overrides []Override) bool {
	for _, a := range s.Apps {
		for _, o := range overrides {
			if o.Kind != string(OverrideUndo) || o.Target != a.Name {
				continue
			}
			for _, sv := range a.Services {
				if r := sv.Rollout; r != nil && (r.Phase == RolloutProgressing || r.Phase == RolloutRestoring) {
					return true
				}
			}
		}
	}
	return false
}

// ExitCode is the exit status of "gitring status": 6, 7, 9, 10 or 0, the first
// that applies (docs/design/host.md#exit-codes; 3 is the client's own).
func (s *Status) ExitCode() int {
	var failed, refused, held, progressing bool
	for _, src := range s.Sources {
		refused = refused || src.Refusal != nil || src.Sync == SyncRefused
		held = held || src.Sync == SyncHeld || slices.ContainsFunc(src.Conditions, func(c Condition) bool { return c.Type != ConditionGrantExpires })
		progressing = progressing || src.Sync == SyncStaging || src.Sync == SyncApplying || src.Sync == SyncUnknown
		for _, a := range src.Apps {
			refused = refused || a.Refusal != nil
			held = held || a.Health == Held
			for _, sv := range a.Services {
				failed = failed || sv.Phase == PhaseDegraded || sv.Phase == PhaseFailed ||
					sv.Rollout != nil && (sv.Rollout.Phase == RolloutIsRestored || sv.Rollout.Phase == RolloutRestoring)
				held = held || sv.Phase == PhaseHeld || sv.Rollout != nil && sv.Rollout.Phase == RolloutPaused
			}
		}
	}
	switch {
	case failed:
		return 6
	case refused:
		return 7
	case held:
		return 9
	case progressing:
		return 10
	}
	return 0
}

// Because has a service tell a reason, whole.
func (s *ServiceStatus) Because(r Reason) { s.Reason, s.Code, s.On = r.Says, r.Code, r.On }

// Why is the reason that a service tells.
func (s *ServiceStatus) Why() Reason { return Reason{Code: s.Code, On: s.On, Says: s.Reason} }
