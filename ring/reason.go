package ring

// Reason is why something waits, failed or was left as it is: a code to decide by, and a
// sentence for people. No code compares the sentence. The zero value is no reason.
type Reason struct {
	Code ReasonCode
	// On is the service that is waited for, or that is in the way; "" where it is none.
	On ServiceID
	// Dead reports that it does not end by itself: what is waited for failed.
	Dead bool
	Says string
}

// After is the reason with a few words before its sentence.
func (r Reason) After(words string) Reason {
	r.Says = words + "; " + r.Says
	return r
}

// None reports whether there is no reason.
func (r Reason) None() bool { return r.Says == "" }

// ReasonCode is one of a closed list, which docs/reference/reasons.md explains. A row that
// an earlier release wrote has none: nothing is decided by its absence.
type ReasonCode string

// The codes of reasons.
const (
	WhyDependencyNotReady ReasonCode = "DependencyNotReady"
	WhyNamespaceNotReady  ReasonCode = "NamespaceNotReady"
	WhyGroupNotReady      ReasonCode = "GroupNotReady"
	WhyAppNotReady        ReasonCode = "AppNotReady"
	WhyJobBeforeNotDone   ReasonCode = "JobBeforeNotDone"
	WhyTransferPending    ReasonCode = "TransferPending"
	WhyRunUnderWay        ReasonCode = "RunUnderWay"
	WhyHostNotReady       ReasonCode = "HostNotReady"
	WhyStateOlder         ReasonCode = "StateOlder"
	WhyAwaitingApproval   ReasonCode = "AwaitingApproval"
	WhyObserveOnly        ReasonCode = "ObserveOnly"
	WhyHeldInFile         ReasonCode = "HeldInFile"
	WhyHeldByPerson       ReasonCode = "HeldByPerson"
	WhyPausedByPerson     ReasonCode = "PausedByPerson"
	WhyScaledByPerson     ReasonCode = "ScaledByPerson"
	WhyUndoneByPerson     ReasonCode = "UndoneByPerson"
	WhyStoppedByPolicy    ReasonCode = "StoppedByPolicy"
	WhyLeftToCompose      ReasonCode = "LeftToCompose"
	WhySecretPending      ReasonCode = "SecretPending"
	WhyImagePending       ReasonCode = "ImagePending"
	WhyHostCheckPending   ReasonCode = "HostCheckPending"
	WhyCommitRefused      ReasonCode = "CommitRefused"
	WhyAppRefused         ReasonCode = "AppRefused"
	WhyInstanceNotReady   ReasonCode = "InstanceNotReady"
	WhyProgramEnded       ReasonCode = "ProgramEnded"
	WhyAbortedByPerson    ReasonCode = "AbortedByPerson"
	WhyRolloutFailed      ReasonCode = "RolloutFailed"
	WhyReloadFailed       ReasonCode = "ReloadFailed"
	WhyJobFailed          ReasonCode = "JobFailed"
	WhyLeftPlan           ReasonCode = "LeftPlan"
	WhyNeededStill        ReasonCode = "NeededStill"
	WhyNotPruned          ReasonCode = "NotPruned"
	WhyFrontNotReady      ReasonCode = "FrontNotReady"
	WhyFrontUnseen        ReasonCode = "FrontUnseen"
	WhyCanaryFailed       ReasonCode = "CanaryFailed"
	WhyAwaitingPromote    ReasonCode = "AwaitingPromote"
	WhyWaveWaiting        ReasonCode = "WaveWaiting"
	WhyWaveFailed         ReasonCode = "WaveFailed"
)
