package reconcile

import "github.com/gitring/gitring/ring"

// strategy is how a service comes from one version to the next.
type strategy struct {
	name     string // the word of the manifest
	rules    []rule
	overlaps bool // two versions run side by side
	// secondSet: the new version comes as a whole set beside the old one, which stays
	// whole until then as the one to go back to.
	secondSet bool
	// steps: a share of the requests goes to the new version first, in steps.
	steps bool
	// room is how far a rollout of so many replicas may go above and below them; nil is
	// as far as the knobs say.
	room func(k ring.Rollout, d int) (surge, unavailable int)
}

// strategies are all that there are, by the word of the manifest.
var strategies = map[string]strategy{}

// strategyOf is how a service moves: two versions that may not overlap are recreated,
// whatever the manifest says; and one that gets its front now has nobody yet who shares
// requests out.
func strategyOf(v *service) strategy {
	if v.isExclusive() {
		return strategies[ring.Recreate]
	}
	if v.comesFromDirect() {
		return strategies[ring.Rolling]
	}
	return strategyNamed(v.want.Rollout.Strategy)
}

// isExclusive reports whether two versions of the service are never started side by side.
func (v *service) isExclusive() bool {
	return !strategyNamed(v.want.Rollout.Strategy).overlaps || v.aloneBecause() != ""
}

// aloneBecause is why two instances cannot run at once; "" when they can. What a version
// does not share with itself it does not share with another either, whatever that
// one says.
func (v *service) aloneBecause() string {
	if v.loneOf != v.target { // the rules ask again and again
		v.loneOf, v.aloneSays = v.target, v.app.Alone(v.target)
	}
	if v.aloneSays != "" {
		return v.aloneSays
	}
	mine := writesOf(v.of, v.target)
	if len(mine) == 0 {
		return ""
	}
	for _, in := range v.instances {
		if in.Version == v.target.Version || v.sharesAs(in.Version) {
			continue
		}
		its := v.rollout.Writes[in.Version]
		if s := v.specOf(in); s != nil {
			its = writesOf(v.asWritten(s), s)
		}
		if what := firstCommon(its, mine); what != "" {
			return say("writable %s, which %s does not share", what, in.Name)
		}
	}
	return ""
}

// asWritten is the app of a service that v runs or ran.
func (v *service) asWritten(s *ring.Service) *ring.App {
	if s == v.want {
		return v.app
	}
	return &v.good.App
}

// strategyNamed is the strategy of a word of the manifest; rolling where it knows none.
func strategyNamed(name string) strategy {
	if s, known := strategies[name]; known {
		return s
	}
	return strategies[ring.Rolling]
}

// roomOf is how far a rollout of d replicas may go above and below d.
func roomOf(k ring.Rollout, d int) (surge, unavailable int) {
	if its := strategyNamed(k.Strategy); its.room != nil {
		return its.room(k, d)
	}
	return k.Room(d)
}
