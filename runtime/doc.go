// Package runtime is the engine as gitring sees it: one look at what is there,
// and one way to carry out a step. It is the only importer of the Docker
// client. Payloads are built from ring types by pure functions (payload.go),
// and nothing here decides what should run.
//
// Over is the same code over an engine that a test brings (enginetest has one in
// memory), so that what is tried against it runs the steps that the real one would
// run, in the same order.
//
// The engine:
//
//	docker         one engine, through its client
//	engines        which are worked with, and what they do in different ways
//	podman         Podman in Docker's words
//	podmanask      a digest that it asks no registry for
//	podmanchecks   checks that it has no clock for
//	engine         what is used of the client
//	calls          requests, counted
//	elsewhere      an engine of another host
//	ending         an engine that is about to end
//	fault          what its sentences mean
//	taken          that a port is somebody else's
//	broken         that a container will never start
//	selfcheck      gitring in a container
//
// Looking:
//
//	look           one observation, whole or none
//	row            a line of the engine's list
//	instance       a container in ring's words
//	died           how it ended last
//	signal         whose hand that was
//	listen         on which of its ports a program listens
//	memory         what the host has of it
//	usage          and what containers take of it
//	about          what it says of itself
//	runtimes       with what it runs containers
//	events         hints that something changed
//	unplugged      and that a network was left
//	commits        what containers were made from
//	proven         one container with its labels
//	mounted        contents that containers mount
//
// What is sent:
//
//	payload        all of it, a function of the plan
//	request        one call, for those who judge it
//	labels         what gitring writes on the engine
//	endpoint       networks of an instance
//	join           namespaces of others
//	mount          mounts
//	walk           where a path of the host leads
//	walk_linux     the same in one step of the kernel, without links
//	walk_other     refused where the client alone is built
//	writers        who may write to it
//	imagestart     how the image has its program begin
//	resources      bounds and devices
//	sealed         values of the host, opened at the last moment
//	front          a front: its image, folders and payload
//	frontfiles_unix  how many descriptors it can have
//	frontfiles_other any number, where none is made
//	frontimage     the image of a front's program
//	confine        the image's own command, or none
//	platform       what an image was built for
//
// Steps:
//
//	do             each, once or again
//	create         an instance
//	kept           never with an empty folder in place of a full one
//	stranger       never beside one of Compose's own
//	holder         somebody else has the name
//	hooks          commands after a start, before a stop
//	exec           a command in an instance
//	overrun        one that outlives its time
//	policy         the restart policy, in place
//	limit          bounds, in place
//	network        networks of an app
//	hostnets       none that takes of the host's own
//	hostlook       what the host's own is
//	hostaddrs_linux the addresses of its devices, asked at once
//	hostaddrs_other the same elsewhere
//	files          folders of an app's data
//	seed           folders that begin with the commit's files
//	owner_unix     whose a folder is
//	owner_other    refused on Windows
//	seednotes      what was put there
//	live           files that are changed in place
//	livefolder     the folder they are in
//	keeplog        the log of a run, kept
//	printed        what checks printed that failed
//
// A swarm, which schedules by itself:
//
//	swarm          one manager, through the same client
//	swarmask       what is asked of it besides, and what it refuses
//	swarmevents    hints that something changed
//	swarmadmit     what is on it and in the way of an app
//	swarmseen      what a look at it says, in ring's words
//	swarmspec      what making a service of it sends
//	swarmjobs      the runs of jobs
//	swarmkeys      what it cannot carry, by name
//	lease          which of several managers acts, by what each has seen
//	swarmlease     the lease as a config, and the calls that ask it
//	swarmrecord    what managers of a cluster tell each other
//	clock_linux    the time since boot, which nobody sets
//	clock_other    the same where no manager runs
//
// Images:
//
//	image          one on this host
//	image_off      one that goes
//	resolve        a name becomes a digest
//	lately         what was said of one moments ago, for those who asked before that
//	asker          for people, changing nothing
//	registry       who says no, and when it is asked again
//	auth           credentials
//	verify         who signed an image, asked before any of it is fetched
//	signatures     what a registry has of them
//	verifier       a program of the host that judges instead
//	registryclient a registry is asked about one repository
//	registryhosts  where the engine would ask
//	registryroad   where a registry may send us
//	helper         the host's own credential helpers
//	tags           which tags a repository has
//	login          how the docker config file has them
//	pulling        how far a pull is
//
// What is on the host and not ours:
//
//	survey         what there is, when an app comes
//	surveys        asked once for many apps
//	admit          what of it is in the way
//	admit_own      data that instances of the app itself have elsewhere
//	loose          volumes that nobody says whose they are
//	ownbridge      the engine's own network
//
// Compose's containers:
//
//	adopt          what taking one over comes to
//	adopted        those we took over
//	compare        what differs from what we would make
//	composed       what docker compose up would compare
//	project        a project as the engine knows it
package runtime
