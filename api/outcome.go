package api

// What became of a commit.
const (
	OutcomeRefused    = "refused"
	OutcomeFailed     = "failed"
	OutcomeRestored   = "restored"
	OutcomePartly     = "partly refused" // an app of it
	OutcomeJob        = "job failed"
	OutcomeAwaiting   = "awaiting approval"
	OutcomeSuperseded = "superseded"
	OutcomeLive       = "live"     // all that it asked for was done
	OutcomeAccepted   = "accepted" // nothing was done for it so far, or a rollout has not completed
)
