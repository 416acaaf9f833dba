package gitsync

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// What goes over the pipes between the daemon and the process that fetches: one
// message after the other, each a length of four bytes and JSON. Nothing but the
// fields below is understood, on either side.

// Bounds of one message. The daemon's holds files with credentials and the list
// of objects that are here, the other's one answer.
const (
	maxQuestion = 8 << 20
	maxAnswer   = 64 << 10
	maxSays     = 4 << 10 // bytes of an error's text
)

// question is what the daemon asks; exactly one field is set.
type question struct {
	Begin *beginning `json:"begin,omitempty"`
	Look  *asked     `json:"look,omitempty"`
	Fetch *wanted    `json:"fetch,omitempty"`
	Close bool       `json:"close,omitempty"` // of the view; the only one without an answer
}

// beginning says what the process may ever touch, before it touches anything.
type beginning struct {
	Scheme  string            `json:"scheme"`
	User    string            `json:"user,omitempty"`
	Host    string            `json:"host,omitempty"`
	Port    string            `json:"port,omitempty"`
	Path    string            `json:"path"`
	Stage   string            `json:"stage"`   // the one folder it may write to
	Mirrors string            `json:"mirrors"` // the folder of all mirrors of the host
	Memory  int64             `json:"memory"`  // RLIMIT_DATA
	Target  int64             `json:"target"`  // GOMEMLIMIT
	File    int64             `json:"file"`    // RLIMIT_FSIZE
	Open    int               `json:"open"`    // RLIMIT_NOFILE
	Proxies map[string]string `json:"proxies,omitempty"`
}

func (b *beginning) address() address {
	return address{scheme: b.Scheme, user: b.User, host: b.Host, port: b.Port, path: b.Path}
}

// asked is a look at one ref.
type asked struct {
	Ref    string            `json:"ref"`
	Auth   Auth              `json:"auth"`
	Files  map[string][]byte `json:"files,omitempty"` // contents of what Auth names, by path
	Hosts  hosts             `json:"hosts,omitempty"` // all that may be connected to
	Limits Limits            `json:"limits"`
	Within time.Duration     `json:"within"`
}

// wanted is a fetch over the view of the last look.
type wanted struct {
	Wants  []string      `json:"wants"`
	Haves  []string      `json:"haves,omitempty"`
	Stores []string      `json:"stores,omitempty"` // folders of mirrors whose objects need not come
	Clone  bool          `json:"clone,omitempty"`
	Copies bool          `json:"copies,omitempty"`
	Within time.Duration `json:"within"`
}

// told is an answer. All of it is claimed and nothing believed: what a tip is
// worth, its bytes and signatures say.
type told struct {
	Confined []string `json:"confined,omitempty"` // to begin
	Free     []string `json:"free,omitempty"`     // what this host could not confine, with the reason
	Tip      string   `json:"tip,omitempty"`
	Missing  string   `json:"missing,omitempty"`
	Shallow  bool     `json:"shallow,omitempty"`
	Bring    bool     `json:"bring,omitempty"` // there is something to be fetched
	Fault    *fault   `json:"fault,omitempty"`
}

// fault is an error on its way through a pipe.
type fault struct {
	Kind  string    `json:"kind,omitempty"`
	Says  string    `json:"says"`
	Until time.Time `json:"until,omitzero"`
}

// kinds are the errors that somebody asks for with errors.Is.
var kinds = map[string]error{
	"limit": errLimit, "sha256": errSHA256, "damaged": errDamaged, "missing": ErrMissing, "deadline": os.ErrDeadlineExceeded,
}

func faultOf(err error) *fault {
	says := bare(err).Error()
	f := &fault{Says: says[:min(len(says), maxSays)]} // cut and cleaned where secrets are known
	if wait, ok := errors.AsType[*errWait](err); ok {
		return &fault{Kind: "wait", Says: wait.status[:min(len(wait.status), maxSays)], Until: wait.until}
	}
	for kind, is := range kinds {
		if errors.Is(err, is) {
			f.Kind = kind
		}
	}
	return f
}

// err is the error again. text makes it fit to be shown.
func (f *fault) err(text func(string) string) error {
	says := text(f.Says)
	if f.Kind == "wait" {
		// The time is held to the same bound again: it is only a claim.
		latest := time.Now().Add(maxWait)
		until := f.Until
		if until.After(latest) {
			until = latest
		}
		return &errWait{until: until, status: says}
	}
	return &carried{says, kinds[f.Kind]}
}

// carried is an error that came through a pipe.
type carried struct {
	says string
	is   error
}

func (c *carried) Error() string { return c.says }
func (c *carried) Unwrap() error { return c.is }

func writeMessage(w io.Writer, message any, most int) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > most {
		return fmt.Errorf("a message of %d bytes is too long for the pipe", len(b))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// errMessage is a message that nobody of ours has written.
var errMessage = errors.New("a message on the pipe makes no sense")

func readMessage(r io.Reader, into any, most int) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(most) {
		return fmt.Errorf("%w: it says it has %d bytes", errMessage, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return io.ErrUnexpectedEOF
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows it", errMessage)
	}
	return nil
}

// hashes reads ids that came over the pipe.
func hashes(list []string) ([]plumbing.Hash, error) {
	out := make([]plumbing.Hash, len(list))
	for i, s := range list {
		if !plumbing.IsHash(s) {
			return nil, fmt.Errorf("%w: %.50q is no id", errMessage, s)
		}
		out[i] = plumbing.NewHash(s)
	}
	return out, nil
}

func ids(list []plumbing.Hash) []string {
	out := make([]string, len(list))
	for i, h := range list {
		out[i] = h.String()
	}
	return out
}

// proxyNames are the variables of the daemon's environment that fetching knows:
// where a proxy is and which authorities are believed. They may hold passwords.
var proxyNames = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// redactor takes what is secret out of text. Every form that a server could send
// back is known by its lines.
func redactor(secrets ...string) func(string) string {
	var pairs []string
	for _, s := range secrets {
		for line := range strings.Lines(s) {
			line = strings.TrimSpace(line)
			if len(line) >= 4 && !strings.HasPrefix(line, "-----") {
				pairs = append(pairs, line)
			}
		}
	}
	// The longest first, so that one secret within another hides no rest of it.
	slices.SortFunc(pairs, func(a, b string) int { return len(b) - len(a) })
	var args []string
	for _, s := range slices.Compact(pairs) {
		args = append(args, s, "[secret]")
	}
	return strings.NewReplacer(args...).Replace
}

var proxyPassword = regexp.MustCompile(`://[^/@]*:([^/@]+)@`)
