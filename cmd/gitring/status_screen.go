package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// view is how a status is looked at.
type view struct {
	wide bool
	now  time.Time
	// picked, if set, are the services that have room; what is wrong stands first.
	picked map[*ring.ServiceStatus]bool
	// problems leaves out what is well.
	problems bool
	usage    map[string]ring.Usage // by container ID; nil where nobody asked
	// overrides stand in a table of their own: what they say is said there.
	overrides []ring.Override
}

// showStatus is the one screen of "gitring status".
func showStatus(s *screen, st *ring.Status, v view) {
	v.overrides = st.Overrides
	s.line(0, "  ", painted(st.Host, bold), w("gitring "+st.Gitring))
	if st.Store != "" {
		s.line(0, " ", painted("store:", red), w(st.Store))
	}
	if st.Engine != "" {
		s.line(0, " ", painted("engine:", red), w(st.Engine))
	}
	if st.Config != "" {
		s.line(0, " ", painted("configuration:", red), w("not read anew: "+st.Config))
	}
	for _, r := range st.Receivers {
		s.line(0, " ", painted("warning:", yellow), w(receiverSays(r)))
	}
	if len(st.Sources) == 0 {
		s.line(0, " ", w("no sources"))
	}
	for _, src := range st.Sources {
		s.gap()
		showSource(s, src, v.now)
		showApps(s, src.Apps, &v)
	}
	showOverrides(s, st.Overrides)
}

// receiverSays is what is wrong with a receiver of notifications.
func receiverSays(r ring.ReceiverStatus) string {
	says := fmt.Sprintf("receiver %s is not told: %d waiting", r.Name, r.Waiting)
	if r.Dead > 0 {
		says += fmt.Sprintf(", %d given up (gitring outbox list)", r.Dead)
	}
	return says + wording.When(r.Reason != "", "; "+r.Reason)
}

func showSource(s *screen, src ring.SourceStatus, now time.Time) {
	// Subject, signer and age are those of the commit in force, and of the trusted
	// one only where none is.
	ahead := src.Trusted != "" && src.Trusted != src.Commit
	inForce := src.Commit != ""
	s.line(0, "  ", painted(src.Name, bold), painted(syncWord(&src), syncHue(src.Sync)),
		w(strings.TrimSpace(src.Branch+" "+src.Commit.Short())), w(wording.When(inForce || !ahead, src.Subject)))
	if ahead && !inForce {
		s.line(2, "  ", w("trusted up to "+src.Trusted.Short()), w(src.Subject))
	}
	s.line(2, ", ", said("signed by ", src.Signer), w(committed(src.Committed, now)), w(checked(src.Checked, now)), w(wording.When(src.Checking, "checking now")))
	if ahead && inForce {
		s.line(2, "", w("trusted up to "+src.Trusted.Short()))
	}
	if src.Note != "" {
		s.line(2, "", w(src.Note))
	}
	if src.Trust != "" {
		s.line(2, " ", painted("warning:", yellow), w(src.Trust))
	}
	if f := src.FirstUse; f != nil {
		s.line(2, " ", w("trust rests on first use of "+f.Commit.Short()+", "+age(f.At, now)))
	}
	for _, c := range src.Conditions {
		s.line(2, " ", painted(strings.ToLower(c.Type)+":", yellow), w(c.Reason))
	}
	if src.Forge != "" {
		s.line(2, " ", painted("warning:", yellow), w("the forge takes no statuses: "+src.Forge))
	}
	if src.Unconfined != "" {
		s.line(2, " ", painted("warning:", yellow), w("this host does not keep the process that fetches from "+src.Unconfined))
	}
	if !toldBelow(src) {
		s.line(2, " ", w(src.Reason))
	}
	if src.Tip != "" && src.Tip != src.Commit && src.Tip != src.Trusted && (src.Refusal == nil || src.Refusal.Commit != src.Tip) {
		s.line(2, " ", w("tip "+src.Tip.Short()))
	}
	if src.Next != nil {
		why := wording.When(!nextToldBelow(src), src.Next.Reason)
		s.line(2, " ", w("next "+src.Next.Commit.Short()+wording.When(why != "", ":")), w(why))
	}
	showRefusal(s, 2, "", src.Refusal)
	s.line(2, ", ", countsOf(src)...)
}

// nextToldBelow reports whether an app of a source says why the next commit waits.
func nextToldBelow(src ring.SourceStatus) bool {
	return slices.ContainsFunc(src.Apps, func(a ring.AppStatus) bool {
		return a.Reason != "" && src.Next.Reason == "app "+a.Name+": "+a.Reason
	})
}

// toldBelow reports whether the reason of a source is the sentence of something that
// is shown with it: its refusal, its next commit, an app or a service.
func toldBelow(src ring.SourceStatus) bool {
	if src.Refusal != nil && src.Refusal.Says == src.Reason || src.Next != nil && src.Next.Reason == src.Reason {
		return true
	}
	for _, a := range src.Apps {
		if a.Reason != "" && src.Reason == "app "+a.Name+": "+a.Reason ||
			a.Refusal != nil && src.Reason == "app "+a.Name+" is refused: "+a.Refusal.Says {
			return true
		}
		for _, sv := range a.Services {
			if src.Reason == a.Name+"/"+sv.Name+" "+sv.Reason {
				return true
			}
		}
	}
	return false
}

// committed is how old the commit that is shown claims to be.
func committed(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "committed " + age(at, now)
}

// checked is when the remote answered last.
func checked(at, now time.Time) string {
	if at.IsZero() {
		return "never reached"
	}
	return "checked " + age(at, now)
}

// showRefusal writes code, place, sentence and hint.
func showRefusal(s *screen, indent int, who string, r *ring.Refusal) {
	if r == nil {
		return
	}
	at := r.Where()
	if r.Commit != "" {
		at = strings.TrimSpace(at + " at " + r.Commit.Short())
	}
	s.line(indent, " ", w(who), painted("refused", red), painted(string(r.Code), red), w(at+":"), w(r.Says))
	if r.Hint != "" {
		s.line(indent+2, " ", painted("hint:", dim), w(r.Hint))
	}
}

func showApps(s *screen, apps []ring.AppStatus, v *view) {
	shown := placesOf(apps)
	var hidden []place
	if v.picked != nil {
		shown, hidden = split(shown, v.picked)
	}
	if v.problems {
		shown = slices.DeleteFunc(shown, func(p place) bool { return !hasProblem(p.service) })
	}
	if len(shown) > 0 {
		s.gap()
		showServices(s, shown, v)
	}
	if len(hidden) > 0 {
		s.line(2, "", painted("… "+moreOf(hidden), dim))
	}
	told := s.part()
	for i := range apps {
		showApp(told, &apps[i], v)
	}
	for _, p := range shown {
		showDetails(told, p, v.now)
	}
	if v.problems && len(shown) == 0 && told.empty() {
		told.line(2, "", painted("nothing is wrong with its services", green))
	}
	s.add(told)
	if v.wide {
		showInstances(s, apps, v)
	}
}

// showServices is a row for each service. What is well and has no room to say why stays on
// its one line.
func showServices(s *screen, places []place, v *view) {
	columns := columnsOf(s, places, v)
	head := make([]string, len(columns)+1)
	rows := make([][]word, len(places))
	for i, c := range columns {
		head[i] = c.head
	}
	head[len(columns)] = "REASON"
	for i, p := range places {
		for _, c := range columns {
			rows[i] = append(rows[i], c.cell(p))
		}
		rows[i] = append(rows[i], w(""))
	}
	_, room := s.room(2, head, rows)
	for i, p := range places {
		reason := reasonOf(p.service, s.lineWidth() > 0)
		if rank(p.service) < well || room == math.MaxInt || cells(clean(reason)) <= room {
			rows[i][len(columns)] = w(reason)
		}
	}
	s.table(2, head, rows)
}

// showApp writes what the table does not say: why an app is not simply healthy.
// A sentence that a row of the table has is not said again.
func showApp(s *screen, a *ring.AppStatus, v *view) {
	inRow := slices.ContainsFunc(a.Services, func(sv ring.ServiceStatus) bool { return strings.Contains(sv.Reason, a.Reason) }) ||
		a.Health == ring.Held && slices.ContainsFunc(v.overrides, func(o ring.Override) bool {
			return strings.Contains(a.Reason, "by "+o.Actor) && strings.HasSuffix(a.Reason, o.Reason)
		})
	unwell := slices.ContainsFunc(a.Services, func(sv ring.ServiceStatus) bool { return rank(&sv) < well })
	reason := a.Reason
	if s.lineWidth() > 0 {
		reason = barred(reason)
	}
	switch {
	case reason != "" && inRow:
	case a.Refusal != nil && a.Reason == a.Refusal.Says: // the line of the refusal says so
	case reason == "" && (unwell || a.Refusal != nil): // a row says what is wrong
	case a.Health != ring.Healthy && !unwell && !strings.Contains(strings.ToLower(reason), strings.ToLower(healthWord(a))):
		s.line(2, " ", w(a.Name), painted(healthWord(a)+wording.When(reason != "", ":"), healthHue(a.Health)), w(reason))
	case reason != "":
		s.line(2, " ", w(a.Name+":"), w(reason))
	}
	showRefusal(s, 2, a.Name, a.Refusal)
	if v.wide {
		for _, power := range a.Powers {
			s.line(2, " ", w(a.Name), painted("power:", yellow), w(power))
		}
		for _, note := range a.Notes {
			s.line(2, " ", w(a.Name), painted("note:", dim), w(note))
		}
	}
}

// showDetails writes the rollout of a service and its conditions, and what to do.
func showDetails(s *screen, p place, now time.Time) {
	sv := p.service
	showRollout(s, p, now)
	hint := ""
	for _, c := range sv.Conditions {
		if c.Type == ring.ConditionQuarantined {
			hint = fmt.Sprintf("it is not tried again: push a commit that mends it (git revert works), or gitring retry %s", p.id())
		}
		if c.Type == ring.ConditionProgressing || c.Type == ring.ConditionAvailable && working(sv.Phase) {
			continue // its row says so, and the line of its rollout
		}
		since := ""
		if !c.Since.IsZero() {
			since = " since " + age(c.Since, now)
		}
		a := p.app
		told := strings.Contains(sv.Reason, c.Reason) || a.Refusal != nil && a.Refusal.Says == c.Reason || sv.Rollout != nil && sv.Rollout.Reason == c.Reason
		s.line(2, " ", w(p.id()), painted(conditionSays(c)+since+wording.When(!told, ":"), yellow), w(wording.When(!told, c.Reason)))
	}
	if hint != "" {
		s.line(4, " ", painted("hint:", dim), w(hint))
	}
}

func showRollout(s *screen, p place, now time.Time) {
	sv, r := p.service, p.service.Rollout
	if r == nil {
		return
	}
	why := wording.When(!strings.Contains(sv.Reason, r.Reason), r.Reason)
	phase := wording.When(r.Phase != phaseWord(sv), rolloutWord(sv))
	since := ""
	if began := movesSince(sv); !began.IsZero() {
		since = "for " + lasted(now.Sub(began))
	}
	if phase+why+since == "" {
		return
	}
	s.line(2, " ", w(p.id()+" rollout of "+r.Commit.Short()+wording.When(phase == "" && why != "", ":")),
		painted(phase+wording.When(phase != "" && why != "", ":"), rolloutHue(r.Phase)), w(why+wording.When(why != "" && since != "", ",")), w(since))
}

// working reports whether a service is on its way to what its plan asks.
func working(p ring.Phase) bool { return p == ring.PhasePending || p == ring.PhaseProgressing }

// conditionSays is "CrashLooping", and "not Available" of what should hold.
func conditionSays(c ring.Condition) string {
	return wording.When(c.Status == ring.ConditionFalse, "not ") + c.Type
}

func showInstances(s *screen, apps []ring.AppStatus, v *view) {
	var rows [][]word
	for _, p := range placesOf(apps) {
		for _, in := range p.service.Instances {
			rows = append(rows, []word{
				w(in.Name), w(strconv.Itoa(in.Slot)), w(in.State), w(upSince(in.Started, v.now)), w(strconv.Itoa(in.Restarts)),
				w(cpuOf(v.usage, in.ID)), w(memoryOf(v.usage, in.ID)),
				w(cmp.Or(in.Address, "-")), w(in.Commit.Short()), w(versionOf(&in)), w(shortID(in.ID)), w(in.Reason),
			})
		}
	}
	if len(rows) > 0 {
		s.gap()
		s.table(2, []string{"INSTANCE", "SLOT", "STATE", "UP", "RESTARTS", "CPU", "MEMORY", "ADDRESS", "COMMIT", "VERSION", "ID", "REASON"}, rows)
	}
}

// versionOf is what an instance runs: of one that Compose made nobody knows more
// than that.
func versionOf(in *ring.InstanceStatus) string {
	if in.Adopted {
		return "adopted"
	}
	return in.Version.Short()
}

func showOverrides(s *screen, overrides []ring.Override) {
	if len(overrides) == 0 {
		return
	}
	s.gap()
	var rows [][]word
	for _, o := range overrides {
		kind := o.Kind
		switch {
		case o.Replicas != nil:
			kind += " to " + strconv.Itoa(*o.Replicas)
		case o.Commit != "":
			kind += " to " + o.Commit.Short()
		}
		rows = append(rows, []word{painted(kind, yellow), w(o.Target), w(o.Actor), w(cmp.Or(stamp(o.Until), "-")), w(o.Reason)})
	}
	s.table(0, []string{"OVERRIDE", "TARGET", "BY", "UNTIL", "REASON"}, rows)
}

// shortID is the first 12 of a container's ID, or all that there is.
func shortID(id string) string { return id[:min(12, len(id))] }

// said is a word with what goes before it; nothing when it is empty.
func said(before, text string) word {
	if text == "" {
		return word{}
	}
	return w(before + text)
}

func syncHue(x ring.Sync) hue {
	switch x {
	case ring.SyncSynced:
		return green
	case ring.SyncRefused, ring.SyncDegraded:
		return red
	case ring.SyncApplying, ring.SyncStaging:
		return cyan
	}
	return yellow
}

func phaseHue(p ring.Phase) hue {
	switch p {
	case ring.PhaseReady, ring.PhaseCompleted:
		return green
	case ring.PhaseDegraded, ring.PhaseFailed:
		return red
	case ring.PhaseHeld:
		return yellow
	}
	return cyan
}

func healthHue(h string) hue {
	switch h {
	case ring.Healthy:
		return green
	case ring.Degraded:
		return red
	case ring.Progressing:
		return cyan
	}
	return yellow
}

func rolloutHue(phase string) hue {
	if phase == ring.RolloutProgressing {
		return cyan
	}
	return red
}
