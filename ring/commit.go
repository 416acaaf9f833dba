package ring

import (
	"io/fs"
	"time"
)

// SHA is a full commit id, 40 lower-case hex digits; "" is none.
type SHA string

// Short is the form people read: the first 7 digits.
func (s SHA) Short() string {
	if len(s) < 7 {
		return string(s)
	}
	return string(s[:7])
}

// Commit is a commit that the rules of its source accepted. Only gitsync makes
// one. It is carried through the whole walk and never looked up again.
type Commit struct {
	SHA     SHA
	Parents []SHA
	// Signer is the matching principal of allowed_signers, or the e-mail of the
	// OpenPGP key's primary user id; "" where trust is disabled.
	Signer string
	// Note is what is worth telling of how it was trusted, such as "content by
	// alice@example.org, landed by the forge"; "" is nothing.
	Note string
	// Subject is the first line of the message, control characters removed.
	Subject string
	// ClaimedAt is the committer's time, FirstSeen the daemon's when the object
	// first entered the store. Both UTC.
	ClaimedAt, FirstSeen time.Time
	// AllowRemove is the n of a trailer "Gitring-Allow: remove=<n>"; 0 is none.
	AllowRemove int
	// AllowWaves reports whether there is a trailer "Gitring-Allow: waves".
	AllowWaves bool
	// Data are the trailers "Gitring-Data: <app> from <app>", in order.
	Data []DataAnswer
	// Tree is the commit's root tree, whatever the source's path. Directories
	// and regular files (0o111 in the mode when executable) read as usual; a
	// symlink has fs.ModeSymlink and its target as content; a submodule has
	// fs.ModeIrregular and cannot be opened.
	Tree fs.FS
}

// Report is what a source learned from one look at its remote.
type Report struct {
	Source string
	At     time.Time
	// Reached says that the remote answered, whatever it said.
	Reached bool
	// Tip is the remote's branch as last seen; "" when not known.
	Tip SHA
	// Commit is the newest trusted commit; nil while nothing is trusted yet.
	Commit *Commit
	// Refusal is why Tip is not trusted; nil when it is.
	Refusal *Refusal
	// Awaiting is the sentence of a Tip that breaks no rule and that not enough
	// people answered for yet; "" when it does not wait.
	Awaiting string
	// Reason is a state of the source that is no fault of a commit, such as
	// RefMissing: code first, then the sentence. "" when there is none.
	Reason string
	// Anchor is up to where the source is trusted; zero while that is not known.
	Anchor Anchor
	// Err is what the world did wrong (network, remote): told once, retried.
	Err error
}

// Verified is one commit that passed every rule, as the store keeps it.
type Verified struct {
	SHA         SHA
	Signer      string
	Fingerprint string // of the key: SHA256:… for SSH, hex for OpenPGP
	ClaimedAt   time.Time
	FirstSeen   time.Time
	Note        string // such as "inside expiry_grace"
	Vouched     string // who answers for it in the place of a signer of its own; "" for nobody
	// Landed says that a forge made the commit of content that Signer signed. Its
	// message is nobody's word: AllowRemove, AllowWaves and Data are the signed commit's.
	Landed      bool
	AllowRemove int
	AllowWaves  bool
	Data        []DataAnswer
	// Signed says that the commit passed by a signature of its own, and not as a
	// landing, by a vouch, by trust mode tip or because trust begins with it.
	Signed bool
	// Head is the commit that a landing landed; "" of anything else.
	Head SHA
	// Payloads are the signed contents that the commit brings, each by the hash of its
	// payload: its own where it is Signed; of a landing first that of its head, then
	// those of the head's signed commits that its base did not have.
	Payloads []string
	// Epoch is the print of the trust set that it passed under; "" when unknown.
	Epoch string
}

// Standing is what is known of a commit that lies behind the trusted one.
type Standing int

// What may be known of it, the least first.
const (
	NeverSeen    Standing = iota // from before trust began, or forgotten
	SeenOnly                     // seen since trust began, and not accepted
	LetIn                        // accepted, and not by a signature of its own
	OwnSignature                 // accepted by its own signature
)

// Carrier is an accepted commit that brought a signed content.
type Carrier struct {
	By SHA
	// AsHead says that By is a landing and the content that of its head.
	AsHead bool
}
