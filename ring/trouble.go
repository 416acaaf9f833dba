package ring

import "time"

// What is in trouble. Each has a way to begin and one to end; the journal tells
// both, once.
const (
	TroubleRollout = "rollout" // of app/service: the wanted version failed
	TroubleService = "service" // app/service: it crashes, others change it, or it is degraded
	TroubleJob     = "job"     // app/service: its last run failed
	TroubleApp     = "app"     // app: refused
	TroubleSource  = "source"  // source: its tip is refused
	TroubleStale   = "stale"   // source: its remote does not answer
	TroubleOld     = "old"     // source: no commit came for longer than max_age
	// Besides, of app/service, a condition that it lacks, by its type: nothing is told of
	// that, only since when is remembered.
)

// Trouble is something that is not as it should be, from its beginning until the
// journal told its end. It is remembered so that a restart tells nothing twice.
type Trouble struct {
	What    string     `json:"what"`
	Subject string     `json:"subject"` // source, app, or app/service
	Source  string     `json:"source,omitempty"`
	Commit  SHA        `json:"commit,omitempty"`
	Reason  string     `json:"reason"`         // as it began
	Code    ReasonCode `json:"code,omitempty"` // of the reason
	Since   time.Time  `json:"since"`
	// Told says that the journal has its beginning; what is over before that was
	// only a moment, and is not told at all.
	Told bool `json:"told,omitempty"`
	// Well is since when a service that was in trouble seems well again.
	Well time.Time `json:"well,omitzero"`
}

// TroubleKey is the key of (what, subject).
func TroubleKey(what, subject string) string { return what + " " + subject }

// Row is by what and subject.
func (f Trouble) Row() (string, string) { return "trouble", TroubleKey(f.What, f.Subject) }
