package show

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// Explained is the answer first, then what it rests on.
func Explained(s *screen.Screen, e *ring.Explained, now time.Time) {
	name := e.App + "/" + e.Service
	if e.Slot > 0 {
		name += "/" + strconv.Itoa(e.Slot)
	}
	s.Line(0, "  ", screen.Painted(name, screen.Bold), screen.Painted(e.Word(), wordHue(e.AsStatus())), screen.Text(e.Says))
	pair := func(key, text string) {
		if text != "" {
			s.Line(2, " ", screen.Painted(key, screen.Dim), screen.Text(text))
		}
	}
	if e.Rule != e.Says {
		rule := e.Rule
		if r := e.Rollout; r != nil && r.Reason != "" && strings.Contains(e.Says, r.Reason) {
			rule = strings.TrimSuffix(rule, ": "+r.Reason)
		}
		pair("because:", rule)
	}
	pair("next:", e.Next)
	if !e.Until.IsZero() {
		pair("until:", on(e.Until))
	}
	for _, wait := range e.Waits {
		if !strings.Contains(e.Rule, wait) {
			pair("waits for:", wait)
		}
	}
	if r := e.Refusal; r != nil {
		Refusal(s, 2, "", r)
	}
	once := newSaid(e.Says, e.Rule)
	if r := e.Rollout; r != nil {
		pair("rollout:", strings.TrimSuffix(fmt.Sprintf("%s %s of %s: %s", ring.RolloutWord(r.Phase, r.Code, e.Phase), r.Version.Short(), cmp.Or(r.Commit.Short(), "-"), once.tell(r.Reason)), ": "))
	}
	pair("ports:", strings.Join(e.Ports, ", "))
	showWanted(pair, e)
	for _, c := range e.Conditions {
		pair("condition:", strings.TrimSuffix(fmt.Sprintf("%s since %s: %s", conditionSays(c), on(c.Since), once.tell(c.Reason)), ": "))
	}
	for _, o := range e.Overrides {
		pair("override:", fmt.Sprintf("%s of %s by %s: %s", o.Kind, o.Target, o.Actor, o.Reason))
	}
	for _, note := range e.Notes {
		pair("note:", note)
	}
	for _, step := range e.Steps {
		when := map[bool]string{true: "under way:", false: "decided:"}[step.Now]
		pair(when, strings.TrimSpace(fmt.Sprintf("%s: %s %s", strings.TrimSpace(string(step.Kind)+" "+slotSays(step.Slot)), step.Reason, step.Far)))
	}
	for _, try := range e.Tries {
		pair("failed:", fmt.Sprintf("%s, %s: %s; again %s", try.Kind, screen.Times(try.N), try.Err, on(try.Next)))
	}
	showSeen(s, e, now)
	showTrace(s, e)
	if c := e.Crash; c != nil {
		s.Gap()
		s.Line(2, " ", screen.Painted(crashHead(c), screen.Dim), screen.Text(strings.TrimSuffix(crashSays(c)+": "+once.tell(c.Reason), ": ")))
		if c.NotRead != "" {
			s.Line(4, "", screen.Painted("log not read: "+wording.SafeLine(c.NotRead), screen.Yellow))
		}
		for _, line := range c.Log[max(0, len(c.Log)-5):] {
			s.Line(4, "", screen.Painted(line, screen.Dim))
		}
		CheckPrinted(s, 4, "", c.Checked)
	}
}

// showTrace is a line for each rule that was asked, and what it came to.
func showTrace(s *screen.Screen, e *ring.Explained) {
	if len(e.Trace) == 0 {
		return
	}
	s.Gap()
	head := []string{"RULE", "CAME TO", "REASON"}
	var rows [][]screen.Word
	for _, r := range e.Trace {
		came := r.Then
		switch {
		case r.Moved:
			came += ", a step decided"
		case r.Then == "try":
			came += ", no step"
		}
		rows = append(rows, []screen.Word{screen.Text(r.Rule), screen.Text(came), screen.Text(strings.TrimPrefix(string(r.Code)+": "+r.Says, ": "))})
	}
	s.Table(2, head, rows)
}

// on is a moment with its zone; "-" for none.
func on(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return screen.Stamp(t) + " UTC"
}

// stateHue is how an instance's state is painted.
func stateHue(state string) screen.Hue {
	switch state {
	case ring.SlotReady, ring.SlotCompleted:
		return screen.Green
	case ring.SlotCrashed, ring.SlotBackingOff, ring.SlotNotReady:
		return screen.Red
	}
	return screen.Cyan
}

func slotSays(slot int) string {
	if slot == 0 {
		return ""
	}
	return "slot " + strconv.Itoa(slot)
}

func showWanted(pair func(key, text string), e *ring.Explained) {
	if v := e.Wanted; v != nil {
		pair("wanted:", fmt.Sprintf("%d of version %s, of commit %s", v.Replicas, v.Version.Short(), cmp.Or(v.Commit.Short(), "-")))
		pair("image:", fmt.Sprintf("%s, pinned to %s (%s)", v.Image, v.Pin, v.Pinned))
	}
	if g := e.LastGood; g != nil {
		text := fmt.Sprintf("version %s of commit %s", g.Version.Short(), g.Commit.Short())
		if v := e.Wanted; v != nil && v.Differs != "" {
			text += "; since then " + v.Differs
		}
		pair("last good:", text)
	}
	var inputs []string
	for _, in := range e.Inputs {
		inputs = append(inputs, strings.TrimSuffix(in.Name+" ("+in.Says+")", " ()"))
	}
	pair("made of:", strings.Join(inputs, ", "))
}

// showSeen is what runs, and what its checks said last.
func showSeen(s *screen.Screen, e *ring.Explained, now time.Time) {
	if len(e.Instances) == 0 {
		s.Gap()
		s.Line(2, " ", screen.Text("no instance is there"))
		return
	}
	head := []string{"SLOT", "STATE", "ADDRESS", "VERSION", "IS", "COMMIT", "CRASHES", "NEXT TRY", "REASON"}
	waits := func(in ring.ExplainedInstance) bool { return in.NextTry.After(now) }
	tries := slices.ContainsFunc(e.Instances, waits)
	var rows [][]screen.Word
	for _, in := range e.Instances {
		next := "-"
		if waits(in) {
			next = on(in.NextTry)
		}
		row := []screen.Word{
			screen.Text(strconv.Itoa(in.Slot)),
			screen.Painted(in.State, stateHue(in.State)),
			screen.Text(cmp.Or(in.Address, "-")),
			screen.Text(in.Version.Short()), screen.Text(in.Stands), screen.Text(in.Commit.Short()),
			screen.Text(strconv.Itoa(in.Crashes)), screen.Text(next), screen.Text(in.Reason),
		}
		rows = append(rows, row)
	}
	if at := slices.Index(head, "NEXT TRY"); !tries {
		head = slices.Delete(head, at, at+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], at, at+1)
		}
	}
	s.Gap()
	s.Table(2, head, rows)
	beside := slices.ContainsFunc(e.Instances, func(in ring.ExplainedInstance) bool { return in.Version != e.Instances[0].Version })
	head = []string{"SLOT", "CHECK", "LAST", "TIMES", "AT", "SAYS"}
	if beside { // a slot may have one of each
		head = slices.Insert(head, 1, "VERSION")
	}
	var checks [][]screen.Word
	for _, in := range e.Instances {
		for _, r := range in.Checks {
			came := screen.Painted("passed", screen.Green)
			if !r.OK {
				came = screen.Painted("failed", screen.Red)
			}
			row := []screen.Word{screen.Text(strconv.Itoa(in.Slot)), screen.Text(r.Check), came, screen.Text(strconv.Itoa(r.Count)), screen.Text(on(r.Last)), screen.Text(r.Says)}
			if beside {
				row = slices.Insert(row, 1, screen.Text(in.Version.Short()))
			}
			checks = append(checks, row)
		}
	}
	if len(checks) > 0 {
		s.Gap()
		s.Table(2, head, checks)
	}
	for _, in := range e.Instances {
		for _, c := range in.Printed {
			of := fmt.Sprintf("%s of slot %d", cmp.Or(c.Check, "HEALTHCHECK"), in.Slot)
			CheckPrinted(s, 2, of+wording.When(beside, ", version "+in.Version.Short()+","), c.Lines)
		}
	}
}

// CheckPrinted is what a check printed that failed, under a line that says so. check is its
// name, "" where the screen has it.
func CheckPrinted(s *screen.Screen, indent int, check string, lines []string) {
	if len(lines) == 0 {
		return
	}
	s.Line(indent, " ", screen.Text("the check"), screen.Text(check), screen.Text("printed:"))
	for _, line := range lines {
		s.Line(indent+2, "", screen.Painted(wording.SafeLine(line), screen.Dim))
	}
}

// crashHead is what a record of a crash is about: not all that failed have ended.
func crashHead(c *ring.Crash) string {
	if c.ExitCode == ring.NoExit {
		return "last failure:"
	}
	return "last crash:"
}

// crashSays is when and how it ended; one that did not has no exit code.
func crashSays(c *ring.Crash) string {
	says := fmt.Sprintf("slot %d %s", c.Slot, on(c.At))
	if c.ExitCode == ring.NoExit {
		return says + ", it was running"
	}
	return fmt.Sprintf("%s, exit %d, %s", says, c.ExitCode, c.Class)
}

// saidOnce are the sentences that a screen has said.
type saidOnce []string

func newSaid(sentences ...string) *saidOnce { return (*saidOnce)(&sentences) }

// tell gives a sentence the first time, and nothing when the screen says it already.
func (t *saidOnce) tell(sentence string) string {
	for _, said := range *t {
		if strings.Contains(said, sentence) {
			return ""
		}
	}
	*t = append(*t, sentence)
	return sentence
}

// PlaceOf is what an event is about: app/service/slot as far as it goes, else
// the source.
func PlaceOf(e ring.Event) string {
	switch {
	case e.App == "":
		return cmp.Or(e.Source, "-")
	case e.Service == "":
		return e.App
	case e.Slot == 0:
		return e.App + "/" + e.Service
	}
	return fmt.Sprintf("%s/%s/%d", e.App, e.Service, e.Slot)
}
