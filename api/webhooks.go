package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Hook is one endpoint, POST /v1/webhook/<source>. Without a secret there is
// none.
type Hook struct {
	Source string
	Forge  string   // one of Forges
	Branch string   // whose pushes count; "" is any
	Secret [][]byte // of LoadSecrets; any of them is right
}

// HookPath is where the webhooks of a source are posted.
func HookPath(source string) string { return hookPath + source }

const hookPath = "/v1/webhook/"

// HookOptions are what Webhooks needs besides its endpoints.
type HookOptions struct {
	Limits HookLimits
	// Poke is called for every authentic push to a source's branch, and must not block.
	Poke func(source string)
	// Pulls is called for every authentic event of a pull request, and must not block;
	// nil where nobody asks.
	Pulls func(source string)
	Now   func() time.Time // nil is time.Now
	Log   *slog.Logger
	// Count, if set, is told what was made of each request to the hook of a source: one of
	// HookResults. It must not block.
	Count func(source, result string)
}

// HookTaken is the one that says that the source is looked at.
const HookTaken = "taken"

// HookResults are what can be made of a webhook.
var HookResults = []string{hookTaken, hookRefused, hookTooMany, hookBroken}

const (
	hookTaken   = HookTaken
	hookRefused = "unauthorized"
	hookTooMany = "too_many"
	hookBroken  = "broken" // too large, cut off, or no POST
)

func resultOf(code int) string {
	switch code {
	case http.StatusAccepted:
		return hookTaken
	case http.StatusUnauthorized:
		return hookRefused
	case http.StatusTooManyRequests:
		return hookTooMany
	}
	return hookBroken
}

// Webhooks takes the news of forges: POST /v1/webhook/<source>, GET /healthz
// and nothing else. A webhook is a hint to look; once it is authentic, only which
// branch it is about is read, so a replay costs one look and a forgery nothing.
type Webhooks struct {
	HookOptions
	hooks map[string]hook
	rate  *rate
	slots chan struct{} // one for each request that is being read
	spare bodies
	seen  deliveries

	told told
}

type hook struct {
	forge
	branch string
	prove  proof
}

// NewWebhooks starts nothing. An unknown forge, or a secret that its forge cannot have
// made, is an error.
func NewWebhooks(hooks []Hook, o HookOptions) (*Webhooks, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Webhooks{HookOptions: o, hooks: map[string]hook{}, rate: newRate(o.Limits.Rate), slots: make(chan struct{}, o.Limits.AtOnce), spare: make(bodies, keptBodies)}
	for _, h := range hooks {
		if len(h.Secret) == 0 {
			continue // an endpoint that believes everyone is worse than none
		}
		forge, err := forgeOf(h.Forge)
		if err != nil {
			return nil, fmt.Errorf("cannot take webhooks for source %s: %w", h.Source, err)
		}
		prove, err := forge.proof(h.Secret)
		if err != nil {
			return nil, fmt.Errorf("cannot take webhooks for source %s: its secret is not one of %s: %w", h.Source, h.Forge, err)
		}
		w.hooks[h.Source] = hook{forge: forge, branch: h.Branch, prove: prove}
	}
	return w, nil
}

// Run serves until ctx ends; l is closed when it returns.
func (w *Webhooks) Run(ctx context.Context, l net.Listener) error {
	bounded := limitConns(l, 8*w.Limits.AtOnce, connsASecond)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.tellLeftOut(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	return serve(ctx, &http.Server{
		Handler:   w,
		ConnState: bounded.heard,
		// OPTIONS * is one more thing that is not here.
		DisableGeneralOptionsHandler: true,

		ReadTimeout:       w.Limits.Within,
		ReadHeaderTimeout: w.Limits.Within,
		WriteTimeout:      2 * w.Limits.Within,
		IdleTimeout:       w.Limits.Within,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug),
	}, bounded)
}

// ServeHTTP answers with a status and an empty body, whatever it is asked.
func (w *Webhooks) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		out.WriteHeader(only(r.Method, http.MethodGet, http.MethodHead))
		return
	}
	source, ok := strings.CutPrefix(r.URL.Path, hookPath)
	h, known := w.hooks[source]
	if !ok || !known {
		out.WriteHeader(http.StatusNotFound)
		return
	}
	code, why, about := only(r.Method, http.MethodPost), "not a POST", nothing
	if code == http.StatusOK {
		code, why, about = w.take(out, r, source, h)
	}
	if w.Count != nil {
		w.Count(source, resultOf(code))
	}
	if code != http.StatusAccepted {
		// What is left of the body is not worth reading.
		out.Header().Set("Connection", "close")
		w.log(slog.LevelWarn, "webhook not taken, told once a minute", source, "status", code, "reason", why)
		out.WriteHeader(code)
		return
	}
	w.tell(source, h.delivery(r.Header), about)
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

// take reads a request within its limits and says what to answer, and why where it is
// not taken; 202 only for one that a holder of the secret sent.
func (w *Webhooks) take(out http.ResponseWriter, r *http.Request, source string, h hook) (int, string, news) {
	if !w.rate.allow(r.RemoteAddr, source, w.Now()) {
		return http.StatusTooManyRequests, "too many from this address", nothing
	}
	if r.ContentLength > w.Limits.Body {
		return http.StatusRequestEntityTooLarge, "too large", nothing
	}
	right, why := h.prove(r.Header, w.Now())
	if right == nil {
		return http.StatusUnauthorized, why, nothing
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	default:
		return http.StatusTooManyRequests, "too many at once", nothing
	}
	// The kernel's clock, which is what deadlines are held against.
	_ = http.NewResponseController(out).SetReadDeadline(time.Now().Add(w.Limits.Within))
	body, err := readInto(w.spare.take(), http.MaxBytesReader(out, r.Body, w.Limits.Body), w.Limits.Body)
	defer w.spare.give(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, "too large", nothing
	case err != nil:
		return http.StatusRequestTimeout, "the body broke off", nothing
	case !right(body):
		return http.StatusUnauthorized, "the signature is wrong", nothing
	}
	return http.StatusAccepted, "", h.news(h.event(r.Header), body, h.branch)
}

// tell hands on what an authentic request is good for.
func (w *Webhooks) tell(source, delivery string, about news) {
	again := delivery != "" && w.seen.again(source+" "+delivery, w.Now())
	switch {
	case about == nothing, about == pulls && w.Pulls == nil:
		w.log(slog.LevelDebug, "webhook of no interest", source, "delivery", delivery)
		return
	case again:
		w.log(slog.LevelInfo, "webhook taken again", source, "delivery", delivery)
	default:
		w.log(slog.LevelInfo, "webhook taken", source, "delivery", delivery)
	}
	if about == pulls {
		w.Pulls(source)
		return
	}
	w.Poke(source)
}

// log writes one line of each message and source a minute, with the number of those
// that were left out since the one before.
func (w *Webhooks) log(level slog.Level, message, source string, args ...any) {
	left, ok := w.told.tell(source, message, w.Now())
	if !ok {
		return
	}
	args = append([]any{"source", source}, args...)
	if left > 0 {
		args = append(args, "left_out", left)
	}
	w.Log.Log(context.Background(), level, message, args...)
}
