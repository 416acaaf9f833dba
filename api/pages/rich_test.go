package pages

import (
	"fmt"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

const (
	shaNow  = ring.SHA("9190630aa1f0b8f64c1d7cb2a0d9e7f2c3b4a596")
	shaNext = ring.SHA("442e027c19de3a5f0e8b7a6c5d4e3f2a1b0c9d8e")
	shaOld  = ring.SHA("69bc92e0d1c2b3a4958677655443322110ffeedd")
)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// rich is a host on which something of everything goes on.
func rich() *fake {
	web := ring.AppStatus{Name: "web", Health: ring.Degraded, Commit: shaNow, Services: []ring.ServiceStatus{
		{
			Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Updated: 0, Commit: shaNow, Running: shaOld, LastGood: shaOld,
			Reason: "kept 69bc92e: slot 1 exited with code 3", Image: "ghcr.io/example/web:2.4.1", Ports: []string{"8080:80/tcp"},
			Rollout: &ring.RolloutStatus{Phase: ring.RolloutIsRestored, Version: "v1:77aa01c2d3e4f5a6", Commit: shaNow, Code: ring.WhyRolloutFailed, Reason: "slot 1 exited with code 3 within 30s of its start"},
			Instances: []ring.InstanceStatus{
				{ID: "a1", Name: "web-web-1", Slot: 1, State: ring.SlotReady, Commit: shaOld, Started: before(50 * time.Hour)},
				{ID: "a2", Name: "web-web-2", Slot: 2, State: ring.SlotReady, Commit: shaOld, Started: before(50 * time.Hour)},
			},
			Conditions: []ring.Condition{{Type: ring.ConditionQuarantined, Status: ring.ConditionTrue, Reason: "version 77aa failed here and is not tried again", Since: before(20 * time.Minute)}},
		},
		{
			Name: "worker", Kind: ring.Worker, Phase: ring.PhaseDegraded, Wanted: 3, Ready: 2, Updated: 3, Commit: shaNow, Running: shaNow, Reason: "slot 3 is not ready: readiness answers 503",
			Instances: []ring.InstanceStatus{{ID: "b1", Name: "w1", Slot: 1, State: ring.SlotReady}, {ID: "b2", Name: "w2", Slot: 2, State: ring.SlotReady}, {ID: "b3", Name: "w3", Slot: 3, State: ring.SlotNotReady}},
		},
		{Name: "cache", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: shaOld, Running: shaOld, Reason: "is as the commit asks", Instances: []ring.InstanceStatus{{ID: "c1", State: ring.SlotReady}}},
	}}
	db := ring.AppStatus{Name: "db", Health: ring.Held, Code: ring.WhyHeldByPerson, Commit: shaOld, Reason: "held until 18:37 UTC by root: moving the disk", Services: []ring.ServiceStatus{
		{Name: "postgres", Kind: ring.Worker, Phase: ring.PhaseHeld, Code: ring.WhyHeldByPerson, Wanted: 1, Ready: 1, Updated: 1, Commit: shaOld, Running: shaOld, Reason: "held until 18:37 UTC by root: moving the disk", Instances: []ring.InstanceStatus{{ID: "d1", State: ring.SlotReady}}},
	}}
	shop := ring.AppStatus{Name: "shop", Health: ring.Progressing, Commit: shaNow, Services: []ring.ServiceStatus{
		{
			Name: "shop", Kind: ring.Worker, Phase: ring.PhaseProgressing, Wanted: 4, Ready: 3, Updated: 2, Commit: shaNow, Running: shaOld, Reason: "slot 3 starts: waits for readiness, 12 s of 60 s",
			Rollout:   &ring.RolloutStatus{Phase: ring.RolloutProgressing, Commit: shaNow, Version: "v1:88bb01c2d3e4f5a6", Reason: "canary step 2 of 3", Canary: &ring.CanaryStatus{Step: 2, Weight: 25, Since: before(3 * time.Minute), Answers: 4211, Errors: 0.1, P99: 87}},
			Front:     &ring.FrontStatus{Phase: ring.FrontServes, Ports: []string{"443/tcp"}, Generation: 12, Connections: 87, Queued: 3, QueuedSince: before(2 * time.Second)},
			Instances: []ring.InstanceStatus{{ID: "e1", State: ring.SlotReady}, {ID: "e2", State: ring.SlotReady}, {ID: "e3", State: ring.SlotStarting}, {ID: "e4", State: ring.SlotDraining}},
		},
	}}
	mail := ring.AppStatus{Name: "mail", Health: ring.Healthy, Commit: shaOld, Refusal: &ring.Refusal{Code: ring.PolicyDenied, Commit: shaNow, App: "mail", File: "apps/mail/compose.yaml", Line: 14, Says: "privileged is not allowed on this host", Hint: "take privileged out, or have root grant it; see docs/how-to/grant-what-an-app-needs.md"}, Services: []ring.ServiceStatus{
		{Name: "smtp", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Updated: 1, Commit: shaOld, Running: shaOld, Reason: "is as the commit asks", Instances: []ring.InstanceStatus{{ID: "m1", State: ring.SlotReady}}},
	}}
	apps := []ring.AppStatus{web, db, shop, mail}
	for _, name := range []string{"api", "auth", "billing", "docs", "grafana", "images", "search", "status-page"} {
		apps = append(apps, ring.AppStatus{Name: name, Health: ring.Healthy, Commit: shaOld, Services: []ring.ServiceStatus{
			{Name: name, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Updated: 2, Commit: shaOld, Running: shaOld, Reason: "is as the commit asks", Instances: []ring.InstanceStatus{{State: ring.SlotReady}, {State: ring.SlotReady}}},
		}})
	}
	apps = append(apps, ring.AppStatus{Name: "jobs", Health: ring.Healthy, Commit: shaOld, Services: []ring.ServiceStatus{
		{Name: "nightly", Kind: ring.CronK, Phase: ring.PhaseReady, Commit: shaOld, Reason: "next at 03:00 UTC", NextRun: noon.Add(12*time.Hour + 23*time.Minute), Timezone: "Europe/Berlin", LastRun: &ring.RunOutcome{State: ring.RunSucceeded, Reason: "exit 0", Ended: before(11 * time.Hour)}},
		{Name: "hourly", Kind: ring.CronK, Phase: ring.PhaseProgressing, Commit: shaOld, Reason: "a run is under way", NextRun: noon.Add(23 * time.Minute)},
		{Name: "migrate", Kind: ring.JobK, Phase: ring.PhaseCompleted, Wanted: 1, Commit: shaOld, Reason: "ran to its end"},
	}})
	f := &fake{status: ring.Status{
		Host: "edge-1", Gitring: "0.1.0", At: noon,
		Sources: []ring.SourceStatus{
			{
				Name: "prod", Branch: "main", Sync: ring.SyncHeld, Code: ring.WhyHeldByPerson, Tip: shaNext, Commit: shaNow, Trusted: shaNext, Subject: "web: serve the new checkout to everybody", Signer: "alice@example.org",
				Committed: before(40 * time.Minute), Checked: before(3 * time.Second), Reason: "app db is held",
				Next: &ring.Next{Commit: shaNext, Reason: "app db is held until 18:37 UTC by root: moving the disk", Code: ring.WhyHeldByPerson}, Apps: apps,
				Conditions: []ring.Condition{{Type: ring.ConditionGrantExpires, Status: ring.ConditionTrue, Reason: "the grant of shop for port 443 expires on 2026-12-10"}},
			},
			{
				Name: "tools", Branch: "release", Sync: ring.SyncSynced, Commit: shaOld, Tip: shaOld, Trusted: shaOld, Subject: "tools: bump the exporter", Signer: "bob@example.org", Committed: before(90 * time.Hour), Checked: before(40 * time.Second),
				Next: nil, Reason: "all is as the commit asks", Apps: []ring.AppStatus{{Name: "exporter", Health: ring.Healthy, Commit: shaOld, Services: []ring.ServiceStatus{{Name: "exporter", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Instances: []ring.InstanceStatus{{State: ring.SlotReady}}}}}},
			},
		},
		Overrides: []ring.Override{{Kind: "hold", Target: "db", Actor: "root", Reason: "moving the disk", Since: before(time.Hour), Until: noon.Add(4 * time.Hour)}},
		Backup:    "the last one was made 2026-10-11, 46 days ago; gitring backup <file> makes one",
	}}
	f.inspect = map[string]ring.Explained{}
	for _, src := range f.status.Sources {
		for _, app := range src.Apps {
			for _, sv := range app.Services {
				f.inspect[app.Name+"/"+sv.Name] = explainedOf(app.Name, sv)
			}
		}
	}
	f.commits = []api.CommitNow{
		{Commit: shaNext, Source: "prod", At: before(4 * time.Minute), Subject: "api: fix the typo", Signer: "alice@example.org", Outcome: api.OutcomeAccepted, Says: "db: held by root"},
		{Commit: shaNow, Source: "prod", At: before(40 * time.Minute), Subject: "web: serve the new checkout to everybody", Signer: "alice@example.org", Outcome: api.OutcomeRestored, Says: "web/web: slot 1 exited with code 3"},
		{Commit: "5d0c7be2d1c2b3a4958677655443322110ffee00", Source: "prod", At: before(3 * time.Hour), Subject: "mail: run as root", Signer: "mallory@example.org", Outcome: api.OutcomeRefused, Says: "commit 5d0c7be is signed by nobody whom this host trusts"},
		{Commit: shaOld, Source: "prod", At: before(50 * time.Hour), Subject: "all: rebuild on the new base image", Signer: "bob@example.org", Outcome: api.OutcomeLive, Says: "approved by carol: looked at the plan"},
		{Commit: "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c", Source: "prod", At: before(140 * time.Hour), Subject: "shop: four instances", Signer: "alice@example.org", Outcome: api.OutcomeSuperseded},
	}
	line := func(ago time.Duration, kind, app, service string, c ring.SHA, reason string) {
		f.events = append(f.events, ring.Event{Seq: int64(len(f.events) + 1), At: before(ago), Kind: kind, Source: "prod", App: app, Service: service, Commit: c, Reason: reason, Actor: "alice@example.org"})
	}
	for i, s := range []string{"web/web", "shop/shop", "web/worker", "api/api"} {
		app, sv, _ := cutID(s)
		for k := range 3 {
			began := time.Duration(18-5*k-i) * time.Hour
			line(began, ring.RolloutBegan, app, sv, shaOld, "")
			line(began-time.Duration(4+9*i)*time.Minute, map[bool]string{true: ring.RolloutCompleted, false: ring.RolloutFailed}[(k+i)%4 != 0], app, sv, shaOld, "all instances are ready")
		}
	}
	line(40*time.Minute, ring.CommitAccepted, "", "", shaNow, "signed by alice@example.org with ssh key SHA256:9cXo, who may deploy")
	line(39*time.Minute, ring.RolloutBegan, "web", "web", shaNow, "image sha256:aa -> sha256:bb")
	line(30*time.Minute, ring.RolloutFailed, "web", "web", shaNow, "slot 1 exited with code 3")
	line(24*time.Minute, ring.RolloutRestored, "web", "web", shaNow, "69bc92e serves again")
	line(8*time.Minute, ring.RolloutBegan, "shop", "shop", shaNow, "image sha256:cc -> sha256:dd")
	f.fronts = []api.FrontNow{{App: "shop", Service: "shop", Instances: []api.InstanceNow{
		{Name: "s1", Instance: "shop-shop-1", State: ring.FrontActive, Set: "stable", Weight: 75, Reached: true, InFlight: 12, P50: 11, P99: 87},
		{Name: "s3", Instance: "shop-shop-3", State: ring.FrontActive, Set: "canary", Weight: 25, Reached: true, InFlight: 4, Errors: 4, P50: 12, P99: 91},
		{Name: "s4", State: ring.FrontDraining, InFlight: 1, Why: "cut at 14:38"},
	}}}
	f.jobs = richJobs()
	f.crashes = []api.CrashGroup{
		{App: "web", Service: "web", Count: 4, First: before(40 * time.Minute), Last: before(26 * time.Minute), Words: "panic: dial tcp 10.0.3.4:5432: connect: connection refused", Slots: []int{1, 2}, Versions: []ring.Version{"v1:77aa01c2d3e4f5a6"}, Newest: crashOf("web/web")},
		{App: "images", Service: "images", Count: 1, First: before(300 * time.Hour), Last: before(300 * time.Hour), Words: "Killed", Slots: []int{1}, Versions: []ring.Version{"v1:12"}, Newest: ring.Crash{ID: "images/images", Slot: 1, At: before(300 * time.Hour), ExitCode: 137, OOM: true, Class: "capacity", Reason: "it took more memory than its limit of 512 MiB", Log: []string{"Killed"}}},
	}
	for i := range 40 {
		f.logs += fmt.Sprintf("web-web-%d | %s %s\n", i%2+1, before(time.Duration(40-i)*7*time.Second).Format(time.RFC3339Nano), []string{"GET /checkout 200 12ms", "\x1b[32mINFO\x1b[0m cart 8831 paid", "GET /healthz 200 1ms", "WARN slow query: 812ms select * from orders where state = 'open' order by placed desc limit 100"}[i%4])
	}
	f.trust = []ring.TrustState{{
		Host: "edge-1", Source: "prod", Branch: "main", Mode: "strict", Epoch: "e3f2a1b0c9d8", Version: 4, Tip: shaNext, Trusted: shaNext, How: "verified", Since: before(4 * time.Minute), Signer: "alice@example.org",
		Began: &ring.Beginning{SHA: shaOld, How: ring.ByIntroduction, At: before(2000 * time.Hour)}, Revoked: 2,
		Signers: []ring.TrustedSigner{
			{Principal: "alice@example.org", Kind: "ssh", Fingerprint: "SHA256:9cXo5oCqQ1vGm2b7mNwq0Jr8f3b0dUq1p0s1u2v3w4x", Place: "/etc/gitring/allowed_signers:3", Grants: []ring.Grant{{Roles: []string{"deploy", "approve"}}}},
			{Principal: "bob@example.org", Kind: "openpgp", Fingerprint: "7A1F 0C2D 99AB 4410 2B7C  88E1 5D0C 7BE2 D1C2 B3A4", Until: noon.Add(400 * time.Hour), Place: "/etc/gitring/allowed_signers:4", Grants: []ring.Grant{{Roles: []string{"images"}, Paths: []string{"apps/web", "apps/shop"}}}},
			{Principal: "mallory@example.org", Kind: "ssh", Fingerprint: "SHA256:Zk3vQm2b7mNwq0Jr8f3b0dUq1p0s1u2v3w4x9cXo5oC", Revoked: "/etc/gitring/revoked:1", Place: "/etc/gitring/allowed_signers:7", Grants: []ring.Grant{{Roles: []string{"deploy"}}}},
		},
		Files: []ring.TrustFile{{Key: "allowed_signers", Path: "/etc/gitring/allowed_signers", Mode: "0644"}, {Key: "revoked", Path: "/etc/gitring/revoked", Mode: "0666", Wrong: "others may write it"}},
	}}
	f.plan = ring.Changes{Source: "prod", Apps: []ring.AppChanges{
		{App: "api", Files: []string{"apps/api/compose.yaml", "apps/api/prod.yaml"}, Services: []ring.ServiceChange{{Service: "api", Class: ring.ChangeRoll, Reason: "image sha256:a1b2 -> sha256:c3d4, env GREETING", Fields: []ring.FieldChange{{Field: "image", Class: ring.ChangeRoll}, {Field: "env GREETING", Class: ring.ChangeRoll, Values: &ring.ValueChange{From: canary, To: canary}}}, Needs: "256 MiB of memory while both run"}}},
		{App: "db", Order: "after api", Services: []ring.ServiceChange{{Service: "postgres", Class: ring.ChangeRecreate, Reason: "image sha256:11 -> sha256:22", Gap: "about 12 s, as its volume has one writer"}, {Service: "exporter", Class: ring.ChangeCreate}, {Service: "old", Class: ring.ChangeRemove}, {Service: "same", Class: ring.ChangeNone}}},
	}, Decisions: []ring.Decision{{Rule: "ports", App: "shop", Service: "shop", Field: "ports 443", Value: canary, Verdict: "power", Grant: "/etc/gitring/policy.yaml:12"}}}
	f.doctor = doctor.Report{Host: "edge-1", At: before(20 * time.Second), Daemon: true, Checks: []doctor.Check{
		{About: "engine", Name: "answers", Result: doctor.OK, Says: "docker 28.5.2, API 1.51"},
		{About: "engine", Name: "address pools", Result: doctor.Warn, Says: "3 of 31 are left", Hint: "widen default-address-pools in /etc/docker/daemon.json"},
		{About: "reboot", Name: "comes back", Result: doctor.OK, Says: "14 of 14 services come back if gitring does not"},
		{About: "clock", Name: "synchronised", Result: doctor.OK, Says: "0.2 s off"},
		{About: "state", Name: "backup", Result: doctor.Fail, Says: "the last one was made 46 days ago", Hint: "gitring backup /root/gitring.tar"},
		{About: "registry", Name: "ghcr.io", Result: doctor.Skip, Says: "it did not answer in 5 s"},
	}}
	return f
}

// canary is a value that no page may show.
const canary = "hunter2-canary-7f3a"

func cutID(id string) (app, service string, _ bool) {
	app, service = ring.ServiceID(id).Split()
	return app, service, true
}

func crashOf(id ring.ServiceID) ring.Crash {
	return ring.Crash{
		ID: id, Slot: 1, Version: "v1:77aa01c2d3e4f5a6", Commit: shaNow, At: before(26 * time.Minute), ExitCode: 3, Class: "permanent", Uptime: 4 * time.Second, Crashes: 4, Reason: "exited with code 3 within 30s of its start", Signature: "exit 3",
		Log: []string{"starting checkout 2.5.0", "config: 14 keys", "panic: dial tcp 10.0.3.4:5432: connect: connection refused", "goroutine 1 [running]:", "main.main()"},
	}
}

func explainedOf(app string, sv ring.ServiceStatus) ring.Explained {
	e := ring.Explained{
		App: app, Service: sv.Name, Source: "prod", Phase: sv.Phase, Says: sv.Reason, Next: "it is looked at again at the next event", Rule: "keep: " + sv.Reason,
		Wanted:  &ring.ExplainedWant{Kind: sv.Kind, Replicas: sv.Wanted, Version: "v1:77aa01c2d3e4f5a6", Commit: sv.Commit, Image: sv.Image, Pin: "sha256:a1b2c3d4e5f6", Pinned: "in force", File: "apps/" + app + "/compose.yaml"},
		Rollout: sv.Rollout, Conditions: sv.Conditions, LastGood: &ring.ExplainedGood{Version: "v1:66bb01c2d3e4f5a6", Commit: shaOld, At: before(50 * time.Hour)},
		Inputs: []ring.ExplainedInput{{Name: "image", Says: "sha256:a1b2"}, {Name: "env DATABASE_URL", Says: "of the host"}, {Name: "file conf/nginx.conf"}},
	}
	for i, in := range sv.Instances {
		x := ring.ExplainedInstance{InstanceStatus: in, Stands: []string{"wanted", "last good"}[i%2], Started: before(50 * time.Hour)}
		x.Checks = []ring.Result{{Check: "readiness http :80/healthz", OK: in.State == ring.SlotReady, Count: 812, Last: before(2 * time.Second), Says: map[bool]string{false: "answers 503"}[in.State == ring.SlotReady]}}
		e.Instances = append(e.Instances, x)
	}
	if app == "web" && sv.Name == "web" {
		c := crashOf("web/web")
		e.Crash = &c
		e.Next = "push a commit that mends it, or gitring retry web/web"
	}
	return e
}

func richJobs() []api.JobNow {
	nightly := api.JobNow{App: "jobs", Service: "nightly", Kind: ring.CronK, Phase: ring.PhaseReady, Reason: "waits until it is due", Next: noon.Add(12*time.Hour + 23*time.Minute), Schedule: "0 4 * * *", Timezone: "Europe/Berlin"}
	for i := range 3 {
		at := before(time.Duration(11+24*i)*time.Hour + 37*time.Minute)
		nightly.Runs = append(nightly.Runs, ring.Run{ID: "jobs/nightly", Trigger: ring.OnSchedule, State: []string{ring.RunSucceeded, ring.RunFailed, ring.RunSucceeded}[i], Due: at, Started: at, Ended: at.Add(4 * time.Minute), Reason: []string{"exit 0", "exit 1, after 3 tries", "exit 0"}[i], Commit: shaOld, Try: 1})
		nightly.Due = append(nightly.Due, noon.Add(time.Duration(12+24*i)*time.Hour+23*time.Minute))
	}
	hourly := api.JobNow{App: "jobs", Service: "hourly", Kind: ring.CronK, Phase: ring.PhaseProgressing, Reason: "a run is under way", Next: noon.Add(23 * time.Minute), Schedule: "0 * * * *", Timezone: "UTC"}
	hourly.Runs = append(hourly.Runs, ring.Run{ID: "jobs/hourly", State: api.RunRunning, Trigger: ring.OnSchedule, Started: before(90 * time.Second), Due: before(90 * time.Second)})
	for i := range 50 {
		at := before(time.Duration(i)*time.Hour + 37*time.Minute)
		hourly.Runs = append(hourly.Runs, ring.Run{ID: "jobs/hourly", Trigger: ring.OnSchedule, State: ring.RunSucceeded, Due: at, Started: at, Ended: at.Add(time.Minute), Reason: "exit 0"})
		hourly.Due = append(hourly.Due, noon.Add(time.Duration(i)*time.Hour+23*time.Minute))
	}
	migrate := api.JobNow{App: "jobs", Service: "migrate", Kind: ring.JobK, Phase: ring.PhaseCompleted, Reason: "ran to its end", Runs: []ring.Run{{State: ring.RunSucceeded, Trigger: ring.Before, For: "api/api", Started: before(50 * time.Hour), Ended: before(50*time.Hour - 20*time.Second), Reason: "exit 0", Commit: shaOld}}}
	return []api.JobNow{nightly, hourly, migrate}
}
