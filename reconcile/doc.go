// Package reconcile decides what happens on the host, and is the one loop that
// makes it happen.
//
// Diff is the heart: from what is wanted, what is seen, what is remembered and
// the time it makes the next steps, the facts to remember, the status, and the
// moment to look again. It asks the same question at every look; a rolling
// update is what comes of asking it again and again. Loop carries out.
//
// Who reads it for the first time goes along the road: world, pass, diff, decide, service,
// target, state, lists, rules, rollout, rolling, move. That is the whole of an update; every
// other file is one rule that stands beside it, and most are read alone.
//
// A Pass reads: the world, the views, the facts as they are by now. A decider writes:
// facts, events and steps. Rules are lists in order; what one asks for is an outcome.
//
// The groups stand from top to bottom: a file calls those of its own group, and of groups
// below it, never of one above. ARCHITECTURE.md says which group calls which. Tests hold this
// map to the folder, and the calls to that table.
//
// With a clock, and the only ones:
//
//	loop          look, decide, record, act
//	loop_acts     acts of persons come in
//	loop_awake    since when this process looks without a break
//	loop_fronts   fronts are told their tables, and asked
//	loop_progress how far a step is
//	loop_trial    after an upgrade nothing is changed for a while
//	step          one step beside the loop
//	step_pool     how many at once, and which first
//
// Persons, and what they do:
//
//	act           what a person may do, and whether it can be done now
//	abort         a rollout is given up, and the run of a job that it waits for
//	ask           a job that a person wants to run now
//	adopt_act     a person gives what Compose made into our hands
//	leave         a person hands an app back to Compose
//	policy_stop   what the policy of the host has stopped
//
// Questions, answered without a change:
//
//	explain       why a service is as it is
//	moving        what is under way while a plan is asked for
//	underway      the runs that have not ended, for people
//	changes       what a plan would do, service by service
//	gap           how long a service will not answer
//	defined       labels of which a proxy would see two for a while
//	newcomer_note what the plan says of services that are new here
//
// One look:
//
//	diff          the order of the rules
//	swarm_follow  a look while another manager of the cluster acts
//	settle        what follows from the end of a step
//	tag_ask       which tags are asked by the clock now
//
// What is told:
//
//	status        the state of everything, for people and exit codes
//	running       what runs of a service, for people
//	front_status  how the front of a service does
//	conditions    what is wrong with a service, or moves it, and since when
//	unheard       published ports that nothing listens on
//	posts         what the forge is told of a commit
//	posts_shared  of a commit that several sources share
//	posts_away    while the engine is away
//	posts_cluster the same words by whichever manager of a cluster acts
//	trouble       beginnings and ends that no rule tells by itself
//
// What goes:
//
//	swarm_tidy    services and files of a cluster that nothing names any more
//	tidy          what has no place in the plan any more, and networks
//	removal       what goes, last first
//	images        images that nothing names any more
//
// The plan, from the newest commit to the one in force:
//
//	stage         an app comes into force when all that it needs is here, at once and whole
//	succession    what another app takes over is served until that one can come
//	leftbehind    what would begin empty, where other data is given up for it
//	pinned        volumes of a cluster's nodes, which another pin would leave behind
//	holding       the volumes and data folders of apps
//	takeover      signed answers, by which an app has what another one had
//	left          what was given up before
//	pin           tags become digests, once, and are carried forward
//	expose        the ports of a front that only the image names
//	tag_clock     when a tag is asked again, and from when on its answer counts
//	tag_answer    what follows from the answer, and tags that go back and forth
//	tag_follow    what a tag moved to comes into force, where nothing holds it
//	pin_note      how an image was found, where that is worth telling
//	admit         what is on the host, and not ours, and in the app's way
//	belongings    what an app of another source has written is not this one's
//	claim         whose the name of an app is
//	guard         what a person has to approve
//	waves         which hosts come before this one
//	apply         what a plan would change, and sources that are only watched
//	classify      what comes to each service of a plan
//	powers        what an app may do on the host that it could not do before
//	past          plans that completed, and the way back to one
//	override_end  an override ends, and that is told beforehand
//	override_plan counts and restarts of persons in the plans in force
//
// One service:
//
//	decide        its target and verdict, then the lists that it is asked by
//	lists         the lists of rules, by strategy, in order
//
// Jobs:
//
//	job           once a version, a commit, or ever
//	before        before a rollout
//	cron          at times
//	due           which times
//	swarm_jobs    what is another way where a cluster has their runs
//	stretch       which of them had their run
//	runs          how a run begins, is tried again, and ends
//
// Asking rules:
//
//	rules         how rules are asked, one after the other
//	move          what a rule asks for, and what makes it safe against a crash
//	trace         which rules were asked, for who wants to know
//
// Keeping it so:
//
//	restart       what ended starts again, inside its backoff
//	broken        containers that the engine will never start
//	contested     hands of others, again and again
//	drift         hands of others, put back or told
//	holder        somebody else's container under the name that an instance needs
//	drain         what leaves its front goes on its way, or stays after all
//	intent        what was meant before and not seen through
//	adopt         what Compose made stands in its slot
//	handback      the last word on what was handed back: its restart policy
//
// A rollout:
//
//	state         where it is on its way: one list, one order
//	rollout       its beginning, its failures, its end
//	target        which version its instances should run now
//	verdict       a version fails, with all that is tied to it, or has another try
//	table         what a front is told of the instances behind it
//	handport      a port of the host goes from a service to its front
//	standfront    and back: the front stays until the service serves without it
//	followfront   a front changes with the version of its service, and goes back with it
//	rolling       versions that may run side by side
//	recreate      versions that may not
//	canary        a share of the requests first, judged, in steps
//	bluegreen     the old set stays whole until the new one serves whole
//	watch         times in which a version that serves is not good yet
//	bake          how long a version is watched before it is good
//	again         what ended with the engine is not the version's fault
//	memory        what the host has room for
//	reload        files that are changed in place
//	swarm_judge   what a cluster says of the version that it was sent
//	swarm_send    when a cluster is sent a spec
//	reloadout     its front sends an instance nothing while it reloads
//	stuck         what is wrong on the host, and not the version's fault
//
// Hands on an instance:
//
//	slot          the step that fills or empties a slot
//	letgo         an instance leaves its front before it is stopped
//	occupied      an instance waits until others let go of what it writes
//	name          a container_name goes from the old instance to the new one
//	crash         the record of a crash
//	signature     which crashes are alike
//	hooks         commands after a start
//
// Between services:
//
//	depend        what has to be there before it starts
//	ran           which runs of jobs are known, and what still needs one
//	join          services that share namespaces or volumes, and so their fate
//	inherit       one writer: data goes from one service to another
//	handover      which waits of that kind a plan brings, told beforehand
//
// Views, and what is asked of one:
//
//	service       the view of it: what is wanted, what runs, what was good
//	instance      the view of one instance: ready, down, or neither
//	believe       what of a front's word is believed, and when it is started anew
//	front         which front a service has, and what it was told and says
//	leavefront    a front leaves to the one in its place
//	publisher     who has the port that a front is to have
//	swarm         what a cluster says of a service and of its instances
//	swarm_global  how many instances one has that runs on each node
//	checks        which checks an instance is asked, and since when it counts
//	strategy      which strategy a service has, and what cannot run side by side
//	backoff       how often a slot crashed, and how long it waits
//	emptied       slots that somebody emptied, or we
//	older         what runs is newer than what is remembered
//	networks      the networks that instances join, by the names of the engine
//	image         what an image keeps for itself, and how it comes here
//
// Versions compared:
//
//	fields        what a change of each field costs
//	tag_move      whether a tag moved, and no commit asked for another image
//	compare       what differs between two versions, part by part
//
// The base, for all of them:
//
//	world         what goes into a decision, and what comes out of it
//	pass          what one look sees, and how facts are set and steps taken
//	words         sorted keys, and small words of sentences
//	index         what rules ask about the whole host, answered by a key
//	dates         times of a wall clock that may jump, as times of the one who decides
//	writes        what a service writes, and the ports that it publishes: one writer at a time
//	override      what stands until it ends: pauses, holds, counts
//	adopted       which instances Compose made, and what their rows say
//	signed        who signed an image, asked before any of it is fetched
//	tries         when a failed step is tried again
//	outcome       what comes of a rule
//	forge         names and sentences as forges take them
package reconcile
