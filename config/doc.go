// Package config is the daemon's configuration: read, checked whole, with each mistake
// at its line, and completed with the defaults. Nothing in a configuration that Load
// returned has to be checked again.
//
//	config         what can be said, and the defaults
//	load           how it is read, and mistakes told
//	check          what is wrong with it
//	owned          who may write its file, and the policy's
//	helpers        who signs in at registries
//	traffic        which services get a front
//	secrets        what opens encrypted files
//	socket         the one key that a client needs
//	listen_api     the listener for people and programs
//	oidc           the issuer that people sign in with there
//	report         the hub that is told of this host
//	hub            and the configuration of a hub
//
// A source:
//
//	remote         where it is fetched from
//	poll           how often
//	introduction   the commit that it begins at
//	signers        who may sign what
//	trust          whose commits are carried out
//	gitsync        what follows it, and what its plans depend on
//	status         what is told to its forge
//	pulls          and of pull requests
//	limits         what it may cost this host
//	limit_keys     each of them
//	notify         who is told besides
//
// The policy of this host:
//
//	policy         a profile, in place or in a file of its own
//	policy_lists   what it says instead of its profile's lists
//	signatures     who has to have signed an image
//	policy_apps    grants, and the names of apps
//	violation      what becomes of an app in force that breaks it
package config
