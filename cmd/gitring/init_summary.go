package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/setup"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

// A reason is why things are refused, without the names and values of one app.
type reason struct {
	key   string
	count int
	apps  map[string]bool
	first *ring.Refusal
	// lacking are, by name, how many apps lack a variable; nil where it is about none.
	lacking map[string]map[string]bool
}

// variables names the variables that apps lack, those of most apps first; "" where there are
// no two.
func (r *reason) variables() string {
	if len(r.lacking) < 2 {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(r.lacking), func(a, b string) int {
		return cmp.Or(len(r.lacking[b])-len(r.lacking[a]), strings.Compare(a, b))
	})
	more := ""
	if n := len(names); n > fewVariables {
		names, more = names[:fewVariables], fmt.Sprintf(" and %d more", n-fewVariables)
	}
	for i, name := range names {
		if n := len(r.lacking[name]); n > 1 {
			names[i] = fmt.Sprintf("%s (%d apps)", name, n)
		}
	}
	return "all of them: " + strings.Join(names, ", ") + more
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
		if r.Variable == "" {
			continue
		}
		if out[i].lacking == nil {
			out[i].lacking = map[string]map[string]bool{}
		}
		if out[i].lacking[r.Variable] == nil {
			out[i].lacking[r.Variable] = map[string]bool{}
		}
		out[i].lacking[r.Variable][r.App] = true
	}
	slices.SortStableFunc(out, func(a, b reason) int { return b.count - a.count })
	return out
}

// What is shown one by one; more than that is counted.
const (
	fewServices  = 20
	fewLines     = 12
	fewVariables = 24
)

// showFirstPlan is a plan in full where it is short, else in numbers.
func showFirstPlan(s *screen.Screen, c *ring.Changes, now time.Time) {
	services, notes, powers := 0, 0, 0
	for _, a := range c.Apps {
		services += len(a.Services)
		notes += len(a.Notes)
		powers += len(a.Powers)
	}
	if services <= fewServices && notes+powers <= fewLines && len(c.Refusals) <= fewLines {
		show.Changes(s, c, now)
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
		{reconcile.NoRestartNote, "%s with services that write no restart, so what ends is started again: write restart: \"no\" for what ends by itself"},
		{reconcile.PinnedNote, "%s with tags such as latest, pinned to the digest that each has now: a change of the service, gitring refresh <app> or pull_policy: always moves it"},
	} {
		if apps := appsNoted(c, n.begins); apps > 0 {
			s.Line(4, " ", screen.Text(fmt.Sprintf(n.says, wording.Counted(apps, "app"))))
		}
	}
	if len(c.Refusals) > 0 {
		s.Line(2, " ", screen.Painted("refused", screen.Red), screen.Text(strings.TrimSuffix(admission.CountRefused(c.Refusals), " refused")+", by reason:"))
	}
	for _, r := range byReason(c.Refusals) {
		if r.count > 1 {
			s.Line(2, " ", screen.Painted(fmt.Sprintf("%d times in %s, the first:", r.count, wording.Counted(len(r.apps), "app")), screen.Dim))
		}
		show.Refusal(s, 4, r.first.App, r.first)
		if names := r.variables(); names != "" {
			s.Line(6, " ", screen.Text(names))
		}
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

// showFound shows all that was found, before anything is done about it.
func (g *globals) showFound(in *setup.Setup) error {
	s, o := g.screen(), &in.Result
	row := func(key string, words ...screen.Word) {
		s.Line(0, " ", append([]screen.Word{screen.Painted(fmt.Sprintf("%-11s", key), screen.Dim)}, words...)...)
	}
	row("repository", screen.Text(o.Repository))
	row("follows", screen.Painted(o.URL, screen.Bold), screen.Text("branch "+o.Branch), screen.Text(wording.When(o.Path != ".", "folder "+o.Path)), screen.Text("at "+in.Tip.Short()))
	row("host", screen.Painted(o.Host, screen.Bold), screen.Text("source "+o.Source))
	row("signer", screen.Painted(o.Signer, screen.Bold), screen.Text(o.Fingerprint), screen.Text("("+o.KeyPlace()+")"))
	row("trust", screen.Painted(o.Mode, screen.Bold), screen.Text("- "+modeSays(o.Mode)))
	switch {
	case o.Introduction != "" && o.Refusal != nil:
		row("history", screen.Text("begins at "+o.Introduction.Short()+" by the word of config.yaml alone:"), screen.Painted(string(o.Refusal.Code), screen.Yellow), screen.Text(o.Refusal.Says))
	case o.Introduction == in.Tip:
		row("history", screen.Text("begins at "+o.Introduction.Short()+", which that key signed"))
	case o.Introduction != "":
		row("history", screen.Text("begins at "+o.Introduction.Short()))
	default:
		row("history", screen.Painted(string(o.Refusal.Code), screen.Yellow), screen.Text(o.Refusal.Says))
	}
	row("policy", screen.Painted(o.Profile, screen.Bold), screen.Text("- "+profileSays(o.Profile)))
	if len(o.Folders) > 0 {
		row("folders", screen.Text(strings.Join(o.Folders, ", ")))
	}
	if o.Grants > 0 {
		row("grants", screen.Text(fmt.Sprintf("%d, each with the line that asks for it, in %s", o.Grants, in.PolicyFile())))
	}
	for _, w := range o.Withheld {
		row("no grants", screen.Text(fmt.Sprintf("to %s, for %s (%s), which %s", strings.Join(w.Apps, ", "), w.Asks, w.At, w.Risk)))
		s.Line(12, " ", screen.Painted("hint:", screen.Dim), screen.Text(w.Hint)) // below the words, which start there
	}
	row("apps", screen.Text(cmp.Or(strings.Join(o.Apps, ", "), "none")))
	for _, l := range o.LeftOut {
		row("left out", screen.Text(fmt.Sprintf("%s: %s is kept, and one host runs one of them: %s", l.App, l.Kept, l.Because)))
	}
	for _, says := range o.NotRead {
		row("not read", screen.Text(says))
	}
	s.Gap()
	if o.Engine != "" {
		s.Line(0, " ", screen.Painted("note:", screen.Yellow), screen.Text("no engine says what runs here already: "+o.Engine))
	}
	s.Line(0, "", screen.Painted("The first plan, for a host on which nothing of gitring runs yet:", screen.Bold))
	showFirstPlan(s, o.Plan, g.now())
	s.Gap()
	_, err := fmt.Fprint(g.out, s)
	return err
}

// profileSays is what a profile means for the host.
func profileSays(profile string) string {
	switch policy.Profile(profile) {
	case policy.Owner:
		return "who signs owns this host"
	case policy.Compose:
		return "who signs changes apps, and gets nothing of the host that is not granted"
	}
	return "as compose, and every service has to confine itself"
}

// modeSays is what a trust mode means for those who work with it.
func modeSays(mode string) string {
	switch mode {
	case "strict":
		return "every commit and merge is signed by a person"
	case "forge-merge":
		return "people sign what they write, and the forge's buttons land it"
	}
	return "as the configuration says"
}

// showDone tells what was done and what comes next.
func (g *globals) showDone(in *setup.Setup) error {
	s, o := g.screen(), &in.Result
	done := in.Made != ""
	if done {
		s.Line(0, " ", screen.Painted("committed", screen.Green), screen.Text(in.Made.Short()), screen.Text("trust begins here"))
	}
	for _, f := range o.Wrote {
		done = true
		s.Line(0, " ", screen.Painted("wrote", screen.Green), screen.Text(f))
	}
	for _, x := range o.Git {
		switch {
		case x.Made:
			done = true
			s.Line(0, " ", screen.Painted("set", screen.Green), screen.Text(x.Key+" "+x.Value))
		case !x.Set:
			s.Line(0, " ", screen.Painted("not set:", screen.Yellow), screen.Text("git config "+x.Key+" "+x.Value))
		}
	}
	if !done {
		s.Line(0, "", screen.Text("nothing was changed: the files are in place"))
	}
	if len(o.Undo) > 0 {
		s.Line(0, "", screen.Painted("to undo it:", screen.Dim))
		for _, command := range o.Undo {
			s.Pasted(2, command)
		}
	}
	if o.NeedsTouch() {
		s.Line(0, " ", screen.Painted("note:", screen.Dim), screen.Text("the key is on a security key: each commit asks for a touch"))
	}
	s.Gap()
	s.Line(0, "", screen.Painted("Next:", screen.Bold))
	for i, step := range o.Next {
		showStep(s, fmt.Sprintf("%d.", i+1), step, o.Commands[i])
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

// showStep writes one thing to do. On a terminal where it takes more than a line its commands
// have lines of their own, which nothing breaks: they are to be pasted.
func showStep(s *screen.Screen, number, step string, commands []string) {
	indent := 2
	if width := s.LineWidth(); width == 0 || indent+len(number)+1+utf8.RuneCountInString(step) <= width {
		s.Line(indent, " ", screen.Text(number), screen.Text(step))
		return
	}
	say := func(text string) {
		s.Line(indent, " ", screen.Text(number), screen.Text(text))
		indent, number = 4, ""
	}
	for _, c := range commands {
		before, after, found := strings.Cut(step, c)
		if !found {
			continue
		}
		say(strings.TrimSpace(before))
		s.Pasted(indent, c)
		step = strings.TrimLeft(after, " ,;")
	}
	say(step)
}
