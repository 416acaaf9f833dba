package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/gitring/gitring/ring"
)

// CheckApp gives what only an app as a whole shows: its counts, and services
// that mount folders inside one another. dataRoot is the app's, absolute;
// others are those that mount of the host besides.
func CheckApp(r Rules, app *ring.App, dataRoot string, others Others) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	w := walker{r: &r}
	about := func(service string, rule rule) *look {
		w.req = &Request{App: app.Name, Source: app.Source, Path: app.Path, Service: service, Key: "container"}
		return &look{walker: &w, rule: rule, spot: spot{path: "App." + rule.key}, v: reflect.ValueOf(true)}
	}
	lists := r.lists()
	most := cmp.Or(lists.Services, r.Services, servicesPerApp)
	written := slices.DeleteFunc(slices.Clone(app.Services), func(s ring.Service) bool { return s.FrontOf != "" })
	if n := len(written); n > most {
		about(written[most].Name, servicesRule).find(finding{value: fmt.Sprintf("is service %d", n), asks: fmt.Sprint(n)})
	}
	for i := range app.Services {
		s := &app.Services[i]
		lists.listed(s, func(rule rule) *look { return about(writtenAs(s), rule) })
		if s.Replicas > lists.Replicas {
			about(s.Name, replicasRule).find(finding{value: fmt.Sprint(s.Replicas)})
		}
		for _, c := range s.Checks { // no payload shows them: they run in the instance later
			if len(c.Exec) > 0 && inProc(c.Exec[0]) {
				about(s.Name, checkProgramRule).find(finding{value: c.Exec[0], instead: "name a program of the image"})
			}
		}
	}
	return sorted(append(w.out, CheckNested(r, app, dataRoot, others)...))
}

// CheckImage gives what the rules say of where the image of a service is from: for one in
// force, which they let pass once.
func CheckImage(r Rules, app *ring.App, s *ring.Service) []Finding {
	if s.FrontOf != "" {
		return nil
	}
	w := walker{r: &r}
	r.lists().from(s.Spec.Image, ring.ParseImage(s.Spec.Image), func(rule rule) *look {
		w.req = &Request{App: app.Name, Source: app.Source, Path: app.Path, Service: s.Name, Key: "container"}
		return &look{walker: &w, rule: rule, spot: spot{path: "App." + rule.key}, v: reflect.ValueOf(true)}
	})
	return sorted(w.out)
}

// writtenAs is the service of the Compose file that says what s is: of a front, the one that
// it stands before.
func writtenAs(s *ring.Service) string { return cmp.Or(s.FrontOf, s.Name) }
