package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// CrashQuery asks for the crashes of a service, of all services of an app for
// Service "", or of all for App "". Logs are left out unless asked for.
type CrashQuery struct {
	App, Service string
	Logs         bool
}

// CrashGroup is crashes of one service that are alike: the same kind of exit, and
// the same last words but for numbers, times and addresses.
type CrashGroup struct {
	App       string    `json:"app"`
	Service   string    `json:"service"`
	Signature string    `json:"signature"`
	Count     int       `json:"count"` // of those that are kept
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	// Words are the last of them, of its newest crash; "" when nothing was kept.
	Words string `json:"words,omitempty"`
	// Newest is the newest of them, with its log where that was asked for. Slots
	// and Versions are those that crashed so, sorted and the newest first.
	Newest   ring.Crash     `json:"newest"`
	Slots    []int          `json:"slots"`
	Versions []ring.Version `json:"versions"`
}

// GroupCrashes groups crashes, given the newest first; the group with the newest
// crash is first.
func GroupCrashes(all []ring.Crash, logs bool) []CrashGroup {
	out := []CrashGroup{}
	at := map[string]int{}
	for _, c := range all {
		key := string(c.ID) + " " + c.Signature
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			g := CrashGroup{Signature: c.Signature, Last: c.At, Words: lastWord(c.Log), Newest: c}
			g.App, g.Service = c.ID.Split()
			if !logs {
				g.Newest.Log = nil
			}
			out = append(out, g)
		}
		g := &out[i]
		g.Count++
		g.First = c.At
		if !slices.Contains(g.Slots, c.Slot) {
			g.Slots = append(g.Slots, c.Slot)
		}
		if !slices.Contains(g.Versions, c.Version) {
			g.Versions = append(g.Versions, c.Version)
		}
	}
	for i := range out {
		slices.Sort(out[i].Slots)
	}
	slices.SortStableFunc(out, func(a, b CrashGroup) int { return cmp.Compare(b.Last.UnixNano(), a.Last.UnixNano()) })
	return out
}

// lastWord is the last line with something in it.
func lastWord(log []string) string {
	for _, line := range slices.Backward(log) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

func (s *Socket) crashes(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	q := CrashQuery{App: v.text("app"), Service: v.text("service"), Logs: v.yes("logs")}
	if v.err != nil {
		return v.err
	}
	if q.Logs && !p.may(ScopeLogs) {
		return noLogs(p)
	}
	if q.App != "" {
		if err := s.knows(r.Context(), p, q.App, q.Service); err != nil {
			return err
		}
	}
	all, err := s.calls.Crashes(r.Context(), q)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(g CrashGroup) bool { return !p.apps.Has(g.App) })
	if !p.may(ScopeLogs) {
		all = slices.Clone(all)
		for i := range all { // they are of its log, too
			all[i].Words, all[i].Newest.Log, all[i].Newest.Checked = "", nil, nil
		}
	}
	if all == nil {
		all = []CrashGroup{}
	}
	return writeJSON(w, all)
}

// noLogs is the answer to who may not read what containers print.
func noLogs(p Peer) *Error {
	return Denied("ask for a token with the scope "+string(ScopeLogs), "%s may not read logs", p.Actor())
}

// Crashes are what crashed here, alike ones together, the newest first.
func (c *Client) Crashes(ctx context.Context, q CrashQuery) ([]CrashGroup, error) {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	flag(v, "logs", q.Logs)
	var out []CrashGroup
	return out, c.ask(ctx, http.MethodGet, "/v1/crashes", v, nil, &out)
}
