package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// View is how a status is looked at.
type View struct {
	Wide bool
	Now  time.Time
	// Shown, if set, is what has room; what is wrong stands first.
	Shown *Shown
	// Problems leaves out what is well.
	Problems bool
	Usage    map[string]ring.Usage // by container ID; nil where nobody asked
	Printed  Printed
	// Signers are of commits that run where their source wants another.
	Signers map[ring.SHA]string
	// overrides stand in a table of their own: what they say is said there.
	overrides []ring.Override
}

// Printed is what is kept of a version that failed, of each service whose rollout failed.
type Printed map[ring.ServiceID]Kept

// Kept are the lines of the check that failed, or that its own are kept.
type Kept struct {
	Checked []string
	Log     bool
}

// hint says where the lines of a version that failed are; "" where none are kept.
func (k Kept) hint(id string) string {
	return wording.When(k.Log, "gitring crashes "+id+" --logs shows what it printed")
}

// Status is the one screen of "gitring status".
func Status(s *screen.Screen, st *ring.Status, v View) {
	v.overrides = st.Overrides
	s.Line(0, "  ", screen.Painted(st.Host, screen.Bold), screen.Text("gitring "+st.Gitring))
	if t := st.Trial; t != nil {
		s.Line(0, " ", screen.Painted("on trial:", screen.Yellow), screen.Text("upgraded from "+t.From+"; nothing is changed until the upgrade is found well"))
	}
	if st.Store != "" {
		s.Line(0, " ", screen.Painted("store:", screen.Red), screen.Text(st.Store))
	}
	if st.Engine != "" {
		s.Line(0, " ", screen.Painted("engine:", screen.Red), screen.Text(st.Engine))
	}
	showCluster(s, st.Cluster)
	if st.Config == "" && st.ConfigDiffers {
		s.Line(0, " ", screen.Painted("configuration:", screen.Yellow), screen.Text("its file was changed since it was read; systemctl reload gitring takes it up"))
	}
	if st.API != "" {
		s.Line(0, " ", screen.Painted("api:", screen.Yellow), screen.Text(st.API))
	}
	if st.Config != "" {
		s.Line(0, " ", screen.Painted("configuration:", screen.Red), screen.Text("not read anew: "+st.Config))
	}
	if st.Hub != "" {
		s.Line(0, " ", screen.Painted("hub:", screen.Yellow), screen.Text(st.Hub))
	}
	if st.Backup != "" {
		s.Line(0, " ", screen.Painted("backup:", screen.Yellow), screen.Text(st.Backup))
	}
	if st.Doctor != "" {
		s.Line(0, " ", screen.Painted("doctor:", screen.Red), screen.Text(st.Doctor+"; gitring doctor says which"))
	}
	for _, r := range st.Receivers {
		s.Line(0, " ", screen.Painted("warning:", screen.Yellow), screen.Text(receiverSays(r)))
	}
	if len(st.Sources) == 0 {
		s.Line(0, " ", screen.Text("no sources"))
	}
	for _, src := range st.Sources {
		s.Gap()
		showSource(s, src, &v)
		showApps(s, src.Apps, &v)
	}
	showOverrides(s, st.Overrides)
}

// nodesNamed is how many nodes of one state are named; more of them are counted.
const nodesNamed = 5

// showCluster is one line: the nodes of a swarm by their states, and how many tasks each has.
func showCluster(s *screen.Screen, c *ring.ClusterStatus) {
	if c == nil {
		return
	}
	if c.State == ring.ClusterNoQuorum {
		s.Line(0, " ", screen.Painted("swarm "+c.Name+":", screen.Red), screen.Text("no quorum; nothing is decided, and what runs goes on"))
		return
	}
	if c.Acts != "" {
		s.Line(0, " ", screen.Painted("swarm "+c.Name+":", screen.Bold), screen.Text("manager "+c.Acts+" acts; this one follows, and takes over 45s after that one is gone"))
	}
	var states []string
	by := map[string][]ring.NodeStatus{}
	for _, n := range c.Nodes {
		if by[n.State] == nil {
			states = append(states, n.State)
		}
		by[n.State] = append(by[n.State], n)
	}
	hue := screen.Dim
	slices.SortFunc(states, func(a, b string) int { // what is well stands first
		return cmp.Or(-cmp.Compare(wording.When(a == "ready", "!"), wording.When(b == "ready", "!")), cmp.Compare(a, b))
	})
	var parts []string
	for _, state := range states {
		if state != "ready" {
			hue = screen.Yellow
		}
		var names []string
		tasks := 0
		for _, n := range by[state] {
			names, tasks = append(names, fmt.Sprintf("%s (%d)", n.Name, n.Tasks)), tasks+n.Tasks
		}
		if len(names) > nodesNamed {
			names = []string{fmt.Sprintf("%d nodes (%d)", len(by[state]), tasks)}
		}
		parts = append(parts, state+" "+strings.Join(names, ", "))
	}
	s.Line(0, " ", screen.Painted("swarm "+c.Name+":", hue), screen.Text(strings.Join(parts, "; ")))
}

// receiverSays is what is wrong with a receiver of notifications.
func receiverSays(r ring.ReceiverStatus) string {
	says := fmt.Sprintf("receiver %s is not told: %d waiting", r.Name, r.Waiting)
	if r.Dead > 0 {
		says += fmt.Sprintf(", %d given up (gitring outbox list)", r.Dead)
	}
	return says + wording.When(r.Reason != "", "; "+r.Reason)
}

// RunsBeside are the commits that services of a source run where it wants another.
func RunsBeside(src *ring.SourceStatus) (out []ring.SHA) {
	for i := range src.Apps {
		for _, sv := range src.Apps[i].Services {
			if sv.Running != "" && sv.Running != sv.Commit && !slices.Contains(out, sv.Running) {
				out = append(out, sv.Running)
			}
		}
	}
	return out
}

func showSource(s *screen.Screen, src ring.SourceStatus, v *View) {
	overrides, now := v.overrides, v.Now
	// Subject, signer and age are those of the commit in force, and of the trusted
	// one where none is, or where only what is refused is behind it.
	ahead := src.Trusted != "" && src.Trusted != src.Commit && src.Followed == nil
	inForce := src.Commit != ""
	behind := src.Commit
	if f := src.Followed; f != nil {
		src.Commit, src.Subject, src.Signer, src.Committed = f.Commit, f.Subject, f.Signer, f.Committed
	}
	s.Line(0, "  ", screen.Painted(src.Name, screen.Bold), screen.Painted(ring.SourceWord(&src), sourceHue(&src)),
		screen.Text(strings.TrimSpace(src.Branch+" "+src.Commit.Short())), screen.Text(wording.When(inForce || !ahead, src.Subject)))
	if ahead && !inForce {
		s.Line(2, "  ", screen.Text("trusted up to "+src.Trusted.Short()), screen.Text(src.Subject))
	}
	s.Line(2, ", ", screen.Labelled("signed by ", src.Signer), screen.Text(committed(src.Committed, now)), screen.Text(checked(src.Checked, now)), screen.Text(wording.When(src.Checking, "checking now")))
	if ahead && inForce {
		s.Line(2, "", screen.Text("trusted up to "+src.Trusted.Short()))
	}
	if f := src.Followed; f != nil {
		s.Line(2, "", screen.Text(f.HeldUp(behind)))
	}
	for _, c := range RunsBeside(&src) {
		if signer := v.Signers[c]; signer != "" && signer != src.Signer {
			s.Line(2, "", screen.Text(c.Short()+" still runs, signed by "+signer))
		}
	}
	if src.Note != "" {
		s.Line(2, "", screen.Text(src.Note))
	}
	if src.Trust != "" {
		s.Line(2, " ", screen.Painted("warning:", screen.Yellow), screen.Text(src.Trust))
	}
	if f := src.FirstUse; f != nil {
		s.Line(2, " ", screen.Text("trust rests on first use of "+f.Commit.Short()+", "+screen.Age(f.At, now)))
	}
	for _, c := range src.Conditions {
		s.Line(2, " ", screen.Painted(spaced(c.Type)+":", screen.Yellow), screen.Text(conditionOnce(&src, &c)))
	}
	for _, doubt := range src.Doubts {
		s.Line(2, " ", screen.Painted("warning:", screen.Yellow), screen.Text(doubt))
	}
	if src.Forge != "" {
		s.Line(2, " ", screen.Painted("warning:", screen.Yellow), screen.Text("the forge takes no statuses: "+src.Forge))
	}
	if src.Unconfined != "" {
		s.Line(2, " ", screen.Painted("warning:", screen.Yellow), screen.Text("this host does not keep the process that fetches from "+src.Unconfined))
	}
	if !toldBelow(src) {
		s.Line(2, " ", screen.Text(src.Reason))
	}
	if src.Tip != "" && src.Tip != src.Commit && src.Tip != src.Trusted && (src.Refusal == nil || src.Refusal.Commit != src.Tip) {
		s.Line(2, " ", screen.Text("tip "+src.Tip.Short()))
	}
	if src.Next != nil {
		held := nextHeldSays(&src, overrides, now)
		s.Line(2, " ", screen.Text(nextSays(src, cmp.Or(held, wording.When(!nextToldBelow(src), src.Next.Reason)))))
	}
	Refusal(s, 2, "", src.Refusal)
	s.Line(2, ", ", countsOf(src)...)
}

// spaced are the words of a condition's type: "policy violated".
func spaced(of string) string {
	var b strings.Builder
	for i, r := range of {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// conditionOnce is why a condition of a source holds, without what a refusal or a service
// says below it.
func conditionOnce(src *ring.SourceStatus, c *ring.Condition) string {
	of, rest, ok := strings.Cut(c.Reason, ": ")
	if !ok || c.Type != ring.ConditionPolicyViolated {
		return c.Reason
	}
	var below []string
	for i := range src.Apps {
		a := &src.Apps[i]
		if a.Refusal != nil {
			below = append(below, a.Refusal.Says)
		}
		for j := range a.Services {
			below = append(below, a.Services[j].Reason)
		}
	}
	parts := strings.Split(rest, "; ")
	for n := len(parts) - 1; n > 0; n-- {
		says, more := strings.Join(parts[:n], "; "), ""
		if at := strings.LastIndex(says, " (and "); at > 0 && strings.HasSuffix(says, " more)") {
			says, more = says[:at], says[at:]
		}
		if slices.ContainsFunc(below, func(s string) bool { return strings.Contains(s, says) }) {
			return of + more + "; " + strings.Join(parts[n:], "; ")
		}
	}
	return c.Reason
}

// nextSays is which commit waits, with why. Where it is the one of the line above, as after
// an undo of one app, only why is said.
func nextSays(src ring.SourceStatus, why string) string {
	if src.Next.Commit == src.Commit {
		return why
	}
	return "next " + src.Next.Commit.Short() + wording.When(why != "", ": ") + why
}

// nextHeldSays is whose holds or undos the next commit of a source waits for, since when, and what
// ends them; "" where it waits for something else.
func nextHeldSays(src *ring.SourceStatus, overrides []ring.Override, now time.Time) string {
	kind, ends := ring.OverrideHold, "gitring release %s"
	switch src.Next.Code {
	case ring.WhyHeldByPerson:
	case ring.WhyUndoneByPerson:
		kind = ring.OverrideUndo
	case ring.WhyPausedByPerson:
		kind, ends = ring.OverridePause, "gitring rollout resume %s"
	default:
		return ""
	}
	var all []string
	for _, o := range overrides {
		app, _, _ := strings.Cut(o.Target, "/")
		if o.Kind == string(kind) && slices.ContainsFunc(src.Apps, func(a ring.AppStatus) bool { return a.Name == app && a.Code == src.Next.Code }) {
			all = append(all, fmt.Sprintf("waits for the %s of %s by %s, %s; %s ends it", o.Kind, o.Target, o.Actor, screen.Age(o.Since, now), fmt.Sprintf(ends, o.Target)))
		}
	}
	return strings.Join(all, "; ")
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
	return "committed " + screen.Age(at, now)
}

// checked is when the remote answered last.
func checked(at, now time.Time) string {
	if at.IsZero() {
		return "never reached"
	}
	return "checked " + screen.Age(at, now)
}

// Refusal writes code, place, sentence and hint.
func Refusal(s *screen.Screen, indent int, who string, r *ring.Refusal) {
	if r == nil {
		return
	}
	at := r.Where()
	if r.Commit != "" {
		at = strings.TrimSpace(at + " at " + r.Commit.Short())
	}
	line := []screen.Word{screen.Text(who), screen.Painted("refused", screen.Red)}
	if at == "" { // what a folder no longer has is at no place
		line = append(line, screen.Painted(string(r.Code)+":", screen.Red))
	} else {
		line = append(line, screen.Painted(string(r.Code), screen.Red), screen.Text(at+":"))
	}
	s.Line(indent, " ", append(line, screen.Text(r.Says))...)
	if r.Hint != "" {
		s.Line(indent+2, " ", screen.Painted("hint:", screen.Dim), screen.Text(r.Hint))
	}
}

func showApps(s *screen.Screen, apps []ring.AppStatus, v *View) {
	shown := placesOf(apps)
	if v.Wide {
		shown = placesWithFronts(apps)
	}
	downFirst(shown, v.Now)
	var hidden []place
	if v.Shown != nil {
		shown, hidden = split(shown, v.Shown.Services, v.Now)
	}
	if v.Problems {
		shown = slices.DeleteFunc(shown, func(p place) bool { return !hasProblem(p.service, v.Now) })
	}
	if len(shown) > 0 {
		s.Gap()
		showServices(s, shown, v)
	}
	if len(hidden) > 0 {
		s.Line(2, "", screen.Painted("… "+moreOf(hidden), screen.Dim))
	}
	told := s.Part()
	for i := range apps {
		showApp(told, &apps[i], v)
	}
	v.Shown.restOfRefused(told, apps)
	for _, p := range shown {
		showDetails(told, p, v)
	}
	if v.Problems && len(shown) == 0 && told.Empty() {
		told.Line(2, "", screen.Painted("nothing is wrong with its services", screen.Green))
	}
	s.Add(told)
	if v.Wide {
		showInstances(s, apps, v)
	}
}

// showServices is a row for each service. What is well and has no room to say why stays on
// its one line.
func showServices(s *screen.Screen, places []place, v *View) {
	columns := columnsOf(s, places, v)
	head := make([]string, len(columns)+1)
	rows := make([][]screen.Word, len(places))
	for i, c := range columns {
		head[i] = c.head
	}
	head[len(columns)] = "REASON"
	for i, p := range places {
		for _, c := range columns {
			rows[i] = append(rows[i], c.cell(p))
		}
		rows[i] = append(rows[i], screen.Text(""))
	}
	_, room := s.Room(2, head, rows)
	for i, p := range places {
		reason := withoutCause(reasonOf(p.service, s.LineWidth() > 0), p, places)
		if rank(p.service) < well || room == math.MaxInt || screen.WidthOf(wording.SafeLine(reason)) <= room {
			rows[i][len(columns)] = screen.Text(reason)
		}
	}
	s.Table(2, head, rows)
}

// withoutCause is the reason of a service without that of the one it waits for, which has a row.
func withoutCause(reason string, p place, places []place) string {
	for _, on := range places {
		cause := on.service.Reason
		if p.service.On == "" || cause == "" || ring.ID(on.app.Name, on.service.Name) != p.service.On {
			continue
		}
		if before, ok := strings.CutSuffix(reason, ": "+cause); ok {
			return before
		}
	}
	return reason
}

// showApp writes what the table does not say: why an app is not simply healthy.
// A sentence that a row of the table has is not said again.
func showApp(s *screen.Screen, a *ring.AppStatus, v *View) {
	inRow := slices.ContainsFunc(a.Services, func(sv ring.ServiceStatus) bool { return strings.Contains(sv.Reason, a.Reason) }) ||
		a.Health == ring.Held && slices.ContainsFunc(v.overrides, func(o ring.Override) bool {
			return strings.Contains(a.Reason, "by "+o.Actor) && strings.HasSuffix(a.Reason, o.Reason)
		})
	unwell := slices.ContainsFunc(a.Services, func(sv ring.ServiceStatus) bool { return rank(&sv) < well })
	reason := a.Reason
	if s.LineWidth() > 0 {
		reason = barred(reason)
	}
	switch {
	case reason != "" && inRow:
	case a.Refusal != nil && a.Reason == a.Refusal.Says: // the line of the refusal says so
	case reason == "" && (unwell || a.Refusal != nil): // a row says what is wrong
	case a.Health == ring.Unknown && reason == "" && len(a.Services) == 0:
		s.Line(2, " ", screen.Text(a.Name+":"), screen.Text("nothing of it is in force yet"))
	case a.Health != ring.Healthy && !unwell && !strings.Contains(strings.ToLower(reason), strings.ToLower(ring.AppWord(a))):
		s.Line(2, " ", screen.Text(a.Name), screen.Painted(ring.AppWord(a)+wording.When(reason != "", ":"), healthHue(a.Health)), screen.Text(reason))
	case reason != "":
		s.Line(2, " ", screen.Text(a.Name+":"), screen.Text(reason))
	}
	if v.Shown.tells(a) {
		Refusal(s, 2, a.Name, a.Refusal)
	}
	if v.Wide {
		for _, power := range a.Powers {
			s.Line(2, " ", screen.Text(a.Name), screen.Painted("power:", screen.Yellow), screen.Text(power))
		}
		for _, note := range a.Notes {
			s.Line(2, " ", screen.Text(a.Name), screen.Painted("note:", screen.Dim), screen.Text(note))
		}
	}
}

// showDetails writes the rollout of a service and its conditions, and what to do. What the
// row says, or another line, is not said again: such conditions are named on one line.
func showDetails(s *screen.Screen, p place, v *View) {
	sv, now, kept := p.service, v.Now, v.Printed[ring.ServiceID(p.id())]
	showRollout(s, p, now)
	CheckPrinted(s, 2, "of "+p.id(), kept.Checked)
	hint := ""
	var named []string
	for _, c := range sv.Conditions {
		if c.Type == ring.ConditionQuarantined {
			hint = fmt.Sprintf("%s: push a commit that mends it (git revert works), or gitring retry %s", triedSays(sv), p.id())
			if strings.HasSuffix(sv.Reason, "exited with code 0") {
				hint += `; if it is meant to end, write restart: "no" in its file, which makes it a job`
			}
		}
		if c.Type == ring.ConditionProgressing || c.Type == ring.ConditionAvailable && (working(sv.Phase) || tellsOfReady(sv) && c.Since.IsZero()) {
			continue // its row says so, and the line of its rollout
		}
		says := conditionSays(c)
		if !c.Since.IsZero() {
			says += screen.Lasting(c.Since, now)
		}
		if refused := p.app.Refusal; conditionTold(sv, &c) || refused != nil && refused.Says == c.Reason || p.app.Reason == c.Reason {
			named = append(named, says)
			continue
		}
		s.Line(2, " ", screen.Text(p.id()), screen.Painted(says+":", screen.Yellow), screen.Text(c.Reason))
	}
	if len(named) > 0 {
		s.Line(2, " ", screen.Text(p.id()), screen.Painted(strings.Join(named, ", "), screen.Yellow))
	}
	showTag(s, p, now)
	if f := sv.Front; f != nil && f.Queued > 0 {
		s.Line(2, " ", screen.Text(p.id()), screen.Painted(wording.Counted(f.Queued, "request")+" waiting"+screen.Lasting(f.QueuedSince, now), screen.Yellow))
	}
	hint = cmp.Or(hint, nextTry(sv, p.id()))
	if logs := kept.hint(p.id()); logs != "" && !strings.Contains(hint, "gitring crashes") {
		hint += wording.When(hint != "", "; ") + logs
	}
	if hint != "" {
		s.Line(4, " ", screen.Painted("hint:", screen.Dim), screen.Text(hint))
	}
}

// nextTry is when the first slot that crashed is started again; "" where none waits for that.
func nextTry(sv *ring.ServiceStatus, id string) string {
	for _, in := range sv.Instances {
		if in.State == ring.SlotBackingOff { // its reason has the time
			return fmt.Sprintf("slot %d %s; gitring crashes %s --logs", in.Slot, in.Reason, id)
		}
	}
	return ""
}

// tellsOfReady reports whether the row of a service says by its phase that too few are ready.
func tellsOfReady(sv *ring.ServiceStatus) bool {
	return (sv.Phase == ring.PhaseDegraded || sv.Phase == ring.PhaseFailed) && sv.Reason != ""
}

// conditionTold reports whether the row of a service or its rollout gives the reason of a condition,
// be it in other words: the row counts restarts, and says how the last run ended.
func conditionTold(sv *ring.ServiceStatus, c *ring.Condition) bool {
	if c.Type == ring.ConditionAvailable && tellsOfReady(sv) {
		return true
	}
	if c.Type == ring.ConditionCrashLooping && strings.HasSuffix(sv.Reason, fmt.Sprintf("exited with code %d", c.ExitCode)) {
		return true
	}
	return strings.Contains(sv.Reason, c.Reason) || sv.Rollout != nil && sv.Rollout.Reason == c.Reason
}

// showTag writes how the tag of a service is followed by the clock.
func showTag(s *screen.Screen, p place, now time.Time) {
	t := p.service.Tag
	if t == nil {
		return
	}
	why := t.Waits
	if why != "" {
		why = "means " + Digest(t.Digest, false) + screen.Lasting(t.Seen, now) + ": " + why
	}
	if !t.Until.IsZero() {
		why += ", from " + t.Until.Format("2006-01-02 15:04") + " UTC"
	}
	if t.Error != "" {
		why += wording.When(why != "", "; ") + t.Error
	}
	s.Line(2, " ", screen.Text(p.id()), screen.Painted("its tag is followed, last asked "+screen.Age(t.Asked, now)+wording.When(why != "", ":"), screen.Dim), screen.Text(why))
}

// triedSays is what goes on with a version that failed. Where no other one can take its
// place its instances stay, and are started again.
func triedSays(sv *ring.ServiceStatus) string {
	back := sv.Rollout != nil && (sv.Rollout.Phase == ring.RolloutIsRestored || sv.Rollout.Phase == ring.RolloutRestoring)
	runs := false
	for _, in := range sv.Instances {
		switch {
		case back || sv.Version == "" || !in.Version.Of(sv.Version):
		case in.State == ring.SlotCrashed || in.State == ring.SlotBackingOff:
			return "it is started again after waits that grow, and its rollout goes no further"
		case in.State == ring.SlotReady || in.State == ring.SlotNotReady || in.State == ring.SlotStarting || in.State == ring.SlotCreating:
			runs = true
		}
	}
	return wording.When(runs, "it runs on, and its rollout goes no further") + wording.When(!runs, "it is not tried again")
}

func showRollout(s *screen.Screen, p place, now time.Time) {
	sv, r := p.service, p.service.Rollout
	if r == nil {
		return
	}
	why := wording.When(!strings.Contains(sv.Reason, r.Reason), r.Reason)
	phase := wording.When(r.Phase != ring.ServiceWord(sv), rolloutWord(sv))
	since := ""
	if began := movesSince(sv); !began.IsZero() {
		since = "for " + Lasted(now.Sub(began))
	}
	quarantined := slices.ContainsFunc(sv.Conditions, func(c ring.Condition) bool { return c.Type == ring.ConditionQuarantined })
	if phase+why+since == "" || phase == ring.Stopped && why+since == "" && quarantined { // whose hint says so
		return
	}
	s.Line(2, " ", screen.Text(p.id()+" rollout of "+r.Commit.Short()+wording.When(phase == "" && why != "", ":")),
		screen.Painted(phase+wording.When(phase != "" && why != "", ":"), rolloutHue(r.Phase)), screen.Text(why+wording.When(why != "" && since != "", ",")), screen.Text(since))
}

// working reports whether a service is on its way to what its plan asks.
func working(p ring.Phase) bool { return p == ring.PhasePending || p == ring.PhaseProgressing }

// conditionSays is "CrashLooping", and "too few ready" of what is not Available.
func conditionSays(c ring.Condition) string {
	return cmp.Or(ring.ConditionWords(&c), wording.When(c.Status == ring.ConditionFalse, "not ")+c.Type)
}

func showInstances(s *screen.Screen, apps []ring.AppStatus, v *View) {
	var rows [][]screen.Word
	where := "ADDRESS"
	for _, p := range placesWithFronts(apps) {
		for _, in := range p.service.Instances {
			if in.Node != "" {
				where = "NODE"
			}
			rows = append(rows, []screen.Word{
				screen.Text(in.Name), screen.Text(strconv.Itoa(in.Slot)), screen.Text(in.State), screen.Text(upSince(in.Started, v.Now)), screen.Text(strconv.Itoa(in.Restarts)),
				screen.Text(cpuOf(v.Usage, in.ID)), screen.Text(memoryOf(v.Usage, in.ID)),
				screen.Text(cmp.Or(in.Node, in.Address, "-")), screen.Text(in.Commit.Short()), screen.Text(versionOf(&in)), screen.Text(shortID(in.ID)), screen.Text(in.Reason),
			})
		}
	}
	if len(rows) > 0 {
		s.Gap()
		s.Table(2, []string{"INSTANCE", "SLOT", "STATE", "UP", "RESTARTS", "CPU", "MEMORY", where, "COMMIT", "VERSION", "ID", "REASON"}, rows)
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

func showOverrides(s *screen.Screen, overrides []ring.Override) {
	if len(overrides) == 0 {
		return
	}
	s.Gap()
	var rows [][]screen.Word
	for _, o := range overrides {
		kind := o.Kind
		switch {
		case o.Replicas != nil:
			kind += " to " + strconv.Itoa(*o.Replicas)
		case o.Commit != "":
			kind += " to " + o.Commit.Short()
		}
		rows = append(rows, []screen.Word{screen.Painted(kind, screen.Yellow), screen.Text(o.Target), screen.Text(o.Actor), screen.Text(cmp.Or(screen.Stamp(o.Until), "-")), screen.Text(o.Reason)})
	}
	s.Table(0, []string{"OVERRIDE", "TARGET", "BY", "UNTIL (UTC)", "REASON"}, rows)
}

// shortID is the first 12 of a container's ID, or all that there is.
func shortID(id string) string { return id[:min(12, len(id))] }

func sourceHue(src *ring.SourceStatus) screen.Hue {
	switch src.Sync {
	case ring.SyncSynced:
		if ring.SourceWord(src) == string(src.Sync) {
			return screen.Green
		}
	case ring.SyncRefused, ring.SyncDegraded:
		return screen.Red
	case ring.SyncApplying, ring.SyncStaging:
		return screen.Cyan
	}
	return screen.Yellow
}

// PhaseHue is the colour of a phase.
func PhaseHue(p ring.Phase) screen.Hue {
	switch p {
	case ring.PhaseReady, ring.PhaseCompleted:
		return screen.Green
	case ring.PhaseDegraded, ring.PhaseFailed:
		return screen.Red
	case ring.PhaseHeld:
		return screen.Yellow
	}
	return screen.Cyan
}

func healthHue(h string) screen.Hue {
	switch h {
	case ring.Healthy:
		return screen.Green
	case ring.Degraded:
		return screen.Red
	case ring.Progressing:
		return screen.Cyan
	}
	return screen.Yellow
}

func rolloutHue(phase string) screen.Hue {
	if phase == ring.RolloutProgressing {
		return screen.Cyan
	}
	return screen.Red
}
