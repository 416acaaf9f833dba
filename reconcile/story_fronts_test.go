package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// faultOfFront is what happens to a front, or to what is in flight:
//
//	fault front web-front-1 does not answer
//	fault front web-front-1 does answer
//	fault front web-front-1 claims a huge table
//	fault front web-front-1 hangs
//	fault front web-front-1 stalls
//	fault front web-front-1 is taken over again and again
//	fault front web-front-1 is left alone
//	fault front web-front-1 claims one more
//	fault front web-front-1 has a full disk
//	fault front web-front-1 has a disk with room
//	fault front web-front-1 is full
//	fault front web-front-1 has room
//	fault front web-front-1 ends 3 times
//	fault front web-front-1 ends no more
//	fault front cannot reach web-1@v2
//	fault front can reach web-1@v2
//	fault web-1@v1 has 20s in flight
func (s *story) faultOfFront(w []string) error {
	if w[0] == "answers" { // fault answers v2 10 30 3: ten a second, 30 % errors, heads in the third bucket
		numbers := make([]int, 3)
		for i := range numbers {
			n, err := strconv.Atoi(w[2+i])
			if err != nil {
				return err
			}
			numbers[i] = n
		}
		s.load[w[1]], s.errors[w[1]], s.slow[w[1]] = float64(numbers[0]), int64(numbers[1]), numbers[2]
		return nil
	}
	if w[0] != "front" {
		d, err := time.ParseDuration(w[2])
		b := s.boxNamed(w[0])
		if b == nil {
			return fmt.Errorf("no such instance: %s", w[0])
		}
		s.streams[b.ID] = d
		return err
	}
	name := w[1]
	if len(w) > 3 && w[2] == "reach" {
		name = w[3]
	}
	b := s.boxNamed(name)
	if b == nil {
		return fmt.Errorf("no such instance: %s", name)
	}
	switch strings.Join(w[2:], " ") {
	case "hangs":
		s.silent[b.ID], s.hung[b.ID] = true, true
	case "is taken over again and again":
		s.claims[b.ID], s.takenOver[b.App+"/"+b.frontOf] = 1<<53, true
	case "is left alone":
		delete(s.takenOver, b.App+"/"+b.frontOf)
	case "stalls":
		s.silent[b.ID], s.stalled[b.ID] = true, true
	case "has a full disk", "has a disk with room":
		s.fullDisk[b.ID] = w[4] == "full"
	case "is full", "has room":
		s.crowded[b.ID] = w[3] == "full"
	case "ends 3 times", "ends no more":
		s.ended[b.ID] = 3
		if w[3] == "no" {
			s.ended[b.ID] = 0
		}
	case "claims one more":
		s.claims[b.ID] = 0
	case "claims a huge table":
		s.claims[b.ID] = 1 << 53
	case "does not answer":
		s.silent[b.ID] = true
	case "has no table": // nor one that can be read: its process waits for one
		s.tableless[b.ID] = true
		delete(s.tables, made(b))
		s.front[b.ID].table = ring.FrontTable{}
	case "does answer":
		delete(s.silent, b.ID)
	default:
		s.deaf[b.ID] = w[1] == "cannot"
	}
	return nil
}

// expectTable is "table web: web-1@v1 active, web-1@v2 warm", with "queue" where requests
// wait; "tables web: …; …" are all that its front took since.
func (s *story) expectTable(w []string) error {
	service := strings.TrimSuffix(w[0], ":")
	want := strings.Join(w[1:], " ")
	for _, id := range s.each() {
		b := s.boxes[id]
		f := s.front[id]
		if f == nil || shortID(b.App, b.frontOf) != service {
			continue
		}
		if got := s.tableSays(f.table); got != want {
			return fmt.Errorf("the table is: %s", got)
		}
		return nil
	}
	return errors.New("no front of it runs")
}

// expectPorts is "ports web: 90": what its front listens on.
func (s *story) expectPorts(w []string) error {
	for _, id := range s.each() {
		b := s.boxes[id]
		if f := s.front[id]; f == nil || shortID(b.App, b.frontOf) != strings.TrimSuffix(w[0], ":") {
			continue
		}
		var got []string
		for _, p := range s.front[id].table.Ports {
			got = append(got, strconv.Itoa(p.Port))
		}
		if says := strings.Join(got, " "); says != strings.Join(w[1:], " ") {
			return fmt.Errorf("it listens on %s", says)
		}
		return nil
	}
	return errors.New("no front of it runs")
}

func (s *story) expectTables(w []string) error {
	var got []string
	for _, e := range s.since() {
		if e.kind == "table" && frontOf(e.service) == strings.TrimSuffix(w[0], ":") {
			got = append(got, e.detail)
		}
	}
	if g := strings.Join(got, "; "); g != strings.Join(w[1:], " ") {
		return fmt.Errorf("the tables were: %s", g)
	}
	return nil
}

// tableSays is a table with instances as stories name them, in their order.
func (s *story) tableSays(t ring.FrontTable) string {
	var out []string
	for _, in := range t.Instances {
		name := in.Name
		if b := s.boxOf(in.Name); b != nil {
			name = fmt.Sprintf("%s-%d@%s", shortID(b.App, b.Service), b.Slot, b.image)
		}
		out = append(out, name+" "+string(in.State))
	}
	slices.Sort(out)
	if !t.QueueUntil.IsZero() {
		out = append(out, "queue")
	}
	if len(out) == 0 {
		return "nobody"
	}
	return strings.Join(out, ", ")
}

// frontOf is the service, as stories name it, whose front another one is.
func frontOf(service string) string {
	app, name := fullID(service)
	return shortID(app, strings.TrimSuffix(name, ring.FrontSuffix))
}

// expectWeight is the share of the canary in the table of a front.
func (s *story) expectWeight(service, want string) error {
	for _, f := range s.front {
		if shortID(f.in.App, f.in.frontOf) == service {
			return count("percent", f.table.CanaryWeight, want)
		}
	}
	return errors.New("no front of it runs")
}

// frontsLeaving is how many fronts of a service were told to leave.
func (s *story) frontsLeaving(service string) (n int) {
	for _, f := range s.front {
		if shortID(f.in.App, f.in.frontOf) == service && f.table.Leaving {
			n++
		}
	}
	return n
}

// expectGeneration is "generation web below 100": what is remembered of the counter.
func (s *story) expectGeneration(service, below string) error {
	most, err := strconv.Atoi(below)
	if err != nil {
		return err
	}
	app, name := fullID(service)
	if got := s.disk.Fronts[ring.ID(app, name)].Table.Generation; got >= int64(most) {
		return fmt.Errorf("the generation is %d", got)
	}
	return nil
}
