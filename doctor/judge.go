package doctor

import (
	"fmt"

	"github.com/gitring/gitring/ring"
)

// Judge runs every check.
func Judge(s *Seen) []Check {
	var out []Check
	for _, checks := range [][]Check{
		engineChecks(&s.Engine),
		{rebootCheck(&s.Reboot)},
		stateChecks(s), secretChecks(&s.Secrets), clockChecks(s), trustChecks(s),
		sourceChecks(s), registryChecks(s.Registries), doorChecks(s), peopleChecks(&s.People), appChecks(s),
	} {
		out = append(out, checks...)
	}
	return out
}

// a begins a check.
func a(about, name string) Check { return Check{About: about, Name: name} }

func (c Check) is(r Result, hint, format string, args ...any) Check {
	c.Result, c.Hint, c.Says = r, hint, fmt.Sprintf(format, args...)
	return c
}

// unless skips a check whose probe has no answer; false where it has one.
func (c Check) unless(p Asked) (Check, bool) {
	switch {
	case !p.Asked:
		return c.is(Skip, "", "nobody could ask"), true
	case p.Err != "":
		return c.is(Skip, "", "cannot be found out: %s", p.Err), true
	}
	return c, false
}

// noDaemon skips a check that only a daemon can answer.
func (c Check) noDaemon(st *ring.Status) (Check, bool) {
	if st == nil {
		return c.is(Skip, "", "only the daemon knows, and none answers"), true
	}
	if st.At.IsZero() {
		return c.is(Skip, "", "the daemon has not looked yet"), true
	}
	return c, false
}
