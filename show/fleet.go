package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// HostColumns are the heads of HostRow.
var HostColumns = []string{"STATE", "COMMIT", "READY", ""}

// HostRow is a whole host in one row: the state and commit of each source, how many
// instances are ready of those wanted, and the first thing that is not well. A job that
// ran is not counted.
func HostRow(st *ring.Status) []screen.Word {
	var states, commits []string
	hue := screen.NoHue
	ready, wanted := 0, 0
	for i := range st.Sources {
		src := &st.Sources[i]
		name := wording.When(len(st.Sources) > 1, src.Name+" ")
		states = append(states, name+ring.SourceWord(src))
		commits = append(commits, src.Commit.Short())
		if src.Sync != ring.SyncSynced || hue == screen.NoHue {
			hue = sourceHue(src)
		}
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				if !sv.Kind.Ends() {
					ready, wanted = ready+min(sv.Ready, sv.Wanted), wanted+sv.Wanted
				}
			}
		}
	}
	return []screen.Word{
		screen.Painted(strings.Join(states, ", "), hue), screen.Text(strings.Join(commits, ", ")),
		screen.Text(fmt.Sprintf("%d/%d", ready, wanted)), screen.Text(firstTrouble(st)),
	}
}

// firstTrouble is what is not well, the gravest first; "" where nothing is.
func firstTrouble(st *ring.Status) string {
	switch {
	case st.Engine != "":
		return "engine: " + st.Engine
	case st.Store != "":
		return "store: " + st.Store
	}
	var later string
	for i := range st.Sources {
		src := &st.Sources[i]
		places := placesOf(src.Apps)
		worstFirst(places, st.At)
		switch {
		case src.Refusal != nil:
			return src.Refusal.Error()
		case len(places) > 0 && hasProblem(places[0].service, st.At):
			return places[0].id() + " " + ring.ServiceWord(places[0].service) + ": " + places[0].service.Reason
		case src.Sync != ring.SyncSynced && later == "":
			later = src.Reason
		}
	}
	return later
}

// ChangesSum is a plan in one line.
func ChangesSum(c *ring.Changes) string { return sum(c) }

// DoctorColumns are the heads of DoctorRow.
var DoctorColumns = []string{"FAIL", "WARN", "OK", "SKIP", ""}

// DoctorRow is what a doctor found, in one row: how many checks came out how, and the first of
// the gravest.
func DoctorRow(r *doctor.Report) []screen.Word {
	counts := map[doctor.Result]int{}
	gravest := map[doctor.Result]string{}
	for _, c := range r.Checks {
		counts[c.Result]++
		if gravest[c.Result] == "" {
			gravest[c.Result] = c.About + ": " + c.Name + ": " + c.Says
		}
	}
	number := func(of doctor.Result, hue screen.Hue) screen.Word {
		if counts[of] == 0 {
			hue = screen.NoHue
		}
		return screen.Painted(fmt.Sprint(counts[of]), hue)
	}
	return []screen.Word{
		number(doctor.Fail, screen.Red), number(doctor.Warn, screen.Yellow), number(doctor.OK, screen.NoHue), number(doctor.Skip, screen.NoHue),
		screen.Text(cmp.Or(gravest[doctor.Fail], gravest[doctor.Warn])),
	}
}
