// Package ring holds the words of gitring: one word for one thing, in code,
// messages, docs and labels. It imports the standard library only, and every
// other package imports nothing of the project but this one.
//
//	host       the machine this daemon serves, by its configured name
//	engine     what runs containers there: Docker (also Podman's socket), Swarm
//	cluster    a swarm, by its configured name, in place of the host
//	node       one machine of a cluster
//	task       what a cluster calls an instance
//	source     one branch and path of one Git repository that this daemon
//	           follows, with its own trust and credentials
//	commit     a verified commit: SHA, parents, signer, tree as a read-only
//	           file system
//	anchor     the last commit of a source that was trusted; it only moves
//	           forward. In output: "trusted up to"
//	plan       everything one commit asks of this host; its identity is the SHA
//	changes    what carrying out a plan would do here; the output of plan
//	app        a folder with a Compose file: one Compose project, one network,
//	           one status on the forge
//	service    one Compose service of an app; its kind: worker, job, cron
//	version    the hash of all that a service's instances run. Equal version =
//	           interchangeable, whichever commit asked
//	pin        the image of a service, resolved once to what cannot move
//	slot       index 1..replicas of a service
//	instance   the container that fills a slot with one version
//	check      a probe: startup, readiness or liveness
//	rollout    the move of a service from old versions to the wanted one
//	action     one step on the engine, with its reason
//	refusal    a no that a commit's author can act on
//	verdict    good or failed, for (app, service, version)
//	hold       a person stopped it
//	paused     a rollout stopped
//	quarantined  a failed version is not tried again
//	awaiting approval  a guard wants a yes
//	override   a person's imperative act: actor, reason, expiry
//	event      a line of the journal
//	hub        shows many hosts, and acts on none
//	report     what a host tells a hub of itself
//	cursor     names a line of a journal by number and hash: <seq>.<8 hex>
//	fact       a row of the store: what can be neither seen nor computed
//	in force   the plan of an app that is being carried out
//	next       the plan of an app that is being resolved and pulled
package ring
