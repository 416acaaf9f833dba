package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// frontsStay is how the ports of fronts come back to their services.
const frontsStay = "fronts go on serving, and their folders in the state directory must stay until then: " +
	"docker compose up -d --remove-orphans in the app's own folder, as the commit has it, gives the ports back to the services, with a gap of about a second"

// composedFront is a front as a service of Compose, by the image and the folders of its
// container.
func composedFront(s *ring.Spec, image, content, container string) map[string]any {
	front := map[string]any{
		"image": image, "pull_policy": "never", "restart": "always", "read_only": true, "user": s.User, "cap_drop": s.CapDrop,
		"security_opt": s.SecurityOpt, "sysctls": s.Sysctls, "stop_signal": s.StopSignal,
	}
	if len(s.Labels) > 0 {
		front["labels"] = inCompose(s.Labels)
	}
	if len(s.Environment) > 0 {
		front["environment"] = inCompose(s.Environment)
	}
	if r := s.Resources; r != nil {
		if r.Memory > 0 {
			front["mem_limit"] = r.Memory
		}
		if r.PidsLimit != nil {
			front["pids_limit"] = *r.PidsLimit
		}
	}
	if len(s.Expose) > 0 {
		front["expose"] = s.Expose
	}
	var mounts []string
	for _, m := range runtime.FrontMounts(content, container) {
		mounts = append(mounts, dollars(m.Source)+":"+m.Target+map[bool]string{true: ":ro"}[m.ReadOnly])
	}
	front["volumes"] = mounts
	var ports []map[string]any
	for _, p := range s.Ports {
		at := map[string]any{"target": p.Container, "protocol": cmp.Or(p.Protocol, "tcp")}
		if p.HostPort != "" {
			at["published"] = p.HostPort
		}
		if p.HostIP != "" {
			at["host_ip"] = p.HostIP
		}
		ports = append(ports, at)
	}
	if len(ports) > 0 {
		front["ports"] = ports
	}
	joins := map[string]any{}
	for _, at := range s.Networks {
		join := map[string]any{}
		if len(at.Aliases) > 0 {
			join["aliases"] = at.Aliases
		}
		joins[at.Network] = join
	}
	if len(joins) > 0 {
		front["networks"] = joins
	}
	return front
}

// composedFronts are the services of Compose that fronts are, and what is taken from those
// behind them: their ports, and the labels that moved.
func (d *Daemon) composedFronts(w *reconcile.World, app string) (map[string]map[string]any, error) {
	out := map[string]map[string]any{}
	for _, f := range frontsInForce(&w.Facts) {
		in := containerOf(w, f, w.Facts.Fronts[f.id()].Front)
		if f.app != app || in == nil {
			continue
		}
		out[f.front.Name] = composedFront(&f.front.Spec, in.Image, d.store.ContentDir(), in.Name)
		ports, err := inPlaceOf([]string{})
		if err != nil {
			return nil, err
		}
		behind := map[string]any{"ports": ports}
		if len(f.front.Spec.Labels) > 0 {
			labels, err := inPlaceOf(inCompose(f.service.Spec.Labels))
			if err != nil {
				return nil, err
			}
			behind["labels"] = labels
		}
		out[f.service.Name] = behind
	}
	return out, nil
}

// dollars are signs as Compose reads them in a file, where it replaces variables.
func dollars(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// inCompose are values as Compose reads them in a file: it replaces variables there.
func inCompose(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		out[k] = dollars(v)
	}
	return out
}

// lastTable is what a front is told when its app is left. The instances stay under their
// names, so that nothing in flight is cut. What Compose makes later is reached by the name of
// the service, which gets requests once nobody else can be connected to: it is the canary of
// a weight of 0.
func lastTable(row ring.FrontRow, seen ring.FrontSeen, service string) ring.FrontTable {
	t := row.Table
	if seen.Table != nil {
		t = *seen.Table
	}
	t.Generation = max(row.Table.Generation, t.Generation, seen.Generation) + 1
	t.QueueUntil, t.CanaryWeight, t.Match = time.Time{}, 0, nil
	t.Instances = slices.Clone(t.Instances)
	for i := range t.Instances {
		t.Instances[i].Set = ring.SetStable
	}
	t.Instances = slices.DeleteFunc(t.Instances, func(in ring.FrontInstance) bool { return in.Name == service })
	t.Instances = append(t.Instances, ring.FrontInstance{Name: service, State: ring.FrontActive, Set: ring.SetCanary})
	slices.SortFunc(t.Instances, func(a, b ring.FrontInstance) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// tellLeft gives the fronts of an app that was left their last table, and returns what could
// not be told.
func (d *Daemon) tellLeft(ctx context.Context, w *reconcile.World, app string) (notes []string) {
	for _, f := range frontsInForce(&w.Facts) {
		if f.app != app {
			continue
		}
		row := w.Facts.Fronts[f.id()]
		in := containerOf(w, f, row.Front)
		if in == nil {
			continue
		}
		t := lastTable(row, w.Fronts[in.ID], f.service.Name)
		if _, err := d.fronts.Route(ctx, ring.FrontAt{Container: in.ID, Name: in.Name, Service: f.id()}, t); err != nil {
			notes = append(notes, fmt.Sprintf("the front of %s could not be told its last table; where Compose makes %s anew, docker restart %s: %v", f.service.Name, f.service.Name, in.Name, err))
		}
	}
	return notes
}
