package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/discord"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/matrix"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/slack"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/chat/teams"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/gotify"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/ntfy"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/push/pushover"
	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// This file is all of gitring that knows shoutrrr. Its errors hold tokens and its
// services keep to no common deadline, so it is used in a process of its own,
// which ends after one message, and of which nothing comes back but an outcome.

// ChatServices are the schemes that the URL of a chat may have.
var ChatServices = []string{"slack", "discord", "teams", "telegram", "matrix", "ntfy", "gotify", "pushover", "smtp", "generic"}

// outcomes of a message, besides the code of an answer.
const (
	chatTaken     = "taken"
	chatURL       = "url"       // the URL does not parse
	chatAnswer    = "answer"    // it answered, and did not take it
	chatTimeout   = "timeout"   // no answer in time
	chatName      = "name"      // its name is not known
	chatRefused   = "refused"   // connection refused
	chatCert      = "cert"      // its certificate is not trusted
	chatForbidden = "forbidden" // its address is one that nothing is sent to
	chatRedirect  = "redirect"
	chatFailed    = "failed"
)

// chatMessage is one message for one chat.
type chatMessage struct {
	URL, Text, Title string
}

// chatOutcome is what became of it. No part of it is anybody's text.
type chatOutcome struct {
	Outcome string
	Code    int           // HTTP's, or SMTP's; 0 where there was none
	Wait    time.Duration // the chat's own word on when to come back
}

// parseChatURL makes the service of a URL and touches no network. The error holds
// no part of the URL.
func parseChatURL(raw string) (scheme string, u *url.URL, err error) {
	u, err = url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return "", nil, errors.New("it is no URL of the form service://…")
	}
	scheme, custom, _ := strings.Cut(strings.ToLower(u.Scheme), "+")
	if !slices.Contains(ChatServices, scheme) {
		return "", nil, errors.New("its service is none of " + strings.Join(ChatServices, ", "))
	}
	bad := errors.New("it is no URL as " + scheme + " has it; see docs/how-to/notifications.md")
	switch {
	case scheme == "telegram":
		_, err = parseTelegram(u)
	case scheme == "teams" && custom == "https":
		if u.Hostname() == "" {
			err = bad
		}
	case custom != "" && (scheme != "generic" || custom != "https" && custom != "http"):
		err = bad
	default:
		u, err = plainChatURL(scheme, u)
	}
	if err != nil {
		return scheme, nil, bad
	}
	return scheme, u, nil
}

// plainChatURL is a URL as its service wants it, tried on its configuration.
func plainChatURL(scheme string, u *url.URL) (out *url.URL, err error) {
	defer func() { // a URL of another shape panics in some of them
		if recover() != nil {
			err = errors.New("panicked")
		}
	}()
	try := *u
	switch scheme {
	case "slack":
		err = (&slack.Config{}).SetURL(&try)
	case "discord":
		err = (&discord.Config{}).SetURL(&try)
	case "teams":
		err = (&teams.Config{}).SetURL(&try)
	case "matrix":
		c := &matrix.Config{}
		if err = c.SetURL(&try); err == nil && (c.Host == "" || c.Password == "") {
			err = errors.New("no host or token")
		}
	case "ntfy":
		err = (&ntfy.Service{}).Initialize(&try, quiet)
	case "gotify":
		c := &gotify.Config{}
		if err = c.SetURL(&try); err == nil && (c.Host == "" || !(&gotify.DefaultValidator{}).ValidateToken(c.Token)) {
			err = errors.New("no host or token")
		}
	case "pushover":
		err = (&pushover.Config{}).SetURL(&try)
	case "smtp":
		err = (&smtp.Service{}).Initialize(&try, quiet)
	case "generic":
		if u.Scheme != "generic" {
			if u, err = (&generic.Service{}).GetConfigURLFromCustom(&try); err != nil {
				return nil, err
			}
			try = *u
		}
		if try.Hostname() == "" {
			return nil, errors.New("no host")
		}
		err = (&generic.Service{}).Initialize(&try, quiet)
	}
	return u, err
}

var quiet = log.New(io.Discard, "", 0)

// ServeWorker is the process: one message in, one outcome out. It changes what
// this process takes for its ways into the network, so it is the last thing that
// a process does.
func ServeWorker(in io.Reader, out io.Writer) error {
	var s chatMessage
	if err := json.NewDecoder(io.LimitReader(in, 64<<10)).Decode(&s); err != nil {
		return errors.New("cannot read the message")
	}
	return json.NewEncoder(out).Encode(s.send(newRoad(guarded(true).DialContext, nil)))
}

// send makes the one attempt.
func (s chatMessage) send(r *road) (done chatOutcome) {
	scheme, u, err := parseChatURL(s.URL)
	if err != nil {
		return chatOutcome{Outcome: chatURL}
	}
	defer func() {
		if recover() != nil {
			done = chatOutcome{Outcome: chatFailed}
		}
	}()
	restore := r.only()
	defer restore()
	switch {
	case scheme == "telegram":
		err = sendTelegram(r, u, s.Text)
	case strings.HasPrefix(u.Scheme, "teams+"):
		err = sendWorkflow(r, u, s.Text)
	default:
		err = s.through(r, scheme, u)
	}
	return r.outcome(err)
}

// through has shoutrrr say it.
func (s chatMessage) through(r *road, scheme string, u *url.URL) error {
	service, err := prepared(r, scheme, u)
	if err != nil {
		return err
	}
	params := types.Params{}
	if q := u.Query(); !q.Has("title") && !q.Has("subject") && slices.Contains([]string{"ntfy", "gotify", "pushover", "smtp"}, scheme) {
		params["title"] = s.Title
	}
	return service.Send(s.Text, &params)
}

// prepared is a service with our road as its way out, as far as it lets one.
func prepared(r *road, scheme string, u *url.URL) (types.Service, error) {
	switch scheme {
	case "slack":
		s := &slack.Service{}
		return s, s.Initialize(u, quiet)
	case "discord":
		s := &discord.Service{}
		err := s.Initialize(u, quiet)
		s.HTTPClient, s.Sleeper = r.client(nil), awake{}
		return s, err
	case "teams":
		s := &teams.Service{}
		return s, s.Initialize(u, quiet)
	case "matrix":
		s := &matrix.Service{}
		return s, s.Initialize(u, quiet)
	case "ntfy":
		s := &ntfy.Service{}
		err := s.Initialize(u, quiet)
		if err == nil {
			s.SetHTTPClient(r.client(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Config.DisableTLSVerification})) //nolint:gosec // as the URL says
		}
		return s, err
	case "gotify":
		s := &gotify.Service{}
		err := s.Initialize(u, quiet)
		if c := s.GetHTTPClient(); err == nil && c != nil {
			own := r.client(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Config.InsecureSkipVerify}) //nolint:gosec // as the URL says
			c.Transport, c.CheckRedirect = own.Transport, own.CheckRedirect
			s.Config.Path = strings.TrimSuffix(s.Config.Path, "/") // it adds one of its own
		}
		return s, err
	case "pushover":
		s := &pushover.Service{}
		err := s.Initialize(u, quiet)
		s.Client = r.client(nil)
		return s, err
	case "smtp":
		s := &smtp.Service{}
		if err := s.Initialize(u, quiet); err != nil {
			return nil, err
		}
		return s, judgedHost(s.Config.Host)
	}
	s := &generic.Service{}
	return s, s.Initialize(u, quiet)
}

// judgedHost is an error for a mail server at an address that nothing is sent to.
// shoutrrr dials it itself, so that a name which changes between the two looks passes:
// a mail server's is the operator's own. Loopback and private ones are the ordinary case.
func judgedHost(host string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, a := range all {
		if why := forbidden(a, true); why != "" {
			return errForbidden{why}
		}
	}
	return nil
}

// awake has Discord's retries not wait: the road does not let them pass anyway.
type awake struct{}

func (awake) Sleep(time.Duration) {}

// road is the only way into the network of a message. It follows no redirect, tries
// nothing a second time after it failed, and remembers the code of the last
// answer.
type road struct {
	base *http.Transport

	mu   sync.Mutex // guards what follows
	code int
	wait time.Duration
	err  error // the first failure; nothing passes after it
}

// newRoad dials with dial; trust is nil for the system's certificates.
func newRoad(dial func(context.Context, string, string) (net.Conn, error), trust *tls.Config) *road {
	return &road{base: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: trust, DisableKeepAlives: true,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: chatAnswerTime, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}}
}

// errNotTaken is of an answer that says no.
var errNotTaken = errors.New("not taken")

// chatAnswerTime is how long a chat may think.
const chatAnswerTime = 15 * time.Second

// only makes the road that of the whole process: some services bring no client of
// their own, or one that cannot be reached.
func (r *road) only() (restore func()) {
	was, client := http.DefaultTransport, *http.DefaultClient
	http.DefaultTransport = r
	http.DefaultClient.Timeout, http.DefaultClient.CheckRedirect = chatAnswerTime, noRedirect
	return func() { http.DefaultTransport, *http.DefaultClient = was, client }
}

// client is one that takes the road, with TLS of its own where that is not nil.
func (r *road) client(own *tls.Config) *http.Client {
	c := &http.Client{Transport: r, Timeout: chatAnswerTime, CheckRedirect: noRedirect}
	if own != nil && own.InsecureSkipVerify {
		if r.base.TLSClientConfig == nil {
			r.base.TLSClientConfig = own
		}
	}
	return c
}

func noRedirect(*http.Request, []*http.Request) error { return errRedirected }

// RoundTrip sends one request, unless one before it failed.
func (r *road) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	err := r.err
	r.mu.Unlock()
	if err == nil && req.Response != nil {
		err = errRedirected
	}
	if err != nil {
		return nil, err
	}
	res, err := r.base.RoundTrip(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
		return nil, err
	}
	r.code = res.StatusCode
	if r.code >= 400 {
		r.wait, r.err = retryAfter(res.Header), errNotTaken
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	_ = res.Body.Close()
	if err != nil {
		r.err = err
		return nil, err
	}
	if bytes.HasPrefix(body, []byte("Webhook message delivery failed")) {
		r.err = errNotTaken // a connector of Teams says so with 200
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// outcome is what an attempt came to. The error's own text goes nowhere.
func (r *road) outcome(err error) chatOutcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		return chatOutcome{Outcome: chatTaken}
	}
	if r.code >= 300 {
		return chatOutcome{Outcome: chatAnswer, Code: r.code, Wait: r.wait}
	}
	err = errors.Join(r.err, err)
	var smtpErr *textproto.Error
	var guard errForbidden
	var dns *net.DNSError
	var ne net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &smtpErr):
		return chatOutcome{Outcome: chatAnswer, Code: smtpErr.Code}
	case errors.As(err, &guard):
		return chatOutcome{Outcome: chatForbidden}
	case errors.Is(err, errRedirected):
		return chatOutcome{Outcome: chatRedirect}
	case errors.As(err, &dns) && dns.IsNotFound:
		return chatOutcome{Outcome: chatName}
	case errors.As(err, &cert):
		return chatOutcome{Outcome: chatCert}
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return chatOutcome{Outcome: chatTimeout}
	case strings.Contains(err.Error(), "connection refused"):
		return chatOutcome{Outcome: chatRefused}
	case r.code > 0:
		return chatOutcome{Outcome: chatAnswer, Code: r.code}
	}
	return chatOutcome{Outcome: chatFailed}
}
