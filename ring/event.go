package ring

import "time"

// Event is a line of the journal. Seq is given by the store, from 1, without
// gaps; At is UTC.
type Event struct {
	Seq     int64     `json:"seq,omitempty"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Source  string    `json:"source,omitempty"`
	App     string    `json:"app,omitempty"`
	Service string    `json:"service,omitempty"`
	Slot    int       `json:"slot,omitempty"`
	// Version is of the service; of an app that came into force, its AskedVersion.
	Version Version `json:"version,omitempty"`
	Commit  SHA     `json:"commit,omitempty"`
	Actor   string  `json:"actor,omitempty"`
	// Via is the door that a person's act came by: socket, token or oidc; "" for what
	// nobody did by hand, and on lines that an earlier release wrote.
	Via    string `json:"via,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Code is of the reason, and On the service that it is about; "" where the kind says all.
	Code ReasonCode `json:"code,omitempty"`
	On   ServiceID  `json:"on,omitempty"`
	// Fetched and Verified, of a commit that came to be trusted, are when that was done. At is when the
	// look at its remote began; zero where an earlier release wrote the line.
	Fetched  time.Time `json:"fetched,omitzero"`
	Verified time.Time `json:"verified,omitzero"`
	// Began, of a word for a forge, is when it was there to be sent; zero on every other line.
	Began time.Time `json:"began,omitzero"`
	// Digest is of what a line about a proof says in it; "" of every other line.
	Digest string `json:"digest,omitempty"`
}

// Kinds of events.
const (
	CommitAccepted    = "commit.accepted"
	CommitLanded      = "commit.landed" // a landing before the tip: its head, and who signed it
	CommitRefused     = "commit.refused"
	AppInForce        = "app.in_force"
	AppPowers         = "app.powers" // an app in force may do more on the host than the one before
	AppRefused        = "app.refused"
	AppRemoved        = "app.removed"
	PlanAwaiting      = "plan.awaiting"
	PlanApproved      = "plan.approved"
	RefreshAsked      = "refresh.asked"
	TrustAccepted     = "trust.accepted"
	TrustIntroduced   = "trust.introduced" // an introduction took the place of first use
	TrustRecovered    = "trust.recovered"  // the anchor was found again after a loss of state
	TrustVersion      = "trust.version"    // trust_version rose
	TrustIsDegraded   = "trust.degraded"   // a key that signed what runs was revoked
	TrustReverified   = "trust.reverified" // a person had the history judged again
	ProofMade         = "proof.made"       // a proof of what runs was handed out; its digest
	RolloutBegan      = "rollout.began"
	RolloutSwitched   = "rollout.switched" // blue_green: the new set serves, the old one is kept warm
	RolloutBaking     = "rollout.baking"   // the new version serves, and is watched before it is good
	RolloutCompleted  = "rollout.completed"
	RolloutFailed     = "rollout.failed"
	RolloutRestored   = "rollout.restored"
	RolloutSuperseded = "rollout.superseded"
	InstanceStep      = "instance.step" // an action that was carried out
	InstanceCrashed   = "instance.crashed"
	StepFailed        = "step.failed"
	JobStarted        = "job.started"
	JobSucceeded      = "job.succeeded"
	JobFailed         = "job.failed"
	JobSkipped        = "job.skipped" // a cron job was due and did not run
	DaemonStarted     = "daemon.started"
	RolloutResumed    = "rollout.resumed"
	RolloutPromoted   = "rollout.promoted"
	RolloutAborted    = "rollout.aborted"
	OverrideBegan     = "override.began"
	OverrideEnded     = "override.ended"
	OverrideExpiring  = "override.expiring"
	RetryAsked        = "retry.asked"
	RestartAsked      = "restart.asked" // of a service, as a rollout
	RunAsked          = "run.asked"
	DriftSeen         = "drift.seen"
	DriftHealed       = "drift.healed"
	DriftKept         = "drift.kept" // a file of the commit that the app changed, and that stays
	AppAdopted        = "app.adopted"
	AppLeft           = "app.left" // handed back to Compose
	AppCrashLooping   = "app.crash_looping"
	AppContested      = "app.contested" // others keep changing its containers
	AppIsDegraded     = "app.degraded"  // a service is not what its plan asks, for longer than a moment
	Reloaded          = "instance.reloaded"

	// What was in trouble and is well again: once for each time that trouble began.
	RolloutRecovered = "rollout.recovered"
	AppRecovered     = "app.recovered"
	JobRecovered     = "job.recovered"
	SourceStale      = "source.stale" // its remote has not answered for too long
	SourceRecovered  = "source.recovered"
	SourceOld        = "source.old"     // no commit came for longer than its max_age
	SourceRenewed    = "source.renewed" // and now one did

	WaveWaiting = "wave.waiting" // a plan waits for hosts of earlier waves
	WaveHeld    = "wave.held"    // it failed on one of them
	WavePassed  = "wave.passed"  // all of them succeeded: it comes into force
	WaveStuck   = "wave.stuck"   // it waits for too long

	FrontTook     = "front.took"     // a front carries the requests of a service from here on
	FrontReplaced = "front.replaced" // another container is the front of a service
	RouteChanged  = "route.changed"  // a front took another table
	CanaryStepped = "canary.step"    // a step of a canary began
	CanaryFailed  = "canary.failed"  // its judge, or a check of it, says no
	DrainCut      = "drain.cut"      // what was in flight to an instance at its deadline was cut
	UpgradeAsked  = "upgrade.asked"  // a person wants the newest proxies now
	FrontUpgraded = "front.upgraded" // a front took the newest proxy
	FrontKept     = "front.kept"     // it did not, and goes on with the one that it had

	TagMoved     = "tag.moved"     // a tag that is followed by the clock means another digest
	TagAwaiting  = "tag.awaiting"  // where it moved to waits for a person
	TagApproved  = "tag.approved"  // and a person said yes
	TagFollowed  = "tag.followed"  // a service has what its tag moved to in force
	TagContested = "tag.contested" // it goes back and forth

	PolicyChanged  = "policy.changed"  // other rules count
	PolicyInvalid  = "policy.invalid"  // its files cannot be taken: the rules before count
	PolicyViolated = "policy.violated" // an app in force breaks a rule
	GrantExpires   = "policy.expires"  // a grant of an app in force expires soon

	ForgeTold   = "forge.told"     // a forge took what became of a commit
	ForgeUntold = "forge.given_up" // and it will not: why
)

// EventKinds are all kinds of events.
var EventKinds = []string{
	CommitAccepted, CommitLanded, CommitRefused, AppInForce, AppPowers, AppRefused, AppRemoved, PlanAwaiting, PlanApproved,
	RefreshAsked, TrustAccepted, TrustIntroduced, TrustRecovered, TrustVersion, TrustIsDegraded, TrustReverified, ProofMade,
	RolloutBegan, RolloutSwitched, RolloutBaking, RolloutCompleted, RolloutFailed, RolloutRestored, RolloutSuperseded,
	InstanceStep, InstanceCrashed, StepFailed, JobStarted, JobSucceeded, JobFailed, JobSkipped, DaemonStarted,
	RolloutResumed, RolloutPromoted, RolloutAborted, OverrideBegan, OverrideEnded, OverrideExpiring, RetryAsked,
	RestartAsked, RunAsked, DriftSeen, DriftHealed, DriftKept, AppAdopted, AppLeft, AppCrashLooping, AppContested, AppIsDegraded,
	Reloaded, RolloutRecovered, AppRecovered, JobRecovered, SourceStale, SourceRecovered, SourceOld, SourceRenewed,
	FrontTook, FrontReplaced, RouteChanged, DrainCut, CanaryStepped, CanaryFailed,
	UpgradeAsked, FrontUpgraded, FrontKept,
	WaveWaiting, WaveHeld, WavePassed, WaveStuck,
	TagMoved, TagAwaiting, TagApproved, TagFollowed, TagContested,
	PolicyChanged, PolicyInvalid, PolicyViolated, GrantExpires,
	ForgeTold, ForgeUntold,
}
