package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Within is a client that asks for nothing but what scopes allow, by the same table as
// listen.api does. Anything else is refused before it leaves, as that door would.
func (c *Client) Within(scopes Scopes) *Client { return c.by(newWithin(c.http.Transport, scopes)) }

// by is the same client over another transport.
func (c *Client) by(transport http.RoundTripper) *Client {
	plain := *c.http
	plain.Transport = transport
	return &Client{socket: c.socket, dial: c.dial, http: &plain}
}

// within is the transport of a client that may not ask for all.
type within struct {
	routes []route
	scopes Scopes
	next   http.RoundTripper
}

func newWithin(next http.RoundTripper, scopes Scopes) *within {
	return &within{routes: (&Socket{}).table(), scopes: scopes, next: next}
}

// allowed is the route of a request, or why it is not passed on. What no scope allows is not
// there.
func (w *within) allowed(r *http.Request) (route, error) {
	rt, err := find(w.routes, r.Method, r.URL.Path)
	if err != nil {
		return route{}, err
	}
	if rt.scope == "" || rt.path == planPath && r.URL.Query().Get("rev") == "" {
		return route{}, NotFound("ask by the command line", "there is no %s", rt.path)
	}
	if !w.scopes.Has(rt.scope) {
		return route{}, Denied("ask by the command line", "the dashboard may not do this: it has %s", w.scopes)
	}
	return rt, nil
}

// RoundTrip answers a refusal itself.
func (w *within) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := w.allowed(r)
	if err == nil {
		return w.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	e := asError(err)
	said, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: e.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(string(said))), ContentLength: int64(len(said)),
	}, nil
}
