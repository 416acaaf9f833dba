//go:build !unix

package runtime

import "os/exec"

// inOwnGroup has a program end alone: there are no groups here, and no daemon either.
func inOwnGroup(*exec.Cmd) {}
