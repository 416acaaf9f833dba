package show

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// Digest is 12 digits of one, as docker shows it.
func Digest(d string, whole bool) string {
	const shown = len("sha256:") + 12
	if whole || len(d) <= shown {
		return d
	}
	return d[:shown]
}

// column is one of the table of services. Of those with a rank only as many are shown as
// have room; the lowest go first.
type column struct {
	head string
	cell func(place) screen.Word
	rank int // 0 is always shown
}

// columnsOf are the columns that say something of these services and have room.
func columnsOf(s *screen.Screen, places []place, v *View) []column {
	all := []column{
		{"SERVICE", func(p place) screen.Word { return screen.Text(p.id()) }, 0},
		{"PHASE", func(p place) screen.Word { return screen.Painted(ring.ServiceWord(p.service), wordHue(p.service)) }, 0},
		{"READY", func(p place) screen.Word { return screen.Text(readyOf(p.service)) }, 0},
		{"COMMIT", func(p place) screen.Word { return screen.Text(runningOf(p.service).Short()) }, 0},
	}
	if slices.ContainsFunc(places, func(p place) bool { return wantedOf(p.service) != "" }) {
		all[3].head = "RUNS"
		all = append(all, column{"WANTED", func(p place) screen.Word { return screen.Painted(wantedOf(p.service).Short(), screen.Yellow) }, 0})
	}
	if v.Wide {
		return append(all, wideColumns(v)...)
	}
	for _, c := range []column{
		{"IMAGE", func(p place) screen.Word { return screen.Text(shortImage(p.service.Image)) }, 3},
		{"ADDRESS", func(p place) screen.Word { return screen.Text(shortPorts(p.publisher())) }, 2},
		{"UP", func(p place) screen.Word { return screen.Text(upOf(p.service, v.Now)) }, 4},
		{"RESTARTS", func(p place) screen.Word { return restartsOf(p.service) }, 1},
	} {
		if slices.ContainsFunc(places, func(p place) bool { return c.cell(p).Text != "" }) {
			all = append(all, c)
		}
	}
	width := func() int {
		whole := columnWidth(all, places)
		if whole <= s.LineWidth()-2 {
			return whole
		}
		names := make([]string, len(places))
		for i, p := range places {
			names[i] = p.id()
		}
		return whole - columnWidth(all[:1], places) + s.FirstColumn(all[0].head, names)
	}
	if over := width() - (s.LineWidth() - 2); s.LineWidth() > 0 && over > 0 {
		shortenAddresses(all, places, over)
	}
	for s.LineWidth() > 0 && width() > s.LineWidth()-2 {
		if shortened(all, places, width()-(s.LineWidth()-2)) {
			break
		}
		least := -1
		for i, c := range all {
			if c.rank > 0 && (least < 0 || c.rank < all[least].rank) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		all = slices.Delete(all, least, least+1)
	}
	return all
}

// leastImage is how many cells of an image still tell which one it is. Rather than fewer, the
// next column goes: two letters less than a name has would cost every address.
const leastImage = 10

// shortened reports whether it made a table as much narrower as it is too wide, by cutting
// the names of images and leaving their tags.
func shortened(all []column, places []place, over int) bool {
	at := slices.IndexFunc(all, func(c column) bool { return c.head == "IMAGE" })
	if at < 0 {
		return false
	}
	room := columnWidth(all[at:at+1], places) - over
	if room < leastImage {
		return false
	}
	all[at].cell = func(p place) screen.Word { return screen.Text(cutName(shortImage(p.service.Image), room)) }
	return true
}

// leastAddress is room for an address with its port, and for how many more there are.
const leastAddress = len("127.0.0.1:18080,+1")

// shortenAddresses makes a table narrower, as far as it is too wide, by cutting the addresses
// of the services that have long ones: the others keep theirs whole.
func shortenAddresses(all []column, places []place, over int) {
	at := slices.IndexFunc(all, func(c column) bool { return c.head == "ADDRESS" })
	if at < 0 {
		return
	}
	room := max(columnWidth(all[at:at+1], places)-over, leastAddress)
	all[at].cell = func(p place) screen.Word { return screen.Text(cutAddress(shortPorts(p.publisher()), room)) }
}

// cutAddress is the first of several addresses and how many more there are, where all of them
// have no room; of a long one the end, which has the port.
func cutAddress(addresses string, room int) string {
	if screen.WidthOf(addresses) <= room {
		return addresses
	}
	parts := strings.Split(addresses, ",")
	more := 0
	for _, p := range parts[1:] {
		n, err := strconv.Atoi(strings.TrimPrefix(p, "+"))
		if !strings.HasPrefix(p, "+") || err != nil {
			n = 1
		}
		more += n
	}
	tail := wording.When(more > 0, fmt.Sprintf(",+%d", more))
	first := []rune(parts[0])
	if cut := len(first) + len(tail) - room; cut > 0 {
		first = append([]rune("…"), first[cut+1:]...)
	}
	return string(first) + tail
}

// cutName cuts the name of an image so that its tag has room.
func cutName(image string, room int) string {
	if screen.WidthOf(image) <= room {
		return image
	}
	name, tag, _ := cutLast(image, ":")
	if keep := room - len(":"+tag) - 1; keep > 0 {
		return name[:min(keep, len(name))] + "…:" + tag
	}
	return image[:room-1] + "…"
}

func wideColumns(v *View) []column {
	return []column{
		{"KIND", func(p place) screen.Word { return screen.Text(string(p.service.Kind)) }, 0},
		{"UPDATED", func(p place) screen.Word { return screen.Text(strconv.Itoa(p.service.Updated)) }, 0},
		{"LAST GOOD", func(p place) screen.Word { return screen.Text(p.service.LastGood.Short()) }, 0},
		{"IMAGE", func(p place) screen.Word { return screen.Text(p.service.Image) }, 0},
		{"DIGEST", func(p place) screen.Word { return screen.Text(Digest(p.service.Digest, false)) }, 0},
		{"PORTS", func(p place) screen.Word { return screen.Text(strings.Join(p.service.Ports, ",")) }, 0},
		{"UP", func(p place) screen.Word { return screen.Text(upOf(p.service, v.Now)) }, 0},
		{"VERSION", func(p place) screen.Word { return screen.Text(p.service.Version.Short()) }, 0},
		{"HEALTH", func(p place) screen.Word {
			return screen.Text(cmp.Or(p.service.Health, wording.When(p.service.Kind == ring.Worker, "checked"), "-"))
		}, 0},
	}
}

func columnWidth(columns []column, places []place) int {
	width := -2
	for _, c := range columns {
		column := len(c.head)
		for _, p := range places {
			column = max(column, screen.WidthOf(wording.SafeLine(c.cell(p).Text)))
		}
		width += column + 2
	}
	return width
}

// runningOf is the commit whose version runs; an older daemon does not say it.
func runningOf(sv *ring.ServiceStatus) ring.SHA { return cmp.Or(sv.Running, sv.Commit) }

// wantedOf is the commit that is wanted in the place of the one that runs; "" where they
// are the same.
func wantedOf(sv *ring.ServiceStatus) ring.SHA {
	if sv.Running == "" || sv.Running == sv.Commit {
		return ""
	}
	return sv.Commit
}

// shortImage is the name and the tag of an image, without where it is from.
func shortImage(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	short := path.Base(name)
	if image == "" {
		return ""
	}
	if digest != "" && !strings.Contains(short, ":") {
		short += "@" + digest[:min(len(digest), len("sha256:")+7)]
	}
	return short
}

// shortPorts are the ports of the host that a service is reached at, or the address of its
// one instance where it publishes none.
func shortPorts(sv *ring.ServiceStatus) string {
	var hosts []string
	for _, p := range sv.Ports {
		host, _, published := cutLast(p, ":")
		if !published {
			continue // the engine chose it
		}
		if !strings.Contains(host, ":") {
			host = ":" + host
		}
		if strings.HasSuffix(p, "/udp") {
			host += "/udp"
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	const most = 2
	more := ""
	if len(hosts) > most {
		more = fmt.Sprintf(",+%d", len(hosts)-most)
		hosts = hosts[:most]
	}
	if len(hosts) > 0 {
		return strings.Join(hosts, ",") + more
	}
	var at []string
	for _, in := range sv.Instances {
		if in.Address != "" {
			at = append(at, in.Address)
		}
	}
	if len(at) > 1 {
		return fmt.Sprintf("%s,+%d", at[0], len(at)-1)
	}
	return strings.Join(at, "")
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// upOf is how long the instance runs that was started last.
func upOf(sv *ring.ServiceStatus, now time.Time) string {
	var youngest time.Time
	for _, in := range sv.Instances {
		if in.Started.After(youngest) {
			youngest = in.Started
		}
	}
	return strings.TrimPrefix(upSince(youngest, now), "-")
}

// upSince is one unit of time, as ages are; "-" for what does not run.
func upSince(started, now time.Time) string {
	if started.IsZero() {
		return "-"
	}
	return screen.Elapsed(started, now)
}

// restartsOf is how often the instances of a service were started again after a crash,
// since they were stable last; nothing for never.
func restartsOf(sv *ring.ServiceStatus) screen.Word {
	n := 0
	for _, in := range sv.Instances {
		n += in.Restarts
	}
	if n == 0 {
		return screen.Text("")
	}
	return screen.Painted(strconv.Itoa(n), screen.Yellow)
}

// cpuOf is in hundredths of a core, as "docker stats" has it.
func cpuOf(usage map[string]ring.Usage, id string) string {
	u, ok := usage[id]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", u.CPU*100)
}

func memoryOf(usage map[string]ring.Usage, id string) string {
	u, ok := usage[id]
	if !ok {
		return "-"
	}
	return wording.ShortSize(int64(u.Memory))
}

// hasProblem reports whether a service needs a person's eye.
func hasProblem(sv *ring.ServiceStatus, now time.Time) bool {
	return ring.IsDown(sv, now) || rank(sv) < moving || rank(sv) == moving && !working(sv.Phase) ||
		slices.ContainsFunc(sv.Instances, func(in ring.InstanceStatus) bool {
			return in.Failing || in.State == ring.SlotCrashed || in.State == ring.SlotBackingOff
		}) ||
		slices.ContainsFunc(sv.Conditions, func(c ring.Condition) bool { return c.Type != ring.ConditionProgressing && !working(sv.Phase) })
}
