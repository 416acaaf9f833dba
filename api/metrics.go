package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// metricsPath is what Prometheus asks for where nobody told it otherwise.
const metricsPath = "/metrics"

// Metrics serves what Prometheus reads, for any door: who may ask is that door's to say.
func Metrics(page func(ctx context.Context) (text string, err error), contentType string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := page(r.Context())
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, text) // a client that went away is nobody's error
	})
}

func (s *Socket) metrics(w http.ResponseWriter, r *http.Request, _ Peer) error {
	s.calls.Metrics.ServeHTTP(w, r)
	return nil
}

// counted knows the status of an answer.
type counted struct {
	http.ResponseWriter
	code int
}

func (c *counted) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Metrics is the page of metrics, as Prometheus would read it.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	res, err := c.do(ctx, http.MethodGet, metricsPath, url.Values{}, nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return "", c.lost(ctx, err)
	}
	return string(raw), nil
}
