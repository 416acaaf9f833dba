package policy

import (
	"cmp"
	"fmt"
	"reflect"

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
	if n := len(app.Services); n > most {
		about(app.Services[most].Name, servicesRule).find(finding{value: fmt.Sprintf("is service %d", n), asks: fmt.Sprint(n)})
	}
	for i := range app.Services {
		s := &app.Services[i]
		lists.listed(s, func(rule rule) *look { return about(s.Name, rule) })
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
