package ring

// HostError is an error of this host that a person can mend, with what to do next.
type HostError struct {
	Says string
	Hint string
	Err  error // what it came of, where somebody may ask
}

// Error is the sentence, without the hint.
func (e *HostError) Error() string { return e.Says }

// Unwrap is what it came of.
func (e *HostError) Unwrap() error { return e.Err }
