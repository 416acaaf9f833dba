package ring

import (
	"fmt"
	"strings"
)

// Code names a refusal; users filter by it, so a code never changes meaning.
type Code string

// Codes of trust (docs/testing/trust-table.md).
const (
	Unsigned            Code = "Unsigned"
	UnknownSigner       Code = "UnknownSigner"
	BadSignature        Code = "BadSignature"
	Namespace           Code = "Namespace"
	WeakKey             Code = "WeakKey"
	NoUserPresence      Code = "NoUserPresence"
	Revoked             Code = "Revoked"
	Revoker             Code = "Revoker" // an OpenPGP key that somebody else may revoke
	Rollback            Code = "Rollback"
	NonFastForward      Code = "NonFastForward"
	Grammar             Code = "Grammar"
	KeyExpired          Code = "KeyExpired"
	KeyExpiredFirstSeen Code = "KeyExpiredFirstSeen"
	KeyNotYetValid      Code = "KeyNotYetValid"
	FutureDated         Code = "FutureDated"
	HashMismatch        Code = "HashMismatch"
	Sha1Collision       Code = "Sha1Collision"
	Submodule           Code = "Submodule"
	LfsPointer          Code = "LfsPointer"
	NotACommit          Code = "NotACommit"
	AnchorUnavailable   Code = "AnchorUnavailable"
	Shallow             Code = "Shallow"
	RangeTooLarge       Code = "RangeTooLarge"
	StateLost           Code = "StateLost"
	StateLostRollback   Code = "StateLostRollback"
	Certificate         Code = "Certificate"
	TargetMissing       Code = "TargetMissing"
	TargetMismatch      Code = "TargetMismatch"
	BranchNotAllowed    Code = "BranchNotAllowed"
	RoleNotAllowed      Code = "RoleNotAllowed"
	PathNotAllowed      Code = "PathNotAllowed"
	NotImagesOnly       Code = "NotImagesOnly"
	NotSignedContent    Code = "NotSignedContent"
	// SignersStale is a change of the file of signers that was made without knowing
	// the edition in force.
	SignersStale        Code = "SignersStale"
	HeadUnavailable     Code = "HeadUnavailable"
	NeedsMergeTree      Code = "NeedsMergeTree"
	NotUpToDate         Code = "NotUpToDate"
	HeadLanded          Code = "HeadLanded"
	VouchNotAllowed     Code = "VouchNotAllowed"
	VouchOutside        Code = "VouchOutside"
	BadTrustFile        Code = "TrustFile"
	HardwareKeyRequired Code = "HardwareKeyRequired"
	NoUserVerification  Code = "NoUserVerification"
	// AwaitingApproval is no fault: the daemon holds the tip until enough people
	// answered for it.
	AwaitingApproval Code = "AwaitingApproval"
	// Where trust begins: nothing is trusted yet and first use is not wanted, or
	// the introduction is signed by somebody else than configured.
	IntroductionMissing  Code = "IntroductionMissing"
	IntroductionMismatch Code = "IntroductionMismatch"
	// IntroductionNeeded is a first tip whose signer may not change everything.
	IntroductionNeeded Code = "IntroductionNeeded"
)

// Codes of content (docs/reference/manifest.md#codes).
const (
	Yaml              Code = "Yaml"
	UnknownKey        Code = "UnknownKey"
	BadValue          Code = "BadValue"
	Unsupported       Code = "Unsupported"
	UndefinedVariable Code = "UndefinedVariable"
	OutsideCommit     Code = "OutsideCommit"
	SymlinkInManifest Code = "SymlinkInManifest"
	TooLarge          Code = "TooLarge"
	VolumeNotPinned   Code = "VolumeNotPinned" // on a cluster, what writes to a volume of a node moves
	PolicyDenied      Code = "PolicyDenied"
	AppTaken          Code = "AppTaken"
	RouteTaken        Code = "RouteTaken"
	BadName           Code = "BadName"
	ForeignProject    Code = "ForeignProject"
	// Self is the app of which a container is the one that gitring runs in.
	Self             Code = "Self"
	VolumeElsewhere  Code = "VolumeElsewhere"
	VolumeLeftBehind Code = "VolumeLeftBehind"
	ImageNotFound    Code = "ImageNotFound"
	// Of signatures of images: none is there, and none of those that are is by a listed key.
	ImageUnsigned  Code = "ImageUnsigned"
	ImageSignature Code = "ImageSignature"
	Conflict       Code = "Conflict"
	// Of encrypted files: no key of the host opens it, a value or the MAC does not hold, and
	// it is written in a way that gitring does not read.
	SecretKey  Code = "SecretKey"
	SecretMAC  Code = "SecretMAC"
	SecretForm Code = "SecretForm"
	// A file of another app, and a secret where it would shape the plan.
	SecretNotFor Code = "SecretNotFor"
	// SecretRef is a reference that the app may not ask a provider for.
	SecretRef   Code = "SecretRef"
	SecretPlace Code = "SecretPlace"
	// Unreadable is the mirror's fault, not the author's: an object of the tree
	// cannot be read. Nothing of the commit is carried out.
	Unreadable Code = "Unreadable"
)

// Reasons of a source that are nobody's refusal.
const (
	RefMissing         = "RefMissing"
	TrustConfigInvalid = "TrustConfigInvalid"
	TrustRollback      = "TrustRollback"
	TrustDegraded      = "TrustDegraded"
)

// Refusal is a no that a commit's author can act on. It takes the same road as
// a success: journal, status, forge. It is an error, so that a parser can
// return it; errors.As finds it.
type Refusal struct {
	Code   Code   `json:"code"`
	Commit SHA    `json:"commit,omitempty"`
	App    string `json:"app,omitempty"`
	// File is the path inside the commit, Line counts from 1; 0 is the whole file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Says is one sentence, lower case, no period. Hint says what to do next.
	Says string `json:"says"`
	Hint string `json:"hint,omitempty"`
	// OfFile says that Says has no subject, which is the file: whoever knows how it is called
	// says so with Of.
	OfFile bool `json:"-"`
	// Owner is the app of this host that has what is refused for as long as it is here
	// itself; "" where nobody has, or where that stays when the app goes.
	Owner string `json:"-"`
	// Beside is the app of the same commit that has a name on the engine which this one would
	// take, too: one host runs one of them. "" where it is about nothing of the kind.
	Beside string `json:"-"`
	// Folders are those of the host that it is about, one a line: it is asked again once one
	// of them changes.
	Folders string `json:"-"`
	// Variable is the one that is not set, "" where none is. Answers are the files below the
	// host's env folder that could say what is missing, the app's own first; "" is none.
	Variable string    `json:"-"`
	Answers  [2]string `json:"-"`
}

// Error is the code, the place and the sentence, on one line.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(string(r.Code))
	if p := r.Where(); p != "" {
		b.WriteString(" " + p)
	}
	b.WriteString(": " + r.Of("it").Says)
	return b.String()
}

// Of is the refusal as a whole sentence, in which the file it is about is called name.
func (r Refusal) Of(name string) Refusal {
	if r.OfFile {
		r.OfFile, r.Says = false, name+" "+r.Says
	}
	return r
}

// Where is file:line, or what is known of it; "" when there is no place.
func (r *Refusal) Where() string {
	if r.File == "" || r.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d", r.File, r.Line)
}

// FaultOfOurs is the hint of a refusal that nothing in the commit explains: there is
// nothing in it to mend.
const FaultOfOurs = "this is a fault of gitring: please report it, with the app's files"
