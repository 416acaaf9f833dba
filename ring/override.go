package ring

import "time"

// OverrideKind is one kind of a person's act that stands until it ends.
type OverrideKind string

// The overrides. Acts that are over when they are done (resume, promote, abort,
// retry, approve) are events and facts, not overrides.
const (
	OverridePause OverrideKind = "pause" // a rollout neither creates nor removes; what runs is kept alive
	OverrideHold  OverrideKind = "hold"  // hands off: nothing of the target is changed, healed or removed
	OverrideScale OverrideKind = "scale" // Replicas in the place of the plan's
	OverrideUndo  OverrideKind = "undo"  // the app's plan is an earlier one, of Commit
	OverrideStop  OverrideKind = "stop"  // the policy denies the service, and has it stopped
	OverrideLeft  OverrideKind = "left"  // the app was handed back to Compose: gitring keeps its hands off until it is adopted
)

// OverrideRow is an override: shown in the status until it ends, and then Git
// wins again.
type OverrideRow struct {
	Kind OverrideKind `json:"kind"`
	// Target is "app", or "app/service".
	Target string    `json:"target"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Until is when it ends by itself; zero is when a person ends it.
	Until time.Time `json:"until,omitzero"`
	// Replicas of a scale.
	Replicas int `json:"replicas,omitempty"`
	// Commit of the plan that an undo brought back, and Past the row that holds it.
	Commit SHA    `json:"commit,omitempty"`
	Past   string `json:"past,omitempty"`
	// Told says that its end was announced.
	Told bool `json:"told,omitempty"`
	// Policies of an app that was left are the engine's restart policies that are
	// still to be set, by container ID: the last thing that gitring does there.
	Policies map[string]EnginePolicy `json:"policies,omitempty"`
}

// EnginePolicy is a restart policy as the engine has it.
type EnginePolicy struct {
	Name       string `json:"name"` // no, always, unless-stopped, on-failure
	MaxRetries int    `json:"max_retries,omitempty"`
}

// OverrideKey is the key of (kind, target): there is one of a kind for a target.
func OverrideKey(k OverrideKind, target string) string { return string(k) + " " + target }

// Row is by kind and target.
func (f OverrideRow) Row() (string, string) { return "override", OverrideKey(f.Kind, f.Target) }

// Stands reports whether it has not ended.
func (f OverrideRow) Stands(now time.Time) bool { return f.Until.IsZero() || now.Before(f.Until) }

// Mark is a person's "rollout restart": it is part of the version for as long
// as the spec is the Written one.
type Mark struct {
	ID      ServiceID `json:"id"`
	Written string    `json:"written"` // Service.Written, before the mark
	Mark    string    `json:"mark"`    // Spec.Mark
	Actor   string    `json:"actor"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// Row is by service.
func (f Mark) Row() (string, string) { return "mark", string(f.ID) }

// PastKey is the key of a plan of an app by what it asks, whichever commit
// asked: a commit that changes nothing of an app makes no plan to go back to,
// and an image that was looked up anew makes one of its own.
func PastKey(a *App) string {
	parts := []string{a.Written}
	for i := range a.Services {
		parts = append(parts, a.Services[i].Name, a.Services[i].Pin.Digest())
	}
	return a.Name + "@" + hash(parts)[:16]
}

// SamePast reports whether two plans of one app have one PastKey.
func SamePast(a, b *App) bool {
	if a.Written != b.Written || len(a.Services) != len(b.Services) {
		return false
	}
	for i := range a.Services {
		x, y := &a.Services[i], &b.Services[i]
		if x.Name != y.Name || x.Pin.Digest() != y.Pin.Digest() {
			return false
		}
	}
	return true
}

// Past is an app's plan that completed here, pinned: what "rollout undo" brings
// back without asking anybody.
type Past struct {
	App       App       `json:"app"`
	Signer    string    `json:"signer,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Committed time.Time `json:"committed,omitzero"`
	At        time.Time `json:"at"` // when it completed
}

// Row is by app and what it asks.
func (f Past) Row() (string, string) { return "past", PastKey(&f.App) }

// Hands are the times when others changed our containers: another updater, a
// person. Times are within 24 h, the oldest first; What was seen last.
type Hands struct {
	ID    ServiceID   `json:"id"`
	Times []time.Time `json:"times"`
	What  string      `json:"what"`
}

// Row is by service.
func (f Hands) Row() (string, string) { return "hands", string(f.ID) }

// Drift is what others changed of a service's containers and is not as the plan
// has it: each sentence was told once, and stands until it is no longer so.
type Drift struct {
	ID    ServiceID `json:"id"`
	What  []string  `json:"what"` // sorted
	Since time.Time `json:"since"`
	// Ended are those of its instances that somebody ended, by slot: the engine tells
	// that once, and to nobody who listens later.
	Ended []EndedBy `json:"ended,omitempty"`
}

// EndedBy is whose hand the end of an instance was.
type EndedBy struct {
	Instance string    `json:"instance"` // container ID
	At       time.Time `json:"at"`       // its end, by the engine
	Hand     string    `json:"hand"`     // as in Instance
}

// Equal reports whether two are the same.
func (e EndedBy) Equal(o EndedBy) bool {
	return e.Instance == o.Instance && e.At.Equal(o.At) && e.Hand == o.Hand
}

// HandOn is the hand that ended an instance the last time, "" where that is not known.
func (f Drift) HandOn(in *Instance) string {
	for _, e := range f.Ended {
		if e.Instance == in.ID && e.At.Equal(in.Finished) {
			return e.Hand
		}
	}
	return ""
}

// Row is by service.
func (f Drift) Row() (string, string) { return "drift", string(f.ID) }

// Adopted is a container that a person gave into our hands: made by somebody
// else, it has none of our labels, and what they would say stands here.
type Adopted struct {
	Instance string `json:"instance"` // container ID
	Source   string `json:"source"`
	App      string `json:"app"`
	Service  string `json:"service"`
	Slot     int    `json:"slot"`
	Kind     Kind   `json:"kind"`
	// For is the version that its service wanted when the plan of Commit came into
	// force: for as long as that is wanted it fills its slot as that version. "" until
	// then, while nothing of it is touched.
	For    Version `json:"for,omitempty"`
	Commit SHA     `json:"commit,omitempty"`
	// Policy is the engine's restart policy that it came with, and keeps.
	Policy EnginePolicy `json:"policy"`
	Actor  string       `json:"actor"`
	Reason string       `json:"reason"`
	At     time.Time    `json:"at"`
}

// Row is by container ID.
func (f Adopted) Row() (string, string) { return "adopted", f.Instance }
