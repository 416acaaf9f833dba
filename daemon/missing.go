package daemon

import (
	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// noSuch is the same as the daemon answers it.
func (d *Daemon) noSuch(app, service string) error {
	st, _ := d.loop.Status()
	says, hint := api.Missing(&st, app+wording.When(service != "", "/"+service))
	return api.NotFound(hint, "%s", says)
}

// notInForce is the answer where an act needs a plan in force, which what is named may
// not have yet.
func (d *Daemon) notInForce(app, service string) error {
	st, _ := d.loop.Status()
	target := app + wording.When(service != "", "/"+service)
	if _, here := api.Narrow(&st, target); !here {
		return d.noSuch(app, service)
	}
	return api.NotFound("gitring status "+app+" says what it waits for", "no plan with %s is in force on %s", target, st.Host)
}

// noSource is the answer where a source is named that is not followed.
func (d *Daemon) noSource(source string) error {
	var known []string
	for _, f := range d.sources {
		known = append(known, f.cfg.Name)
	}
	return api.NotFound(ring.Meant(source, known), "no source %q on %s", source, d.cfg.Host)
}
