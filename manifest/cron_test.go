package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gitring/gitring/ring"
)

func TestACronJobIsReadWhole(t *testing.T) {
	for line, want := range map[string]ring.Cron{
		"{kind: cron, cron: {schedule: '0 3 * * *'}}": {Schedule: "0 3 * * *", Timezone: "UTC", Overlap: ring.OverlapForbid, Missed: time.Hour},
		"{kind: cron, cron: {schedule: '@daily', timezone: Europe/Berlin, overlap: replace, missed: 0}}": {
			Schedule: "@daily", Timezone: "Europe/Berlin", Overlap: ring.OverlapReplace,
		},
		"{kind: cron, cron: {schedule: '*/5 8-18 * * mon-fri', overlap: allow, missed: 168h}, job: {timeout: 10m, retries: 2, rerun_interrupted: true}}": {
			Schedule: "*/5 8-18 * * mon-fri", Timezone: "UTC", Overlap: ring.OverlapAllow, Missed: 168 * time.Hour,
			Job: ring.Job{Timeout: 10 * time.Minute, Retries: 2, Rerun: true},
		},
		"{kind: cron, cron: {schedule: '@every 90m'}}": {Schedule: "@every 90m", Timezone: "UTC", Overlap: ring.OverlapForbid, Missed: time.Hour},
		"{kind: cron, cron: {schedule: '0 0 29 2 *'}}": {Schedule: "0 0 29 2 *", Timezone: "UTC", Overlap: ring.OverlapForbid, Missed: time.Hour},
	} {
		s, _ := lone(t, "x-gitring: "+line)
		if s.Kind != ring.CronK || s.Job != nil || s.Checks != nil || s.Restart.Engine != "no" || s.Cron == nil {
			t.Fatalf("%s: %+v", line, s)
		}
		if d := cmp.Diff(want, *s.Cron); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
	if s, _ := lone(t, "restart: on-failure:3", "x-gitring: {kind: cron, cron: {schedule: '@hourly'}}"); s.Cron.Job.Retries != 3 {
		t.Errorf("on-failure:3 is %d retries", s.Cron.Job.Retries)
	}
	s, all := lone(t, "volumes: ['./data:/d']", "x-gitring: {kind: cron, cron: {schedule: '@hourly', overlap: allow}}")
	if notes := strings.Join(all, ";"); s.Cron.Overlap != ring.OverlapAllow || !strings.Contains(notes, "overlap allow is carried out as forbid") {
		t.Errorf("%+v %s", s.Cron, notes)
	}
}

func TestAJobIsReadWhole(t *testing.T) {
	s, _ := lone(t, "x-gitring: {kind: job, job: {run: always, timeout: 1m, retries: 3, rerun_interrupted: true, replace: true}}")
	if d := cmp.Diff(ring.Job{Run: "always", Timeout: time.Minute, Retries: 3, Rerun: true, Replace: true}, *s.Job); d != "" {
		t.Error(d)
	}
}

// A before: is no part of the version: adding one rolls nothing.
func TestAJobBeforeARolloutIsNoPartOfTheVersion(t *testing.T) {
	const jobs = "  backup: {image: b, x-gitring: {kind: job}}\n"
	plain := app(t, "services:\n  web: {image: a}\n"+jobs)
	bound := app(t, "services:\n  web: {image: a, x-gitring: {before: backup}}\n"+jobs)
	x, _ := plain.Service("web")
	y, _ := bound.Service("web")
	if y.Before != "backup" || x.Before != "" || x.Written != y.Written {
		t.Errorf("%q %q, %s %s", x.Before, y.Before, x.Written, y.Written)
	}
	both := app(t, "services:\n  web: {image: a, depends_on: {backup: {condition: service_completed_successfully}}, x-gitring: {before: backup}}\n  backup: {image: b}\n")
	if s, _ := both.Service("backup"); s.Kind != ring.JobK {
		t.Error("Compose's own word for it does not make it a job:", s.Kind)
	}
	once := app(t, "services:\n  web: {image: a, x-gitring: {before: backup}}\n  backup: {image: b, x-gitring: {kind: job, job: {run: once}}}\n")
	if notes := strings.Join(once.Notes, ";"); !strings.Contains(notes, "job.run once is not used, it runs before web") {
		t.Error(notes)
	}
}

// A backup runs before each rollout, a migration once for each version.
func TestAJobThatRunsBeforeRunsForEachRolloutUnlessItSaysOnChange(t *testing.T) {
	for run, want := range map[string]string{"": "always", "job: {run: always}": "always", "job: {run: on_change}": "on_change"} {
		a := app(t, "services:\n  web: {image: a, x-gitring: {before: backup}}\n  backup: {image: b, x-gitring: {kind: job, "+run+"}}\n")
		if s, _ := a.Service("backup"); s.Job.Run != want {
			t.Errorf("%q runs %s, and %s is right", run, s.Job.Run, want)
		}
		if notes := strings.Join(a.Notes, ";"); strings.Contains(notes, "job.run") {
			t.Error(notes)
		}
	}
	alone := app(t, "services:\n  backup: {image: b, x-gitring: {kind: job}}\n")
	if s, _ := alone.Service("backup"); s.Job.Run != "on_change" {
		t.Error("a job of its own:", s.Job.Run)
	}
}

func TestJobsAndCronJobsAreRefused(t *testing.T) {
	cron := func(line string) map[string]string {
		return web("image: a", "x-gitring:", "  kind: cron", "  cron:", "    "+line)
	}
	two := func(web, job string) map[string]string {
		return map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    x-gitring: {before: backup}\n" + web + "  backup:\n    image: b\n" + job}
	}
	areRefused(t, []refused{
		{name: "too few fields", files: cron("schedule: 0 3 * *"), code: ring.BadValue, line: 7, says: `"0 3 * *" cannot be read`, hint: "five fields"},
		{name: "a minute of none", files: cron("schedule: 61 3 * * *"), code: ring.BadValue, line: 7, says: "61"},
		{name: "words", files: cron("schedule: every night"), code: ring.BadValue, line: 7, hint: "@daily"},
		{name: "a descriptor of none", files: cron("schedule: '@reboot'"), code: ring.BadValue, line: 7},
		{name: "a zone in the schedule", files: cron("schedule: CRON_TZ=Europe/Berlin 0 3 * * *"), code: ring.BadValue, line: 7, hint: "timezone:"},
		{name: "a zone and nothing else", files: cron("schedule: TZ=UTC"), code: ring.BadValue, line: 7},
		{name: "every ten seconds", files: cron("schedule: '@every 10s'"), code: ring.BadValue, line: 7, hint: "worker"},
		{name: "a day that never comes", files: cron("schedule: 0 0 30 2 *"), code: ring.BadValue, line: 7, says: "never comes"},
		{name: "an empty schedule", files: cron("schedule: ''"), code: ring.BadValue, line: 7},
		{name: "a zone of none", files: cron("{schedule: '@daily', timezone: Berlin}"), code: ring.BadValue, line: 7, says: `"Berlin" is no time zone`},
		{name: "the zone of whoever reads it", files: cron("{schedule: '@daily', timezone: Local}"), code: ring.BadValue, line: 7},
		{name: "an overlap of none", files: cron("{schedule: '@daily', overlap: queue}"), code: ring.BadValue, line: 7, hint: "replace"},
		{name: "missed by more than a week", files: cron("{schedule: '@daily', missed: 169h}"), code: ring.BadValue, line: 7},
		{name: "an unknown key of cron", files: cron("{schedule: '@daily', zone: UTC}"), code: ring.UnknownKey, line: 7},
		{name: "a cron block without being one", files: web("image: a", "x-gitring:", "  cron: {schedule: '0 3 * * *'}"), code: ring.BadValue, line: 5, hint: "kind: cron"},
		{name: "a cron job without a schedule", files: web("image: a", "x-gitring:", "  kind: cron"), code: ring.BadValue, line: 5, hint: "schedule"},
		{name: "a cron job with checks", files: web("image: a", "x-gitring:", "  kind: cron", "  cron: {schedule: '@daily'}", "  checks: [{tcp: {port: 1}}]"), code: ring.BadValue, line: 7},
		{name: "a cron job in two replicas", files: web("image: a", "scale: 2", "x-gitring: {kind: cron, cron: {schedule: '@daily'}}"), code: ring.Unsupported, line: 4},
		{name: "a cron job that runs once", files: web("image: a", "x-gitring:", "  kind: cron", "  cron: {schedule: '@daily'}", "  job: {run: once}"), code: ring.BadValue, line: 7},
		{
			name: "a wait for a cron job", files: map[string]string{"web/compose.yaml": "services:\n  web:\n    image: a\n    depends_on:\n      backup: {condition: service_started}\n  backup: {image: b, x-gitring: {kind: cron, cron: {schedule: '@daily'}}}\n"},
			code: ring.BadValue, line: 5, says: "is a cron job and runs when it is due", hint: "a service of its own with x-gitring: {kind: job}",
		},
		{name: "before what is not there", files: web("image: a", "x-gitring: {before: backpu}"), code: ring.BadValue, line: 4, says: "not declared"},
		{name: "before a worker", files: two("", ""), code: ring.BadValue, line: 4, says: "is a worker and no job", hint: "kind: job"},
		{name: "before a cron job", files: two("", "    x-gitring: {kind: cron, cron: {schedule: '@daily'}}\n"), code: ring.BadValue, line: 4, says: "is a cron and no job"},
		{name: "before itself", files: web("image: a", "x-gitring: {before: web}"), code: ring.BadValue, line: 4},
		{name: "a job before a job", files: web("image: a", "x-gitring: {kind: job, before: web}"), code: ring.BadValue, line: 4, hint: "depends_on"},
		{name: "each before the other", files: two("", "    x-gitring: {kind: job}\n    depends_on: [web]\n"), code: ring.BadValue, line: 4, says: "wait for each other"},
		{name: "each before the other, by way of a third", files: two("", "    x-gitring: {kind: job}\n    depends_on: [db]\n  db: {image: d, depends_on: [web]}\n"), code: ring.BadValue, line: 4, says: "wait for each other"},
	})
}
