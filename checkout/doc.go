// Package checkout is the clone that a person works in: who is trusted there, how its
// commits are judged as hosts judge them, and the signed commits that are made in it.
// Git itself makes them, so that agents and security keys work as everywhere; gitsync
// judges them.
//
//	clone            a clone, and what git says of it
//	aids             what trust mode forge-merge asks of a clone
//	rules            whose commits count
//	judge            one commit or a range, held to the rules
//	pushed           what git tells a pre-push hook
//	commit           signed commits, made and pushed
//	vouch            the commit that answers for those of others
//	rollback         what can be gone back to
//	rollback_commit  the commit that goes back
//	images           the commit that moves images to newer versions
//	compare          what several hosts trust, held against each other
package checkout
