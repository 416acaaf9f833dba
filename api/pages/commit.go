package pages

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// journalBack is how much of the journal the page of a commit, and a timeline, look through.
const journalBack = 2000

// commitsBack is how many commits are looked through.
const commitsBack = 200

var shaOf = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

type commitView struct {
	commitRow
	Known  bool
	Trust  string // how it came to be trusted
	Places []commitPlace
	Lines  []commitLine
	Apps   []string // in force at this commit
	Acts   bool
	Next   bool // it is the one that waits
}

// commitPlace is what of the host runs a commit, or was to run it.
type commitPlace struct {
	App, Service string
	Mark         Mark
	Says         string
}

type commitLine struct {
	At                         *moment
	Kind, Place, Actor, Reason string
}

// commitRow is a commit in a list.
type commitRow struct {
	Commit  ring.SHA
	Source  string
	At      *moment
	Subject string
	Signer  string
	Mark    Mark
	Says    string
	// Back reports whether it did something here, which another commit could take back.
	Back bool
}

func (a *asking) commitRow(c *api.CommitNow) commitRow {
	return commitRow{Commit: c.Commit, Source: c.Source, At: a.clock.of(c.At), Subject: c.Subject, Signer: c.Signer, Mark: markOf(c.Outcome), Says: c.Says, Back: c.Outcome != api.OutcomeRefused && c.Outcome != api.OutcomeAwaiting && c.Outcome != api.OutcomeHeld}
}

func commitPage(ctx context.Context, a *asking) (*drawn, error) {
	sha := a.r.PathValue("sha")
	if !shaOf.MatchString(sha) {
		return nil, api.NotFound("a commit has 7 to 40 hex digits", "there is no such commit")
	}
	commits, err := a.answers.Commits(ctx, api.HistoryQuery{Limit: commitsBack})
	if err != nil {
		return nil, err
	}
	v := &commitView{Acts: a.may(api.ScopeOperate)}
	v.Commit, v.Mark = ring.SHA(sha), Mark{Word: "seen", Shape: "open", Tone: toneOff}
	if i := slices.IndexFunc(commits, func(c api.CommitNow) bool { return strings.HasPrefix(string(c.Commit), sha) }); i >= 0 {
		v.commitRow, v.Known = a.commitRow(&commits[i]), true
	}
	a.placesOf(v)
	if err := a.linesOf(ctx, v); err != nil {
		return nil, err
	}
	if !v.Known && len(v.Places)+len(v.Lines) == 0 {
		return nil, api.NotFound("the page of history has those that are known", "commit %s is not known here", ring.SHA(sha).Short())
	}
	return &drawn{template: "commit", title: v.Commit.Short() + " · " + a.status.Host, live: "status", view: v}, nil
}

// placesOf adds what runs the commit, and what the sources say of it.
func (a *asking) placesOf(v *commitView) {
	is := func(c ring.SHA) bool { return c != "" && strings.HasPrefix(string(c), string(v.Commit)) }
	for i := range a.status.Sources {
		src := &a.status.Sources[i]
		if is(src.Commit) || is(src.Trusted) {
			v.Source, v.Subject, v.Signer = src.Name, cmp.Or(v.Subject, src.Subject), cmp.Or(v.Signer, src.Signer)
			v.Trust = src.Note
		}
		v.Next = v.Next || src.Next != nil && is(src.Next.Commit)
		for j := range src.Apps {
			app := &src.Apps[j]
			if is(app.Commit) {
				v.Apps = append(v.Apps, app.Name)
			}
			if app.Refusal != nil && is(app.Refusal.Commit) {
				v.Places = append(v.Places, commitPlace{App: app.Name, Mark: markOf(string(ring.SyncRefused)), Says: app.Refusal.Says})
			}
			for k := range app.Services {
				sv := &app.Services[k]
				if is(sv.Running) || is(sv.Commit) { // a service that kept the one before says why
					v.Places = append(v.Places, commitPlace{app.Name, sv.Name, serviceMark(sv), sv.Reason})
				}
			}
		}
	}
}

// linesOf adds what the journal says of the commit.
func (a *asking) linesOf(ctx context.Context, v *commitView) error {
	return a.answers.Events(ctx, api.EventQuery{Last: journalBack}, func(e ring.Event) error {
		if e.Commit == "" || !strings.HasPrefix(string(e.Commit), string(v.Commit)) || e.Kind == ring.InstanceStep {
			return nil
		}
		if e.Kind == ring.CommitAccepted && e.Reason != "" {
			v.Trust = e.Reason
		}
		v.Lines = append(v.Lines, commitLine{a.clock.of(e.At), e.Kind, placeOf(&e), e.Actor, e.Reason})
		return nil
	})
}

// placeOf is what a line of the journal is about.
func placeOf(e *ring.Event) string {
	switch {
	case e.App == "":
		return e.Source
	case e.Service == "":
		return e.App
	}
	return e.App + "/" + e.Service
}
