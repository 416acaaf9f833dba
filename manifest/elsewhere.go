package manifest

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// joinElsewhere reads network_mode: container:<name> of a container of another app of the
// commit as the service that has it. Any other container is refused: its life is none that
// a plan could follow.
func (r *reader) joinElsewhere(outcomes []outcome) {
	edges := map[string][]string{} // by app, those that it waits for
	for _, o := range outcomes {
		for _, after := range o.app.After {
			edges[o.name] = append(edges[o.name], after.App)
		}
	}
	type joined struct {
		o     *outcome
		s     *ring.Service
		owner string
	}
	var all []joined
	for i := range outcomes {
		o := &outcomes[i]
		for j := range o.app.Services {
			s := &o.app.Services[j]
			name, ok := strings.CutPrefix(s.Spec.NetworkMode, types.ContainerPrefix)
			if !ok {
				continue
			}
			owner, f := r.ownerElsewhere(outcomes, i, s, name)
			s.Spec.NetworkMode = ""
			if f != nil {
				o.faults.put(f)
				continue
			}
			s.Spec.NetworkOf = string(owner)
			app, service := owner.Split()
			edges[o.name] = append(edges[o.name], app)
			all = append(all, joined{o, s, app})
			o.app.Notes = append(o.app.Notes, s.Name+": network_mode container:"+name+" is service "+service+" of app "+app+"; it is made anew when that container is")
		}
	}
	for _, t := range all {
		if reaches(edges, t.owner, t.o.name, map[string]bool{}) {
			at := t.s.Place("network_mode")
			t.o.faults.add(ring.Unsupported, place{file: at.File, line: at.Line}, "join the other way round, remove after in gitring.yaml, or make one app of both",
				"services.%s.network_mode joins app %s, which itself waits for app %s", t.s.Name, t.owner, t.o.name)
		}
	}
}

// ownerElsewhere is the service of another app whose container has the name. Of two the one
// in force has it, else the first without a fault.
func (r *reader) ownerElsewhere(outcomes []outcome, own int, s *ring.Service, name string) (ring.ServiceID, *fault) {
	var found *ring.Service
	var app *outcome
	for i := range outcomes {
		o := &outcomes[i]
		if i == own || app != nil && (app.faults.none() || !o.faults.none()) && r.settings.Held["container_name "+name] != o.name {
			continue
		}
		for j := range o.app.Services {
			if c := &o.app.Services[j]; or2(c.Spec.ContainerName, o.name+"-"+c.Name+"-1") == name {
				found, app = c, o
			}
		}
	}
	at := s.Place("network_mode")
	refused := func(code ring.Code, hint, says string) (ring.ServiceID, *fault) {
		return "", &fault{code: code, place: place{file: at.File, line: at.Line}, says: "services." + s.Name + ".network_mode container:" + head(name) + " " + says, hint: hint}
	}
	switch {
	case found == nil:
		return refused(ring.PolicyDenied, "write the container_name of a service of this source, or join a service of the app by service:<name>",
			"joins the network of a container that no app of this source has")
	case networkOwner(&found.Spec) != "":
		return refused(ring.Unsupported, "join the container that has the network itself", "joins "+found.Name+" of app "+app.name+", whose network is another one's")
	case found.Kind != ring.Worker:
		return refused(ring.BadValue, "let it run on: restart: unless-stopped", "joins "+found.Name+" of app "+app.name+", which is a job and ends")
	case found.Replicas != 1:
		return refused(ring.BadValue, "let it have one replica", "joins "+found.Name+" of app "+app.name+", which has not one replica")
	}
	return ring.ID(app.name, found.Name), nil
}

// reaches reports whether an app waits for another one, at whatever distance.
func reaches(edges map[string][]string, from, to string, met map[string]bool) bool {
	if from == to {
		return true
	}
	if met[from] {
		return false
	}
	met[from] = true
	return slices.ContainsFunc(edges[from], func(next string) bool { return reaches(edges, next, to, met) })
}
