package api

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// StatusQuery chooses services: those in one of the Phases, and with all of the Labels.
// The zero value is every service.
type StatusQuery struct {
	Phases []string // such as Degraded
	Labels []string // such as tier=web, of the Compose file; tier alone is any value
}

// phases are those that a service can be in.
var phases = []string{
	string(ring.PhasePending), string(ring.PhaseProgressing), string(ring.PhaseReady), string(ring.PhaseDegraded), string(ring.PhaseFailed),
	string(ring.PhaseHeld), string(ring.PhaseRemoving), string(ring.PhaseCompleted),
}

func (q StatusQuery) chooses() bool { return len(q.Phases)+len(q.Labels) > 0 }

func (q StatusQuery) values() url.Values {
	v := url.Values{}
	for _, p := range q.Phases {
		v.Add("phase", p)
	}
	for _, l := range q.Labels {
		v.Add("label", l)
	}
	return v
}

func statusQuery(v url.Values) (StatusQuery, error) {
	q := StatusQuery{Phases: v["phase"], Labels: v["label"]}
	for _, p := range q.Phases {
		if !slices.Contains(phases, p) {
			return q, Usage(ring.Meant(p, phases), "%q is no phase", p)
		}
	}
	for _, l := range q.Labels {
		if key, _, _ := strings.Cut(l, "="); key == "" {
			return q, Usage("write a label as tier=web", "%q is no label", l)
		}
	}
	return q, nil
}

// chosen is the status of the services that q chooses. Apps and sources without one are
// left out.
func (s *Socket) chosen(ctx context.Context, st ring.Status, q StatusQuery) (ring.Status, error) {
	labels := map[ring.ServiceID]map[string]string{}
	if len(q.Labels) > 0 {
		var err error
		if labels, err = s.calls.Labels(ctx); err != nil {
			return st, err
		}
	}
	sources := st.Sources
	st.Sources = []ring.SourceStatus{}
	for _, src := range sources {
		apps := src.Apps
		src.Apps = nil
		for _, a := range apps {
			a.Services = slices.DeleteFunc(slices.Clone(a.Services), func(sv ring.ServiceStatus) bool {
				return !q.takes(sv.Phase, labels[ring.ID(a.Name, sv.Name)])
			})
			if len(a.Services) > 0 {
				src.Apps = append(src.Apps, a)
			}
		}
		if len(src.Apps) > 0 {
			st.Sources = append(st.Sources, src)
		}
	}
	return st, nil
}

func (q StatusQuery) takes(phase ring.Phase, labels map[string]string) bool {
	if len(q.Phases) > 0 && !slices.Contains(q.Phases, string(phase)) {
		return false
	}
	for _, want := range q.Labels {
		key, value, exact := strings.Cut(want, "=")
		if has, ok := labels[key]; !ok || exact && has != value {
			return false
		}
	}
	return true
}
