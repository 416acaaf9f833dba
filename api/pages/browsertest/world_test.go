package browsertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

// Commits of the world, the newest first.
const (
	fixTypo  = ring.SHA("442e027c1f0a4e8d9b3a5c7e9f1b2d4c6a8e0f13")
	newQueue = ring.SHA("9190630b7d1e4f2a8c6b5a4938271605f4e3d2c1")
	bigCache = ring.SHA("69bc92e5a4c3b2d1e0f9a8b7c6d5e4f3a2b1c0d9")
	firstOne = ring.SHA("0b5d3a1c2e4f6a8b9c0d1e2f3a4b5c6d7e8f9a0b")
	newBill  = ring.SHA("c3a1f9e8d7b6c5a4f3e2d1c0b9a8f7e6d5c4b3a2")
	oldBill  = ring.SHA("1f2e3d4c5b6a798897a6b5c4d3e2f1a0b9c8d7e6")
)

// hostile is what somebody may write into a commit's subject, a log or a reason. Each part is
// an attack, if it is more than text.
const hostile = "\x1b[31m<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u202e javascript:alert(1) \"'>"

// world is a daemon without an engine, as a test wants it.
type world struct {
	now time.Time

	mu       sync.Mutex // guards what follows
	status   ring.Status
	events   []ring.Event
	appended chan struct{}
	commits  []api.CommitNow
	logs     []string
	acted    []string
	seen     map[string]ring.Explained
}

// newWorld is a host with something of everything: all words that a page has are on it.
func newWorld() *world {
	w := &world{now: time.Now().UTC().Truncate(time.Second), appended: make(chan struct{}), seen: map[string]ring.Explained{}}
	w.status = ring.Status{
		Host: "edge-1", Gitring: "0.1.0", At: w.now, Policy: "9f86d081884c", Doctor: "1 check fails",
		Sources: []ring.SourceStatus{w.prod(), w.billing(), w.lab()},
		Overrides: []ring.Override{
			{Kind: string(ring.OverrideHold), Target: "db", Actor: "root", Reason: "moving the disk", Since: w.ago(26 * time.Minute), Until: w.in(34 * time.Minute)},
			{Kind: string(ring.OverridePause), Target: "shop/cart", Actor: "ben", Reason: "the graphs look odd", Since: w.ago(8 * time.Minute), Until: w.in(52 * time.Minute)},
		},
	}
	w.commits = []api.CommitNow{
		{Commit: newBill, Source: "billing", At: w.ago(11 * time.Minute), Subject: "Drop the old ledger", Signer: "bob@example.org", Outcome: "awaiting approval", Says: "it removes 3 of 4 services"},
		{Commit: fixTypo, Source: "prod", At: w.ago(20 * time.Minute), Subject: "api: fix the typo", Signer: "alice@example.org", Outcome: "held", Says: "app db: held by root: moving the disk"},
		{Commit: newQueue, Source: "prod", At: w.ago(2 * time.Hour), Subject: "web: queue mails", Signer: "alice@example.org", Outcome: "restored", Says: "web/web: slot 1 exited with code 3"},
		{Commit: bigCache, Source: "prod", At: w.ago(26 * time.Hour), Subject: "A larger cache", Signer: "cem@example.org", Outcome: "live"},
		{Commit: oldBill, Source: "billing", At: w.ago(50 * time.Hour), Subject: "Bill by the hour", Signer: "bob@example.org", Outcome: "live"},
		{Commit: firstOne, Source: "prod", At: w.ago(90 * time.Hour), Subject: "Say hello", Signer: "alice@example.org", Outcome: "replaced"},
	}
	w.journal()
	for i := range 300 {
		w.logs = append(w.logs, fmt.Sprintf("%s GET /item/%d 200 %d ms", w.ago(time.Duration(300-i)*time.Second).Format(time.RFC3339), i, 3+i%17))
	}
	w.logs = append(w.logs, "panic: queue: no such host mail", "exit status 3")
	return w
}

func (w *world) ago(d time.Duration) time.Time { return w.now.Add(-d) }
func (w *world) in(d time.Duration) time.Time  { return w.now.Add(d) }

// version is one that a commit asks for.
func version(sha ring.SHA) ring.Version { return ring.Version("1:" + sha) }

// service is one of n that are well.
func (w *world) service(app, name string, n int, commit ring.SHA) ring.ServiceStatus {
	s := ring.ServiceStatus{
		Name: name, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: n, Ready: n, Updated: n, Version: version(commit), Commit: commit, LastGood: commit,
		Reason: wellSaid(n), Running: commit, Image: "registry.example.org/" + app + ":1.4", Digest: "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
	}
	for slot := 1; slot <= n; slot++ {
		s.Instances = append(s.Instances, w.instance(app, name, slot, commit))
	}
	return s
}

func wellSaid(n int) string {
	if n == 1 {
		return "the instance is ready"
	}
	return fmt.Sprintf("all %d instances are ready", n)
}

func (w *world) instance(app, name string, slot int, commit ring.SHA) ring.InstanceStatus {
	id := fmt.Sprintf("%x", []byte(fmt.Sprintf("%s/%s/%d................................", app, name, slot))[:32])
	return ring.InstanceStatus{
		ID: id, Name: fmt.Sprintf("%s-%s-%d-%s", app, name, slot, id[:8]), Slot: slot, State: ring.SlotReady, Version: version(commit), Commit: commit,
		Started: w.ago(26 * time.Hour), Address: fmt.Sprintf("10.201.%d.%d", len(app), slot+1),
	}
}

func (w *world) app(name string, commit ring.SHA, services ...ring.ServiceStatus) ring.AppStatus {
	return ring.AppStatus{Name: name, Health: ring.Healthy, Commit: commit, Reason: "all services are ready", Services: services}
}

// prod waits for a held app, and has all that can be wrong with a service.
func (w *world) prod() ring.SourceStatus {
	web := w.service("web", "web", 2, bigCache)
	web.Phase, web.Version, web.Commit, web.Updated = ring.PhaseDegraded, version(newQueue), newQueue, 0
	web.Reason, web.Code = "kept 69bc92e: slot 1 exited with code 3", ring.WhyRolloutFailed
	web.Ports = []string{"8080:80/tcp"}
	web.Rollout = &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Version: version(newQueue), Commit: newQueue, Reason: "slot 1 exited with code 3", Code: ring.WhyRolloutFailed}
	web.Front = &ring.FrontStatus{Phase: ring.FrontServes, Ports: []string{"80/tcp"}, Generation: 7, Build: "sha256:aa11", Connections: 12}
	web.Conditions = []ring.Condition{{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue, Reason: "9190630 was restored", Since: w.ago(2 * time.Hour), Commit: newQueue}}
	webApp := w.app("web", newQueue, web)
	webApp.Health, webApp.Reason, webApp.Code = ring.Degraded, "web: kept 69bc92e: slot 1 exited with code 3", ring.WhyRolloutFailed
	webApp.Powers = []string{"publishes port 8080 on every address"}
	w.seen["web/web"] = w.explainWeb(&web)

	db := w.service("db", "db", 1, bigCache)
	db.Phase, db.Reason, db.Code = ring.PhaseHeld, "held by root until "+w.in(34*time.Minute).Format("15:04")+" UTC: moving the disk", ring.WhyHeldByPerson
	dbApp := w.app("db", bigCache, db)
	dbApp.Health, dbApp.Reason, dbApp.Code = ring.Held, db.Reason, ring.WhyHeldByPerson

	cart := w.service("shop", "cart", 4, bigCache)
	cart.Phase, cart.Updated, cart.Reason, cart.Code = ring.PhaseHeld, 2, "paused by ben: the graphs look odd", ring.WhyPausedByPerson
	cart.Version, cart.Commit = version(newQueue), newQueue
	cart.Rollout = &ring.RolloutStatus{Phase: ring.RolloutPaused, Version: version(newQueue), Commit: newQueue, Reason: "paused by ben: the graphs look odd", Code: ring.WhyPausedByPerson}
	pay := w.service("shop", "pay", 3, bigCache)
	pay.Phase, pay.Ready, pay.Updated, pay.Reason, pay.Code = ring.PhaseProgressing, 3, 1, "1 of 3 runs 9190630; slot 2 starts", ring.WhyInstanceNotReady
	pay.Version, pay.Commit = version(newQueue), newQueue
	pay.Instances[1].State, pay.Instances[1].Reason = ring.SlotStarting, "check http: connection refused, for 4 s"
	pay.Rollout = &ring.RolloutStatus{Phase: ring.RolloutProgressing, Version: version(newQueue), Commit: newQueue, Reason: "slot 2 starts"}
	shop := w.app("shop", newQueue, cart, pay)
	shop.Health, shop.Reason, shop.Code = ring.Held, "cart: paused by ben: the graphs look odd", ring.WhyPausedByPerson

	mail := w.service("mail", "relay", 1, bigCache)
	mail.Phase, mail.Ready, mail.Reason, mail.Code = ring.PhaseFailed, 0, "exits at once: code 127, crashed 5 times in a row", ring.WhyProgramEnded
	mail.Instances[0].State, mail.Instances[0].Restarts, mail.Instances[0].Reason = ring.SlotBackingOff, 5, "next try in 42 s"
	mail.Conditions = []ring.Condition{{Type: ring.ConditionCrashLooping, Status: ring.ConditionTrue, Reason: "5 crashes in a row", Since: w.ago(6 * time.Minute)}}
	mailApp := w.app("mail", bigCache, mail)
	mailApp.Health, mailApp.Reason, mailApp.Code = ring.Degraded, "relay: exits at once: code 127", ring.WhyProgramEnded

	wiki := w.app("wiki", bigCache, w.service("wiki", "wiki", 1, bigCache))
	wiki.Refusal = &ring.Refusal{Code: "Policy", Commit: newQueue, App: "wiki", File: "wiki/compose.yaml", Line: 7, Says: "privileged containers are not allowed here", Hint: "take privileged: true out; gitring policy explain wiki"}

	nightly := w.service("jobs", "nightly", 1, bigCache)
	nightly.Kind, nightly.Phase, nightly.Ready, nightly.Reason = ring.CronK, ring.PhaseCompleted, 0, "next run at 02:00 Europe/Berlin"
	nightly.NextRun, nightly.Instances = w.nextRun(), nil
	nightly.LastRun = &ring.RunOutcome{State: ring.RunSucceeded, Reason: "exited with code 0", Ended: w.nextRun().Add(-24*time.Hour + 4*time.Minute)}
	migrate := w.service("jobs", "migrate", 1, bigCache)
	migrate.Kind, migrate.Phase, migrate.Ready, migrate.Reason, migrate.Instances = ring.JobK, ring.PhaseCompleted, 0, "exited with code 0", nil

	apps := []ring.AppStatus{webApp, dbApp, shop, mailApp, wiki, w.app("api", bigCache, w.service("api", "api", 2, bigCache)), w.app("jobs", bigCache, nightly, migrate)}
	return ring.SourceStatus{
		Name: "prod", Branch: "main", Tip: fixTypo, Commit: newQueue, Subject: "web: queue mails", Signer: "alice@example.org", Committed: w.ago(2 * time.Hour), Trusted: fixTypo, Checked: w.ago(3 * time.Second),
		Sync: ring.SyncHeld, Reason: "app db is held by root: moving the disk", Code: ring.WhyHeldByPerson, On: "db",
		Next: &ring.Next{Commit: fixTypo, Reason: "app db is held by root: moving the disk", Code: ring.WhyHeldByPerson, On: "db"},
		Apps: apps,
	}
}

// billing waits for a person's yes.
func (w *world) billing() ring.SourceStatus {
	return ring.SourceStatus{
		Name: "billing", Branch: "main", Tip: newBill, Commit: oldBill, Subject: "Bill by the hour", Signer: "bob@example.org", Committed: w.ago(50 * time.Hour), Trusted: newBill, Checked: w.ago(5 * time.Second),
		Sync: ring.SyncHeld, Reason: "awaiting approval: it removes 3 of 4 services", Code: ring.WhyAwaitingApproval,
		Next: &ring.Next{Commit: newBill, Reason: "it removes 3 of 4 services", Code: ring.WhyAwaitingApproval},
		Apps: []ring.AppStatus{w.app("ledger", oldBill, w.service("ledger", "ledger", 2, oldBill), w.service("ledger", "old", 1, oldBill), w.service("ledger", "mailer", 1, oldBill), w.service("ledger", "report", 1, oldBill))},
	}
}

// lab is only watched, and its remote is away.
func (w *world) lab() ring.SourceStatus {
	return ring.SourceStatus{
		Name: "lab", Branch: "try", Tip: firstOne, Commit: firstOne, Subject: "Say hello", Signer: "alice@example.org", Trusted: firstOne, Trust: "first use: nobody vouched for where it began", Checked: w.ago(3 * time.Hour),
		Sync: ring.SyncHeld, Reason: "observed: nothing is carried out", Code: ring.WhyObserveOnly,
		Conditions: []ring.Condition{{Type: ring.ConditionStale, Status: ring.ConditionTrue, Reason: "its remote has not answered for 3 h", Since: w.ago(3 * time.Hour)}},
		Apps:       []ring.AppStatus{w.app("try", firstOne, w.service("try", "try", 1, firstOne))},
	}
}

func (w *world) nextRun() time.Time {
	berlin := time.FixedZone("CET", 3600)
	d := w.now.In(berlin)
	at := time.Date(d.Year(), d.Month(), d.Day(), 2, 0, 0, 0, berlin)
	if !at.After(w.now) {
		at = at.Add(24 * time.Hour)
	}
	return at.UTC()
}

func (w *world) crash() ring.Crash {
	return ring.Crash{
		ID: "web/web", Slot: 1, Version: version(newQueue), Commit: newQueue, Instance: strings.Repeat("9f", 32), At: w.ago(2 * time.Hour), ExitCode: 3, Class: "transient", Uptime: 1400 * time.Millisecond,
		Crashes: 3, Reason: "exited with code 3", Log: []string{"listening on :80", "queue: dial mail:25: no such host", "panic: queue: no such host mail", "exit status 3"}, Signature: "3 panic queue no such host mail",
	}
}

func (w *world) explainWeb(s *ring.ServiceStatus) ring.Explained {
	crash := w.crash()
	e := ring.Explained{
		App: "web", Service: "web", Source: "prod", Phase: s.Phase, Says: s.Reason, Next: "push a commit that mends it, or gitring retry web/web", Rule: "the version was restored, and waits for another commit",
		Wanted:   &ring.ExplainedWant{Kind: ring.Worker, Replicas: 2, Version: version(newQueue), Commit: newQueue, Image: "registry.example.org/web:1.5", Pin: "sha256:77aa", Pinned: "in force", File: "web/compose.yaml:3", Differs: "image, env QUEUE"},
		LastGood: &ring.ExplainedGood{Version: version(bigCache), Commit: bigCache, At: w.ago(26 * time.Hour)},
		Rollout:  s.Rollout, Inputs: []ring.ExplainedInput{{Name: "image", Says: "registry.example.org/web:1.5"}, {Name: "env QUEUE"}},
		Conditions: s.Conditions, Crash: &crash,
	}
	for _, in := range s.Instances {
		e.Instances = append(e.Instances, ring.ExplainedInstance{
			InstanceStatus: in, Stands: "last good", Engine: "running", Started: in.Started, Ready: in.Started.Add(2 * time.Second), Policy: "unless-stopped",
			Checks: []ring.Result{{Instance: in.ID, Check: "http", OK: true, First: in.Started, Last: w.ago(2 * time.Second), Count: 9000, Took: 3 * time.Millisecond}},
		})
	}
	return e
}

// journal is what happened here, as a daemon tells it.
func (w *world) journal() {
	type line struct {
		ago                  time.Duration
		kind, app, service   string
		commit               ring.SHA
		source, actor, words string
	}
	for _, l := range []line{
		{90 * time.Hour, ring.CommitAccepted, "", "", firstOne, "prod", "", "signed by alice@example.org"},
		{89*time.Hour + 59*time.Minute, ring.RolloutBegan, "web", "web", firstOne, "prod", "", "new"},
		{89*time.Hour + 58*time.Minute, ring.RolloutCompleted, "web", "web", firstOne, "prod", "", "2 of 2 are ready"},
		{26 * time.Hour, ring.CommitAccepted, "", "", bigCache, "prod", "", "signed by cem@example.org"},
		{26*time.Hour - time.Minute, ring.RolloutBegan, "web", "web", bigCache, "prod", "", "env CACHE"},
		{26*time.Hour - 3*time.Minute, ring.RolloutCompleted, "web", "web", bigCache, "prod", "", "2 of 2 are ready"},
		{2 * time.Hour, ring.CommitAccepted, "", "", newQueue, "prod", "", "signed by alice@example.org"},
		{2*time.Hour - 10*time.Second, ring.RolloutBegan, "web", "web", newQueue, "prod", "", "image, env QUEUE"},
		{2*time.Hour - 20*time.Second, ring.InstanceCrashed, "web", "web", newQueue, "prod", "", "exited with code 3"},
		{2*time.Hour - 40*time.Second, ring.RolloutFailed, "web", "web", newQueue, "prod", "", "slot 1 exited with code 3"},
		{2*time.Hour - 41*time.Second, ring.RolloutRestored, "web", "web", newQueue, "prod", "", "kept 69bc92e"},
		{26 * time.Minute, ring.OverrideBegan, "db", "", "", "prod", "root", "hold: moving the disk"},
		{20 * time.Minute, ring.CommitAccepted, "", "", fixTypo, "prod", "", "signed by alice@example.org"},
		{11 * time.Minute, ring.PlanAwaiting, "", "", newBill, "billing", "", "it removes 3 of 4 services"},
		{8 * time.Minute, ring.OverrideBegan, "shop", "cart", "", "prod", "ben", "pause: the graphs look odd"},
		{6 * time.Minute, ring.InstanceCrashed, "mail", "relay", bigCache, "prod", "", "exited with code 127"},
	} {
		w.events = append(w.events, ring.Event{
			Seq: int64(len(w.events) + 1), At: w.ago(l.ago), Kind: l.kind, Source: l.source, App: l.app, Service: l.service, Commit: l.commit, Actor: l.actor, Reason: l.words,
		})
	}
}

// larger adds apps that are well, until the host has n services.
func (w *world) larger(n int) *world {
	have := 0
	for _, s := range w.status.Sources {
		for _, a := range s.Apps {
			have += len(a.Services)
		}
	}
	src := &w.status.Sources[0]
	for i := 1; have < n; i++ {
		app := fmt.Sprintf("team-%03d", i)
		var services []ring.ServiceStatus
		for _, name := range []string{"web", "worker", "cache"} {
			if have++; have <= n {
				services = append(services, w.service(app, name, 2, bigCache))
			}
		}
		src.Apps = append(src.Apps, w.app(app, bigCache, services...))
	}
	return w
}

// alone leaves one service that is well.
func (w *world) alone() *world {
	src := &w.status.Sources[0]
	src.Apps = []ring.AppStatus{w.app("api", bigCache, w.service("api", "api", 1, bigCache))}
	src.Commit, src.Tip, src.Trusted, src.Subject, src.Next = bigCache, bigCache, bigCache, "A larger cache", nil
	src.Sync, src.Reason, src.Code, src.On = ring.SyncSynced, "what runs is what Git asks for", "", ""
	w.status.Sources, w.status.Overrides = w.status.Sources[:1], nil
	return w
}

// set changes the status.
func (w *world) set(change func(st *ring.Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.status
	st.Sources = append([]ring.SourceStatus{}, st.Sources...)
	for i := range st.Sources {
		st.Sources[i].Apps = append([]ring.AppStatus{}, st.Sources[i].Apps...)
	}
	st.Overrides = append([]ring.Override{}, st.Overrides...)
	change(&st)
	w.status = st
}

// tell writes a line of the journal.
func (w *world) tell(e ring.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Seq, e.At = int64(len(w.events)+1), time.Now().UTC()
	w.events = append(w.events, e)
	close(w.appended)
	w.appended = make(chan struct{})
}

func (w *world) did(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acted = append(w.acted, fmt.Sprintf(format, args...))
}

// acts are those that were done since it was asked last.
func (w *world) acts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.acted
	w.acted = nil
	return out
}

func locked[T any](w *world, of func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of()
}

func (w *world) lines(q api.EventQuery) []ring.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []ring.Event{}
	for _, e := range w.events {
		if e.Seq > q.After && (q.App == "" || e.App == q.App) {
			out = append(out, e)
		}
	}
	if q.Last > 0 {
		return out[max(0, len(out)-q.Last):]
	}
	return out[:min(len(out), q.Limit)]
}

var errNone = errors.New("this world has no such thing")

// calls are those of a daemon. What pages have no use for is an error.
func (w *world) calls() api.Calls {
	return api.Calls{
		Version: func(context.Context) (api.Version, error) {
			return api.Version{Gitring: "0.1.0", Engine: "docker 28.5.2", EngineAPI: "1.51"}, nil
		},
		Status: func(context.Context) (ring.Status, error) {
			return locked(w, func() ring.Status { return w.status }), nil
		},
		Labels: func(context.Context) (map[ring.ServiceID]map[string]string, error) { return nil, nil },
		Events: func(_ context.Context, q api.EventQuery) ([]ring.Event, error) { return w.lines(q), nil },
		Lines: func(_ context.Context, q api.EventQuery) (out []api.Line, err error) {
			for _, e := range w.lines(q) {
				out = append(out, api.Line{Event: e, Hash: fmt.Sprintf("%08x", e.Seq)})
			}
			return out, nil
		},
		AppsNamed: func(context.Context) ([]string, error) { return nil, nil },
		Appended:  func() <-chan struct{} { return locked(w, func() chan struct{} { return w.appended }) },
		Commits: func(_ context.Context, q api.HistoryQuery) ([]api.CommitNow, error) {
			all := locked(w, func() []api.CommitNow { return w.commits })
			if q.App != "" {
				source := map[bool]string{true: "billing", false: "prod"}[q.App == "ledger"]
				all = slices.DeleteFunc(slices.Clone(all), func(c api.CommitNow) bool { return c.Source != source })
			}
			return all[:min(len(all), q.Limit)], nil
		},
		History: func(context.Context, api.HistoryQuery) ([]ring.Event, error) { return nil, nil },
		Logs:    w.print,
		Inspect: func(_ context.Context, q api.InspectQuery) (ring.Explained, error) { return w.explain(q) },
		Jobs:    func(context.Context, api.JobQuery) ([]api.JobNow, error) { return w.jobs(), nil },
		Crashes: func(_ context.Context, q api.CrashQuery) ([]api.CrashGroup, error) {
			return api.GroupCrashes([]ring.Crash{w.crash()}, q.Logs), nil
		},
		Usage:   func(context.Context) (map[string]ring.Usage, error) { return nil, nil },
		Traffic: func(context.Context, api.TrafficQuery) ([]api.FrontNow, error) { return w.fronts(), nil },
		Trust:   func(context.Context, string) ([]ring.TrustState, error) { return w.trust(), nil },
		Plan:    func(_ context.Context, r api.PlanRequest) (ring.Changes, error) { return w.plan(r), nil },
		Doctor:  func(context.Context) (doctor.Report, error) { return w.report(), nil },
		Outbox:  func(context.Context) ([]ring.Unsaid, error) { return nil, nil },
		Outdated: func(context.Context, api.OutdatedQuery) ([]api.ImageNow, error) {
			return []api.ImageNow{{App: "api", Service: "api", Image: "registry.example.org/api:1.4", Pinned: "sha256:aa", Now: "sha256:bb", Newer: true}}, nil
		},
		Acts: func(_ context.Context, q api.ActsQuery) ([]api.ActNow, error) {
			if q.Service != "" {
				return []api.ActNow{{Verb: "promote", Why: q.App + "/" + q.Service + " waits for no yes"}, {Verb: "resume", Why: q.App + "/" + q.Service + " is not paused"}}, nil
			}
			return []api.ActNow{{Verb: "undo", Back: &api.Earlier{Commit: bigCache, Subject: "A larger cache", Signer: "cem@example.org", Completed: w.ago(26 * time.Hour), Changes: ring.AppChanges{App: q.App, Services: []ring.ServiceChange{
				{Service: "web", Class: ring.ChangeRoll, Reason: "image sha256:9f -> sha256:41"}, {Service: "worker", Class: ring.ChangeNone},
			}}}}}, nil
		},
		Act: func(_ context.Context, _ api.Peer, r api.ActRequest) (api.Acted, error) {
			w.did("%s %s/%s %s: %s", r.Verb, r.App, r.Service, r.For, r.Reason)
			return api.Acted{Says: "done: " + r.Verb + " of " + r.App, At: w.now, Until: w.in(4 * time.Hour)}, nil
		},
		Approve: func(_ context.Context, _ api.Peer, r api.ApproveRequest) error {
			w.did("approve %s: %s", r.Commit, r.Reason)
			return nil
		},
		RefreshSecrets: func(context.Context, api.Peer, api.SecretRefreshRequest) ([]api.SecretNow, error) { return nil, nil },
		Refresh: func(_ context.Context, _ api.Peer, r api.RefreshRequest) ([]api.ImageNow, error) {
			w.did("refresh %s/%s: %s", r.App, r.Service, r.Reason)
			return nil, nil
		},
		Poke:   func(_ context.Context, source string) error { w.did("sync %s", source); return nil },
		Look:   func(context.Context, string) error { return nil },
		Accept: func(context.Context, api.Peer, api.AcceptRequest) error { return errNone },
		Prove: func(context.Context, api.Peer, api.ProofRequest) (api.ProofMade, error) {
			return api.ProofMade{}, nil
		},
		Reverify: func(context.Context, api.Peer, api.ReverifyRequest) (ring.Reverified, error) {
			return ring.Reverified{}, errNone
		},
		TrafficUpgrade: func(context.Context, api.Peer, api.UpgradeRequest) (api.Upgrading, error) {
			return api.Upgrading{}, errNone
		},
		Adopt: func(context.Context, api.Peer, api.AdoptRequest) (api.Adoption, error) {
			return api.Adoption{}, errNone
		},
		Leave: func(context.Context, api.Peer, api.LeaveRequest) (api.Left, error) { return api.Left{}, errNone },
		NotifyTest: func(context.Context, api.Peer, api.NotifyTestRequest) ([]api.NotifyTested, error) {
			return nil, errNone
		},
		OutboxRetry: func(context.Context, api.Peer, api.OutboxRetryRequest) (api.OutboxRetried, error) {
			return api.OutboxRetried{}, errNone
		},
		Metrics: http.NotFoundHandler(),
	}
}

// print is the log of the first instance: its last lines, and then whatever is printed.
func (w *world) print(ctx context.Context, q api.LogQuery, out func(string) io.WriteCloser) error {
	to := out(q.App + "-" + cmpOr(q.Service, "web") + "-1")
	defer to.Close() //nolint:errcheck // of a test
	sent := 0
	if q.Tail >= 0 {
		sent = max(0, locked(w, func() int { return len(w.logs) })-q.Tail)
	}
	for {
		more := locked(w, func() []string { return append([]string{}, w.logs[sent:]...) })
		for _, line := range more {
			if q.Timestamps {
				line = w.now.Format(time.RFC3339Nano) + " " + line
			}
			if _, err := io.WriteString(to, line+"\n"); err != nil {
				return nil
			}
		}
		if sent += len(more); !q.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond): // of the fake alone: nothing waits for it
		}
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (w *world) explain(q api.InspectQuery) (ring.Explained, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.seen[q.App+"/"+q.Service]; ok {
		return e, nil
	}
	for _, src := range w.status.Sources {
		for _, a := range src.Apps {
			for i := range a.Services {
				if s := &a.Services[i]; a.Name == q.App && s.Name == q.Service {
					return ring.Explained{
						App: a.Name, Service: s.Name, Source: src.Name, Phase: s.Phase, Says: s.Reason, Next: "nothing: it is as it should be", Rule: "at rest",
						Wanted:  &ring.ExplainedWant{Kind: s.Kind, Replicas: s.Wanted, Version: s.Version, Commit: s.Commit, Image: s.Image, Pin: s.Digest, Pinned: "in force", File: a.Name + "/compose.yaml:3"},
						Rollout: s.Rollout, Conditions: s.Conditions,
					}, nil
				}
			}
		}
	}
	return ring.Explained{}, api.NotFound("gitring status lists what is here", "no service %q on %s", q.App+"/"+q.Service, w.status.Host)
}

func (w *world) jobs() []api.JobNow {
	next := w.nextRun()
	var runs []ring.Run
	var due []time.Time
	for i := range 7 {
		due = append(due, next.Add(time.Duration(i)*24*time.Hour))
	}
	for i := 1; i <= 6; i++ {
		at := next.Add(-time.Duration(i) * 24 * time.Hour)
		run := ring.Run{
			ID: "jobs/nightly", Version: version(bigCache), Commit: bigCache, Instance: fmt.Sprintf("%064x", 0xabc0+i), Trigger: ring.OnSchedule, State: ring.RunSucceeded, Try: 1,
			Reason: "exited with code 0", Due: at, Started: at.Add(time.Second), Ended: at.Add(4 * time.Minute), Log: []string{"412 MiB written"},
		}
		if i == 3 {
			run.State, run.ExitCode, run.Reason = ring.RunFailed, 2, "exited with code 2"
		}
		runs = append(runs, run)
	}
	return []api.JobNow{
		{App: "jobs", Service: "nightly", Kind: ring.CronK, Phase: ring.PhaseCompleted, Reason: "next run at 02:00 Europe/Berlin", Next: next, Schedule: "0 2 * * *", Timezone: "Europe/Berlin", Due: due, Runs: runs},
		{App: "jobs", Service: "migrate", Kind: ring.JobK, Phase: ring.PhaseCompleted, Reason: "exited with code 0", Runs: []ring.Run{
			{ID: "jobs/migrate", Version: version(bigCache), Commit: bigCache, Instance: fmt.Sprintf("%064x", 0xdef0), Trigger: ring.OnChange, State: ring.RunSucceeded, Try: 1, Reason: "exited with code 0", Started: w.ago(26 * time.Hour), Ended: w.ago(26*time.Hour - 9*time.Second)},
		}},
	}
}

func (w *world) fronts() []api.FrontNow {
	return []api.FrontNow{{
		App: "web", Service: "web", Container: "web-web-front", Phase: ring.PhaseReady, At: w.ago(time.Second), Generation: 7, Told: 7, Build: "sha256:aa11", Newest: true, Connections: 12,
		Ports: []api.PortNow{{Port: 80, Protocol: "tcp", Carry: "http", Published: []string{"8080/tcp"}}},
		Instances: []api.InstanceNow{
			{Name: "1", Instance: "web-web-1", Version: string(version(bigCache)), State: ring.FrontState("serving"), Weight: 50, Reached: true, InFlight: 3},
			{Name: "2", Instance: "web-web-2", Version: string(version(bigCache)), State: ring.FrontState("serving"), Weight: 50, Reached: true, InFlight: 1},
		},
	}}
}

func (w *world) trust() []ring.TrustState {
	return []ring.TrustState{{
		Host: "edge-1", Source: "prod", Branch: "main", Mode: "strict", Version: 3, Epoch: "4be1c0de", Tip: fixTypo, Trusted: fixTypo, How: "verified", Since: w.ago(20 * time.Minute), Signer: "alice@example.org",
		Began: &ring.Beginning{SHA: firstOne, How: ring.ByIntroduction, At: w.ago(90 * time.Hour)}, Introduction: firstOne,
		Signers: []ring.TrustedSigner{
			{Principal: "alice@example.org", Kind: "ssh", Fingerprint: "SHA256:mVPwvezndPv/ARoIadVY98vAC0g+P/5633yTC4d/wXE", Place: "/etc/gitring/allowed_signers:1", Grants: []ring.Grant{{Roles: []string{"commit"}}}},
			{Principal: "cem@example.org", Kind: "ssh", Fingerprint: "SHA256:QgFqoWJuMF1TBAzzYlHlCPHbSJyyDbyVTkJcA0xvjEg", Until: w.in(9 * 24 * time.Hour), Place: "/etc/gitring/allowed_signers:2", Grants: []ring.Grant{{Roles: []string{"commit"}, Paths: []string{"web/**"}}}},
			{Principal: "old@example.org", Kind: "ssh", Fingerprint: "SHA256:8fyqeVoZ3n2g7q4mmyA8dLJm6vLJ3hVd0fS2kqvPZz0", Revoked: "/etc/gitring/revoked:1", Place: "/etc/gitring/allowed_signers:3", Grants: []ring.Grant{}},
		},
		Revoked: 1, Files: []ring.TrustFile{{Key: "allowed_signers", Path: "/etc/gitring/allowed_signers", Mode: "0644"}},
	}}
}

func (w *world) plan(r api.PlanRequest) ring.Changes {
	if r.Source == "billing" || strings.HasPrefix(string(newBill), r.Rev) && r.Rev != "" {
		return ring.Changes{Source: "billing", Commit: newBill, Awaiting: "it removes 3 of 4 services", Apps: []ring.AppChanges{{App: "ledger", Services: []ring.ServiceChange{
			{Service: "mailer", Class: ring.ChangeRemove, Reason: "it left the commit", From: version(oldBill)},
			{Service: "old", Class: ring.ChangeRemove, Reason: "it left the commit", From: version(oldBill)},
			{Service: "report", Class: ring.ChangeRemove, Reason: "it left the commit", From: version(oldBill)},
			{Service: "ledger", Class: ring.ChangeNone},
		}}}}
	}
	if r.Source == "lab" {
		return ring.Changes{Source: "lab", Commit: firstOne, Apps: []ring.AppChanges{{App: "try", Services: []ring.ServiceChange{{Service: "try", Class: ring.ChangeNone}}}}}
	}
	return ring.Changes{
		Source: "prod", Commit: fixTypo, Waits: "app db is held by root: moving the disk",
		Apps: []ring.AppChanges{{App: "api", Services: []ring.ServiceChange{{
			Service: "api", Class: ring.ChangeRoll, Reason: "env GREETING", From: version(bigCache), To: version(fixTypo),
			Fields: []ring.FieldChange{{Field: "env GREETING", Class: ring.ChangeRoll, Values: &ring.ValueChange{From: "helo", To: "hello"}}},
		}}}},
		UnderWay: []ring.Move{{App: "shop", Service: "pay", Phase: ring.RolloutProgressing, From: []ring.Version{version(bigCache)}, To: version(newQueue), Commit: newQueue, Updated: 1, Wanted: 3, Since: w.ago(time.Minute)}},
	}
}

func (w *world) report() doctor.Report {
	return doctor.Report{Host: "edge-1", Gitring: "0.1.0", At: w.now, Daemon: true, Checks: []doctor.Check{
		{About: "engine", Name: "answers", Result: doctor.OK, Says: "docker 28.5.2, API 1.51"},
		{About: "engine", Name: "fronts", Result: doctor.OK, Says: "fronts can run programs in /srv/a-long-name-of-a-folder/that-does-not-break/at-any-space/var/lib/gitring/front"},
		{About: "reboot", Name: "services come back", Result: doctor.Warn, Says: "14 of 15 services come back if gitring does not", Hint: "db/db has restart: no in db/compose.yaml:9"},
		{About: "trust", Name: "keys that expire", Result: doctor.Fail, Says: "the key of cem@example.org expires in 9 days", Hint: "docs/how-to/rotate-and-revoke-a-key.md"},
		{About: "clock", Name: "skew", Result: doctor.Skip, Says: "nobody answered with a date"},
	}}
}

func TestTheWorldHasWhatPagesNeed(t *testing.T) {
	w := newWorld()
	st, err := w.calls().Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, st.ExitCode())
	count := 0
	w.larger(300).set(func(st *ring.Status) {
		for _, s := range st.Sources {
			for _, a := range s.Apps {
				count += len(a.Services)
			}
		}
	})
	require.Equal(t, 300, count)
}
