package ring

import "strings"

// The doors of acts. An account of listen.api is called by its door: token/ci. A user of
// the host has no slash in the name, so none can pass for another.
const (
	ViaSocket = "socket" // of the host itself, also by ssh
	ViaToken  = "token"
	ViaOIDC   = "oidc"
)

// ByPolicy is the actor of what the policy of a host does by itself.
const ByPolicy = "policy"

// ActedVia is the door that a person's act came by; "" for what nobody did by hand, such as
// a commit, whose actor is its signer.
func (e *Event) ActedVia() string {
	if e.Actor == "" || e.Actor == ByPolicy || strings.HasPrefix(e.Kind, "commit.") {
		return ""
	}
	switch account, _, _ := strings.Cut(e.Actor, "/"); {
	case account == e.Actor:
		return ViaSocket
	case account == ViaToken, account == ViaOIDC:
		return account
	}
	return ""
}
