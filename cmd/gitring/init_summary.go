package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// A reason is why things are refused, without the names and values of one app.
type reason struct {
	key   string
	count int
	apps  map[string]bool
	first *ring.Refusal
}

var (
	serviceKey   = regexp.MustCompile(`^services\.[^ ]*?\.([a-z_]+)\b.*?: `)
	serviceNamed = regexp.MustCompile(`services\.[^. ]+`)
	quotedText   = regexp.MustCompile(`"[^"]*"`)
	valueLike    = regexp.MustCompile(`[^ ]*[/0-9=][^ ]*`)
	variableSays = regexp.MustCompile(`^variable \S+`)
	namedThing   = regexp.MustCompile(`\b(network|volume|service|app|container_name|container|secret|config|project) [^ ,]+`)
)

// withoutNames is a sentence as it is for every app.
func withoutNames(says string) string {
	says = variableSays.ReplaceAllString(says, "variable …")
	says = serviceKey.ReplaceAllString(says, "$1: ")
	says = serviceNamed.ReplaceAllString(says, "services.…")
	says = quotedText.ReplaceAllString(says, "…")
	says = valueLike.ReplaceAllString(says, "…")
	return namedThing.ReplaceAllString(says, "$1 …")
}

// byReason groups refusals, the most frequent reason first.
func byReason(refusals []*ring.Refusal) []reason {
	at := map[string]int{}
	var out []reason
	for _, r := range refusals {
		key := string(r.Code) + " " + withoutNames(r.Says)
		if r.Variable != "" {
			key = "a variable" // each says in its own words what it is for
		}
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, reason{key: key, apps: map[string]bool{}, first: r})
		}
		out[i].count++
		out[i].apps[r.App] = true
	}
	slices.SortStableFunc(out, func(a, b reason) int { return b.count - a.count })
	return out
}

// What is shown one by one; more than that is counted.
const (
	fewServices = 20
	fewLines    = 12
)

// showFirstPlan is a plan in full where it is short, else in numbers.
func (in *initial) showFirstPlan(s *screen.Screen) {
	c := in.out.Plan
	services, notes, powers := 0, 0, 0
	for _, a := range c.Apps {
		services += len(a.Services)
		notes += len(a.Notes)
		powers += len(a.Powers)
	}
	if services <= fewServices && notes+powers <= fewLines && len(c.Refusals) <= fewLines {
		showChanges(s, c, in.g.now())
		return
	}
	s.Line(2, " ", screen.Painted("planned", screen.Green), screen.Text(fmt.Sprintf("%s with %s", wording.Counted(len(c.Apps), "app"), wording.Counted(services, "service"))))
	if powers > 0 {
		s.Line(2, " ", screen.Painted("powers", screen.Yellow), screen.Text(fmt.Sprintf("%d: what apps may do beyond Docker's defaults", powers)))
	}
	if notes > 0 {
		s.Line(2, " ", screen.Painted("notes", screen.Dim), screen.Text(fmt.Sprint(notes)))
	}
	for _, n := range []struct{ begins, says string }{
		{reconcile.NoRestartNote, "%s with services without restart, which is always here: write restart: \"no\" for what ends by itself"},
		{reconcile.PinnedNote, "%s with tags such as latest, pinned to the digest that each has now: another tag in a commit, gitring refresh <app> or pull_policy: always moves it"},
	} {
		if apps := appsNoted(c, n.begins); apps > 0 {
			s.Line(4, " ", screen.Text(fmt.Sprintf(n.says, wording.Counted(apps, "app"))))
		}
	}
	if len(c.Refusals) > 0 {
		s.Line(2, " ", screen.Painted("refused", screen.Red), screen.Text(strings.TrimSuffix(refusedSum(c.Refusals), " refused")+", by reason:"))
	}
	for _, r := range byReason(c.Refusals) {
		if r.count > 1 {
			s.Line(2, " ", screen.Painted(fmt.Sprintf("%d times in %s, the first:", r.count, wording.Counted(len(r.apps), "app")), screen.Dim))
		}
		showRefusal(s, 4, r.first.App, r.first)
	}
}

// appsNoted counts the apps with a note that begins so.
func appsNoted(c *ring.Changes, begins string) (n int) {
	for _, a := range c.Apps {
		if slices.ContainsFunc(a.Notes, func(note string) bool { return strings.HasPrefix(note, begins) }) {
			n++
		}
	}
	return n
}
