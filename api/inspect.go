package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gitring/gitring/ring"
)

// InspectQuery asks why a service, or one slot of it, is as it is. Slot 0 is all.
type InspectQuery struct {
	App, Service string
	Slot         int
	Trace        bool // with the rules that were asked
}

func (s *Socket) inspect(w http.ResponseWriter, r *http.Request, p Peer) error {
	v := query{values: r.URL.Query()}
	q := InspectQuery{App: v.text("app"), Service: v.text("service"), Slot: v.number("slot", 0), Trace: v.yes("trace")}
	if v.err != nil {
		return v.err
	}
	if q.App == "" || q.Service == "" {
		return Usage("gitring inspect <app>/<service>", "no service is named")
	}
	if err := s.knows(r.Context(), p, q.App, q.Service); err != nil {
		return err
	}
	e, err := s.calls.Inspect(r.Context(), q)
	if err != nil {
		return err
	}
	if !p.may(ScopeLogs) {
		e = withoutPrinted(e)
	}
	hidden, err := s.hiddenNow(r.Context(), p)
	if err != nil {
		return err
	}
	if e, err = scrubbed(hidden, e); err != nil {
		return err
	}
	return writeJSON(w, e)
}

// withoutPrinted leaves out what programs printed.
func withoutPrinted(e ring.Explained) ring.Explained {
	if e.Crash != nil {
		plain := *e.Crash
		plain.Log, plain.Checked = nil, nil
		e.Crash = &plain
	}
	e.Instances = slices.Clone(e.Instances)
	for i := range e.Instances {
		e.Instances[i].Printed = nil
	}
	return e
}

// Inspect says why a service, or one slot of it, is as it is. Slot 0 is all.
func (c *Client) Inspect(ctx context.Context, q InspectQuery) (ring.Explained, error) {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	if q.Slot != 0 {
		set(v, "slot", strconv.Itoa(q.Slot))
	}
	if q.Trace {
		set(v, "trace", "true")
	}
	var out ring.Explained
	return out, c.ask(ctx, http.MethodGet, "/v1/inspect", v, nil, &out)
}
