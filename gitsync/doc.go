// Package gitsync follows a branch of a Git repository and yields only commits
// that the rules of their source accept, or the refusal that says why not.
//
// Two halves meet in Objects, the raw object store:
//
//   - The verifying half (grammar.go, signature.go, verify.go and what they
//     use) decides. It parses the stored bytes itself, re-hashes them, and takes
//     the tree from the very bytes whose signature it checked: libraries have
//     verified re-encoded commits instead of the stored ones. It reads no clock
//     and no network; the time comes in.
//   - The mirroring half (mirror.go, follower.go and what they use) fetches,
//     keeps the bare mirror and carries what was decided out to the store.
//
// This is the only package that knows go-git and go-crypto.
package gitsync
