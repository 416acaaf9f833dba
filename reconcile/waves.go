package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// stuckAfter is how long a source may wait for other hosts until people are told.
const stuckAfter = 6 * time.Hour

// judgeWaves decides whether the newest plan of a source waits for hosts of earlier waves,
// and remembers what has to outlive a restart. What was let pass once is never held again.
func (t *decider) judgeWaves(src *Source, present map[string][]string) {
	plan := src.Next
	old, known := t.Facts.Waves[src.Name]
	if len(plan.Waves) == 0 {
		if known {
			t.setFact(ring.Forget{Table: "wave", Key: src.Name})
		}
		return
	}
	row := old
	if !known || row.Commit != plan.Commit {
		row = ring.WaveRow{Source: src.Name, Commit: plan.Commit, Since: t.now}
		if known && !old.Passed { // a train of commits is one wait: none of them came here
			row.Since, row.Stuck = old.Since, old.Stuck
		}
	}
	if row.Passed {
		return
	}
	if plan.AllowWaves || t.ranBefore(src, present) || t.runsHere(src) {
		row.Passed = true
	} else {
		row.Seen = t.seenSince(src, row.Seen)
		t.waitForWaves(src, &row)
	}
	if !known || !sameJSON(old, row) {
		t.setFact(row)
	}
}

// passWaves lets the newest plan of a source pass, as a person says; nil where it waits for no
// other host.
func (t *decider) passWaves(src *Source, present map[string][]string) ring.Fact {
	if src.Apply == ApplyObserve || t.inForce(src) {
		return nil
	}
	if t.judgeWaves(src, present); t.waved[src.Name].None() {
		return nil
	}
	row := t.Facts.Waves[src.Name]
	row.Passed = true
	return row
}

// wavesSay is which hosts a plan would wait for, wave by wave; "" for none.
func (t *Pass) wavesSay(src *Source, present map[string][]string) string {
	plan := src.Next
	row := t.Facts.Waves[src.Name]
	if plan.AllowWaves || row.Passed && row.Commit == plan.Commit || src.Apply == ApplyObserve || t.inForce(src) || t.ranBefore(src, present) {
		return ""
	}
	says, words := "", "would wait for "
	for _, w := range plan.Waves {
		says += words + strings.Join(w.Hosts, ", ")
		words = ", then for "
		if w.Soak > 0 {
			says += say(" (soaks %s)", w.Soak)
		}
	}
	return says
}

// seenSince are, by wave, since when all of its hosts succeed. An answer that is missing takes
// nothing back; a failure does.
func (t *Pass) seenSince(src *Source, was []time.Time) []time.Time {
	seen := make([]time.Time, len(src.Next.Waves))
	copy(seen, was)
	for i, w := range src.Next.Waves {
		succeeded := true
		for _, host := range w.Hosts {
			switch t.wordOf(src, host).State {
			case ring.PostSuccess:
			case ring.PostFailure:
				seen[i], succeeded = time.Time{}, false
			default:
				succeeded = false
			}
		}
		if succeeded && seen[i].IsZero() {
			seen[i] = t.now
		}
	}
	return seen
}

// waitForWaves decides what the plan waits for: a failure first, then a host without success,
// then time. It lets the plan pass where nothing is left.
func (t *decider) waitForWaves(src *Source, row *ring.WaveRow) {
	why := cmp.Or(t.failedWave(src, row.Failed), t.unreadyWave(src), t.soakingWave(src, row.Seen))
	failed := ""
	if why.Code == ring.WhyWaveFailed {
		failed = t.failedHost(src, row.Failed)
	}
	switch {
	case why.None():
		row.Passed = true
		if row.Waited {
			t.tellWave(src, ring.WavePassed, ring.Reason{Says: "every host of the waves before this one succeeded"})
		}
		return
	case failed != "" && failed != row.Failed:
		t.tellWave(src, ring.WaveHeld, why)
	case !row.Waited:
		t.tellWave(src, ring.WaveWaiting, why)
	}
	row.Waited, row.Failed = true, failed
	t.askWords(src)
	put(&t.waved, src.Name, why)
	if at := row.Since.Add(stuckAfter); t.now.Before(at) {
		t.wakeBy(at)
	} else if !row.Stuck {
		row.Stuck = true
		why.Says = say("for %s: %s", t.now.Sub(row.Since).Round(time.Minute), why.Says)
		t.tellWave(src, ring.WaveStuck, why)
	}
}

func (t *decider) tellWave(src *Source, kind string, why ring.Reason) {
	t.addEvent(ring.Event{Kind: kind, Source: src.Name, Commit: src.Next.Commit, Reason: why.Says, Code: why.Code})
}

// wordOf is what a host says of the newest commit. Success of a descendant counts, as it
// holds this one.
func (t *Pass) wordOf(src *Source, host string) ring.Word {
	if src.Ahead != "" {
		if w := t.Words[ring.WordAt{Source: src.Name, Commit: src.Ahead, Host: host}]; w.State == ring.PostSuccess {
			return w
		}
	}
	return t.Words[ring.WordAt{Source: src.Name, Commit: src.Next.Commit, Host: host}]
}

// askWords asks for what the hosts of earlier waves say.
func (t *Pass) askWords(src *Source) {
	for _, w := range src.Next.Waves {
		for _, host := range w.Hosts {
			for _, commit := range []ring.SHA{src.Next.Commit, src.Ahead} {
				if commit != "" {
					t.asks = append(t.asks, ring.WordAt{Source: src.Name, Commit: commit, Host: host})
				}
			}
		}
	}
}

// failedHost is the first host of an earlier wave that failed; "" when none did. One that was
// known to stays so while the forge does not answer: its silence takes no word back.
func (t *Pass) failedHost(src *Source, was string) string {
	silent := ""
	for _, w := range src.Next.Waves {
		for _, host := range w.Hosts {
			switch state := t.wordOf(src, host).State; {
			case state == ring.PostFailure:
				return host
			case state == "" && host == was:
				silent = host
			}
		}
	}
	return silent
}

// failedWave is the reason of a plan that failed on an earlier host.
func (t *Pass) failedWave(src *Source, was string) ring.Reason {
	host := t.failedHost(src, was)
	if host == "" {
		return ring.Reason{}
	}
	says := cmp.Or(t.wordOf(src, host).Says, "no reason is given")
	return ring.Reason{Code: ring.WhyWaveFailed, Says: say("failed on %s: %s; push a commit that mends it, or gitring approve %s lets it go on", host, says, src.Next.Commit.Short())}
}

// unreadyWave is the reason of a plan that waits for the word of hosts, the first of them named.
func (t *Pass) unreadyWave(src *Source) ring.Reason {
	first, more := "", 0
	for _, w := range src.Next.Waves {
		for _, host := range w.Hosts {
			word := t.wordOf(src, host)
			state := word.State
			switch {
			case state == ring.PostSuccess:
			case first == "":
				first = say("waits for %s: %s", host, cmp.Or(state, word.Says, "no status yet"))
			default:
				more++
			}
		}
	}
	switch {
	case first == "":
		return ring.Reason{}
	case more > 0:
		first += say(", and %d more", more)
	}
	return ring.Reason{Code: ring.WhyWaveWaiting, Says: first}
}

// soakingWave is the reason of a plan that waits until a wave has succeeded for long enough.
func (t *Pass) soakingWave(src *Source, seen []time.Time) ring.Reason {
	var until time.Time
	for i, w := range src.Next.Waves {
		if at := seen[i].Add(w.Soak); at.After(until) {
			until = at
		}
	}
	if !t.now.Before(until) {
		return ring.Reason{}
	}
	t.wakeBy(until)
	return ring.Reason{Code: ring.WhyWaveWaiting, Says: say("waits until %s: every host of the waves before succeeded, and soaks", clock(until))}
}

// runsHere reports whether an instance of the newest commit is here: it was let pass, and what
// was remembered of that is lost.
func (t *Pass) runsHere(src *Source) bool {
	_, known := t.Facts.Waves[src.Name]
	return !known && slices.ContainsFunc(t.Seen.Instances, func(in ring.Instance) bool {
		return in.Source == src.Name && in.Commit == src.Next.Commit
	})
}

// ranBefore reports whether all that the newest plan asks completed here before, as after a
// revert, or is in force. It is nothing new then that could be found bad. An app or a service
// that goes is a change as any other.
func (t *Pass) ranBefore(src *Source, present map[string][]string) bool {
	for name := range present {
		if t.nextApp(src, name) == nil && t.appRefusal(src, name) == nil {
			return false
		}
	}
	for i := range src.Next.Apps {
		app := t.pinnedAs(&src.Next.Apps[i])
		if !t.appRanBefore(&app) {
			return false
		}
	}
	return len(src.Next.Apps) > 0
}

func (t *Pass) appRanBefore(app *ring.App) bool {
	have := t.Facts.Apps[app.Name].App
	past := t.pastOf(app.Name)
	for _, key := range past {
		if p := t.Facts.Past[key].App; ring.SamePast(&p, app) && sameServices(&p, app) {
			return true
		}
	}
	if len(servicesGone(&have, app)) > 0 {
		return false
	}
	for i := range app.Services {
		s := &app.Services[i]
		ran := s.Version != "" && (asksSame(&have, s) || have.Name == "" && t.runsAs(ring.ID(app.Name, s.Name), s.Version))
		for _, key := range past {
			p := t.Facts.Past[key].App
			ran = ran || s.Version != "" && asksSame(&p, s)
		}
		if !ran {
			return false
		}
	}
	return true
}

// sameServices reports whether two plans of an app ask for the same versions in the same way.
func sameServices(a, b *ring.App) bool {
	return len(a.Services) == len(b.Services) && !slices.ContainsFunc(b.Services, func(s ring.Service) bool { return !asksSame(a, &s) })
}

// asksSame reports whether an app asks for a service as s does.
func asksSame(a *ring.App, s *ring.Service) bool {
	old, known := inForce(a, s.Name)
	return known && sameService(old, s)
}
