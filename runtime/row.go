package runtime

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
)

// row is what one line of the engine's list says of a container, without what
// changes by itself. Equal rows mean that an earlier inspect still holds.
type row struct {
	state    string
	status   string // words in brackets: exit code, health
	names    string
	networks string
}

func rowOf(c container.Summary) row {
	r := row{state: c.State, status: strings.Join(brackets.FindAllString(c.Status, -1), " ")}
	names := slices.Sorted(slices.Values(c.Names))
	r.names = strings.Join(names, " ")
	if c.NetworkSettings == nil {
		return r
	}
	var nets []string
	for name, e := range c.NetworkSettings.Networks {
		if e == nil {
			continue
		}
		nets = append(nets, name+"="+e.NetworkID+"="+e.IPAddress)
	}
	slices.Sort(nets)
	r.networks = strings.Join(nets, " ")
	return r
}

var (
	brackets = regexp.MustCompile(`\([^)]*\)`)
	upFor    = regexp.MustCompile(`^Up (?:(Less than a|About an|About a|\d+) (second|minute|hour|day|week|month|year)s?)`)
)

var spans = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

// uptime is the span that a status such as "Up 3 minutes (healthy)" stands
// for; false when it says none. The upper end is generous: the engine's words
// for minutes and hours leave gaps.
func uptime(status string) (least, most time.Duration, ok bool) {
	m := upFor.FindStringSubmatch(status)
	if m == nil {
		return 0, 0, false
	}
	unit := spans[m[2]]
	switch m[1] {
	case "Less than a":
		return 0, unit, true
	case "About a", "About an":
		return unit, 2 * unit, true
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, 0, false
	}
	return time.Duration(n) * unit, time.Duration(n+1) * unit, true
}

// slack is for the time between the engine's writing a status and our reading it.
const slack = 2 * time.Second

// restarted reports whether the status tells of a younger process than one that was
// up at since or before. It finds a restart by the engine itself where no event
// told of it: the row is the same, only the uptime went back.
func restarted(status string, since, now time.Time) bool {
	_, most, ok := uptime(status)
	return ok && !since.IsZero() && now.Sub(since) > most+slack
}

// upSince is the latest moment at which the process of this status can have
// been started, or known when that is earlier; zero when the status says none.
func upSince(status string, known, now time.Time) time.Time {
	least, _, ok := uptime(status)
	if !ok {
		return time.Time{}
	}
	if t := now.Add(-least); known.IsZero() || t.Before(known) {
		return t
	}
	return known
}
