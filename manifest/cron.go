package manifest

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without a zone file

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/robfig/cron/v3"

	"github.com/gitring/gitring/ring"
)

// cronWords is x-gitring cron of one service, as written.
type cronWords struct {
	place    place
	schedule written
	zone     string
	overlap  string
	missed   *time.Duration
}

var cronKeys = []string{"schedule", "timezone", "overlap", "missed"}

// Defaults and bounds of a cron job.
const (
	defaultMissed = time.Hour
	longestMissed = 7 * 24 * time.Hour
	leastEvery    = time.Minute // what five fields can say at most
)

func (d *decoder) cron(n *node, c *cronWords) {
	c.place = n.place
	d.keys(n, "cron", cronKeys)
	if s := n.get("schedule"); !s.null() {
		c.schedule = written{d.text(s, "schedule"), s.place}
		d.schedule(c.schedule)
	}
	if z := n.get("timezone"); !z.null() {
		c.zone = d.text(z, "timezone")
		if _, err := time.LoadLocation(c.zone); err != nil || c.zone == "Local" || c.zone == "" {
			d.bad(z.place, "write an IANA name such as Europe/Berlin, or UTC", "timezone: %q is no time zone", head(c.zone))
		}
	}
	if o := n.get("overlap"); !o.null() {
		c.overlap = d.oneOf(o, "overlap", ring.OverlapForbid, ring.OverlapAllow, ring.OverlapReplace)
	}
	if m := n.get("missed"); !m.null() {
		v := d.duration(m, "missed", 0)
		if v > longestMissed {
			d.bad(m.place, fmt.Sprintf("write at most %s", longestMissed), "missed: a run cannot be caught up after more than %s", longestMissed)
		}
		c.missed = &v
	}
}

// schedule refuses what is never due, and what the parser takes and no schedule is.
func (d *decoder) schedule(w written) {
	const hint = `write five fields (minute hour day month weekday) such as "0 3 * * *", or @daily`
	if strings.Contains(w.text, "TZ=") {
		d.bad(w.place, "write timezone: beside it", "schedule: %q names a time zone", head(w.text))
		return
	}
	s, err := parseSchedule(w.text)
	switch every, ok := s.(cron.ConstantDelaySchedule); {
	case err != nil:
		d.bad(w.place, hint, "schedule: %q cannot be read: %s", head(w.text), head(err.Error()))
	case ok && every.Delay < leastEvery:
		d.bad(w.place, "let a worker run on and wait by itself", "schedule: %q is more often than once in a minute", head(w.text))
	case s.Next(time.Unix(0, 0).UTC()).IsZero():
		d.bad(w.place, hint, "schedule: %q is a day that never comes", head(w.text))
	}
}

// parseSchedule is the parser's word, which panics at some of what is none.
func parseSchedule(s string) (out cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return cron.ParseStandard(s)
}

// cron is when a service of kind cron runs; nil for any other.
func (b *builderOf) cron(c types.ServiceConfig, kind ring.Kind, x *extras) *ring.Cron {
	w := x.cron
	if kind != ring.CronK {
		if w.place.line > 0 && !b.kindLost(c.Name) {
			b.bad(w.place, "say kind: cron beside it, or remove it", "services.%s is no cron job, but x-gitring has cron:", c.Name)
		}
		return nil
	}
	if w.schedule.text == "" && !b.anyLost(c.Name, []string{extensionKey, "cron"}) {
		at := x.kindAt
		if w.place.line > 0 {
			at = w.place
		}
		b.bad(at, `add cron: {schedule: "0 3 * * *"}`, "services.%s is a cron job without a schedule", c.Name)
	}
	if x.job.run != "" {
		b.bad(x.job.place, "remove run; its schedule says when", "services.%s is a cron job, for which job.run means nothing", c.Name)
	}
	if x.job.replace {
		b.bad(x.job.place, "say cron: {overlap: replace}", "services.%s is a cron job, for which job.replace means nothing", c.Name)
	}
	policy, attempts := b.restartWord(c)
	out := &ring.Cron{
		Schedule: w.schedule.text, Timezone: or2(w.zone, "UTC"), Overlap: or2(w.overlap, ring.OverlapForbid), Missed: defaultMissed,
		Job: *b.job(c, x, policy, attempts),
	}
	out.Job.Run = ""
	if w.missed != nil {
		out.Missed = *w.missed
	}
	return out
}

// checkCron refuses to wait for a cron job, and notes where runs cannot overlap.
func (b *builderOf) checkCron(app ring.App) {
	for i := range app.Services {
		s := &app.Services[i]
		for _, d := range s.DependsOn {
			if on, _ := app.Service(d.Service); on.Kind == ring.CronK {
				b.bad(b.place("services", s.Name, "depends_on", d.Service), "remove it; what has to run before "+s.Name+" is a service of its own with x-gitring: {kind: job}",
					"services.%s waits for %s, which is a cron job and runs when it is due", s.Name, on.Name)
			}
		}
		if s.Cron == nil || s.Cron.Overlap != ring.OverlapAllow {
			continue
		}
		if why := app.Alone(s); why != "" {
			b.note("%s: overlap allow is carried out as forbid, two runs cannot be at once: %s", s.Name, why)
		}
	}
}
