package api

import (
	"fmt"
	"regexp"
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

	// ScopeReport is what a route asks of a token that may report for a host, to a hub. Such a token
	// has the scope report:<host> alone: it writes one row, and reads nothing.
	ScopeReport Scope = "report"
)

// reports begins the scope of a token that reports for a host.
const reports = string(ScopeReport) + ":"

// hostName is as config.HostName.
var hostName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

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
		want == ScopeReport && s.Reports() != "" ||
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

// Reports is the host that the set may report for; "" where it may for none.
func (s Scopes) Reports() string {
	if len(s) != 1 || !strings.HasPrefix(string(s[0]), reports) {
		return ""
	}
	return strings.TrimPrefix(string(s[0]), reports)
}

// ParseScopes reads scopes between commas. report:<host> stands alone.
func ParseScopes(text string) (Scopes, error) {
	if host, is := strings.CutPrefix(text, reports); is {
		if strings.Contains(text, ",") {
			return nil, fmt.Errorf("%s<host> stands alone: such a token may nothing else, and reports for one host", reports)
		}
		if !hostName.MatchString(host) {
			return nil, fmt.Errorf("%q is no name of a host", host)
		}
		return Scopes{Scope(text)}, nil
	}
	var out Scopes
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(ScopeNames, word) {
			if strings.HasPrefix(word, reports) {
				return nil, fmt.Errorf("%s<host> stands alone: such a token may nothing else", reports)
			}
			return nil, fmt.Errorf("%q is no scope; one or more of %s", word, strings.Join(ScopeNames, ","))
		}
		if !slices.Contains(out, Scope(word)) {
			out = append(out, Scope(word))
		}
	}
	return out, nil
}
