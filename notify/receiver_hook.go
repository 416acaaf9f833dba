package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Hook is a receiver that takes every event as a CloudEvent, signed as Standard
// Webhooks says.
type Hook struct {
	// URLFile and SecretFile are read at every use. The secret is one line or,
	// while it is changed, two: whsec_ and base64, or at least 32 bytes as they are.
	URLFile, SecretFile string
	// AllowPrivate is for addresses of a network of one's own, and for http.
	AllowPrivate bool
}

// The least and the most that is read of a receiver's files, and of an answer.
const (
	leastKey  = 24 // bytes, as Standard Webhooks says of a whsec_ key
	leastRaw  = 32
	mostFile  = 8 << 10
	mostReply = 8 << 10
)

// reply is what became of one attempt. The zero value is "try again later".
type reply struct {
	taken bool
	// gone says that trying this message again cannot help.
	gone bool
	// away says that nobody is there: other messages would fare no better.
	away bool
	// wait is the receiver's own word on when to come back; 0 is none.
	wait time.Duration
	says string
}

// event is a CloudEvent, version 1.0, structured as JSON.
type event struct {
	SpecVersion string     `json:"specversion"`
	ID          string     `json:"id"`
	Source      string     `json:"source"`
	Type        string     `json:"type"`
	Subject     string     `json:"subject,omitempty"`
	Time        time.Time  `json:"time"`
	ContentType string     `json:"datacontenttype"`
	Data        ring.Event `json:"data"`
}

// eventOf has the same ID whenever it is made of the same line of the journal: a
// receiver that hears it twice can tell.
func eventOf(host string, e ring.Event) event {
	return event{
		SpecVersion: "1.0", ID: fmt.Sprintf("%s-%d-%d", host, e.Seq, e.At.Unix()), Source: "/gitring/" + host, Type: "gitring." + e.Kind,
		Subject: subjectOf(e), Time: e.At.UTC(), ContentType: "application/json", Data: e,
	}
}

// hookSpeaker says notes to a web hook.
type hookSpeaker struct {
	host string
	hook Hook
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	now  func() time.Time
}

func newHookSpeaker(host string, h Hook) *hookSpeaker {
	return &hookSpeaker{host: host, hook: h, dial: guarded(h.AllowPrivate).DialContext, now: time.Now}
}

func (s *hookSpeaker) service() string { return "webhook" }

// check reads the files, as a send would.
func (s *hookSpeaker) check() error {
	if _, err := s.url(); err != nil {
		return err
	}
	_, err := s.keys()
	return err
}

// url is the receiver's; no error repeats a part of it.
func (s *hookSpeaker) url() (string, error) {
	raw, err := readSmall(s.hook.URLFile)
	if err != nil {
		return "", fmt.Errorf("cannot read webhook.url_file: %w", err)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Fragment != "" {
		return "", fmt.Errorf("cannot use the URL in %s: it has the form https://host/path", s.hook.URLFile)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !s.hook.AllowPrivate) {
		return "", fmt.Errorf("cannot use the URL in %s: it begins with https://, or with http:// where webhook.allow_private is set", s.hook.URLFile)
	}
	return raw, nil
}

// keys are the one or two that messages are signed with.
func (s *hookSpeaker) keys() ([][]byte, error) {
	raw, err := readSmall(s.hook.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read webhook.secret_file: %w", err)
	}
	var keys [][]byte
	for line := range strings.Lines(raw) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key := []byte(line)
		if encoded, ok := strings.CutPrefix(line, "whsec_"); ok {
			if key, err = base64.StdEncoding.DecodeString(encoded); err != nil || len(key) < leastKey {
				return nil, fmt.Errorf("cannot use the secret in %s: whsec_ is followed by base64 of at least %d bytes", s.hook.SecretFile, leastKey)
			}
		} else if len(key) < leastRaw {
			return nil, fmt.Errorf("cannot use the secret in %s: it has less than %d bytes; head -c 32 /dev/urandom | base64 makes one", s.hook.SecretFile, leastRaw)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > 2 {
		return nil, fmt.Errorf("cannot use the secret in %s: it is one line, or two while it is changed", s.hook.SecretFile)
	}
	return keys, nil
}

// readSmall reads a file of one receiver; spaces at its ends do not count.
func readSmall(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err != nil {
		return "", err
	}
	if len(raw) > mostFile {
		return "", fmt.Errorf("%s is larger than %d bytes", file, mostFile)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return text, nil
}

// say makes one attempt.
func (s *hookSpeaker) say(ctx context.Context, n Note) reply {
	e := ring.Event{Kind: n.Kind, Seq: n.Line, At: n.At, Source: n.Source, App: n.App, Service: n.Service, Commit: n.Commit, Reason: n.Reason}
	if n.Event != nil {
		e = *n.Event
	}
	made := eventOf(s.host, e)
	body, err := json.Marshal(made)
	if err != nil {
		return reply{gone: true, says: "cannot write the event"}
	}
	at, err := s.url()
	if err != nil {
		return reply{away: true, says: err.Error()}
	}
	keys, err := s.keys()
	if err != nil {
		return reply{away: true, says: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return reply{gone: true, says: "cannot use the URL"}
	}
	sent := strconv.FormatInt(s.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	req.Header.Set("User-Agent", "gitring")
	req.Header["webhook-id"] = []string{made.ID}
	req.Header["webhook-timestamp"] = []string{sent}
	req.Header["webhook-signature"] = []string{signed(keys, made.ID, sent, body)}
	res, err := hookClient(s.dial).Do(req)
	if err != nil {
		return reply{away: true, says: unreachable(ctx, err)}
	}
	defer res.Body.Close()                                          //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, mostReply)) // somebody else's text
	return judged(res.StatusCode, retryAfter(res.Header))
}

// signed is the header of Standard Webhooks, one signature for each key.
func signed(keys [][]byte, id, sent string, body []byte) string {
	var all []string
	for _, key := range keys {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(id + "." + sent + "."))
		h.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// judged is what an answer means. 410 is the receiver's word that it is no more.
func judged(code int, wait time.Duration) reply {
	says := fmt.Sprintf("it answered %d", code)
	switch {
	case code >= 200 && code <= 299:
		return reply{taken: true}
	case code == http.StatusGone:
		return reply{gone: true, says: says + ": it takes nothing any more"}
	case code >= 300 && code <= 399:
		return reply{says: says + ", a redirect, which is not followed"}
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return reply{away: true, wait: wait, says: says}
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return reply{away: true, wait: wait, says: says + ": it does not let us in"}
	}
	return reply{wait: wait, says: says}
}

// unreachable is the reason of a failed request, and no part of its URL.
func unreachable(ctx context.Context, err error) string {
	var guard errForbidden
	var dns *net.DNSError
	var ne net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &guard):
		return "cannot reach it: " + guard.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "cannot reach it: its name is not known"
	case errors.As(err, &cert):
		return "cannot reach it: its certificate is not trusted"
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return fmt.Sprintf("cannot reach it: no answer within %s", hookTimeout)
	case errors.As(err, &dns):
		return "cannot reach it: its name cannot be looked up"
	case strings.Contains(err.Error(), "connection refused"):
		return "cannot reach it: connection refused"
	}
	return "cannot reach it: the connection failed"
}
