package api

// What became of a commit.
const (
	OutcomeRefused    = "refused"
	OutcomeFailed     = "failed"
	OutcomeRestored   = "restored"
	OutcomePartly     = "partly refused" // an app of it
	OutcomeJob        = "job failed"
	OutcomeAwaiting   = "awaiting approval"
	OutcomeHeld       = "held" // a person's hold or undo keeps it from coming
	OutcomeSuperseded = "superseded"
	OutcomeUndone     = "undone"   // a person brought back what an app of it ran before
	OutcomeReplaced   = "replaced" // all that it asked for was done, and nothing of it runs any more
	OutcomeLive       = "live"     // all that it asked for was done, and runs
	OutcomeAccepted   = "accepted" // nothing was done for it so far, or a rollout has not completed
)
