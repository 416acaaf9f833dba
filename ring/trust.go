package ring

import "time"

// Anchor is up to where a source is trusted.
type Anchor struct {
	Source string `json:"source"`
	SHA    SHA    `json:"sha"`
	// How is introduction, first use, verified, the labels of containers, or
	// accepted by <actor>: <reason>.
	How string    `json:"how"`
	At  time.Time `json:"at"`
	// Began is where the trusted history starts. It goes along as the anchor
	// moves, so that first use is told for as long as all rests on it.
	Began Beginning `json:"began,omitzero"`
	// TrustVersion is the highest trust_version that was ever in use; 0 is none.
	TrustVersion int `json:"trust_version,omitempty"`
	// Degraded says that the journal knows of the key that signed this commit
	// being revoked since.
	Degraded bool `json:"degraded,omitempty"`
}

// Beginning is the commit that was trusted without a trusted one before it, and
// on whose word.
type Beginning struct {
	SHA SHA       `json:"sha"`
	How string    `json:"how"` // as an anchor's
	At  time.Time `json:"at"`
}

// What an anchor can rest on, besides a person's word.
const (
	ByFirstUse     = "first use"
	ByIntroduction = "introduction"
	ByLabels       = "labels of containers"
)

// FirstUse reports whether all trust in the source rests on the first tip that was seen.
func (a Anchor) FirstUse() bool { return a.SHA != "" && a.Began.How == ByFirstUse }

// TrustState is whom a source trusts and up to where; GET /v1/trust.
type TrustState struct {
	// Host is whose word this is.
	Host   string `json:"host,omitempty"`
	Source string `json:"source"`
	Branch string `json:"branch"`
	Mode   string `json:"mode"`
	// Version is trust_version as configured; 0 is none. Epoch is the print of
	// the whole trust set: it changes when anything in it does.
	Version int    `json:"trust_version,omitempty"`
	Epoch   string `json:"trust_epoch"`
	Tip     SHA    `json:"tip,omitempty"`
	Trusted SHA    `json:"trusted,omitempty"`
	// How and Since are of the last move of the anchor.
	How   string     `json:"how,omitempty"`
	Since time.Time  `json:"since,omitzero"`
	Began *Beginning `json:"began,omitempty"`
	// Signer is who signed the trusted commit.
	Signer       string          `json:"signer,omitempty"`
	Introduction SHA             `json:"introduction,omitempty"`
	MinCommit    SHA             `json:"min_commit,omitempty"`
	Signers      []TrustedSigner `json:"signers"`
	Revoked      int             `json:"revoked"` // keys and fingerprints that are listed
	Files        []TrustFile     `json:"files"`
	Warning      string          `json:"warning,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Refusal      *Refusal        `json:"refusal,omitempty"`
}

// TrustedSigner is one key that counts, with what it may do.
type TrustedSigner struct {
	Principal   string `json:"principal"`
	Kind        string `json:"kind"` // ssh, openpgp, or cert-authority
	Fingerprint string `json:"fingerprint"`
	// From and Until bound when the key is valid; zero is open.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Revoked is where the key is listed as revoked; "" when it is not.
	Revoked string `json:"revoked,omitempty"`
	// Refused is the code by which every signature of the key is refused whatever it
	// signs; "" when it is judged by what it signs.
	Refused Code `json:"refused,omitempty"`
	// Place is the file that names the key, with the line where there is one; InRepo
	// says that it is a file of the trusted commit.
	Place  string  `json:"place,omitempty"`
	InRepo bool    `json:"in_repo,omitempty"`
	Grants []Grant `json:"grants"` // none: nothing on this source and branch
}

// Grant is what a signer may do on a source and branch. No paths is all.
type Grant struct {
	Roles []string `json:"roles"`
	Paths []string `json:"paths,omitempty"`
}

// TrustFile is one file that trust rests on, as it is on disk now.
type TrustFile struct {
	Key   string `json:"key"` // of the configuration, such as allowed_signers
	Path  string `json:"path"`
	Owner int    `json:"owner"` // a user id; -1 when it cannot be read
	Mode  string `json:"mode,omitempty"`
	// Wrong is why the file cannot be trusted; "" when it can.
	Wrong string `json:"wrong,omitempty"`
}

// Reverified is the trusted history held against the present trust set.
type Reverified struct {
	Source string `json:"source"`
	// From is where trust began, which is not judged itself; To is the anchor.
	From SHA `json:"from"`
	To   SHA `json:"to"`
	// Commits is how many came after From.
	Commits int `json:"commits"`
	// Refusals are of the commits that would not pass now, oldest first.
	Refusals []*Refusal `json:"refusals"`
	// Untold are of landings that cannot be judged any more, such as of a head that the
	// forge does not have: nobody can tell whether they would pass.
	Untold []*Refusal `json:"cannot_be_told,omitempty"`
}
