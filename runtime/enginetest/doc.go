// Package enginetest is for tests of engines. It has an engine and a swarm in memory, and a
// suite of stories that every engine passes. No program imports it.
//
// The engine in memory answers the calls of the Docker client as an engine does, and fails
// as a test wants it to. What is tried over it with runtime.Over takes the steps that a
// real engine would be asked for, in the same order.
//
// A package of another engine fills a Rig in its own tests and hands it to Conforms.
//
//	conforms          the suite: each story by its name
//	rig               an engine in a test, and what only a test may do with it
//	steps             the steps that stories are made of
//	stories_instance  stories about one instance
//	stories_network   about networks and ports
//	stories_image     about images and programs
//	stories_files     about volumes and files
//	stories_join      about instances that share namespaces
//	fake              the engine in memory: its controls
//	container         its containers
//	event             its events
//	exec              its commands
//	image             its images
//	kill              its signals
//	network           its networks
//	volume            its volumes
//	swarm             a swarm in memory: its controls, and what a manager answers
//	swarmtasks        what a swarm does as its time passes: tasks and updates
//	swarmjobs         replicated jobs of it
package enginetest
