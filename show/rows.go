package show

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// place is a service and the app that it is of.
type place struct {
	app     *ring.AppStatus
	service *ring.ServiceStatus
	front   *ring.ServiceStatus // of service, where it has one; nil for none
}

// publisher is who has the ports of a service.
func (p place) publisher() *ring.ServiceStatus {
	if p.front != nil {
		return p.front
	}
	return p.service
}

func (p place) id() string { return p.app.Name + "/" + p.service.Name }

// Shown are what of a status has room on a screen; nil is all.
type Shown struct {
	Services map[*ring.ServiceStatus]bool
	Refusals map[*ring.AppStatus]bool
}

// Fitting draws with as much as has room in a terminal of that height: first the services
// that need a person, then refusals, then the services that are well.
func Fitting(st *ring.Status, height int, draw func(*Shown) string) string {
	var all []place
	var refused []*ring.AppStatus
	for i := range st.Sources {
		all = append(all, placesOf(st.Sources[i].Apps)...)
		for j := range st.Sources[i].Apps {
			if a := &st.Sources[i].Apps[j]; a.Refusal != nil {
				refused = append(refused, a)
			}
		}
	}
	worstFirst(all, st.At)
	with := func(services, refusals int) *Shown {
		shown := &Shown{Services: map[*ring.ServiceStatus]bool{}, Refusals: map[*ring.AppStatus]bool{}}
		for _, p := range all[:services] {
			shown.Services[p.service] = true
		}
		for _, a := range refused[:refusals] {
			shown.Refusals[a] = true
		}
		return shown
	}
	bad := slices.IndexFunc(all, func(p place) bool { return rank(p.service) >= moving && !ring.IsDown(p.service, st.At) })
	if bad < 0 {
		bad = len(all)
	}
	bad = min(bad, height)
	told := len(refused)
	for told > 0 && strings.Count(draw(with(bad, told)), "\n") >= height {
		told--
	}
	return screen.FittingRows(len(all), height, func(most int) string { return draw(with(most, told)) })
}

// tells reports whether the refusal of an app has room.
func (x *Shown) tells(a *ring.AppStatus) bool { return x == nil || x.Refusals[a] }

// restOfRefused counts the refusals that have no room.
func (x *Shown) restOfRefused(s *screen.Screen, apps []ring.AppStatus) {
	told, cut := 0, 0
	for i := range apps {
		switch a := &apps[i]; {
		case a.Refusal == nil:
		case x.tells(a):
			told++
		default:
			cut++
		}
	}
	if cut > 0 {
		s.Line(2, "", screen.Painted(fmt.Sprintf("… %d %srefused", cut, wording.When(told > 0, "more ")), screen.Dim))
	}
}

func worstFirst(places []place, now time.Time) {
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(rank(a.service), rank(b.service)) })
	downFirst(places, now)
}

// downFirst puts what does not serve before what does.
func downFirst(places []place, now time.Time) {
	down := func(p place) string { return wording.When(!ring.IsDown(p.service, now), "serves") }
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(down(a), down(b)) })
}

// split has the picked places, the worst first, and the others.
func split(places []place, picked map[*ring.ServiceStatus]bool, now time.Time) (shown, hidden []place) {
	worstFirst(places, now)
	for _, p := range places {
		if picked[p.service] {
			shown = append(shown, p)
		} else {
			hidden = append(hidden, p)
		}
	}
	return shown, hidden
}

// placesOf are the services as people count them: a front goes with the service that it
// stands before, and is a row of its own only where it is what is wrong, or waited for.
func placesOf(apps []ring.AppStatus) []place {
	var all []place
	for _, p := range placesWithFronts(apps) {
		if behind := serviceOf(p.app, strings.TrimSuffix(p.service.Name, ring.FrontSuffix)); behind != nil && behind != p.service && behind.Front != nil && !standsOut(p.service, behind) {
			continue
		}
		if p.service.Front != nil {
			p.front = serviceOf(p.app, p.service.Name+ring.FrontSuffix)
		}
		all = append(all, p)
	}
	return all
}

// standsOut reports whether a front says more than the service behind it does.
func standsOut(front, behind *ring.ServiceStatus) bool {
	return rank(front) < moving || rank(front) < rank(behind)
}

func serviceOf(a *ring.AppStatus, name string) *ring.ServiceStatus {
	i := slices.IndexFunc(a.Services, func(s ring.ServiceStatus) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &a.Services[i]
}

func placesWithFronts(apps []ring.AppStatus) []place {
	var all []place
	for i := range apps {
		for j := range apps[i].Services {
			all = append(all, place{app: &apps[i], service: &apps[i].Services[j]})
		}
	}
	return all
}

// Ranks of a service: what needs a person first comes first.
const (
	failing = iota
	stopped
	moving
	well
)

func rank(sv *ring.ServiceStatus) int {
	switch {
	case sv.Phase == ring.PhaseDegraded || sv.Phase == ring.PhaseFailed,
		sv.Rollout != nil && (sv.Rollout.Phase == ring.RolloutIsRestored || sv.Rollout.Phase == ring.RolloutRestoring):
		return failing
	case sv.Phase == ring.PhaseHeld || sv.Rollout != nil && sv.Rollout.Phase == ring.RolloutPaused:
		return stopped
	case sv.Phase != ring.PhaseReady && sv.Phase != ring.PhaseCompleted || sv.Rollout != nil:
		return moving
	}
	return well
}

// inOrder is how counts are told.
var inOrder = []ring.Phase{
	ring.PhaseReady, ring.PhaseCompleted, ring.RolloutIsRestored, ring.PhaseDegraded, ring.PhaseFailed,
	ring.PhaseHeld, ring.PhaseProgressing, ring.PhasePending, ring.PhaseRemoving,
}

// countsOf are how many services of a source are in each phase, such as "28 ready" and
// "1 degraded", and how many apps are refused; nothing for a single service.
func countsOf(src ring.SourceStatus) []screen.Word {
	places := placesOf(src.Apps)
	counts := countPhases(places)
	if len(places) < 2 {
		counts = nil
	}
	refused := 0
	for _, a := range src.Apps {
		if a.Refusal != nil {
			refused++
		}
	}
	if refused > 0 && len(src.Apps) > 1 {
		counts = append(counts, screen.Painted(fmt.Sprintf("%d %s refused", refused, wording.Plural(refused, "app")), screen.Red))
	}
	return counts
}

func countPhases(places []place) []screen.Word {
	n := map[ring.Phase]int{}
	order := slices.Clone(inOrder)
	for _, p := range places {
		phase := ring.Phase(ring.ServiceWord(p.service))
		n[phase]++
		if !slices.Contains(order, phase) {
			order = append(order, phase)
		}
	}
	var counts []screen.Word
	for _, phase := range order {
		if n[phase] > 0 {
			hue := PhaseHue(phase)
			if phase == ring.RolloutIsRestored {
				hue = screen.Red
			}
			if phase == ring.PhaseReady || phase == ring.PhaseCompleted {
				hue = screen.NoHue
			}
			counts = append(counts, screen.Painted(fmt.Sprintf("%d %s", n[phase], strings.ToLower(string(phase))), hue))
		}
	}
	return counts
}

// moreOf is such as "20 more: 19 ready, 1 held".
func moreOf(hidden []place) string {
	var counts []string
	for _, x := range countPhases(hidden) {
		counts = append(counts, x.Text)
	}
	return fmt.Sprintf("%d more: %s", len(hidden), strings.Join(counts, ", "))
}

// readyOf is such as "1/2"; nothing for what is not to stay up.
func readyOf(sv *ring.ServiceStatus) string {
	if sv.Kind != ring.Worker && sv.Ready == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", sv.Ready, sv.Wanted)
}

// readyWords are the beginning of a reason that the column READY has.
var readyWords = regexp.MustCompile(`^\d+/\d+ ready(; )?`)

// reasonOf is what the other columns of a service do not say.
func reasonOf(sv *ring.ServiceStatus, terminal bool) string {
	reason := readyWords.ReplaceAllString(sv.Reason, "")
	if terminal {
		reason = barred(reason)
	}
	updated := updatedOf(sv)
	done := updatedAndReady(sv)
	if terminal && updated == "" && rolling(sv) {
		updated = fmt.Sprintf("%d of %d updated", sv.Wanted, sv.Wanted)
	}
	if updated != "" && done < sv.Updated { // what is new serves only once it is ready
		of := wording.When(sv.Ready > done, "of them ") // those of before are ready too
		updated += wording.When(done == 0, ", none "+of+"ready") + wording.When(done > 0, fmt.Sprintf(", %d %sready", done, of))
	}
	if updated != "" {
		if terminal {
			updated = Bar(float64(min(done, sv.Wanted))/float64(sv.Wanted)) + " " + updated
		}
		reason = strings.TrimSuffix(updated+"; "+reason, "; ")
	}
	return reason
}

// updatedAndReady is how many instances of the wanted version are ready.
func updatedAndReady(sv *ring.ServiceStatus) int {
	ready := min(sv.Updated, sv.Ready)
	if len(sv.Instances) > 0 {
		ready = 0
	}
	for _, in := range sv.Instances {
		if in.Version == sv.Version && in.State == ring.SlotReady {
			ready++
		}
	}
	return ready
}

// rolling reports whether a rollout moves a service.
func rolling(sv *ring.ServiceStatus) bool {
	return sv.Phase == ring.PhaseProgressing && sv.Kind == ring.Worker && sv.Wanted > 0 && sv.Rollout != nil && sv.Rollout.Phase == ring.RolloutProgressing
}

// updatedOf is such as "1 of 4 updated" while a rollout has not come to all; the reason
// says what is ready.
func updatedOf(sv *ring.ServiceStatus) string {
	return wording.When(sv.Phase == ring.PhaseProgressing && sv.Kind == ring.Worker && sv.Updated < sv.Wanted, fmt.Sprintf("%d of %d updated", sv.Updated, sv.Wanted))
}

// movesSince is when the rollout that moves a service began; zero where none does, and
// where nobody says.
func movesSince(sv *ring.ServiceStatus) time.Time {
	if !working(sv.Phase) {
		return time.Time{}
	}
	for _, c := range sv.Conditions {
		if c.Type == ring.ConditionProgressing {
			return c.Since
		}
	}
	return time.Time{}
}

const barCells = 10

// Bar is a progress bar, full only at the end.
func Bar(part float64) string {
	full := int(barCells * min(max(part, 0), 1))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barCells-full) + "]"
}

// pullWords is how far a pull is, as the daemon says it within a sentence.
var pullWords = regexp.MustCompile(`^(.*) \((?:([0-9.]+)([kMGT]?B) of ([0-9.]+)([kMGT]?B), )?(\d+) of (\d+) layers\)(.*)$`)

// barred puts a progress bar before a sentence that says how far a pull is.
func barred(reason string) string {
	m := pullWords.FindStringSubmatch(reason)
	if m == nil {
		return reason
	}
	have, total := amount(m[6]), amount(m[7])
	far := m[6] + " of " + m[7] + " layers"
	if m[2] != "" {
		have, total = amount(m[2])*bytesIn[m[3]], amount(m[4])*bytesIn[m[5]]
		far = m[2] + m[3] + " of " + m[4] + m[5] + ", " + far
	}
	if total == 0 {
		return reason
	}
	return Bar(have/total) + " " + far + ": " + m[1] + m[8]
}

var bytesIn = map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}

func amount(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64) // 0 draws no bar
	return n
}

// Lasted is a time span with one or two units, such as 42s, 5m10s and 3h.
func Lasted(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%s", int(d.Minutes()), wording.When(d%time.Minute > 0, fmt.Sprintf("%ds", int(d%time.Minute/time.Second))))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%s", int(d.Hours()), wording.When(d%time.Hour >= time.Minute, fmt.Sprintf("%dm", int(d%time.Hour/time.Minute))))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
