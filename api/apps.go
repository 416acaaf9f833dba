package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Apps are patterns of the names of apps that a token is limited to, such as web and db-*. None
// is no limit.
type Apps []string

// appPattern is a name of an app in which * stands for any characters.
var appPattern = regexp.MustCompile(`^[a-z0-9*][a-z0-9*_-]*$`)

// ParseApps reads patterns between commas.
func ParseApps(text string) (Apps, error) {
	var out Apps
	for word := range strings.SplitSeq(text, ",") {
		if !appPattern.MatchString(word) {
			return nil, fmt.Errorf("%q is no name of an app, nor a pattern such as db-*", word)
		}
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out, nil
}

// String is the list as it is written.
func (a Apps) String() string { return strings.Join(a, ",") }

// limited reports whether there are apps that it does not have.
func (a Apps) limited() bool { return len(a) > 0 }

// Has reports whether an app is one of them. What belongs to no app is not, where there is a limit.
func (a Apps) Has(app string) bool {
	return !a.limited() || app != "" && slices.ContainsFunc(a, func(pattern string) bool {
		ok, err := path.Match(pattern, app)
		return err == nil && ok
	})
}

// Fit is why scopes cannot be limited to apps; nil where they can.
func (a Apps) Fit(scopes Scopes) error {
	for _, s := range scopes {
		if a.limited() && !slices.Contains(limitable, s) {
			return fmt.Errorf("apps= limits %s alone, and %s is about the whole host", limitable, s)
		}
	}
	return nil
}

// limitable are the scopes that can be limited to apps: the routes of all others are about the
// whole host.
var limitable = Scopes{ScopeRead, ScopeLogs}

// shownByApp are the routes that leave other apps out. No other one is there for a token that is
// limited, and neither is a page.
var shownByApp = map[string]bool{
	"/v1/status": true, "/v1/events": true, "/v1/stream": true, "/v1/history": true, "/v1/logs": true,
	"/v1/crashes": true, "/v1/jobs": true, "/v1/inspect": true, "/v1/outdated": true,
}

// shows reports whether a line of the journal is about what a peer may see.
func (p Peer) shows(e *ring.Event) bool { return p.apps.Has(e.App) }

// plain is the line without what is another app's.
func (p Peer) plain(e ring.Event) ring.Event {
	if p.hides(e.On) {
		e.On, e.Reason = "", elsewhere
	}
	return e
}

// elsewhere stands for a reason that lies with an app that the one who asks may not see.
const elsewhere = "something of another app"

// hides reports whether a service is of an app that the peer may not see.
func (p Peer) hides(id ring.ServiceID) bool {
	if id == "" || !p.apps.limited() {
		return false
	}
	app, _ := id.Split()
	return !p.apps.Has(app)
}

// statusFor is the status as a peer may see it.
func (s *Socket) statusFor(ctx context.Context, p Peer) (ring.Status, error) {
	st, err := s.calls.Status(ctx)
	if err != nil || !p.apps.limited() {
		return st, err
	}
	hidden, err := s.hiddenIn(ctx, p, &st)
	if err != nil {
		return st, err
	}
	return scrubbed(hidden, p.part(&st))
}

// hiddenIn are the apps that a peer may not see: those of a status, and those that left, of which
// lines and reasons still tell.
func (s *Socket) hiddenIn(ctx context.Context, p Peer, st *ring.Status) ([]string, error) {
	named, err := s.calls.AppsNamed(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Concat(AppsOf(st), named), p.apps.Has), nil
}

// hiddenNow are the apps that a peer may not see; none where there is no limit.
func (s *Socket) hiddenNow(ctx context.Context, p Peer) ([]string, error) {
	if !p.apps.limited() {
		return nil, nil
	}
	st, err := s.calls.Status(ctx)
	if err != nil {
		return nil, err
	}
	return s.hiddenIn(ctx, p, &st)
}

// scrubbed is an answer in which no sentence names a hidden app. A name alone is left: it is that
// of a service or an instance, and an app's own may be called like another app.
func scrubbed[T any](hidden []string, answer T) (out T, err error) {
	if len(hidden) == 0 {
		return answer, nil
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return out, err
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return out, err
	}
	if b, err = json.Marshal(scrubTree(tree, hidden)); err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

func scrubTree(v any, hidden []string) any {
	switch v := v.(type) {
	case string:
		switch {
		case !slices.ContainsFunc(hidden, func(app string) bool { return names(v, app) }):
		case strings.Contains(v, " "):
			return elsewhere
		default: // no sentence: the name of a service
			return ""
		}
	case []any:
		for i := range v {
			v[i] = scrubTree(v[i], hidden)
		}
	case map[string]any:
		for key := range v {
			v[key] = scrubTree(v[key], hidden)
		}
	}
	return v
}

// names reports whether a sentence has the name of an app in it, or of a service of it.
func names(says, app string) bool {
	inName := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	for at := 0; ; at++ {
		i := strings.Index(says[at:], app)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(app)
		before, after := at > 0 && (inName(says[at-1]) || says[at-1] == '/'), end < len(says) && inName(says[end])
		if !before && !after && (strings.Contains(says, " ") || end < len(says) && says[end] == '/') {
			return true
		}
	}
}

// knows is nil where a peer may see an app, and the answer to an app that is not here where not.
func (s *Socket) knows(ctx context.Context, p Peer, app, service string) error {
	if !p.apps.limited() {
		return nil
	}
	st, err := s.statusFor(ctx, p)
	if err != nil {
		return err
	}
	target := app
	if service != "" {
		target += "/" + service
	}
	if _, ok := Narrow(&st, target); !ok {
		says, hint := Missing(&st, target)
		return NotFound(hint, "%s", says)
	}
	return nil
}

// part is what of a status is about the apps of a peer. What is named here is shown, and nothing
// else: what is new in a status is hidden until somebody thought of it.
func (p Peer) part(st *ring.Status) ring.Status {
	out := ring.Status{Host: st.Host, Gitring: st.Gitring, At: st.At, Engine: st.Engine, Store: st.Store, Sources: []ring.SourceStatus{}}
	for _, o := range st.Overrides {
		if app, _, _ := strings.Cut(o.Target, "/"); p.apps.Has(app) {
			out.Overrides = append(out.Overrides, o)
		}
	}
	for i := range st.Sources {
		if src := p.source(&st.Sources[i]); len(src.Apps) > 0 {
			out.Sources = append(out.Sources, src)
		}
	}
	return out
}

// source is the part of a source. A commit is told whole: it is what their apps run.
func (p Peer) source(src *ring.SourceStatus) ring.SourceStatus {
	out := ring.SourceStatus{
		Name: src.Name, Branch: src.Branch, Tip: src.Tip, Commit: src.Commit, Subject: src.Subject, Signer: src.Signer,
		Committed: src.Committed, Trusted: src.Trusted, Trust: src.Trust, Checking: src.Checking, Checked: src.Checked,
		Apps: []ring.AppStatus{},
	}
	for i := range src.Apps {
		if a := src.Apps[i]; p.apps.Has(a.Name) {
			out.Apps = append(out.Apps, p.app(a))
		}
	}
	out.Sync, out.Reason, out.Code = src.Sync, src.Reason, src.Code
	if p.hides(src.On) || src.Code == "" {
		out.Reason, out.Code = "", ""
	} else {
		out.On = src.On
	}
	switch src.Sync {
	case ring.SyncHeld, ring.SyncStaging, ring.SyncApplying, ring.SyncDegraded, ring.SyncSynced:
		out.Sync = syncOf(out.Apps) // it may be another app's
	}
	if out.Sync != src.Sync {
		out.Reason, out.Code, out.On = "", "", ""
	}
	if n := src.Next; n != nil {
		out.Next = &ring.Next{Commit: n.Commit}
		if n.Code != "" && !p.hides(n.On) {
			out.Next.Reason, out.Next.Code, out.Next.On = n.Reason, n.Code, n.On
		}
	}
	if r := src.Refusal; r != nil {
		out.Refusal = &ring.Refusal{Code: r.Code, Commit: r.Commit, Says: "the commit is refused", Hint: "ask whoever may see the whole host"}
		if r.File == "" && r.App == "" {
			out.Refusal.Says, out.Refusal.Hint = r.Says, r.Hint // it is of the commit itself
		}
	}
	for _, c := range src.Conditions {
		if c.Type == ring.ConditionOld || c.Type == ring.ConditionStale {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return out
}

// syncOf is the state of a source of which no other app is shown.
func syncOf(apps []ring.AppStatus) ring.Sync {
	worst := ring.SyncSynced
	for i := range apps {
		switch apps[i].Health {
		case ring.Degraded:
			return ring.SyncDegraded
		case ring.Progressing:
			worst = ring.SyncApplying
		case ring.Held:
			if worst == ring.SyncSynced {
				worst = ring.SyncHeld
			}
		}
	}
	return worst
}

func (p Peer) app(a ring.AppStatus) ring.AppStatus {
	if p.hides(a.On) {
		a.On, a.Reason = "", elsewhere
	}
	a.Services = slices.Clone(a.Services)
	for i := range a.Services {
		if sv := &a.Services[i]; p.hides(sv.On) {
			sv.On, sv.Reason = "", elsewhere
		}
	}
	return a
}

// eventsFor are lines as calls.Events has them. Of the newest there are as many of the peer's apps
// as were asked for; others may still have to be left out.
func (s *Socket) eventsFor(ctx context.Context, p Peer, q EventQuery) ([]ring.Event, error) {
	if p.apps.limited() && q.App == "" && q.Last > 0 {
		all, err := s.ofEach(ctx, p, func(app string) ([]ring.Event, error) {
			return s.calls.Events(ctx, EventQuery{App: app, Last: q.Last, Limit: q.Limit})
		})
		return all[max(0, len(all)-q.Last):], err
	}
	return s.calls.Events(ctx, q)
}

// historyFor is the history that a peer may see, the newest first.
func (s *Socket) historyFor(ctx context.Context, p Peer, q HistoryQuery) ([]ring.Event, error) {
	if !p.apps.limited() || q.App != "" {
		all, err := s.calls.History(ctx, q)
		return p.lines(all), err
	}
	all, err := s.ofEach(ctx, p, func(app string) ([]ring.Event, error) {
		return s.calls.History(ctx, HistoryQuery{App: app, Limit: q.Limit})
	})
	slices.Reverse(all)
	return p.lines(all[:min(len(all), cmp.Or(q.Limit, 100))]), err // as many as who is not limited gets
}

// ofEach are the lines of each app of a peer, also of those that left, in the order of their
// numbers.
func (s *Socket) ofEach(ctx context.Context, p Peer, ask func(app string) ([]ring.Event, error)) ([]ring.Event, error) {
	named, err := s.calls.AppsNamed(ctx)
	if err != nil {
		return nil, err
	}
	var all []ring.Event
	for _, app := range named {
		if !p.apps.Has(app) {
			continue
		}
		events, err := ask(app)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	slices.SortFunc(all, func(a, b ring.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(all, func(a, b ring.Event) bool { return a.Seq == b.Seq }), nil
}

// tagFor is the ETag of the status as a peer may see it.
func (s *Socket) tagFor(ctx context.Context, p Peer) (string, error) {
	if !p.apps.limited() {
		return s.tags.now(ctx, s.calls.Status)
	}
	st, err := s.statusFor(ctx, p)
	if err != nil {
		return "", err
	}
	return statusTag(&st), nil
}

// lines are those that a peer may see.
func (p Peer) lines(events []ring.Event) []ring.Event {
	if !p.apps.limited() {
		return events
	}
	out := make([]ring.Event, 0, len(events))
	for i := range events {
		if p.shows(&events[i]) {
			out = append(out, p.plain(events[i]))
		}
	}
	return out
}
