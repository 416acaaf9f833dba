package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Forges whose way of signing is known.
const (
	GitHub  = "github"
	Gitea   = "gitea"
	Forgejo = "forgejo"
)

// Hook is one endpoint, POST /v1/webhook/<source>. Without a secret there is
// none.
type Hook struct {
	Source string
	Forge  string   // GitHub, Gitea or Forgejo
	Secret [][]byte // of LoadSecrets; any of them is right
}

// Webhooks takes the news of forges: POST /v1/webhook/<source>, GET /healthz
// and nothing else. A webhook is a hint to fetch; nothing in it is used or
// even parsed, so a replay costs one look and a forgery nothing.
type Webhooks struct {
	hooks map[string]hook
	poke  func(source string)
	log   *slog.Logger
	lim   HookLimits
	rate  *rate
	slots chan struct{} // one for each request that is being read
}

type hook struct {
	// header carries the hex digest, after prefix.
	header, prefix string
	events         []string // headers that name the event
	secrets        [][]byte
}

// NewWebhooks starts nothing. poke is called for every authenticated push and
// must not block. An unknown forge is an error.
func NewWebhooks(hooks []Hook, lim HookLimits, poke func(source string), log *slog.Logger) (*Webhooks, error) {
	lim = lim.withDefaults()
	w := &Webhooks{
		hooks: map[string]hook{}, poke: poke, log: log, lim: lim,
		rate: newRate(lim.Rate), slots: make(chan struct{}, lim.AtOnce),
	}
	for _, h := range hooks {
		if len(h.Secret) == 0 {
			continue // an endpoint that believes everyone is worse than none
		}
		kind, err := kindOf(h.Forge)
		if err != nil {
			return nil, fmt.Errorf("cannot take webhooks for source %s: %w", h.Source, err)
		}
		kind.secrets = h.Secret
		w.hooks[h.Source] = kind
	}
	return w, nil
}

func kindOf(forge string) (hook, error) {
	switch forge {
	case GitHub:
		return hook{header: "X-Hub-Signature-256", prefix: "sha256=", events: []string{"X-GitHub-Event"}}, nil
	case Gitea:
		return hook{header: "X-Gitea-Signature", events: []string{"X-Gitea-Event"}}, nil
	case Forgejo:
		return hook{header: "X-Forgejo-Signature", events: []string{"X-Forgejo-Event", "X-Gitea-Event"}}, nil
	}
	return hook{}, fmt.Errorf("webhook.forge is %q; known are github, gitea and forgejo", forge)
}

// Run serves until ctx ends; l is closed when it returns.
func (w *Webhooks) Run(ctx context.Context, l net.Listener) error {
	return serve(ctx, &http.Server{
		Handler:           w,
		ReadTimeout:       w.lim.Within,
		ReadHeaderTimeout: w.lim.Within,
		WriteTimeout:      2 * w.lim.Within,
		IdleTimeout:       w.lim.Within,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
	}, limitConns(l, 8*w.lim.AtOnce))
}

// ServeHTTP answers with a status and an empty body, whatever it is asked.
func (w *Webhooks) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		out.WriteHeader(only(r.Method, http.MethodGet, http.MethodHead))
		return
	}
	source, ok := strings.CutPrefix(r.URL.Path, "/v1/webhook/")
	h, known := w.hooks[source]
	if !ok || !known {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	code := only(r.Method, http.MethodPost)
	if code == http.StatusOK {
		code = w.take(out, r, h)
	}
	if code != http.StatusAccepted {
		// What is left of the body is not worth reading.
		out.Header().Set("Connection", "close")
		w.log.Debug("webhook not taken", "source", source, "status", code)
		out.WriteHeader(code)
		return
	}
	if h.isPush(r.Header) {
		w.log.Info("webhook taken", "source", source, "delivery", delivery(r.Header))
		w.poke(source)
	}
	out.WriteHeader(http.StatusAccepted)
}

func only(method string, allowed ...string) int {
	for _, m := range allowed {
		if method == m {
			return http.StatusOK
		}
	}
	return http.StatusMethodNotAllowed
}

// take reads a request within its limits and says what to answer; 202 only
// for one that a holder of the secret signed.
func (w *Webhooks) take(out http.ResponseWriter, r *http.Request, h hook) int {
	if !w.rate.allow(r.RemoteAddr, time.Now()) {
		return http.StatusTooManyRequests
	}
	if r.ContentLength > w.lim.Body {
		return http.StatusRequestEntityTooLarge
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	default:
		return http.StatusTooManyRequests
	}
	_ = http.NewResponseController(out).SetReadDeadline(time.Now().Add(w.lim.Within))
	right, err := h.signed(r.Header, http.MaxBytesReader(out, r.Body, w.lim.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusRequestTimeout
	case !right:
		return http.StatusUnauthorized
	}
	return http.StatusAccepted
}

// signed compares the digest of the raw body with the header's in constant
// time. The body goes through the digests and is never kept, so a storm of
// forged requests costs no memory.
func (h hook) signed(header http.Header, body io.Reader) (bool, error) {
	macs := make([]io.Writer, len(h.secrets))
	for i, s := range h.secrets {
		macs[i] = hmac.New(sha256.New, s)
	}
	if _, err := io.Copy(io.MultiWriter(macs...), body); err != nil {
		return false, err
	}
	text, ok := strings.CutPrefix(header.Get(h.header), h.prefix)
	given, err := hex.DecodeString(text)
	if !ok || err != nil || len(given) != sha256.Size {
		return false, nil
	}
	right := false
	for _, m := range macs {
		if hmac.Equal(m.(interface{ Sum([]byte) []byte }).Sum(nil), given) {
			right = true
		}
	}
	return right, nil
}

// isPush says that the request is about a push, or does not say what about.
func (h hook) isPush(header http.Header) bool {
	for _, name := range h.events {
		if e := header.Get(name); e != "" {
			return e == "push"
		}
	}
	return true
}

// delivery is the forge's number of a request, for the log, when it looks like one.
func delivery(header http.Header) string {
	for _, name := range []string{"X-GitHub-Delivery", "X-Forgejo-Delivery", "X-Gitea-Delivery"} {
		if id := header.Get(name); id != "" && len(id) <= 64 {
			return strconv.QuoteToASCII(id)
		}
	}
	return ""
}
