// Package enginetest is an engine in memory for tests: it answers the calls of the
// Docker client as an engine does, and fails as a test wants it to. What is tried over
// it with runtime.Over takes the steps that a real engine would be asked for, in the
// same order. No program imports it.
//
//	fake           its controls
//	container      its containers
//	event          its events
//	exec           its commands
//	image          its images
//	kill           its signals
//	network        its networks
//	volume         its volumes
package enginetest
