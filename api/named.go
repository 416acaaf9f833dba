package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// mostNamed is how many names a hint has at most: more are read in a status.
const mostNamed = 12

// Missing says that a host has no such app or service, and which was meant, or which there
// are; the daemon and its client say it in the same words.
func Missing(st *ring.Status, target string) (says, hint string) {
	app, _, both := strings.Cut(target, "/")
	kind, name, known, of := "app", app, AppsOf(st), "apps here: "
	if part, ok := Narrow(st, app); ok && both {
		kind, name, known, of = "service", target, ServicesOf(part), "services of "+app+": "
	}
	says = fmt.Sprintf("no %s %q on %s", kind, name, st.Host)
	if n := ring.Nearest(name, known); n != "" {
		return says, fmt.Sprintf("did you mean %q?", n)
	}
	if services := servicesNamed(st, app); len(services) > 0 && !both {
		return says, namesOr("services of that name: ", services)
	}
	return says, namesOr(of, known)
}

// namesOr are names as a hint has them, or where they are read when there is none.
func namesOr(of string, names []string) string {
	switch {
	case len(names) == 0:
		return "gitring status lists what is here"
	case len(names) > mostNamed:
		return fmt.Sprintf("%s%s and %d more; gitring status lists all", of, strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return of + strings.Join(names, ", ")
}

// servicesNamed are the services of that name, in whichever app.
func servicesNamed(st *ring.Status, name string) []string {
	return slices.DeleteFunc(ServicesOf(st), func(s string) bool { return !strings.HasSuffix(s, "/"+name) })
}

// Partial says that a name is of no service of this host, and which services there are:
// those of the app of that name, else of that name in other apps, else all.
func Partial(st *ring.Status, given string) (says, hint string) {
	if part, ok := Narrow(st, given); ok {
		return fmt.Sprintf("%q is an app, and no service", given), namesOr("its services: ", ServicesOf(part))
	}
	says = fmt.Sprintf("%q names no service", given)
	if services := servicesNamed(st, given); len(services) > 0 {
		return says, namesOr("services of that name: ", services)
	}
	if n := ring.Nearest(given, AppsOf(st)); n != "" {
		part, _ := Narrow(st, n)
		return says, namesOr("services of "+n+": ", ServicesOf(part))
	}
	return says, namesOr("services here: ", ServicesOf(st))
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
