// Package admission is what this host lets in: it holds what a commit asks to the
// policy, as the payloads that would be sent, before a plan counts and right before
// each call. It asks nobody but the engine's runtimes, and changes nothing.
//
//	judge          the policy held to apps, plans and calls
//	decisions      what came of it, for people
//	signed         grants that ask who signed
//	refusals       refusals as a person of this host reads them
//	live           the policy as its files say now
//	runtimes       what the engine says of itself
//	check          what the policy says of a commit
//	explain        what the policy gives an app
//	vectors        what a commit asks, and what the policy has to say of it
//	text_tree      files in memory, as a commit has them
//	suggest        the policy that would let a commit pass
//	merge          that policy, put into the one that is there
package admission
