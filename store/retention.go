package store

import (
	"sort"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Facts that are kept per service, the newest first, besides those in use.
const (
	keepVerdicts = 50
	keepPins     = 50
	keepJobs     = 200 // a run that is forgotten would be run again by a revert to it
)

// Facts of all services together.
const (
	keepIntents   = 5000
	keepApprovals = 500
)

// Facts of a service that no app in force has go when they were not written for
// this long. An app that returns later does not find its job runs.
const (
	keepLeft     = 90 * 24 * time.Hour
	keepLeftJobs = 365 * 24 * time.Hour
)

// factRow is what retention looks at of a fact.
type factRow struct {
	Kind, Key string
	At        int64
}

// spent are the rows that may go: more or older than is kept, and needed by no
// plan in force, rollout or last good version. Rows of tables that it does not
// know, and apps in force, are never among them.
func spent(rows []factRow, facts *ring.Facts, now time.Time) []factRow {
	inUse, here := needed(facts)
	byGroup := map[string][]factRow{}
	var gone []factRow
	for _, r := range rows {
		if inUse[r.Kind+" "+r.Key] {
			continue
		}
		id := serviceOf(r)
		if id != "" && !here[id] && r.At < ns(now.Add(-keptFor(r.Kind))) {
			gone = append(gone, r)
			continue
		}
		byGroup[r.Kind+" "+string(id)] = append(byGroup[r.Kind+" "+string(id)], r)
	}
	for _, group := range byGroup {
		keep, bounded := keptOf(group[0].Kind)
		if !bounded || len(group) <= keep {
			continue
		}
		sort.Slice(group, func(i, j int) bool {
			if group[i].At != group[j].At {
				return group[i].At > group[j].At
			}
			return group[i].Key < group[j].Key
		})
		gone = append(gone, group[keep:]...)
	}
	return gone
}

// needed are the rows that something that runs, or may be restored, refers to,
// and the services that are here.
func needed(facts *ring.Facts) (inUse map[string]bool, here map[ring.ServiceID]bool) {
	inUse, here = map[string]bool{}, map[ring.ServiceID]bool{}
	use := func(id ring.ServiceID, v ring.Version, written string) {
		here[id] = true
		inUse["verdict "+ring.VersionKey(id, v)] = true
		inUse[jobTable+" "+ring.VersionKey(id, v)] = true
		inUse["pin "+ring.PinKey(id, written)] = true
	}
	for name, app := range facts.Apps {
		for _, s := range app.App.Services {
			use(ring.ID(name, s.Name), s.Version, s.Written)
			if s.Before != "" { // ran before the version that is here, and not again
				inUse[jobTable+" "+ring.RunKey(ring.ID(name, s.Before), ring.BeforeMark(ring.ForVersion(s.Name, s.Version)))] = true
			}
		}
	}
	for id, g := range facts.Good {
		if here[id] {
			use(id, g.Service.Version, g.Service.Written)
		}
	}
	for id, r := range facts.Rollouts {
		if here[id] {
			use(id, r.Version, "")
		}
	}
	return inUse, here
}

// serviceOf is the service that a row is about; "" for one about none.
func serviceOf(r factRow) ring.ServiceID {
	switch r.Kind {
	case "verdict", "pin", jobTable:
		id, _, _ := strings.Cut(r.Key, "@")
		return ring.ServiceID(id)
	case "slot":
		slot, _, _ := strings.Cut(r.Key, "@")
		return ring.ServiceID(slot[:max(0, strings.LastIndex(slot, "/"))])
	case "rollout", "good":
		return ring.ServiceID(r.Key)
	}
	return ""
}

func keptFor(kind string) time.Duration {
	if kind == jobTable {
		return keepLeftJobs
	}
	return keepLeft
}

func keptOf(kind string) (n int, bounded bool) {
	switch kind {
	case "verdict":
		return keepVerdicts, true
	case "pin":
		return keepPins, true
	case jobTable:
		return keepJobs, true
	case "intent":
		return keepIntents, true
	case "approval":
		return keepApprovals, true
	}
	return 0, false
}

// runOf takes a key of a job run apart.
func runOf(key string) (ring.JobRun, bool) {
	id, mark, ok := strings.Cut(key, "@")
	return ring.RunOf(ring.ServiceID(id), mark), ok
}
