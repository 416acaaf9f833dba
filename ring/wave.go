package ring

import "time"

// Wave are hosts that take a commit together, before those of the waves after it.
type Wave struct {
	Hosts []string `json:"hosts"` // by name, sorted; never empty
	// Soak is how long all of them have to have succeeded before the next wave.
	Soak time.Duration `json:"soak,omitempty"`
}

// WordAt is where a word stands: what a host says of a commit at the forge of a source.
type WordAt struct {
	Source string
	Commit SHA
	Host   string
}

// MarshalText writes the place as one word, so that a world can be written as JSON.
func (w WordAt) MarshalText() ([]byte, error) {
	return []byte(w.Source + " " + string(w.Commit) + " " + w.Host), nil
}

// Word is what stands there. The zero value is that the forge has nothing of the host.
type Word struct {
	State string // PostPending, PostSuccess, PostFailure, PostError; "" is none
	Says  string // one line, fit for a terminal
}

// WaveRow is how far the newest commit of a source is on its way through the waves before
// this host.
type WaveRow struct {
	Source string `json:"source"`
	Commit SHA    `json:"commit"`
	// Since is when the wait began: of this commit, or of an older one that was not let pass
	// either. Stuck reports whether people were told how long that is.
	Since time.Time `json:"since"`
	Stuck bool      `json:"stuck,omitempty"`
	// Seen are, by wave, when all of its hosts were first seen to have succeeded; zero is not yet.
	Seen []time.Time `json:"seen,omitempty"`
	// Failed is the host of which people were told that it failed; "" is none.
	Failed string `json:"failed,omitempty"`
	// Waited reports whether the commit did wait, and Passed whether it does no more, whatever is said later.
	Waited bool `json:"waited,omitempty"`
	Passed bool `json:"passed,omitempty"`
}

// Row is by source.
func (f WaveRow) Row() (string, string) { return "wave", f.Source }
