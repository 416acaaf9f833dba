package api

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is what somebody on listen.api may do. The zero value is nothing.
type Scope string

// The scopes.
const (
	ScopeMetrics Scope = "metrics" // GET /metrics
	ScopeRead    Scope = "read"    // every other GET but logs, and the plan of a revision
	ScopeLogs    Scope = "logs"    // what containers print, and the log lines of crashes
	ScopeOperate Scope = "operate" // sync, acts, refresh, retries, messages for a test
	ScopeApprove Scope = "approve" // approve
	ScopeAdmin   Scope = "admin"   // adopt, leave
)

// ScopeNames are all scopes, as they are written.
var ScopeNames = []string{string(ScopeMetrics), string(ScopeRead), string(ScopeLogs), string(ScopeOperate), string(ScopeApprove), string(ScopeAdmin)}

// Scopes are a set.
type Scopes []Scope

// includesRead are the scopes that include read. Nothing else includes anything.
var includesRead = []Scope{ScopeLogs, ScopeOperate, ScopeApprove, ScopeAdmin}

// Has reports whether the set holds a scope, or one that includes it. Nobody has none.
func (s Scopes) Has(want Scope) bool {
	if want == "" {
		return false
	}
	return slices.Contains(s, want) ||
		want == ScopeRead && slices.ContainsFunc(s, func(x Scope) bool { return slices.Contains(includesRead, x) })
}

// String is the set as it is written.
func (s Scopes) String() string {
	words := make([]string, len(s))
	for i, x := range s {
		words[i] = string(x)
	}
	return strings.Join(words, ",")
}

// ParseScopes reads scopes between commas.
func ParseScopes(text string) (Scopes, error) {
	var out Scopes
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(ScopeNames, word) {
			return nil, fmt.Errorf("%q is no scope; one or more of %s", word, strings.Join(ScopeNames, ","))
		}
		if !slices.Contains(out, Scope(word)) {
			out = append(out, Scope(word))
		}
	}
	return out, nil
}
