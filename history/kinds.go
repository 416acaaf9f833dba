package history

import "github.com/gitring/gitring/ring"

// Kinds are the kinds of events that say what became of commits.
var Kinds = []string{
	ring.CommitAccepted, ring.CommitLanded, ring.CommitRefused, ring.AppInForce, ring.AppPowers, ring.AppRefused, ring.AppRecovered, ring.AppRemoved, ring.PlanAwaiting,
	ring.PlanApproved, ring.TagFollowed, ring.TagApproved, ring.TrustAccepted, ring.TrustRecovered, ring.TrustIntroduced, ring.TrustIsDegraded, ring.RolloutCompleted, ring.RolloutFailed, ring.RolloutRestored,
	ring.RolloutSuperseded, ring.RolloutAborted, ring.RestartAsked, ring.OverrideBegan, ring.OverrideEnded, ring.JobSucceeded, ring.JobFailed,
}
