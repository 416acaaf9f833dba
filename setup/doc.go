// Package setup makes a host of a repository that exists already: it finds what a clone
// holds and who signs there, asks what nobody can know, and writes the files that a
// daemon starts with. On the engine it only looks.
//
//	setup   a set-up from its beginning to its end
//	answer  what is asked, and what is proposed
//	key     the key that a person signs with, found or made
//	find    the apps of the clone, and what of them runs already
//	search  a gitring.yaml that would find what is meant
//	alternatives  apps of which one host runs one
//	merge   a configuration that is here, with the answers in it
//	env     values that Git does not hold
//	policy  the smallest policy with which the apps pass
//	write   the files, and the commit that trust begins with
//	git     settings of the clone, and what is left to do
//	hook    the pre-push hook
package setup
