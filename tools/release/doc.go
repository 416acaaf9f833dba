// Command release makes what people download: archives, packages, a container image, an SBOM
// for each program, checksums and a signature over them. "make dist" calls it.
//
// It is a module of its own, so that its libraries never become gitring's. The same commit
// and the same release of Go give the same bytes in any folder: every time is that of the
// commit, every list is sorted, and nothing of the machine comes in. Only the signature is
// apart, because it needs a key.
package main
