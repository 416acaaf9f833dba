package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// ActRequest is the body of POST /v1/act: what a person does by hand to an app,
// or, where Service is set, to one service of it. Reason is required: it is
// journalled, and shown for as long as the act stands.
type ActRequest struct {
	// Verb is pause, resume, promote, abort, restart, undo, hold, release, scale,
	// retry or run.
	Verb    string `json:"verb"`
	App     string `json:"app"`
	Service string `json:"service,omitempty"`
	Reason  string `json:"reason"`
	// For is how long it stands, such as "4h"; "" is the verb's default.
	For string `json:"for,omitempty"`
	// To is the commit that an undo goes back to, of 7 digits or more; "" is the
	// newest that completed before the one in force.
	To ring.SHA `json:"to,omitempty"`
	// Replicas of a scale.
	Replicas int `json:"replicas,omitempty"`
}

// Acted is the answer: what came of it, in one sentence. Until is when it ends by
// itself; zero for an act that does not stand. At is when it was taken.
type Acted struct {
	Says  string    `json:"says"`
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// ActsQuery asks which acts can be done now to an app, or to one service of it. To is the
// commit that an undo would go back to; "" is the one before.
type ActsQuery struct {
	App, Service string
	To           ring.SHA
}

// ActNow is an act, and whether it can be done now.
type ActNow struct {
	Verb string `json:"verb"`
	// Why is why it cannot be done now, and Hint what to do; both are "" where it can.
	Why  string `json:"why,omitempty"`
	Hint string `json:"hint,omitempty"`
	// Back is what an undo would bring back; nil of other acts, and where it cannot.
	Back *Earlier `json:"back,omitempty"`
}

// Earlier is an earlier plan of an app, which an undo brings back.
type Earlier struct {
	Commit    ring.SHA  `json:"commit"`
	Subject   string    `json:"subject,omitempty"`
	Signer    string    `json:"signer,omitempty"`
	Completed time.Time `json:"completed,omitzero"`
	// Changes are what bringing it back does to the services of the app.
	Changes ring.AppChanges `json:"changes"`
}

// How long overrides stand.
const (
	longestFor = 30 * 24 * time.Hour
	defaultFor = 4 * time.Hour
	scaleFor   = time.Hour
)

// standing are the verbs that stand until they end.
var standing = []string{"pause", "undo", "hold", "scale"}

// Lasts is how long the act stands; 0 for one that is over when it is done.
func (r *ActRequest) Lasts() (time.Duration, error) {
	stands := slices.Contains(standing, r.Verb)
	switch {
	case !stands && r.For != "":
		return 0, Usage("", "%s does not stand for a time", r.Verb)
	case !stands:
		return 0, nil
	case r.For == "" && r.Verb == "scale":
		return scaleFor, nil
	case r.For == "":
		return defaultFor, nil
	}
	d, err := time.ParseDuration(r.For)
	if err != nil || d <= 0 || d > longestFor {
		return 0, Usage("write a duration such as 30m or 4h, of 720h at most; what is to stay belongs into the repository", "%q is not how long an act can stand", r.For)
	}
	return d, nil
}

func (s *Socket) acts(w http.ResponseWriter, r *http.Request, _ Peer) error {
	q := query{values: r.URL.Query()}
	of := ActsQuery{App: q.text("app"), Service: q.text("service"), To: ring.SHA(q.text("to"))}
	switch {
	case q.err != nil:
		return q.err
	case of.App == "":
		return Usage("gitring status lists apps and services", "an app is required")
	}
	if of.To != "" {
		if err := digits(of.To); err != nil {
			return err
		}
	}
	all, err := s.calls.Acts(r.Context(), of)
	if err != nil {
		return err
	}
	return writeJSON(w, all)
}

func (s *Socket) act(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a ActRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.App == "" {
		return Usage("gitring status lists apps and services", "%s what? an app is required", a.Verb)
	}
	if strings.TrimSpace(a.Reason) == "" {
		return Usage("say why with --reason", "a reason is required")
	}
	if a.To != "" {
		if err := digits(a.To); err != nil {
			return err
		}
	}
	if a.Replicas < 0 {
		return Usage("write a number from 0", "a service cannot have %d replicas", a.Replicas)
	}
	if _, err := a.Lasts(); err != nil {
		return err
	}
	done, err := s.calls.Act(r.Context(), p, a)
	if err != nil {
		return err
	}
	s.log.Info("acted", "verb", a.Verb, "app", a.App, "service", a.Service, "actor", p.Actor(), "reason", a.Reason)
	return writeJSON(w, done)
}
