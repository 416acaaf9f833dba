package policy

import (
	"cmp"
	"fmt"
	"path"
	"reflect"

	"github.com/gitring/gitring/ring"
)

// CheckApp gives what only an app as a whole shows: its counts, and services
// that mount folders inside one another. dataRoot is the app's, absolute.
func CheckApp(r Rules, app *ring.App, dataRoot string) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	w := walker{r: &r}
	about := func(service string, rule rule) *look {
		w.req = &Request{App: app.Name, Service: service, Key: "container"}
		return &look{walker: &w, rule: rule, spot: spot{path: "App." + rule.key}, v: reflect.ValueOf(true)}
	}
	most := cmp.Or(r.Services, servicesPerApp)
	if n := len(app.Services); n > most {
		about(app.Services[most].Name, servicesRule).find(finding{value: fmt.Sprintf("is service %d", n)})
	}
	for i := range app.Services {
		s := &app.Services[i]
		if s.Replicas > replicasMax {
			about(s.Name, replicasRule).find(finding{value: fmt.Sprint(s.Replicas)})
		}
		for _, m := range s.Spec.Mounts {
			if outer := nestedIn(app, s, m, dataRoot); outer != "" {
				about(s.Name, nestedRule).find(finding{value: m.Source + " in " + outer, at: m.Target, instead: "mount the same folder in both services, or folders beside each other"})
			}
		}
	}
	return sorted(w.out)
}

// nestedIn is the service, and its folder, that may write to a folder above the
// source of m; "" when there is none.
func nestedIn(app *ring.App, s *ring.Service, m ring.Mount, dataRoot string) string {
	inner := onHost(m, dataRoot)
	if inner == "" {
		return ""
	}
	for i := range app.Services {
		other := &app.Services[i]
		if other.Name == s.Name {
			continue
		}
		for _, o := range other.Spec.Mounts {
			if outer := onHost(o, dataRoot); outer != "" && !o.ReadOnly && outer != inner && within(inner, outer) {
				return o.Source + " of service " + other.Name
			}
		}
	}
	return ""
}

// onHost is the path of the host that m mounts; "" for what has none that an
// app could write to beside it.
func onHost(m ring.Mount, dataRoot string) string {
	switch m.Kind {
	case ring.MountData, ring.MountSeed:
		return plain(path.Join(dataRoot, m.Source))
	case ring.MountBind:
		return plain(m.Source)
	}
	return ""
}
