package config

// What becomes of an app in force that breaks a rule.
const (
	OnViolationHold   = "hold"   // no new instance of it
	OnViolationReport = "report" // it is only told
	OnViolationStop   = "stop"   // as hold, and it is stopped after a while
)
