package doctor

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

func doorChecks(s *Seen) []Check {
	c, skipped := a("doors", "webhooks").unless(s.Doors.Asked)
	switch {
	case skipped:
	case s.Doors.Hooks == "":
		c = c.is(OK, "", "nothing listens on TCP")
	case s.Doors.Wide:
		c = c.is(Warn, "have a proxy end TLS before it, or keep it to loopback", "%s is open beyond loopback, without TLS", s.Doors.Hooks)
	default:
		c = c.is(OK, "", "%s, on loopback", s.Doors.Hooks)
	}
	return append([]Check{c}, apiChecks(s)...)
}

// apiChecks are about the door for people and programs, where there is one.
func apiChecks(s *Seen) []Check {
	d := &s.Doors
	if !d.Asked.Asked || d.API == "" {
		return nil
	}
	c := a("doors", "api")
	switch {
	case d.APIPlain:
		c = c.is(Warn, "right behind a tailnet, WireGuard or a proxy that ends TLS; else set listen.api.tls", "%s is open beyond loopback, without TLS", d.API)
	case d.PlainCookie:
		c = c.is(Warn, "set listen.api.url to the https:// address under which people come", "%s: cookies of browsers go without TLS", d.API)
	case d.APIWide:
		c = c.is(OK, "", "%s, with TLS", d.API)
	default:
		c = c.is(OK, "", "%s, on loopback", d.API)
	}
	return []Check{c, personTokensCheck(&s.Tokens, s.Now)}
}

// tokenSoon is how long before its end a token is told of: people renew them by hand.
const tokenSoon = 7 * 24 * time.Hour

func personTokensCheck(t *Tokens, now time.Time) Check {
	c := a("doors", "tokens")
	if t.Asked.Err != "" {
		return c.is(Fail, "gitring token list; it is read again once it is mended", "%s", t.Asked.Err)
	}
	c, skipped := c.unless(t.Asked)
	if skipped {
		return c
	}
	var soon, never []string
	for _, one := range t.All {
		switch {
		case one.Until.IsZero():
			never = append(never, one.Name)
		case one.Until.Sub(now) < tokenSoon:
			soon = append(soon, one.Name+" on "+one.Until.UTC().Format(time.DateOnly))
		}
	}
	switch {
	case len(soon) > 0:
		return c.is(Warn, "make another one in time: docs/how-to/give-a-team-access.md", "these expire soon: %s", strings.Join(soon, ", "))
	case len(never) > 0:
		return c.is(Warn, "make one with an end in the place of each: docs/how-to/give-a-team-access.md", "these never expire: %s", strings.Join(never, ", "))
	}
	return c.is(OK, "", "%d, each with an end", len(t.All))
}

// groups that rule a host, and what their members may do.
var groups = []struct{ name, may string }{
	{"docker", "may do anything on this host, past gitring"},
	{"gitring", "may look"},
	{"gitring-admin", "may act"},
}

func peopleChecks(p *People) []Check {
	var out []Check
	for _, g := range groups {
		c, skipped := a("people", g.name).unless(p.Asked)
		members := slices.DeleteFunc(slices.Clone(p.Groups[g.name]), func(m string) bool { return m == "gitring" })
		switch {
		case skipped:
		case len(members) == 0:
			c = c.is(OK, "", "nobody else is in this group")
		case g.name == "docker":
			c = c.is(Warn, "take out whoever can do with gitring's own verbs", "%s %s", strings.Join(members, ", "), g.may)
		default:
			c = c.is(OK, "", "%s %s", strings.Join(members, ", "), g.may)
		}
		out = append(out, c)
	}
	return out
}

func appChecks(s *Seen) []Check {
	beside, skipped := a("apps", "beside ours").unless(s.Beside.Asked)
	switch {
	case skipped:
	case len(s.Beside.Projects) > 0:
		beside = beside.is(OK, "", "Compose runs %s here, too: gitring leaves them alone", strings.Join(s.Beside.Projects, ", "))
	default:
		beside = beside.is(OK, "", "Compose runs nothing here")
	}
	contested, away := a("apps", "contested").noDaemon(s.Status)
	owes, _ := a("apps", "messages").noDaemon(s.Status)
	ports, _ := a("apps", "host").noDaemon(s.Status)
	if away {
		return []Check{beside, contested, owes, ports}
	}
	return []Check{beside, contestedCheck(contested, s.Status), owesCheck(owes, s.Status), hostCheck(ports, s.Status)}
}

// servicesWhere are the services of which yes holds, as app/service.
func servicesWhere(st *ring.Status, yes func(*ring.ServiceStatus) bool) (out []string) {
	for _, src := range st.Sources {
		for _, app := range src.Apps {
			for i := range app.Services {
				if yes(&app.Services[i]) {
					out = append(out, app.Name+"/"+app.Services[i].Name)
				}
			}
		}
	}
	return out
}

func contestedCheck(c Check, st *ring.Status) Check {
	those := servicesWhere(st, func(sv *ring.ServiceStatus) bool {
		return slices.ContainsFunc(sv.Conditions, func(x ring.Condition) bool { return x.Type == ring.ConditionContested })
	})
	if len(those) > 0 {
		return c.is(Fail, "find who else changes them: docs/reference/drift.md", "others keep changing %s", strings.Join(those, ", "))
	}
	return c.is(OK, "", "nobody else changes our containers")
}

func owesCheck(c Check, st *ring.Status) Check {
	var those []string
	for _, r := range st.Receivers {
		those = append(those, r.Name+" ("+strconv.Itoa(r.Waiting+r.Dead)+" "+wording.Plural(r.Waiting+r.Dead, "message")+")")
	}
	if st.Hub != "" {
		return c.is(Warn, "report in the configuration, and docs/how-to/a-hub.md", "%s", st.Hub)
	}
	if len(those) > 0 {
		return c.is(Warn, "gitring outbox list says why each was not taken", "not told: %s", strings.Join(those, ", "))
	}
	return c.is(OK, "", "every receiver took what it was told")
}

// hostCheck is about what on the host is in the way of services: ports, paths, names, memory.
func hostCheck(c Check, st *ring.Status) Check {
	those := servicesWhere(st, func(sv *ring.ServiceStatus) bool { return sv.Code == ring.WhyHostNotReady })
	if len(those) > 0 {
		return c.is(Fail, "gitring inspect <app/service> says what it is", "something on this host is in the way of %s", strings.Join(those, ", "))
	}
	return c.is(OK, "", "no port, path or name of this host is in the way")
}
