//go:build !linux

package runtime

import "time"

// sinceBoot is asked on managers of a swarm only, which are Linux.
func sinceBoot() time.Duration { return time.Since(started) }
