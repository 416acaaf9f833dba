package pages

import (
	"bytes"
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
)

// logLines are how many lines a page shows; the script goes on to 2,000.
const logLines = 200

type logsView struct {
	App, Name string
	// Search is a page with a form, which is not live.
	Search bool
	Query  string
	Follow string
	Lines  []logLine
	Many   bool // of instances
}

type logLine struct {
	Who, At, Text string
}

// paint is what programs colour their lines with.
var paint = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")

func logsPage(ctx context.Context, a *asking) (*drawn, error) {
	v := &logsView{App: a.r.PathValue("app"), Name: a.r.PathValue("service")}
	q := a.r.URL.Query()
	v.Search, v.Query = q.Has("q"), q.Get("q")
	ask := api.LogQuery{App: v.App, Service: v.Name, Tail: logLines, Timestamps: true}
	if v.Query != "" {
		ask.Text, ask.Tail = v.Query, -1
	}
	if !v.Search || v.Query != "" {
		var b bytes.Buffer
		if err := a.answers.Logs(ctx, ask, &b); err != nil {
			return nil, err
		}
		v.Lines, v.Many = linesOf(b.String())
	}
	d := &drawn{template: "logs", title: "logs of " + v.App + "/" + v.Name + " · " + a.status.Host, view: v}
	if !v.Search {
		d.live = "logs"
		v.Follow = "/v1/logs?" + url.Values{"app": {v.App}, "service": {v.Name}, "follow": {"1"}, "timestamps": {"1"}, "tail": {"200"}}.Encode()
	}
	return d, nil
}

// linesOf are the newest lines, in the order of their times, and whether they are of several
// instances.
func linesOf(text string) (out []logLine, many bool) {
	type timed struct {
		logLine
		at time.Time
	}
	var all []timed
	var last time.Time
	for line := range strings.Lines(text) {
		who, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " | ")
		stamp, words, _ := strings.Cut(rest, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		l := timed{logLine: logLine{Who: who}, at: last}
		if err == nil {
			l.at, l.At, rest = at, at.UTC().Format("15:04:05"), words
		}
		last = l.at
		l.Text = paint.ReplaceAllString(rest, "")
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(x, y timed) int { return cmp.Compare(x.at.UnixNano(), y.at.UnixNano()) })
	for _, l := range all[max(0, len(all)-logLines):] {
		many = many || l.Who != all[len(all)-1].Who
		out = append(out, l.logLine)
	}
	return out, many
}
