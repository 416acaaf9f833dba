// Package manifest turns a commit's tree into a plan: which apps there are, and
// what each of their services runs. It is pure: what it reads is the tree, and
// what it knows of the host is what Settings says. Nothing of the daemon's
// environment or of the host's files can be reached through a manifest.
//
// From a commit to a plan:
//
//	manifest    the road: discover, read, settle
//	memory      what the apps of the commit before were read from
//	limits      what a commit may cost
//	discover    which apps there are
//	gitringyaml or gitring.yaml says so
//	search      or how they are searched
//	fleetyaml   which hosts there are, and who takes a commit first
//	notread     and which Compose files are no app's
//	despite     the apps of one with mistakes
//	folders     where they are
//	folder      apps of one folder
//	app         one app, read to its end
//	settle      names that two apps claim
//
// Files of a commit:
//
//	tree        reading them
//	symlink     what a path leads to, inside the commit
//	content     those that services mount
//	filed       those that a manifest names
//	rebase      a path of the manifest, inside the commit
//	bind        a path that a service mounts
//
// YAML:
//
//	yaml        a document, counted before anything is expanded
//	node        what it holds
//	decoder     taking values out of it, strictly
//	nearest     a hint for a word that is not known
//
// Variables:
//
//	variable    values, and those that are sealed
//	expand      a file with its variables replaced
//	envfile     files of them
//	seal        values that the host alone has
//	hide        and that no refusal tells
//	apart       commands that are split once they are opened
//
// Compose files:
//
//	compose     one of them
//	schema      which keys there are
//	class       what is done with each
//	swarm       what a swarm carries out beside
//	check       keys that are decided by their value
//	number      numbers that compose-go reads otherwise
//	include     files that take in others
//	extends     services that take over others
//	reset       !reset and !override
//	project     all files of an app, for compose-go
//	places      where each thing is written
//	fault       what is wrong, and where
//	mend        what is left is read on, so that one push can mend all
//	consistent  what is named is there
//
// What compose-go understood, as a plan:
//
//	build       an app
//	service     a service
//	attachment  the networks that an instance joins
//	container_id names that could be the ID of a container
//	network     a network
//	link        links
//	join        namespaces and volumes of another service
//	owncontainer a service named by its container
//	elsewhere   one of another app, named so
//	namespace   namespaces of the host
//	mount       mounts
//	tmpfs       in memory
//	volume      volumes, and who writes them
//	renamed     values of an app under its former name
//	port        ports
//	device      devices
//	resources   bounds
//	security    what gives an instance more of the host
//	platform    what it is built for
//	secrets     secrets and configs
//	encrypted   files that are opened for them
//	provided    values of programs of the host
//	hooks       commands around its life
//	composed    what Compose would take its hash of
//
// What x-gitring says besides:
//
//	extension   all of it
//	rollout     knobs
//	canary      steps of one, and who judges it
//	route       whether a service gets a front, and how that carries
//	front       the front itself
//	back        Compose's rollback_config
//	grpc        a check by gRPC
//	reload      files that are changed in place
//	cron        when a job is due
//	updates     how a tag is followed by the clock
//	before      a job before a rollout
package manifest
