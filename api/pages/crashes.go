package pages

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitring/gitring/api"
)

type crashesView struct {
	Of     string
	Groups []crashGroup
	Logs   bool
}

type crashGroup struct {
	App, Service string
	Count        int
	First, Last  *moment
	Words        string
	Slots        string
	Versions     int
	Newest       *crashView
}

func crashesPage(ctx context.Context, a *asking) (*drawn, error) {
	q := a.r.URL.Query()
	ask := api.CrashQuery{App: q.Get("app"), Service: q.Get("service"), Logs: a.may(api.ScopeLogs)}
	if ask.App == "" {
		ask.Service = ""
	}
	groups, err := a.answers.Crashes(ctx, ask)
	if err != nil {
		return nil, err
	}
	v := &crashesView{Of: strings.TrimSuffix(ask.App+"/"+ask.Service, "/"), Logs: ask.Logs}
	for i := range groups {
		g := &groups[i]
		c := a.crash(&g.Newest)
		if !ask.Logs {
			c.Log, g.Words = nil, ""
		}
		v.Groups = append(v.Groups, crashGroup{
			App: g.App, Service: g.Service, Count: g.Count, First: a.clock.of(g.First), Last: a.clock.of(g.Last), Words: g.Words,
			Slots: strings.Trim(fmt.Sprint(g.Slots), "[]"), Versions: len(g.Versions), Newest: c,
		})
	}
	return &drawn{template: "crashes", title: "Crashes · " + a.status.Host, live: "status", view: v}, nil
}
