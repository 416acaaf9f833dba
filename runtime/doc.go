// Package runtime is the engine as gitring sees it: one look at what is there,
// and one way to carry out a step. It is the only importer of the Docker
// client. Payloads are built from ring types by pure functions (payload.go),
// and nothing here decides what should run.
//
// Fake is the same code over an engine in memory, so that what is tried against
// it runs the steps that the real one would run, in the same order.
package runtime
