package pages

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/wording"
)

type crashesView struct {
	Of     string
	Groups []crashGroup
	Logs   bool
}

type crashGroup struct {
	App, Service string
	Mark         Mark
	Count        int
	First, Last  *moment
	Words        string
	Slots        string
	Versions     int
	Newest       *crashView
}

// unready is the class of what did not crash: it ran, and a rollout gave it up.
const unready = "unready"

// crashMark says how often something crashed, or was given up.
func crashMark(g *api.CrashGroup) Mark {
	if g.Newest.Class == unready {
		return Mark{Word: "not ready, " + wording.Counted(g.Count, "time"), Shape: "triangle", Tone: toneBad}
	}
	return Mark{Word: wording.Counted(g.Count, "crash"), Shape: "cross", Tone: toneBad}
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
			c.Log, c.Checked, g.Words = nil, nil, ""
		}
		v.Groups = append(v.Groups, crashGroup{
			App: g.App, Service: g.Service, Mark: crashMark(g), Count: g.Count, First: a.clock.of(g.First), Last: a.clock.of(g.Last), Words: g.Words,
			Slots: strings.Trim(fmt.Sprint(g.Slots), "[]"), Versions: len(g.Versions), Newest: c,
		})
	}
	return &drawn{template: "crashes", title: "Crashes · " + a.status.Host, live: "status", view: v}, nil
}
