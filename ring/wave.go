package ring

import "time"

// Wave are hosts that take a commit together, before those of the waves after it.
type Wave struct {
	Hosts []string `json:"hosts"` // by name, sorted; never empty
	// Soak is how long all of them have to have succeeded before the next wave.
	Soak time.Duration `json:"soak,omitempty"`
}
