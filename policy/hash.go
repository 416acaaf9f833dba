package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash is a print of what the rules let pass, whatever the file is in which they stand.
// What a host itself is, such as its engine's runtimes, is no part of it.
func (r *Rules) Hash() string {
	grants := make([]Grant, len(r.Grants))
	for i, g := range r.Grants {
		g.At = "" // a line that moved changes nothing
		grants[i] = g
	}
	profile := r.Profile
	if profile == "" {
		profile = Compose
	}
	body, err := json.Marshal(struct {
		Profile Profile
		Lists   *Lists
		Routes  map[string][]string `json:",omitempty"`
		Grants  []Grant
	}{profile, r.lists(), r.Routes, grants})
	if err != nil {
		return "" // none of these types can fail
	}
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}
