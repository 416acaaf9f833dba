package api

import (
	"fmt"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Missing says that a host has no such app or service, and which was meant; the daemon
// and its client say it in the same words.
func Missing(st *ring.Status, target string) (says, hint string) {
	app, _, both := strings.Cut(target, "/")
	kind, name, known := "app", app, AppsOf(st)
	if part, ok := Narrow(st, app); ok && both {
		kind, name, known = "service", target, ServicesOf(part)
	}
	hint = "gitring status lists what is here"
	if h := ring.Meant(name, known); strings.HasPrefix(h, "did you mean") {
		hint = h
	}
	return fmt.Sprintf("no %s %q on %s", kind, name, st.Host), hint
}

// Narrow is the status of one app, or of one service of it ("app/service");
// false when this host has no such thing. The sources that remain keep what
// they say of themselves.
func Narrow(st *ring.Status, target string) (*ring.Status, bool) {
	app, service, one := strings.Cut(target, "/")
	out := *st
	out.Sources = nil
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			if a.Name != app {
				continue
			}
			if one {
				a.Services = oneService(a.Services, service)
			}
			if one && len(a.Services) == 0 {
				return nil, false
			}
			src.Apps = []ring.AppStatus{a}
			out.Sources = append(out.Sources, src)
			break
		}
	}
	return &out, len(out.Sources) > 0
}

func oneService(services []ring.ServiceStatus, name string) []ring.ServiceStatus {
	for _, sv := range services {
		if sv.Name == name {
			return []ring.ServiceStatus{sv}
		}
	}
	return nil
}

// AppsOf are the names a person may have meant.
func AppsOf(st *ring.Status) []string {
	var names []string
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			names = append(names, a.Name)
		}
	}
	return names
}

// ServicesOf are the services of a status as people name them.
func ServicesOf(st *ring.Status) []string {
	var names []string
	for _, src := range st.Sources {
		for _, a := range src.Apps {
			for _, sv := range a.Services {
				names = append(names, a.Name+"/"+sv.Name)
			}
		}
	}
	return names
}
