package gitsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitring/gitring/wording"
)

// go-git has one table of transports for the whole process. It is not used:
// each source talks through its own transport, so that no credential, deadline
// or dial rule of one can reach another.

// objectStorage is go-git's, to read.
type objectStorage = storer.EncodedObjectStorer

// Auth is how a source proves itself to its remote. Files are read at each use,
// so a rotated token needs no restart.
type Auth struct {
	Username       string // "" is the one of the URL, else git
	PasswordFile   string // https: password or token; the last line end is cut
	SSHKeyFile     string // ssh: private key without a passphrase
	KnownHostsFile string // ssh: the only host keys that are believed
}

// remote is the far end of one source. It is used by one goroutine at a time.
type remote interface {
	// look asks where the branch is now. The line stays open for one fetch, so
	// the caller closes the view.
	look(ctx context.Context) (*view, error)
	// rest gives idle connections back.
	rest()
}

// view is what a remote said of the branch.
type view struct {
	tip     plumbing.Hash // zero: it is not there
	missing string        // why, when it is not there
	shallow bool          // the remote has no whole history
	// bring fills in with everything that the wants of an order lead to; nil when
	// there is nothing to be had.
	bring func(ctx context.Context, o order, in *incoming) error
	// stage is where to; "" is beside the mirror.
	stage string
	close func()
}

// fetch brings everything that wants lead to into a mirror.
func (v *view) fetch(ctx context.Context, into *mirror, wants ...plumbing.Hash) error {
	return into.receive(ctx, cmp.Or(v.stage, into.dir+incomingEnds), wants, v.bring)
}

// address is a remote's URL, taken apart.
type address struct {
	scheme     string // file, http, https, ssh
	user       string
	host, port string
	path       string
}

var scpLike = regexp.MustCompile(`^(?:([^@/:]+)@)?([^/:@]+):([^/].*|/.*)$`)

// parseAddress takes file, https, ssh and loopback http, and says of anything
// else why not. Its errors never hold a password.
func parseAddress(raw string) (address, error) {
	if !strings.Contains(raw, "://") {
		if strings.Contains(raw, "::") {
			return address{}, errors.New("remote helpers are not run; use https, ssh or file")
		}
		if m := scpLike.FindStringSubmatch(raw); m != nil {
			return address{scheme: "ssh", user: m[1], host: m[2], port: "22", path: m[3]}, nil
		}
		return address{}, fmt.Errorf("%q is not a URL; write file:///path, https://… or ssh://…", raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, errors.New("it is not a URL") // the error would hold it whole
	}
	if _, has := u.User.Password(); has {
		return address{}, errors.New("it holds a password; name a file in auth.password_file instead")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return address{}, errors.New("it holds a query or fragment; write the path alone")
	}
	a := address{scheme: strings.ToLower(u.Scheme), user: u.User.Username(), host: u.Hostname(), port: u.Port(), path: u.Path}
	return a, a.check()
}

func (a address) check() error {
	if a.path == "" || a.path == "/" {
		return errors.New("it has no path")
	}
	switch a.scheme {
	case "file":
		if a.host != "" && a.host != "localhost" {
			return fmt.Errorf("file://%s is another host; write file:///path", a.host)
		}
		return nil
	case "https", "ssh":
	case "http":
		if !loopback(a.host) {
			return errors.New("http is taken only from a loopback address; use https")
		}
	case "git":
		return errors.New("git:// proves nothing about the server; use https or ssh")
	default:
		return fmt.Errorf("scheme %q is not one of https, ssh, file", a.scheme)
	}
	if a.host == "" {
		return errors.New("it names no host")
	}
	return nil
}

// String is what people read: without user and password.
func (a address) String() string {
	if a.scheme == "file" {
		return "file://" + a.path
	}
	host := a.host
	if a.port != "" {
		host = net.JoinHostPort(a.host, a.port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return a.scheme + "://" + host + "/" + strings.TrimPrefix(a.path, "/")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// newRemote checks what can be checked without network.
func newRemote(a address, branch plumbing.ReferenceName, auth Auth, lim Limits, disk files, known hosts) (remote, error) {
	switch a.scheme {
	case "file":
		return &fileRemote{path: a.path, branch: branch, lim: lim}, nil
	case "ssh":
		d, err := newSSHDialer(a, auth, lim, disk, known)
		if err != nil {
			return nil, err
		}
		return &wire{branch: branch, open: d.open, idle: func() {}}, nil
	}
	if auth.SSHKeyFile != "" || auth.KnownHostsFile != "" {
		return nil, fmt.Errorf("ssh_key_file and known_hosts_file are for ssh, the URL says %s", a.scheme)
	}
	d := newHTTPDialer(a, auth, lim, disk, known)
	return &wire{branch: branch, open: d.open, idle: d.rest}, nil
}

// session is one conversation of the upload-pack protocol; go-git's HTTP
// sessions and ours over SSH are ones.
type session interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// wire is a remote that is reached over a network.
type wire struct {
	branch plumbing.ReferenceName
	open   func(context.Context) (session, error)
	idle   func()
}

func (w *wire) rest() { w.idle() }

func (w *wire) look(ctx context.Context) (*view, error) {
	s, err := w.open(ctx)
	if err != nil {
		return nil, err
	}
	hangUp := func() { _ = s.Close() }
	refs, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return &view{missing: "the remote has no branch at all", close: hangUp}, nil
	}
	if err != nil {
		hangUp()
		return nil, err
	}
	v := &view{tip: refs.References[w.branch.String()], shallow: len(refs.Shallows) > 0, close: hangUp}
	if v.tip.IsZero() {
		v.missing = fmt.Sprintf("the remote has no branch %s", w.branch.Short())
	}
	v.bring = func(ctx context.Context, o order, in *incoming) error {
		return bringOver(ctx, s, refs.Capabilities, o, in)
	}
	return v, nil
}

// bringOver asks for wants, without tags and without other refs. go-git sends
// all it has in one go and never asks for less than the whole history.
func bringOver(ctx context.Context, s session, caps *capability.List, o order, in *incoming) error {
	req := packp.NewUploadPackRequestFromCapabilities(caps)
	if caps.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress) // it takes no value, so it cannot fail
	}
	req.Wants, req.Haves = o.wants, o.haves
	resp, err := s.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	return in.addPack(ctx, func(w io.Writer) error {
		_, err := io.Copy(w, packStream(req.Capabilities, resp))
		return err
	})
}

func packStream(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// files are the files that Auth names: on disk, or, in the process that fetches,
// as they came over its pipe.
type files struct {
	sent map[string][]byte // by path; nil is the disk
	dir  string            // where one is put for a library that reads by name
}

// maxSecret is far above any real password or key.
const maxSecret = 64 << 10

func (f files) read(path string) ([]byte, error) {
	if f.sent == nil {
		return readBounded(path, maxSecret)
	}
	b, ok := f.sent[path]
	if !ok {
		return nil, fmt.Errorf("cannot read %s: %w", path, os.ErrNotExist)
	}
	return b, nil
}

// place is where a file can be read by name.
func (f files) place(path string) (string, error) {
	if f.sent == nil {
		return path, nil
	}
	b, err := f.read(path)
	if err != nil {
		return "", err
	}
	name := filepath.Join(f.dir, "known_hosts")
	return name, os.WriteFile(name, b, 0o600)
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return b, err
}

// said is an error whose text may come from a remote: it is fit for one line of a
// terminal.
type said struct{ error }

func (s said) Error() string { return oneLine([]byte(s.error.Error())) }
func (s said) Unwrap() error { return s.error }

// oneLine makes text of a remote fit for one line of a terminal.
func oneLine(b []byte) string {
	const most = 500
	return wording.FoldedLine(string(b[:min(len(b), most)]))
}
