package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// Inside is a client within this process, for pages: who looks at one may what v may on
// listen.api, by the same table of routes. Only Status does not go through JSON: it is asked
// for the most, and is the largest. Nothing that follows ends before its context does.
func (s *Socket) Inside(v Viewer) *Inside {
	c := NewClientBy("the daemon", func(context.Context) (net.Conn, error) {
		return nil, errors.New("cannot leave this process")
	})
	c.http.Transport = inside{s, v}
	return &Inside{c, s, v}
}

// Inside asks the daemon of its own process.
type Inside struct {
	*Client
	socket *Socket
	viewer Viewer
}

// Status is the truth about the host.
func (c *Inside) Status(ctx context.Context) (ring.Status, error) {
	if err := mayCall(&route{path: "/v1/status", scope: ScopeRead}, c.viewer); err != nil {
		return ring.Status{}, err
	}
	return c.socket.statusFor(ctx, peerOfViewer(c.viewer))
}

type inside struct {
	socket *Socket
	viewer Viewer
}

// RoundTrip serves one call.
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &kept{header: http.Header{}}
	w := &answerWriter{ResponseWriter: out, rc: http.NewResponseController(out), r: r}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if err := t.serve(w, r); err != nil && w.begun {
		failLate(w, err)
	} else if err != nil {
		writeError(w, err)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	trailer := http.Header{}
	if fail := out.header.Get(http.TrailerPrefix + errorTrailer); fail != "" {
		trailer.Set(errorTrailer, fail)
	}
	return &http.Response{
		StatusCode: w.code(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: out.header, Trailer: trailer, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()),
	}, nil
}

func (t inside) serve(w http.ResponseWriter, r *http.Request) error {
	rt, err := t.socket.find(r.Method, r.URL.Path)
	if err != nil {
		return err
	}
	if err := mayCall(&rt, t.viewer); err != nil {
		return err
	}
	return rt.serve(w, r, peerOfViewer(t.viewer))
}

// mayCall is nil where somebody on listen.api may use a route.
func mayCall(rt *route, v Viewer) error {
	if rt.scope == "" { // as if it were not there, for everybody
		return NotFound("on the host: the control socket, also by ssh", "there is no %s", rt.path)
	}
	if v.Apps.limited() && !shownByApp[rt.path] {
		return noPath(rt.path)
	}
	if !v.Scopes.Has(rt.scope) {
		return Denied("ask for a token with the scope "+string(rt.scope), "%s may not do this: it has %s", v.Actor, v.Scopes)
	}
	return nil
}

// peerOfViewer is who asks on listen.api: no user of this host.
func peerOfViewer(v Viewer) Peer {
	return Peer{UID: math.MaxUint32, GID: math.MaxUint32, Account: v.Actor, scopes: v.Scopes, apps: v.Apps, token: v.token}
}

// kept is an answer that stays in memory.
type kept struct {
	header http.Header
	body   bytes.Buffer
}

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(b []byte) (int, error) { return k.body.Write(b) }
func (k *kept) WriteHeader(int)             {}
func (k *kept) Flush()                      {}
