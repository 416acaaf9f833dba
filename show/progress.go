package show

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// Synced shows each source and what is not well of it, in the end.
func Synced(s *screen.Screen, st *ring.Status, took string, printed Printed) {
	for _, src := range st.Sources {
		ahead := src.Trusted != "" && src.Trusted != src.Commit // the subject is that of the trusted commit
		s.Line(0, "  ", screen.Painted(src.Name, screen.Bold), screen.Painted(ring.SourceWord(&src), sourceHue(&src)), screen.Text(src.Commit.Short()), screen.Text(wording.When(!ahead, src.Subject)), screen.Text(restOf(src)))
		if took != "" {
			s.Line(2, ", ", append(countsOf(src), screen.Text(took))...)
		}
		Refusal(s, 2, "", src.Refusal)
		for _, a := range src.Apps {
			Refusal(s, 2, a.Name, a.Refusal)
			for _, sv := range a.Services {
				showUnwell(s, a.Name, sv)
				id := ring.ID(a.Name, sv.Name)
				CheckPrinted(s, 4, "", printed[id].Checked)
				if logs := printed[id].hint(string(id)); logs != "" {
					s.Line(4, " ", screen.Painted("hint:", screen.Dim), screen.Text(logs))
				}
			}
		}
	}
}

func showUnwell(s *screen.Screen, app string, sv ring.ServiceStatus) {
	if r := sv.Rollout; r != nil {
		why := r.Reason
		if strings.Contains(sv.Reason, why) {
			why = sv.Reason // says what was done about it too
		}
		s.Line(2, " ", screen.Text(app+"/"+sv.Name+" rollout of "+r.Commit.Short()), screen.Painted(rolloutWord(&sv)+":", rolloutHue(r.Phase)), screen.Text(why))
		return
	}
	if !atEnd(sv) {
		s.Line(2, " ", screen.Text(app+"/"+sv.Name), screen.Painted(ring.ServiceWord(&sv)+":", PhaseHue(sv.Phase)), screen.Text(sv.Reason))
	}
}

// atEnd reports whether a service is where its plan wants it.
func atEnd(sv ring.ServiceStatus) bool {
	return sv.Rollout == nil && (sv.Phase == ring.PhaseReady || sv.Phase == ring.PhaseCompleted)
}

// Progress shows how far each source is, with what has room.
func Progress(s *screen.Screen, st *ring.Status, took string, now time.Time, has *Shown, printed Printed) {
	for _, src := range st.Sources {
		rest := restOf(src)
		if src.Next != nil && src.Sync == ring.SyncStaging && pullWords.MatchString(src.Next.Reason) && nextToldBelow(src) {
			rest = nextSays(src, "")
		}
		s.Line(0, "  ", screen.Painted(src.Name, screen.Bold), screen.Painted(ring.SourceWord(&src), sourceHue(&src)), screen.Text(src.Commit.Short()), screen.Text(rest))
		s.Line(2, ", ", append(countsOf(src), screen.Text(took))...)
		for i := range src.Apps {
			a := src.Apps[i]
			if has.tells(&src.Apps[i]) {
				Refusal(s, 2, a.Name, a.Refusal)
			}
			if a.Refusal == nil && src.Sync == ring.SyncStaging && pullWords.MatchString(a.Reason) {
				s.Line(2, "  ", screen.Text(a.Name), screen.Text(barred(a.Reason)))
			} else {
				appProgress(s, src, a)
			}
		}
		has.restOfRefused(s, src.Apps)
		shown, hidden := split(placesOf(src.Apps), has.Services, now)
		if len(shown) > 0 {
			s.Table(2, progressHead(shown), progressRows(shown, now))
		}
		for _, p := range shown {
			CheckPrinted(s, 2, "of "+p.id(), printed[ring.ServiceID(p.id())].Checked)
		}
		if len(hidden) > 0 {
			s.Line(2, "", screen.Painted("… "+moreOf(hidden), screen.Dim))
		}
	}
}

// progressHead has a column for how long something moves only where something does.
func progressHead(places []place) []string {
	if moving := slices.ContainsFunc(places, func(p place) bool { return !movesSince(p.service).IsZero() }); moving {
		return []string{"SERVICE", "PHASE", "READY", "FOR", "REASON"}
	}
	return []string{"SERVICE", "PHASE", "READY", "REASON"}
}

func progressRows(places []place, now time.Time) [][]screen.Word {
	timed := len(progressHead(places)) == 5
	rows := make([][]screen.Word, len(places))
	for i, p := range places {
		sv := p.service
		moves := ""
		if began := movesSince(sv); !began.IsZero() {
			moves = Lasted(now.Sub(began))
		}
		rows[i] = []screen.Word{screen.Text(p.id()), screen.Painted(ring.ServiceWord(sv), wordHue(sv)), screen.Text(readyOf(sv)), screen.Text(moves), screen.Text(reasonOf(sv, true))}
		if !timed {
			rows[i] = slices.Delete(rows[i], 3, 4)
		}
	}
	return rows
}

// SayProgress writes the lines that changed. What is at rest is told by the result in
// the end; before it, it is no progress.
func SayProgress(l *screen.Live, src ring.SourceStatus, printed Printed, rests bool) error {
	if !rests {
		s := screen.New(false, 0)
		sourceProgress(s, src)
		if err := l.Say(src.Name, strings.TrimSuffix(s.String(), "\n")); err != nil {
			return err
		}
	}
	for _, a := range src.Apps {
		s := screen.New(false, 0)
		appProgress(s, src, a)
		if line := strings.TrimSuffix(s.String(), "\n"); line != "" {
			if err := l.Say(a.Name, line); err != nil {
				return err
			}
		}
		for _, sv := range a.Services {
			id := a.Name + "/" + sv.Name
			before := l.HasSaid(id)
			if atEnd(sv) && !before || !atEnd(sv) && rests {
				continue
			}
			s := screen.New(false, 0)
			serviceProgress(s, a.Name, sv)
			if err := l.Say(id, strings.TrimSuffix(s.String(), "\n")); err != nil {
				return err
			}
			checked := screen.New(false, 0)
			CheckPrinted(checked, 4, "of "+id, printed[ring.ID(a.Name, sv.Name)].Checked)
			if lines := strings.TrimSuffix(checked.String(), "\n"); lines != "" && !rests { // the result has them in the end
				if err := l.Say(id+" check", lines); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// AtRest reports whether nothing of a source moves.
func AtRest(x ring.Sync) bool { return x != ring.SyncStaging && x != ring.SyncApplying }

func sourceProgress(s *screen.Screen, src ring.SourceStatus) {
	s.Line(0, "  ", screen.Text(src.Name), screen.Painted(ring.SourceWord(&src), sourceHue(&src)), screen.Text(src.Commit.Short()), screen.Text(restOf(src)))
}

// appProgress says what an app that is staged waits for, such as a pull, unless
// the line of the source does.
func appProgress(s *screen.Screen, src ring.SourceStatus, a ring.AppStatus) {
	if src.Sync != ring.SyncStaging || a.Refusal != nil || a.Reason == "" || src.Next != nil && src.Next.Reason == "app "+a.Name+": "+a.Reason {
		return
	}
	for _, sv := range a.Services {
		if sv.Reason == a.Reason {
			return
		}
	}
	s.Line(2, "  ", screen.Text(a.Name), screen.Text(a.Reason))
}

// serviceProgress counts what is updated while that is not all; the reason says
// what is ready.
func serviceProgress(s *screen.Screen, app string, sv ring.ServiceStatus) {
	s.Line(2, "  ", screen.Text(app+"/"+sv.Name), screen.Painted(ring.ServiceWord(&sv), wordHue(&sv)), screen.Text(updatedOf(&sv)), screen.Text(sv.Reason))
}

// restOf is what a line about a source says that no line below it does.
func restOf(src ring.SourceStatus) string {
	if src.Next != nil {
		return nextSays(src, src.Next.Reason)
	}
	return wording.When(!toldBelow(src), src.Reason)
}

// WaitsOf is what is waited for, each with why.
func WaitsOf(st *ring.Status) []string {
	var waits []string
	for _, src := range st.Sources {
		var its []string
		for _, p := range placesOf(src.Apps) {
			if rank(p.service) == moving {
				its = append(its, strings.TrimSuffix(p.id()+" is "+ring.ServiceWord(p.service)+": "+p.service.Reason, ": "))
			}
		}
		if (src.Next != nil || len(its) == 0) && !AtRest(src.Sync) {
			waits = append(waits, strings.TrimSuffix(src.Name+" is "+string(src.Sync)+": "+restOf(src), ": "))
		}
		waits = append(waits, its...)
	}
	return waits
}
