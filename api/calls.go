package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"reflect"
	"time"

	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// Calls is what the socket can ask of the daemon. Every field is required. An
// error may be an *Error, whose code and status are passed on, or wrap a
// *ring.Refusal, which is answered 422; any other is answered 500 with its
// text, so it must hold no secret. All may be called at the same time.
type Calls struct {
	// Version is that of this daemon, and of its engine as it answered last. It asks nobody.
	Version func(ctx context.Context) (Version, error)
	// Status is the present truth. It is called up to five times a second for
	// every follower, so it must be a snapshot and ask nobody.
	Status func(ctx context.Context) (ring.Status, error)
	// Labels are those of the services in force that their Compose files give them.
	Labels func(ctx context.Context) (map[ring.ServiceID]map[string]string, error)
	// Events are lines of the journal, oldest first, at most q.Limit.
	Events func(ctx context.Context, q EventQuery) ([]ring.Event, error)
	// Lines are the same with the hashes of the lines. Last counts as with Events.
	Lines func(ctx context.Context, q EventQuery) ([]Line, error)
	// AppsNamed are the apps of which any line of the journal is, also of those that left. It is
	// called for each line that a token limited to some apps reads.
	AppsNamed func(ctx context.Context) ([]string, error)
	// Appended is closed when the next line is written to the journal. It is
	// taken before Events is asked, so that no line falls in between.
	Appended func() <-chan struct{}
	// History is what became of commits, newest first.
	History func(ctx context.Context, q HistoryQuery) ([]ring.Event, error)
	// Commits is what became of each commit, newest first, at most q.Limit.
	Commits func(ctx context.Context, q HistoryQuery) ([]CommitNow, error)
	// Logs writes what the instances of a service print: out(name) is a writer
	// for the bytes of one instance, to be closed at its end. It returns when
	// all have ended or, following, when ctx does. NotFound when there is no
	// such service.
	Logs func(ctx context.Context, q LogQuery, out func(instance string) io.WriteCloser) error
	// Poke asks a source, or all for "", to look at its remote soon, and
	// returns at once. NotFound for an unknown source.
	Poke func(ctx context.Context, source string) error
	// Look is Poke that waits: it returns when a look that began after the call
	// has ended and Status tells its result; an error when the remote could not
	// be reached.
	Look func(ctx context.Context, source string) error
	// Approve is a person's yes to the plan that waits for one, or to a digest that a tag moved to.
	Approve func(ctx context.Context, p Peer, r ApproveRequest) error
	// Accept moves a source's anchor to a commit by a person's decision.
	Accept func(ctx context.Context, p Peer, r AcceptRequest) error
	// Trust says whom a source trusts and up to where, or all for "". It changes
	// nothing. NotFound for an unknown source.
	Trust func(ctx context.Context, source string) ([]ring.TrustState, error)
	// Reverify holds the trusted history of a source against the present keys. It
	// changes nothing but the journal.
	Reverify func(ctx context.Context, p Peer, r ReverifyRequest) (ring.Reverified, error)
	// Prove makes a proof of who authorised what a container runs, and leaves a line in the
	// journal. NotFound for what is not here.
	Prove func(ctx context.Context, p Peer, r ProofRequest) (ProofMade, error)
	// Outdated says of every service in force, or of those of an app, what its
	// image's name means now. It changes nothing. NotFound for an unknown app.
	Outdated func(ctx context.Context, q OutdatedQuery) ([]ImageNow, error)
	// Refresh has the image names of an app, or of one service, looked up anew:
	// a name that means another digest now is a new version. It returns what it
	// found, or an error when any cannot be looked up; then nothing changes.
	Refresh func(ctx context.Context, p Peer, r RefreshRequest) ([]ImageNow, error)
	// RefreshSecrets asks the providers of an app's values again. NotFound for an app that asks
	// none; a provider that does not answer is told in its row, and the known value stays.
	RefreshSecrets func(ctx context.Context, p Peer, r SecretRefreshRequest) ([]SecretNow, error)
	// Crashes are what crashed, alike ones together, the newest first. It changes
	// nothing. NotFound for an unknown app or service of which nothing is recorded.
	Crashes func(ctx context.Context, q CrashQuery) ([]CrashGroup, error)
	// Inspect says why a service, or one slot of it, is as it is. It changes nothing.
	// NotFound for a service that is in no plan and not seen.
	Inspect func(ctx context.Context, q InspectQuery) (ring.Explained, error)
	// Usage is what the instances of this host take of it now, by container ID. It asks
	// the engine, and takes a moment.
	Usage func(ctx context.Context) (map[string]ring.Usage, error)
	// Jobs are the jobs and cron jobs in force with their runs, the newest first. It
	// changes nothing. NotFound for an unknown app, service or run.
	Jobs func(ctx context.Context, q JobQuery) ([]JobNow, error)
	// Acts says which acts can be done now to an app or a service, and why others cannot. It
	// changes nothing. NotFound for an unknown app or service.
	Acts func(ctx context.Context, q ActsQuery) ([]ActNow, error)
	// Act carries out what a person does by hand to an app or a service. It returns
	// when a look has ended that knew of it.
	Act func(ctx context.Context, p Peer, r ActRequest) (Acted, error)
	// Adopt takes over what Compose runs of an app, without touching it, or says what
	// doing so would come to.
	Adopt func(ctx context.Context, p Peer, r AdoptRequest) (Adoption, error)
	// Leave hands an app back to Compose, with a folder to go on from.
	Leave func(ctx context.Context, p Peer, r LeaveRequest) (Left, error)
	// NotifyTest sends a test message to one receiver, or to all. NotFound for an
	// unknown one.
	NotifyTest func(ctx context.Context, p Peer, r NotifyTestRequest) ([]NotifyTested, error)
	// Outbox is what has not arrived at forges and receivers. It changes nothing.
	Outbox func(ctx context.Context) ([]ring.Unsaid, error)
	// OutboxRetry makes what has not arrived due at once. NotFound for an unknown ID.
	OutboxRetry func(ctx context.Context, p Peer, r OutboxRetryRequest) (OutboxRetried, error)
	// Traffic is what fronts do, by app and service. It changes nothing. NotFound for an
	// unknown app, and for a service that has no front.
	Traffic func(ctx context.Context, q TrafficQuery) ([]FrontNow, error)
	// TrafficUpgrade has the fronts take the newest proxy, one after the other; it returns
	// at once with those that have an older one.
	TrafficUpgrade func(ctx context.Context, p Peer, r UpgradeRequest) (Upgrading, error)
	// Plan says what a tree, or a commit of a source, would change here.
	Plan func(ctx context.Context, r PlanRequest) (ring.Changes, error)
	// Doctor looks for what is wrong with the host. It changes nothing, and may be a
	// minute old.
	Doctor func(ctx context.Context) (doctor.Report, error)
	// Metrics serves the page of metrics: Metrics makes one.
	Metrics http.Handler
}

// missing names a field that was left out; nil when all are there.
func (c *Calls) missing() error {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			return errors.New("cannot serve the socket: the call " + v.Type().Field(i).Name + " is missing")
		}
	}
	return nil
}

// Version is the answer to "gitring version". Engine is "" while it is away.
type Version struct {
	Gitring   string `json:"gitring"`
	Engine    string `json:"engine,omitempty"` // such as "docker 28.5.2"
	EngineAPI string `json:"engine_api,omitempty"`
}

// EventQuery asks for lines of the journal with Seq > After. App "" is every
// app; Limit 0 is 1000. Last > 0 asks for the newest that many instead, still
// oldest first.
type EventQuery struct {
	After  int64
	App    string
	Limit  int
	Last   int
	Follow bool // of the client and the server; Calls.Events never sees it
	// Trimmed is told which line is the first that is left, where earlier ones were asked
	// for. Of the client alone; nil is nobody.
	Trimmed func(first int64)
}

// CommitNow is what became of one commit on this host.
type CommitNow struct {
	Commit  ring.SHA  `json:"commit"`
	Source  string    `json:"source"`
	At      time.Time `json:"at"`                // when it was first seen here
	Subject string    `json:"subject,omitempty"` // "" where the mirror has it no more
	Signer  string    `json:"signer,omitempty"`
	// Outcome is refused, failed, restored, partly refused, job failed, awaiting
	// approval, undone, superseded, replaced, live or accepted; Says is why, and what
	// persons did.
	Outcome string `json:"outcome"`
	Says    string `json:"says,omitempty"`
}

// HistoryQuery asks what became of the commits of an app; "" is all. Limit 0
// is 100.
type HistoryQuery struct {
	App   string
	Limit int
}

// LogQuery asks for the output of the instances of a service, or of all
// services of an app for Service "". Tail < 0 is everything.
type LogQuery struct {
	App, Service string
	Follow       bool
	Tail         int
	Since        time.Time // zero is from the beginning
	Timestamps   bool
	// Text keeps the lines that hold it, of the last 10,000 of each instance; "" is all.
	// Of the client and the server; Calls.Logs never sees it.
	Text string
}

// ApproveRequest is the body of POST /v1/approve. Commit may be shortened to
// 7 digits or more. It is a digest, shortened to 8 or more after sha256:, for a tag that moved.
type ApproveRequest struct {
	Commit ring.SHA `json:"commit"`
	Reason string   `json:"reason,omitempty"`
}

// AcceptRequest is the body of POST /v1/trust/accept. Source may be "" where
// there is one only. Reason is required: it is journalled for good.
type AcceptRequest struct {
	Source string   `json:"source,omitempty"`
	Commit ring.SHA `json:"commit"`
	Reason string   `json:"reason"`
}

// ReverifyRequest is the body of POST /v1/trust/reverify. Source may be "" where
// there is one only; Reason may be "".
type ReverifyRequest struct {
	Source string `json:"source,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// RefreshRequest is the body of POST /v1/refresh. Service "" is all of the app.
// Reason is required: it is journalled.
type RefreshRequest struct {
	App     string `json:"app"`
	Service string `json:"service,omitempty"`
	Reason  string `json:"reason"`
}

// SecretRefreshRequest is the body of POST /v1/secrets/refresh. Reason is journalled; it may
// be empty.
type SecretRefreshRequest struct {
	App    string `json:"app"`
	Reason string `json:"reason,omitempty"`
}

// SecretNow is what came of asking a provider for one value. It holds no value.
type SecretNow struct {
	Ref     string `json:"ref"` // provider:reference
	Changed bool   `json:"changed"`
	// Error is why the provider did not answer; "" where it did. What was known stays.
	Error string `json:"error,omitempty"`
}

// ImageNow is the image of one service in force, and what its name means now.
type ImageNow struct {
	App     string `json:"app"`
	Service string `json:"service"`
	Image   string `json:"image"`  // as written
	Pinned  string `json:"pinned"` // sha256:…, of the registry or of this host's own image
	// Now is what the name means now; "" when nobody could say, and why is Reason.
	Now    string `json:"now,omitempty"`
	Newer  bool   `json:"newer"` // Now is another one than Pinned
	Reason string `json:"reason,omitempty"`
	// Tags are newer ones of the same shape, the newest first and at most 20, where they were
	// asked for. TagsReason is why nobody could say.
	Tags       []string `json:"tags,omitempty"`
	TagsReason string   `json:"tags_reason,omitempty"`
}

// OutdatedQuery asks for the images of an app, or for "" of all.
type OutdatedQuery struct {
	App  string
	Tags bool // which tags of the same shape are newer, too
}

// PlanRequest asks for the changes of a folder (Tree) or of a commit of the
// source (Rev); Tree wins. Source may be "" where there is one only.
type PlanRequest struct {
	Source string
	Rev    string
	// Tree is the root of a folder; symlinks have fs.ModeSymlink and their
	// target as content.
	Tree fs.FS
}

// SyncLine is one line of the answer to POST /v1/sync?wait=1. Exactly one
// field is set; the last line is Settled or Error.
type SyncLine struct {
	Status  *ring.Status `json:"status,omitempty"`
	Settled bool         `json:"settled,omitempty"`
	Error   *Error       `json:"error,omitempty"`
}
