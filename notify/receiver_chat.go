package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"text/template"
	"time"
)

// WorkerVerb is the word of the command line that makes the daemon's own binary
// the process that tells one chat one message.
const WorkerVerb = "notify-worker"

// workerTimeout is how long that process may take; then it is killed.
const workerTimeout = 20 * time.Second

// chatSpeaker says notes to a chat.
type chatSpeaker struct {
	host    string
	urlFile string
	text    *template.Template
	// run sends one message; in a process of its own.
	run func(ctx context.Context, s chatMessage) (chatOutcome, error)

	scheme atomic.Value // as last read, for people
}

func (s *chatSpeaker) service() string {
	scheme, _ := s.scheme.Load().(string)
	return scheme
}

// check reads the URL, as a send would.
func (s *chatSpeaker) check() error {
	_, err := s.url()
	return err
}

// url is the receiver's; no error repeats a part of it.
func (s *chatSpeaker) url() (string, error) {
	raw, err := readSmall(s.urlFile)
	if err != nil {
		return "", fmt.Errorf("cannot read url_file: %w", err)
	}
	scheme, _, err := parseChatURL(raw)
	if err != nil {
		return "", fmt.Errorf("cannot use the URL in %s: %w", s.urlFile, err)
	}
	s.scheme.Store(scheme)
	return raw, nil
}

// say makes one attempt.
func (s *chatSpeaker) say(ctx context.Context, n Note) reply {
	raw, err := s.url()
	if err != nil {
		return reply{away: true, says: err.Error()}
	}
	own, err := spellOut(ownTemplate, s.host, n)
	if err != nil {
		return reply{gone: true, says: err.Error()}
	}
	text, err := spellOut(s.text, s.host, n)
	if err != nil { // of this message alone: it was tried before it was needed
		text = own
	}
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	done, err := s.run(ctx, chatMessage{URL: raw, Text: withoutSecrets(text, raw, own), Title: "gitring on " + s.host})
	if err != nil && ctx.Err() != nil {
		done, err = chatOutcome{Outcome: chatTimeout}, nil
	}
	if err != nil {
		return reply{away: true, says: fmt.Sprintf("cannot start the process that tells %s: %v", s.service(), err)}
	}
	return done.reply(s.service())
}

// reply is an outcome in words.
func (d chatOutcome) reply(scheme string) reply {
	to := func(says string) reply { return reply{away: true, says: scheme + ": " + says} }
	switch d.Outcome {
	case chatTaken:
		return reply{taken: true}
	case chatAnswer:
		r := judged(d.Code, d.Wait)
		if r.taken { // it said so in the body alone
			r = reply{says: "it answered 200 and did not take the message"}
		}
		if scheme == "smtp" {
			r = reply{away: d.Code < 500, says: fmt.Sprintf("the mail server answered %d", d.Code)}
		}
		r.gone = false // a chat's URL can be made anew
		r.says = scheme + ": " + r.says
		return r
	case chatURL:
		return to("its URL does not parse")
	case chatTimeout:
		return to(fmt.Sprintf("no answer within %s", workerTimeout))
	case chatName:
		return to("its name is not known")
	case chatRefused:
		return to("connection refused")
	case chatCert:
		return to("its certificate is not trusted")
	case chatForbidden:
		return to("its address is one that nothing is sent to")
	case chatRedirect:
		return to("it answered with a redirect, which is not followed")
	}
	return to("the message could not be sent")
}

// leastSecret is the length from which a part of a URL is taken for a secret: what
// is shorter is a word such as "topic".
const leastSecret = 6

// withoutSecrets strikes every part of a URL that may be a secret out of a text:
// whoever writes a template may have put one there, as it is or as the URL spells it.
// What we would have said ourselves is no secret, as of a topic named "gitring".
func withoutSecrets(text, raw, own string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return text
	}
	parts := []string{raw, u.User.Username()}
	password, _ := u.User.Password()
	parts = append(parts, password)
	parts = append(parts, strings.FieldsFunc(password, apart)...) // as Slack's three
	_, authority, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 { // as it is spelled
		parts = append(parts, strings.Split(authority[:at], ":")...)
		parts = append(parts, strings.FieldsFunc(authority[:at], apart)...)
	}
	parts = append(parts, strings.Split(u.Path, "/")...)
	parts = append(parts, strings.Split(u.EscapedPath(), "/")...)
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		parts = append(parts, value)
	}
	if u.Scheme == "discord" || u.Scheme == "slack" || u.Scheme == "teams" || u.Scheme == "pushover" {
		parts = append(parts, u.Host)
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // a part of a part last
	for _, p := range parts {
		if len(p) >= leastSecret && !strings.Contains(own, p) {
			text = strings.ReplaceAll(text, p, "(secret)")
		}
	}
	return text
}

func apart(r rune) bool { return r == ':' || r == '-' }

// proxyNames are all of the environment that the process is given.
var proxyNames = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// workerProcess tells one message in a process of its own, of the program; "" is
// this binary. The message goes through a pipe: arguments are for all to see.
func workerProcess(program string) func(ctx context.Context, s chatMessage) (chatOutcome, error) {
	if program == "" {
		program = "/proc/self/exe"
	}
	return func(ctx context.Context, s chatMessage) (done chatOutcome, err error) {
		in, err := json.Marshal(s)
		if err != nil {
			return done, err
		}
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, program)
		cmd.Args = []string{"gitring", WorkerVerb}
		cmd.Dir, cmd.Stdin, cmd.Stdout = "/", bytes.NewReader(in), &out
		cmd.Env = []string{"GODEBUG=netdns=go", "GOMAXPROCS=1"}
		for _, name := range proxyNames {
			if v := os.Getenv(name); v != "" {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		endWithUs(cmd)
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil {
			return done, err
		}
		if err := json.Unmarshal(out.Bytes(), &done); err != nil {
			return done, fmt.Errorf("cannot understand it")
		}
		return done, nil
	}
}
