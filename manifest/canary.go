package manifest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// canaryWords is what x-gitring rollout says of a canary.
type canaryWords struct {
	first    place // of the first key that is said
	said     string
	steps    []ring.CanaryStep
	replicas *int
	match    *ring.FrontMatch
	judge    *ring.Judge
	judgeOff bool
}

// stepFor is how long a step lasts where it does not say.
const stepFor = 5 * time.Minute

var (
	stepKeys  = []string{"weight", "for", "promote"}
	matchKeys = []string{"header", "cookie"}
	judgeKeys = []string{"interval", "min_requests", "max_errors", "max_p99", "failures", "on_quiet"}
)

func (d *decoder) canary(n *node, w *canaryWords) {
	for _, p := range n.pairs {
		if w.said == "" && contains([]string{"steps", "canary_replicas", "match", "judge"}, p.key) && !p.val.null() {
			w.first, w.said = p.place, p.key
		}
	}
	if s := n.get("steps"); !s.null() {
		w.steps = d.steps(s)
	}
	d.setNumber(n, "canary_replicas", &w.replicas)
	if m := n.get("match"); !m.null() && d.mapping(m, "match") {
		w.match = d.match(m)
	}
	if j := n.get("judge"); !j.null() {
		d.judge(j, w)
	}
}

func (d *decoder) steps(n *node) (out []ring.CanaryStep) {
	for _, it := range d.list(n, "steps") {
		if !d.mapping(it, "steps") {
			continue
		}
		d.keys(it, "a step", stepKeys)
		s := ring.CanaryStep{For: stepFor}
		switch weight := it.get("weight"); {
		case weight.null():
			if !mistyped(it, "weight", stepKeys) {
				d.bad(it.place, "write {weight: 10, for: 5m}", "a step has no weight")
			}
			continue
		default:
			s.Weight = d.number(weight, "weight", 1, 99)
			if len(out) > 0 && s.Weight <= out[len(out)-1].Weight {
				d.bad(weight.place, "let each step have a larger weight than the one before it", "weight %d comes after %d", s.Weight, out[len(out)-1].Weight)
			}
		}
		if v := it.get("for"); !v.null() {
			s.For = d.duration(v, "for", time.Second)
		}
		if v := it.get("promote"); !v.null() {
			s.Manual = d.oneOf(v, "promote", "auto", "manual") == "manual"
		}
		out = append(out, s)
	}
	if n.kind == list && len(n.items) == 0 {
		d.bad(n.place, "write steps: [{weight: 10, for: 5m}]", "a canary has no steps")
	}
	return out
}

func (d *decoder) match(n *node) *ring.FrontMatch {
	d.keys(n, "match", matchKeys)
	m := &ring.FrontMatch{Header: d.textMap(n.get("header"), "header"), Cookie: d.textMap(n.get("cookie"), "cookie")}
	d.headers(n.get("header"), m.Header)
	for _, name := range sortedKeys(m.Cookie) {
		if !headerName.MatchString(name) || strings.ContainsAny(m.Cookie[name], "\r\n\x00;, \"") {
			d.bad(n.get("cookie").place, "write name: value, without spaces and ;", "%q is no cookie", head(name))
		}
	}
	if len(n.pairs) == 0 {
		d.bad(n.place, "write match: {header: {X-Canary: \"1\"}}, or remove it", "match names no header and no cookie")
	}
	return m
}

func (d *decoder) judge(n *node, w *canaryWords) {
	if n.kind == scalar {
		if w.judgeOff = n.text == "off"; !w.judgeOff {
			d.bad(n.place, "write off, or a mapping such as {max_errors: 1%}", "judge: %q is neither off nor a mapping", head(n.text))
		}
		return
	}
	if !d.mapping(n, "judge") {
		return
	}
	d.keys(n, "judge", judgeKeys)
	j := ring.DefaultJudge()
	if w.judge != nil {
		j = *w.judge
	}
	if v := n.get("interval"); !v.null() {
		j.Interval = d.duration(v, "interval", time.Second)
	}
	if v := n.get("min_requests"); !v.null() {
		j.MinRequests = d.number(v, "min_requests", 1, 1_000_000)
	}
	if v := n.get("max_errors"); !v.null() {
		j.MaxErrors = int(math.Round(10 * d.percent(v, "max_errors", 0, 100)))
	}
	if v := n.get("max_p99"); !v.null() {
		j.MaxP99 = int(math.Round(d.percent(v, "max_p99", 100, 10_000)))
	}
	if v := n.get("failures"); !v.null() {
		j.Failures = d.number(v, "failures", 1, 100)
	}
	if v := n.get("on_quiet"); !v.null() {
		j.OnQuiet = or2(d.oneOf(v, "on_quiet", ring.QuietAdvance, ring.QuietPause), j.OnQuiet)
	}
	w.judge, w.judgeOff = &j, false
}

var percentForm = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9])?%$`)

// percent is a percentage with at most one digit behind the point.
func (d *decoder) percent(n *node, name string, least, most float64) float64 {
	t := d.text(n, name)
	if n.kind != scalar {
		return least // told
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(t, "%"), 64)
	if !percentForm.MatchString(t) || err != nil || v < least || v > most {
		d.bad(n.place, "write a percentage such as 5% or 150%, with at most one digit behind the point", "%s: %q is no percentage from %g%% to %g%%", name, head(t), least, most)
		return least
	}
	return v
}

func (b *builderOf) isCanary(x *extras) bool {
	return x.rollout.strategy != nil && *x.rollout.strategy == ring.Canary
}

// canary is how the steps of a canary go; nil where the strategy is another.
func (b *builderOf) canary(service string, w rolloutWords, r ring.Rollout) *ring.CanaryPlan {
	lost := b.anyLost(service, []string{extensionKey, "rollout", "strategy"}, []string{extensionKey, "rollout", "steps"})
	switch c := w.canary; {
	case r.Strategy == ring.Canary && len(c.steps) == 0:
		if !lost && c.said != "steps" {
			b.bad(w.place, "write steps: [{weight: 10, for: 5m}] beside it", "services.%s strategy canary has no steps", service)
		}
		return nil
	case r.Strategy != ring.Canary:
		if c.said != "" && !lost {
			b.bad(c.first, "say strategy: canary beside it, or remove it", "services.%s rollout.%s is for a canary, and the strategy is %s", service, c.said, r.Strategy)
		}
		return nil
	}
	out := &ring.CanaryPlan{Steps: w.canary.steps, Match: w.canary.match, Judge: w.canary.judge}
	set(&out.Replicas, w.canary.replicas)
	if judge := ring.DefaultJudge(); out.Judge == nil && !w.canary.judgeOff {
		out.Judge = &judge
	}
	if w.canary.judgeOff {
		out.Judge = nil
	}
	return out
}

// canaryNeedsFront refuses a canary where nothing could give it a share of the requests.
func (b *builderOf) canaryNeedsFront(s *ring.Service, fronted bool) {
	if s.Rollout.Strategy == ring.Canary && s.Kind == ring.Worker && !fronted && !b.publishLost(s.Name) && b.extras[s.Name].route.publish != ring.PublishFront {
		b.bad(b.extras[s.Name].rollout.place, "say publish: front beside rollout", "services.%s strategy canary needs a front, and the service has none", s.Name)
	}
}
