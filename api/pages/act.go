package pages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// act is one thing that a person can do by hand.
type act struct {
	Verb string
	Does string // what will happen
	// command is the one that does the same, without target and reason.
	command string
	// lasts is how long it stands at first; "" for what is over when it is done.
	Lasts string
	// on is what it can be done to.
	onApp, onWorker, onJob bool
}

// acts are all that a page offers. None of them deploys: Git alone does.
var acts = []act{
	{"hold", "Nothing of it is created, started, stopped, healed or removed, and what you stop stays stopped. A held app takes no newer plan. When it ends, Git wins again.", "hold", "4h", true, true, true},
	{"release", "Every override on it ends: hold, pause, scale and undo. Git wins again at once.", "release", "", true, true, true},
	{"undo", "The plan that completed before the one in force comes back, with the images it ran. A newer commit of the app waits until the undo ends.", "rollout undo", "4h", true, false, false},
	{"retry", "What failed is tried once more: a version that was given up is rolled out again, a failed job runs again, and what waits for its next try does not wait.", "retry", "", true, true, true},
	{"refresh", "The names of its images are looked up anew. A name that means another image now is a new version, which is rolled out.", "refresh", "", true, true, false},
	{"pause", "Its rollout stops where it is. What runs is still healed.", "rollout pause", "4h", false, true, false},
	{"resume", "A paused rollout goes on.", "rollout resume", "", false, true, false},
	{"promote", "A rollout that waits for a yes goes on: the new version takes over.", "rollout promote", "", false, true, false},
	{"abort", "Its rollout is given up, and the last good version comes back.", "rollout abort", "", false, true, true},
	{"restart", "Its instances are replaced by new ones of the same version, as by a rollout: without a gap where the strategy has none.", "rollout restart", "", false, true, false},
	{"scale", "Another number of instances runs, in the place of what the commit says.", "scale", "1h", false, true, false},
	{"run", "The job runs once, now.", "run", "", false, false, true},
}

type actView struct {
	App, Service, Target string
	Back                 string
	Mark                 Mark
	Says                 string
	Overrides            []overrideView
	Choices              []act
	Others               []cannot // that cannot be done now
	Act                  *act
	Cannot               *cannot   // why Act cannot
	Earlier              *backView // what an undo brings back
	Undo                 *undoView // of the whole app, on the page of a service
	Path                 string
	Command              string
	Reason, For, To      string
	Replicas             string
	Error                *failView
	Done                 string
	Until                *moment
}

// cannot is an act that cannot be done now.
type cannot struct{ Verb, Why, Hint string }

// undoView leads from a service to the undo of its app: people look for it there.
type undoView struct {
	App, Path string
	Commit    ring.SHA
	Subject   string
}

// undoOfApp says what an undo of the whole app brings back, or why it cannot be now.
func (v *actView) undoOfApp(ctx context.Context, a *asking) error {
	all, err := a.answers.Acts(ctx, api.ActsQuery{App: v.App})
	if errors.Is(err, api.ErrNotFound) {
		return nil // it is of an earlier release
	}
	for i := range all {
		now := &all[i]
		switch {
		case now.Verb != "undo":
		case now.Why != "":
			v.Others = append(v.Others, cannot{"undo " + v.App, now.Why, now.Hint})
		default:
			v.Undo = &undoView{App: v.App, Path: a.h.path("act", v.App) + "?verb=undo"}
			if now.Back != nil {
				v.Undo.Commit, v.Undo.Subject = now.Back.Commit, now.Back.Subject
			}
		}
	}
	return err
}

// backView is what an undo brings back.
type backView struct {
	Commit          ring.SHA
	Subject, Signer string
	Services        []plannedService
	Same            int
}

// now says which of the choices can be done now. A daemon that does not tell is believed to take
// all of them: it judges each when it is asked.
func (v *actView) now(ctx context.Context, a *asking) error {
	all, err := a.answers.Acts(ctx, api.ActsQuery{App: v.App, Service: v.Service, To: toOf(v.To)})
	if errors.Is(err, api.ErrNotFound) {
		return nil // it is of an earlier release
	}
	if err != nil {
		return err
	}
	for i := range all {
		now := &all[i]
		at := slices.IndexFunc(v.Choices, func(x act) bool { return x.Verb == now.Verb })
		if at < 0 {
			continue
		}
		if now.Why != "" {
			no := cannot{now.Verb, now.Why, now.Hint}
			v.Others = append(v.Others, no)
			if v.Act != nil && v.Act.Verb == now.Verb && a.r.Method != http.MethodPost && v.To == "" {
				v.Cannot = &no
			}
		}
		if b := now.Back; b != nil && (v.Act == nil || v.Act.Verb == now.Verb) { // no other act brings it back
			p := &planned{}
			p.app(&b.Changes)
			v.Earlier = &backView{Commit: b.Commit, Subject: b.Subject, Signer: b.Signer, Same: p.Same}
			for _, app := range p.Apps {
				v.Earlier.Services = append(v.Earlier.Services, app.Services...)
			}
		}
	}
	v.Choices = slices.DeleteFunc(v.Choices, func(x act) bool {
		return slices.ContainsFunc(v.Others, func(no cannot) bool { return no.Verb == x.Verb })
	})
	return nil
}

// toOf is a commit that somebody typed; "" where it is none.
func toOf(typed string) ring.SHA {
	if !shaOf.MatchString(typed) {
		return ""
	}
	return ring.SHA(typed)
}

func actPage(ctx context.Context, a *asking) (*drawn, error) {
	v := &actView{App: a.r.PathValue("app"), Service: a.r.PathValue("service")}
	v.Target = strings.TrimSuffix(v.App+"/"+v.Service, "/")
	v.Path, v.Back = a.h.path("act", v.App), a.h.path("app", v.App)
	_, app, err := a.findApp(v.App)
	if err != nil {
		return nil, err
	}
	v.Mark, v.Says, v.Overrides = appMark(app), app.Reason, a.overrides(v.App)
	fits := func(x act) bool { return x.onApp }
	if v.Service != "" {
		v.Path, v.Back = a.h.path("act", v.App, v.Service), a.h.path("svc", v.App, v.Service)
		sv := a.findService(v.App, v.Service)
		if sv == nil {
			return nil, api.NotFound("the page of now has all there are", "this host has no service %s", v.Target)
		}
		v.Mark, v.Says = serviceMark(sv), sv.Reason
		v.Replicas = strconv.Itoa(sv.Wanted)
		fits = func(x act) bool { return x.onWorker && !sv.Kind.Ends() || x.onJob && sv.Kind.Ends() }
	}
	for _, x := range acts {
		if fits(x) {
			v.Choices = append(v.Choices, x)
		}
	}
	d := &drawn{template: "act", title: v.Target + " · " + a.status.Host, view: v}
	verb := a.r.FormValue("verb")
	if verb == "" {
		if err := v.now(ctx, a); err != nil || v.Service == "" {
			return d, err
		}
		return d, v.undoOfApp(ctx, a)
	}
	i := slices.IndexFunc(v.Choices, func(x act) bool { return x.Verb == verb })
	if i < 0 {
		return nil, api.NotFound("its page has what fits", "%q cannot be done to %s", verb, v.Target)
	}
	chosen := v.Choices[i]
	v.Act, v.For = &chosen, chosen.Lasts
	d.title = verb + " " + d.title
	v.To = a.r.FormValue("to")
	if a.r.Method == http.MethodPost {
		v.Reason, v.For = strings.TrimSpace(a.r.PostFormValue("reason")), a.r.PostFormValue("for")
		if v.Act.Verb == "scale" {
			v.Replicas = a.r.PostFormValue("replicas")
		}
		d.code = v.carry(ctx, a)
	}
	v.Command = v.command()
	if v.Done != "" {
		return d, nil
	}
	return d, v.now(ctx, a)
}

// carry has the daemon do it, and says what came of it.
func (v *actView) carry(ctx context.Context, a *asking) int {
	r := api.ActRequest{Verb: v.Act.Verb, App: v.App, Service: v.Service, Reason: v.Reason, For: v.For, To: ring.SHA(v.To)}
	err := error(nil)
	if r.Reason == "" {
		err = api.Usage("it is journalled, and shown for as long as the act stands", "a reason is required")
	}
	if r.Verb == "scale" && err == nil {
		if r.Replicas, err = strconv.Atoi(v.Replicas); err != nil || r.Replicas < 0 {
			err = api.Usage("write a number from 0", "a service cannot have that many replicas")
		}
	}
	if err == nil && r.Verb == "refresh" {
		var found []api.ImageNow
		if found, err = a.answers.Refresh(ctx, api.RefreshRequest{App: v.App, Service: v.Service, Reason: v.Reason}); err == nil {
			newer := 0
			for i := range found {
				if found[i].Newer {
					newer++
				}
			}
			v.Done = fmt.Sprintf("%s looked up, %d of them newer", wording.Counted(len(found), "image"), newer)
			return http.StatusOK
		}
	}
	if err == nil {
		var done api.Acted
		if done, err = a.answers.Act(ctx, r); err == nil {
			v.Done, v.Until = done.Says, a.clock.of(done.Until)
			return http.StatusOK
		}
	}
	f := failOf(err)
	v.Error = &f
	return f.Code
}

// command does the same in a shell. What somebody typed is not in it: it would have to be
// quoted for a shell.
func (v *actView) command() string {
	out := "gitring " + v.Act.command + " " + v.Target
	if v.Act.Verb == "scale" {
		out += "=" + wording.When(isNumber(v.Replicas), v.Replicas)
	}
	if d, err := time.ParseDuration(v.For); v.Act.Lasts != "" && err == nil && d > 0 {
		out += " --for " + v.For
	}
	if shaOf.MatchString(v.To) {
		out += " --to " + v.To
	}
	return out + " --reason '…'"
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

type approveView struct {
	Commit  ring.SHA
	Subject string
	Signer  string
	Instead ring.SHA // that is in force
	Source  string
	Why     string
	Plan    *planned
	Reason  string
	Command string
	Error   *failView
	Done    string
}

func approvePage(ctx context.Context, a *asking) (*drawn, error) {
	sha := a.r.PathValue("sha")
	if !shaOf.MatchString(sha) {
		return nil, api.NotFound("a commit has 7 to 40 hex digits", "there is no such commit")
	}
	v := &approveView{Commit: ring.SHA(sha), Command: "gitring approve " + ring.SHA(sha).Short() + " --reason '…'"}
	d := &drawn{template: "approve", title: "approve " + v.Commit.Short() + " · " + a.status.Host, view: v}
	if a.r.Method == http.MethodPost {
		v.Reason = strings.TrimSpace(a.r.PostFormValue("reason"))
		err := error(nil)
		if v.Reason == "" {
			err = api.Usage("it is journalled", "a reason is required")
		} else {
			err = a.answers.Approve(ctx, api.ApproveRequest{Commit: v.Commit, Reason: v.Reason})
		}
		if err == nil {
			v.Done = "approved: it is carried out as soon as nothing else is in its way"
			return d, nil
		}
		f := failOf(err)
		v.Error, d.code = &f, f.Code
	}
	for i := range a.status.Sources {
		src := &a.status.Sources[i]
		if n := src.Next; n != nil && n.AwaitsYes() && strings.HasPrefix(string(n.Commit), sha) {
			v.Commit, v.Source, v.Why, v.Instead = n.Commit, src.Name, n.Reason, src.Commit
			v.Plan = a.plannedOf(ctx, src, "")
			v.Subject, v.Signer = v.Plan.Subject, v.Plan.Signer
			v.Plan.Why, v.Plan.Approve = "", false
		}
	}
	return d, nil
}

type syncView struct {
	Source, Branch string
	Checked        *moment
	Error          *failView
	Done           bool
}

// syncPage has a source look at its remote soon.
func syncPage(ctx context.Context, a *asking) (*drawn, error) {
	v := &syncView{Source: a.r.PathValue("source")}
	i := slices.IndexFunc(a.status.Sources, func(s ring.SourceStatus) bool { return s.Name == v.Source })
	if i < 0 {
		return nil, api.NotFound("the page of now has all there are", "this host has no source %s", v.Source)
	}
	v.Branch, v.Checked = a.status.Sources[i].Branch, a.clock.of(a.status.Sources[i].Checked)
	d := &drawn{template: "sync", title: "sync " + v.Source + " · " + a.status.Host, view: v}
	if a.r.Method == http.MethodPost {
		if err := a.answers.Sync(ctx, v.Source); err != nil {
			f := failOf(err)
			v.Error, d.code = &f, f.Code
			return d, nil
		}
		v.Done = true
	}
	return d, nil
}
