package main

import (
	"fmt"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// missing says that a host has no such app or service, and which was meant; the daemon
// and its client say it in the same words.
func missing(st *ring.Status, target string) (says, hint string) {
	app, _, both := strings.Cut(target, "/")
	kind, name, known := "app", app, appsOf(st)
	if part, ok := narrow(st, app); ok && both {
		kind, name, known = "service", target, servicesOf(part)
	}
	hint = "gitring status lists what is here"
	if h := ring.Meant(name, known); strings.HasPrefix(h, "did you mean") {
		hint = h
	}
	return fmt.Sprintf("no %s %q on %s", kind, name, st.Host), hint
}

// noSuch is the error for an app or service that this host does not have.
func noSuch(st *ring.Status, target string) error {
	says, hint := missing(st, target)
	return &failure{code: exitNotFound, says: says, hint: hint}
}

// noSuch is the same as the daemon answers it.
func (d *daemon) noSuch(app, service string) error {
	st, _ := d.loop.Status()
	says, hint := missing(&st, app+when(service != "", "/"+service))
	return api.NotFound(hint, "%s", says)
}

// notInForce is the answer where an act needs a plan in force, which what is named may
// not have yet.
func (d *daemon) notInForce(app, service string) error {
	st, _ := d.loop.Status()
	target := app + when(service != "", "/"+service)
	if _, here := narrow(&st, target); !here {
		return d.noSuch(app, service)
	}
	return api.NotFound("gitring status "+app+" says what it waits for", "no plan with %s is in force on %s", target, st.Host)
}

// noSource is the answer where a source is named that is not followed.
func (d *daemon) noSource(source string) error {
	var known []string
	for _, f := range d.sources {
		known = append(known, f.cfg.Name)
	}
	return api.NotFound(ring.Meant(source, known), "no source %q on %s", source, d.cfg.Host)
}
