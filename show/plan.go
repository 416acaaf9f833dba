package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// Plan is what people ask for: all of the changes, and one line where there are none. What else
// has to be known, such as a rollout that goes on, is a reason to show all.
func Plan(s *screen.Screen, c *ring.Changes, all bool, now time.Time) {
	n := 0
	for _, a := range c.Apps {
		for i := range a.Services {
			if a.Services[i].FrontOf == "" { // as status counts
				n++
			}
		}
	}
	if all || n == 0 || !c.Empty() || len(c.UnderWay) > 0 || c.Waits != "" {
		Changes(s, c, now)
		return
	}
	verb, asks := "are", "the folder"
	if n == 1 {
		verb = "is"
	}
	if c.Commit != "" {
		asks = c.Commit.Short()
	}
	showDoubts(s, c)
	s.Line(0, "  ", screen.Painted(c.Source, screen.Bold), screen.Text(fmt.Sprintf("nothing to change: %s %s as %s asks", wording.Counted(n, "service"), verb, asks)))
}

func showDoubts(s *screen.Screen, c *ring.Changes) {
	for _, doubt := range c.Doubts {
		s.Line(0, " ", screen.Painted("warning:", screen.Yellow), screen.Text(doubt))
	}
}

// Changes is a plan: a row for each service with all that decided, and below it what the
// rows have no place for. Nothing is said twice.
func Changes(s *screen.Screen, c *ring.Changes, now time.Time) {
	s.Line(0, "  ", screen.Painted(c.Source, screen.Bold), screen.Text(cmp.Or(c.Commit.Short(), "folder")))
	var rows [][]screen.Word
	var open []string // images that a registry has to be asked for
	for _, a := range c.Apps {
		for _, sv := range a.Services {
			rows = append(rows, []screen.Word{screen.Text(a.App + "/" + sv.Service), screen.Painted(string(sv.Class), classHue(sv.Class)), screen.Text(gapOf(sv)), screen.Text(reasonOfChange(sv, &open))})
		}
	}
	if len(rows) > 0 {
		s.Gap()
		s.Table(2, []string{"SERVICE", "CHANGE", "GAP", "REASON"}, rows)
	}
	notes := s.Part()
	for _, a := range c.Apps {
		for _, sv := range a.Services {
			if sv.Gap != "" {
				notes.Line(2, " ", screen.Text(a.App+"/"+sv.Service), screen.Painted("gap:", screen.Yellow), screen.Text(sv.Gap))
			}
			if sv.Order != "" {
				notes.Line(2, " ", screen.Text(a.App+"/"+sv.Service), screen.Painted("order:", screen.Dim), screen.Text(sv.Order))
			}
			if sv.Needs != "" {
				notes.Line(2, " ", screen.Text(a.App+"/"+sv.Service), screen.Painted("needs:", screen.Yellow), screen.Text(sv.Needs))
			}
		}
	}
	for _, a := range c.Apps {
		if a.Order != "" {
			notes.Line(2, " ", screen.Text(a.App), screen.Painted("order:", screen.Dim), screen.Text(a.Order))
		}
		for _, power := range a.Powers {
			notes.Line(2, " ", screen.Text(a.App), screen.Painted("power:", screen.Yellow), screen.Text(power))
		}
		for _, note := range a.Notes {
			notes.Line(2, " ", screen.Text(a.App), screen.Painted("note:", screen.Dim), screen.Text(note))
		}
	}
	if len(open) > 0 {
		notes.Line(2, " ", screen.Painted("to be resolved:", screen.Dim), screen.Text(strings.Join(open, ", ")+"; what the tag means now is looked up first"))
	}
	for i := range c.UnderWay {
		showMove(notes, &c.UnderWay[i], now)
	}
	s.Add(notes)
	s.Gap()
	for _, r := range c.Refusals {
		Refusal(s, 0, r.App, r)
	}
	showDoubts(s, c)
	if c.Awaiting != "" {
		s.Line(0, " ", screen.Painted("awaiting approval:", screen.Yellow), screen.Text(c.Awaiting))
		if c.Commit != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text("gitring approve "+c.Commit.Short()))
		}
	}
	if c.Waits != "" {
		s.Line(0, " ", screen.Painted("not yet:", screen.Yellow), screen.Text(c.Waits))
	}
	s.Line(0, " ", screen.Text(sum(c)))
}

// reasonOfChange is why a service changes, each field with its values, and with its class
// where that is not the service's. Images that are to be resolved go to open, to be told once.
func reasonOfChange(sv ring.ServiceChange, open *[]string) string {
	var plain, told []string
	for _, f := range sv.Fields {
		if slices.Contains(plain, f.Field) {
			continue
		}
		says, unresolved := strings.CutSuffix(f.Field, " to be resolved")
		says, moved := strings.CutSuffix(says, ",")
		if unresolved {
			if image := says[strings.LastIndex(says, " ")+1:]; !slices.Contains(*open, image) {
				*open = append(*open, image)
			}
		}
		plain = append(plain, f.Field)
		if unresolved && !moved && len(sv.Fields) > 1 {
			continue // it is the same one, and its tag is looked up anew
		}
		if f.Values != nil {
			says += fmt.Sprintf(" %q -> %q", f.Values.From, f.Values.To)
		}
		if f.Class != sv.Class && f.Class != "" {
			says += fmt.Sprintf(" (%s)", f.Class)
		}
		told = append(told, says)
	}
	rest, ok := strings.CutPrefix(sv.Reason, strings.Join(plain, ", "))
	if !ok || len(told) == 0 {
		return sv.Reason
	}
	return strings.Join(told, ", ") + rest
}

// showMove is what goes on of a service, or did not complete.
func showMove(s *screen.Screen, m *ring.Move, now time.Time) {
	var to []string
	for _, v := range m.From {
		to = append(to, v.Short())
	}
	says := strings.Join(to, ", ") + wording.When(len(to) > 0 && m.To != "", " -> ") + m.To.Short()
	if m.Commit != "" && says != "" {
		says += " of commit " + m.Commit.Short()
	}
	if len(m.From) > 0 {
		says += fmt.Sprintf(", %d of %d updated", m.Updated, m.Wanted)
	}
	if !m.Since.IsZero() {
		says += "," + cmp.Or(screen.Lasting(m.Since, now), " just now")
	}
	phase := screen.Painted("under way:", screen.Cyan)
	if !m.On() {
		phase = screen.Painted(ring.RolloutWord(m.Phase, m.Code, m.ServicePhase)+":", rolloutHue(m.Phase))
	}
	s.Line(2, " ", screen.Text(m.App+"/"+m.Service), phase, screen.Text(strings.TrimPrefix(says, ", ")+wording.When(m.Reason != "" && says != "", ": ")+m.Reason))
}

// gapOf says "none" where people would ask. How long one is stands below the
// table, which it would make too wide.
func gapOf(sv ring.ServiceChange) string {
	switch {
	case sv.GapSeconds > 0:
		return fmt.Sprintf("%ds", sv.GapSeconds)
	case strings.HasPrefix(sv.Gap, "waits "): // requests do, and none is lost
		return "waits"
	case sv.Gap != "":
		return "yes"
	case sv.Class == ring.ChangeRoll:
		return "none"
	}
	return "-"
}

func classHue(c ring.Class) screen.Hue {
	switch c {
	case ring.ChangeNone:
		return screen.Dim
	case ring.ChangeRecreate, ring.ChangeRemove:
		return screen.Red
	case ring.ChangeRoll:
		return screen.Yellow
	}
	return screen.Green
}

// sum is the plan in one line.
func sum(c *ring.Changes) string {
	n := map[ring.Class]int{}
	for _, a := range c.Apps {
		for _, sv := range a.Services {
			n[sv.Class]++
		}
	}
	var parts []string
	for _, x := range []struct {
		class ring.Class
		says  string
	}{
		{ring.ChangeCreate, "to create"},
		{ring.ChangeInPlace, "to change in place"},
		{ring.ChangeRoll, "to roll"},
		{ring.ChangeRecreate, "to recreate"},
		{ring.ChangeRemove, "to remove"},
	} {
		if n[x.class] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[x.class], x.says))
		}
	}
	switch {
	case len(parts) > 0:
	case len(c.Refusals) > 0:
		parts = []string{"nothing to change"}
	case len(c.UnderWay) > 0:
		parts = []string{"nothing more to change"}
	default:
		parts = []string{"nothing to do"}
	}
	parts = append(parts, movesSum(c.UnderWay)...)
	if n[ring.ChangeNone] > 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", n[ring.ChangeNone]))
	}
	if len(c.Refusals) > 0 {
		parts = append(parts, admission.CountRefused(c.Refusals))
	}
	return strings.Join(parts, ", ")
}

// movesSum counts what goes on, and what did not complete.
func movesSum(moves []ring.Move) (parts []string) {
	on := 0
	for i := range moves {
		if moves[i].On() {
			on++
		}
	}
	if on > 0 {
		parts = append(parts, fmt.Sprintf("%d under way", on))
	}
	if n := len(moves) - on; n > 0 {
		parts = append(parts, fmt.Sprintf("%d not completed", n))
	}
	return parts
}
