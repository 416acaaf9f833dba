package gitsync

import (
	"fmt"

	"github.com/hiddeco/sshsig"

	"github.com/gitring/gitring/ring"
)

// Require is what signatures have to have besides being good; the zero value is
// nothing.
type Require struct {
	// HardwareKey takes SSH security keys alone. Whether an OpenPGP key is on a card
	// cannot be told from its signature, so none counts.
	HardwareKey bool
	// UserVerified asks for the security key's PIN or a fingerprint.
	UserVerified bool
	// Approvals is how many people have to answer for each commit: its signer and
	// those who vouch for it. 0 and 1 are its signer alone.
	Approvals int
}

// Unfit says which key of the configuration asks for what the mode cannot give.
func (c TrustConfig) Unfit() (key string, err error) {
	r := c.Require
	switch {
	case r.Approvals < 0:
		return "require.approvals", fmt.Errorf("require.approvals %d is negative: write 2 for two people", r.Approvals)
	case c.TrustThreshold < 0:
		return "trust_threshold", fmt.Errorf("trust_threshold %d is negative: write 2 for two people", c.TrustThreshold)
	case c.Mode == Disabled && r != (Require{}):
		return "require", fmt.Errorf("require asks for signatures that mode disabled does not look at: set mode: strict or forge-merge")
	case c.Mode == Tip && r.Approvals > 1:
		return "require.approvals", fmt.Errorf("require.approvals does not go with mode tip, which looks at one signature: set mode: strict or forge-merge")
	case c.SignersInRepo == "" && c.TrustThreshold > 0:
		return "trust_threshold", fmt.Errorf("trust_threshold is for changes of signers_in_repo, which is not set: write signers_in_repo: %s", DefaultSignersInRepo)
	case c.SignersInRepo == "":
		return "", nil
	case c.Mode == Tip || c.Mode == Disabled:
		return "signers_in_repo", fmt.Errorf("signers_in_repo does not go with mode %s, in which anybody could change them: set mode: strict or forge-merge", c.Mode)
	}
	return "signers_in_repo", repoPath(c.SignersInRepo)
}

// ssh holds a good SSH signature to what is required.
func (r Require) ssh(sha ring.SHA, by sshBy, sig *sshsig.Signature) *ring.Refusal {
	if !r.HardwareKey && !r.UserVerified {
		return nil
	}
	if !by.hardware() {
		return hardwareKeyRequired(sha, by.name, "this one is a file")
	}
	if rest := sig.Signature.Rest; r.UserVerified && (len(rest) == 0 || rest[0]&userVerified == 0) {
		return noUserVerification(sha, by.name)
	}
	return nil
}

// openPGP is the same for OpenPGP.
func (r Require) openPGP(sha ring.SHA, key string) *ring.Refusal {
	if !r.HardwareKey && !r.UserVerified {
		return nil
	}
	return hardwareKeyRequired(sha, key, "an OpenPGP signature does not tell whether its key is on a card")
}

// shortfall is a commit that too few people answered for.
type shortfall struct {
	sha        ring.SHA
	have, need int
	what       string // of whom, and why, where that is not plain
}

// approve counts who answered for a commit. One that changes nothing and vouches
// for others needs nobody besides its signer: it brings nothing.
func (v *verification) approve(p *parsed, by []identity) error {
	need := v.t.cfg.Require.Approvals
	if need <= 1 {
		return nil
	}
	if len(p.trailers(vouchTrailer)) > 0 {
		if empty, err := v.empty(p); empty || err != nil {
			return err
		}
	}
	v.count(p, by, need, "")
	return nil
}

// count notes a commit that fewer people than needed answered for. Of one person's
// two keys or two names with one key only one counts.
func (v *verification) count(p *parsed, by []identity, need int, what string) {
	names, keys := map[string]bool{}, map[string]bool{}
	for _, id := range by {
		names[id.principal], keys[id.fingerprint] = true, true
	}
	if have := min(len(names), len(keys)); have < need {
		v.short = append(v.short, shortfall{p.sha, have, need, what})
	}
}

// awaited is why a range that breaks no rule has to wait; nil when it does not.
func (v *verification) awaited() *ring.Refusal {
	if len(v.short) == 0 {
		return nil
	}
	return awaiting(v.short[0])
}
