package pages

import (
	"context"
	"slices"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

type appPageView struct {
	AppView *appView
	Name    string
	Source  string
	Powers  []string
	Notes   []string
	Commits []commitRow
}

// commitsOfApp are how many commits the page of an app shows.
const commitsOfApp = 8

func appPage(ctx context.Context, a *asking) (*drawn, error) {
	src, app, err := a.findApp(a.r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	commits, err := a.answers.Commits(ctx, api.HistoryQuery{App: app.Name, Limit: commitsOfApp})
	if err != nil {
		return nil, err
	}
	v := &appPageView{AppView: a.app(app), Name: app.Name, Source: src.Name, Powers: app.Powers, Notes: app.Notes}
	v.AppView.Signer = a.signedBy(ctx, app.Commit).signer
	for i := range commits {
		v.Commits = append(v.Commits, a.commitRow(&commits[i]))
	}
	return &drawn{template: "app", title: titleOf(app.Name, a.status.Host, []Mark{v.AppView.Mark}), live: "status", view: v}, nil
}

// findApp is an app of the status by its name.
func (a *asking) findApp(name string) (*ring.SourceStatus, *ring.AppStatus, error) {
	for i := range a.status.Sources {
		src := &a.status.Sources[i]
		if j := slices.IndexFunc(src.Apps, func(x ring.AppStatus) bool { return x.Name == name }); j >= 0 {
			return src, &src.Apps[j], nil
		}
	}
	return nil, nil, api.NotFound("the page of now has all there are", "this host has no app %s", name)
}

// findService is a service of the status; nil where it is only seen, or gone.
func (a *asking) findService(app, name string) *ring.ServiceStatus {
	if _, found, err := a.findApp(app); err == nil {
		for i := range found.Services {
			if found.Services[i].Name == name {
				return &found.Services[i]
			}
		}
	}
	return nil
}

// noPage is what every other path is.
func noPage(context.Context, *asking) (*drawn, error) {
	return nil, api.NotFound("begin at the page of now", "there is no such page")
}
