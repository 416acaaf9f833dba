package proof

// Code names a kind of fault. Where a commit breaks a rule of trust, its code is that of
// the refusal: Unsigned, UnknownSigner, Revoked and the like.
type Code string

// What can be wrong with a proof besides its commits.
const (
	TooLarge      Code = "TooLarge"
	BadForm       Code = "BadForm"
	DuplicateKey  Code = "DuplicateKey"
	UnknownKey    Code = "UnknownKey"
	UnknownFormat Code = "UnknownFormat"

	OtherHost    Code = "OtherHost"
	OtherService Code = "OtherService"
	OtherSource  Code = "OtherSource"
	TooOld       Code = "TooOld"

	LabelDiffers   Code = "LabelDiffers"
	LabelMissing   Code = "LabelMissing"
	LabelAdded     Code = "LabelAdded"
	NameDiffers    Code = "NameDiffers"
	SlotUnknown    Code = "SlotUnknown"
	KindDiffers    Code = "KindDiffers"
	VersionDiffers Code = "VersionDiffers"
	FilesDiffer    Code = "FilesDiffer"
	ServiceMissing Code = "ServiceMissing"
	PinDiffers     Code = "PinDiffers"
	ImageDiffers   Code = "ImageDiffers"
	VerdictDiffers Code = "VerdictDiffers"

	ObjectsDiffer Code = "ObjectsDiffer"
	Collision     Code = "Sha1Collision"
	CommitMissing Code = "CommitMissing"
	ChainGap      Code = "ChainGap"
	NotOnChain    Code = "NotOnChain"
	NoBeginning   Code = "NoBeginning"

	JournalChanged  Code = "JournalChanged"
	JournalGap      Code = "JournalGap"
	JournalHead     Code = "JournalHead"
	StatementEdited Code = "StatementEdited"
	OlderProof      Code = "OlderProof"
	OtherJournal    Code = "OtherJournal"
)

// Fault is one thing that is wrong, as people read it.
type Fault struct {
	Code Code   `json:"code"`
	Says string `json:"says"`
	Hint string `json:"hint,omitempty"`
}

func (f *Fault) Error() string { return f.Says }
