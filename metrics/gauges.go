package metrics

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// lateAfter is how long a run may be due without having begun: a look takes no minute, and one
// that waits for a job before it is no cause for alarm.
const lateAfter = 5 * time.Minute

// The states that a series is there for, whichever holds.
var (
	syncs = []ring.Sync{
		ring.SyncUnknown, ring.SyncRefused, ring.SyncHeld, ring.SyncStaging, ring.SyncApplying, ring.SyncDegraded, ring.SyncSynced,
	}
	healths = []string{ring.Healthy, ring.Progressing, ring.Degraded, ring.Held, ring.Unknown}
	phases  = []ring.Phase{
		ring.PhasePending, ring.PhaseProgressing, ring.PhaseReady, ring.PhaseDegraded, ring.PhaseFailed, ring.PhaseHeld,
		ring.PhaseRemoving, ring.PhaseCompleted,
	}
	overrides = []ring.OverrideKind{
		ring.OverrideHold, ring.OverridePause, ring.OverrideScale, ring.OverrideUndo, ring.OverrideStop, ring.OverrideLeft,
	}
	// Those that hold where nothing is said of them come first.
	usual       = []string{ring.ConditionAvailable, ring.ConditionImageResolved, ring.ConditionAdmitted}
	ofServices  = append(slices.Clip(usual), ring.ConditionProgressing, ring.ConditionCrashLooping, ring.ConditionQuarantined, ring.ConditionContested, ring.ConditionDrifted)
	ofTheSource = []string{
		ring.ConditionPolicyInvalid, ring.ConditionPolicyViolated, ring.ConditionGrantExpires, ring.ConditionKeysInvalid, ring.ConditionOld, ring.ConditionStale,
	}
)

// Scrape is all that a page is made of.
type Scrape struct {
	Now    time.Time
	Status ring.Status
	// Outbox is what has not arrived. Expiry is when the first key of each source expires.
	// Succeeded is when each job last succeeded.
	Outbox    []ring.Unsaid
	Expiry    map[string]time.Time
	Succeeded map[ring.ServiceID]time.Time
	// Fronts are those of services in force.
	Fronts []Front
	// Carried is what fronts counted; nil where nobody heard them.
	Carried *Carried
	// Journal is what was counted of it.
	Journal *Journal
	// Counts are all others; each may be nil.
	Counts []*Counts
}

// Front is one front, and what it said last; nil where it does not answer.
type Front struct {
	Source, App, Service string
	Seen                 *ring.FrontSeen
}

// Text is the page.
func (s *Scrape) Text() string {
	p := newPage()
	s.host(p)
	for i := range s.Status.Sources {
		s.source(p, &s.Status.Sources[i])
	}
	for i := range s.Fronts {
		front(p, &s.Fronts[i])
	}
	s.Carried.onto(p, s.Fronts)
	s.acts(p)
	s.outbox(p)
	if s.Journal != nil {
		s.Journal.counts.onto(p)
	}
	for _, c := range s.Counts {
		c.onto(p)
	}
	s.leaveOut(p)
	return p.text()
}

func (s *Scrape) host(p page) {
	st := &s.Status
	p.add("gitring_build_info", 1, st.Gitring, st.Host)
	p.when("gitring_config_rejected", st.Config != "")
	if st.At.IsZero() { // nobody has looked yet
		return
	}
	p.when("gitring_engine_up", st.Engine == "")
	p.when("gitring_store_up", st.Store == "")
}

func (s *Scrape) source(p page, src *ring.SourceStatus) {
	for _, x := range syncs {
		p.when("gitring_source_sync", src.Sync == x, src.Name, string(x))
	}
	p.when("gitring_source_refused", src.Refusal != nil, src.Name)
	moment(p, "gitring_source_last_checked_timestamp_seconds", src.Checked, src.Name)
	moment(p, "gitring_source_tip_timestamp_seconds", src.Committed, src.Name)
	moment(p, "gitring_key_expiry_timestamp_seconds", s.Expiry[src.Name], src.Name)
	for _, kind := range ofTheSource {
		p.when("gitring_source_condition", src.Condition(kind) != nil, src.Name, kind)
	}
	for i := range src.Apps {
		s.app(p, src.Name, &src.Apps[i])
	}
}

func (s *Scrape) app(p page, source string, a *ring.AppStatus) {
	for _, h := range healths {
		p.when("gitring_app_health", a.Health == h, source, a.Name, h)
	}
	p.when("gitring_app_refused", a.Refusal != nil, source, a.Name)
	for i := range a.Services {
		s.service(p, source, a.Name, &a.Services[i])
	}
}

func (s *Scrape) service(p page, source, app string, sv *ring.ServiceStatus) {
	for _, x := range phases {
		p.when("gitring_service_phase", sv.Phase == x, source, app, sv.Name, string(x))
	}
	p.add("gitring_service_instances_wanted", float64(sv.Wanted), source, app, sv.Name, string(sv.Kind))
	p.add("gitring_service_instances_ready", float64(sv.Ready), source, app, sv.Name, string(sv.Kind))
	p.add("gitring_service_instances_updated", float64(sv.Updated), source, app, sv.Name, string(sv.Kind))
	for _, kind := range ofServices {
		p.when("gitring_service_condition", holds(sv, kind), source, app, sv.Name, kind)
	}
	if sv.Kind.Ends() {
		moment(p, "gitring_job_last_success_timestamp_seconds", s.Succeeded[ring.ID(app, sv.Name)], source, app, sv.Name)
	}
	if sv.Kind == ring.CronK {
		p.when("gitring_job_late", !sv.DueSince.IsZero() && s.Now.Sub(sv.DueSince) > lateAfter, source, app, sv.Name)
	}
}

// holds reports whether a condition holds of a service. A service that is well lists none.
func holds(sv *ring.ServiceStatus, kind string) bool {
	for _, c := range sv.Conditions {
		if c.Type == kind {
			return c.Status == ring.ConditionTrue
		}
	}
	return slices.Contains(usual, kind)
}

func front(p page, f *Front) {
	labels := []string{f.Source, f.App, f.Service}
	p.when("gitring_front_up", f.Seen != nil, labels...)
	if f.Seen == nil {
		return
	}
	p.add("gitring_front_connections", float64(f.Seen.Connections), labels...)
	p.add("gitring_front_queued", float64(f.Seen.Queued), labels...)
	p.when("gitring_front_full", f.Seen.Full, labels...)
	inFlight := 0
	for _, in := range f.Seen.Instances {
		inFlight += in.InFlight
	}
	p.add("gitring_front_in_flight", float64(inFlight), labels...)
}

func (s *Scrape) acts(p page) {
	count, oldest := map[string]int{}, map[string]time.Time{}
	for _, o := range s.Status.Overrides {
		count[o.Kind]++
		if was := oldest[o.Kind]; was.IsZero() || o.Since.Before(was) {
			oldest[o.Kind] = o.Since
		}
	}
	for _, k := range overrides {
		p.add("gitring_overrides", float64(count[string(k)]), string(k))
		moment(p, "gitring_override_oldest_timestamp_seconds", oldest[string(k)], string(k))
	}
}

// outbox leaves out what is for nobody whom the configuration names.
func (s *Scrape) outbox(p page) {
	count, oldest := map[string]int{}, map[string]time.Time{}
	for _, src := range s.Status.Sources {
		count[src.Name] = 0
	}
	for _, u := range s.Outbox {
		if u.State == ring.UnsaidLeft {
			continue
		}
		count[u.To]++
		if was := oldest[u.To]; was.IsZero() || u.Queued.Before(was) {
			oldest[u.To] = u.Queued
		}
	}
	for to, n := range count {
		p.add("gitring_outbox_pending", float64(n), to)
		moment(p, "gitring_outbox_oldest_timestamp_seconds", oldest[to], to)
	}
}

// leaveOut takes the series away whose service is not here any more.
func (s *Scrape) leaveOut(p page) {
	here := map[[3]string]bool{}
	for _, src := range s.Status.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				here[[3]string{src.Name, a.Name, sv.Name}] = true
			}
		}
	}
	p.samples["gitring_crashes_total"] = slices.DeleteFunc(p.samples["gitring_crashes_total"], func(x sample) bool {
		return !here[[3]string{x.labels[0], x.labels[1], x.labels[2]}]
	})
}

func moment(p page, name string, t time.Time, labels ...string) {
	if !t.IsZero() {
		p.add(name, float64(t.UnixMilli())/1000, labels...)
	}
}
