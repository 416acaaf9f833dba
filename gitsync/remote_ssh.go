package gitsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// sshDialer opens upload-pack sessions over SSH. go-git's own transport ignores
// contexts until the handshake is done, reads the user's ~/.ssh/config and asks
// an agent; this one does none of that.
type sshDialer struct {
	addr    string // host:port
	user    string
	command string
	keyFile string
	known   string
	lim     Limits
	disk    files
	hosts   hosts
}

func newSSHDialer(a address, auth Auth, lim Limits, disk files, found hosts) (*sshDialer, error) {
	switch {
	case auth.PasswordFile != "":
		return nil, errors.New("password_file is for https; ssh takes ssh_key_file")
	case auth.SSHKeyFile == "":
		return nil, errors.New("ssh needs auth.ssh_key_file")
	case auth.KnownHostsFile == "":
		return nil, errors.New("ssh needs auth.known_hosts_file; ssh-keyscan makes one, compare it with what the forge publishes")
	}
	d := &sshDialer{addr: net.JoinHostPort(a.host, cmp.Or(a.port, "22")), user: cmp.Or(auth.Username, a.user, "git"), keyFile: auth.SSHKeyFile, known: auth.KnownHostsFile, lim: lim, disk: disk, hosts: found}
	d.command = "git-upload-pack " + quoted(a.path)
	return d, nil
}

// quoted is sq_quote of git: safe as one word for every shell.
func quoted(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

func (d *sshDialer) open(ctx context.Context) (session, error) {
	cfg, err := d.config()
	if err != nil {
		return nil, err
	}
	conn, err := dialer{idle: d.lim.Idle, known: d.hosts}.dial(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	// From here the context ends everything by closing the connection.
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := &sshSession{lim: d.lim}
	s.hangUp = sync.OnceFunc(func() {
		release()
		if s.client != nil {
			_ = s.client.Close()
			_ = s.client.Wait() // so that its goroutines are gone; the error is our own close
		}
		_ = conn.Close()
	})
	if err := s.start(conn, d.addr, cfg, d.command); err != nil {
		s.hangUp()
		return nil, d.explain(ctx, err)
	}
	return s, nil
}

func (d *sshDialer) config() (*ssh.ClientConfig, error) {
	pem, err := d.disk.read(d.keyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read ssh_key_file: %w", err)
	}
	key, err := ssh.ParsePrivateKey(pem)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, fmt.Errorf("cannot use ssh_key_file %s: it needs a passphrase; make a deploy key without one", d.keyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use ssh_key_file %s: %w", d.keyFile, err)
	}
	known, err := d.disk.place(d.known)
	if err != nil {
		return nil, fmt.Errorf("cannot read known_hosts_file: %w", err)
	}
	db, err := knownhosts.NewDB(known)
	if err != nil {
		return nil, fmt.Errorf("cannot read known_hosts_file: %w", err)
	}
	return &ssh.ClientConfig{
		User:              d.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback:   db.HostKeyCallback(),
		HostKeyAlgorithms: db.HostKeyAlgorithms(d.addr),
	}, nil
}

// explain says in words what people meet most.
func (d *sshDialer) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case knownhosts.IsHostKeyChanged(err):
		return fmt.Errorf("the host key of %s is not the one in %s; somebody may be in between, do not just replace it", d.addr, d.known)
	case knownhosts.IsHostUnknown(err):
		return fmt.Errorf("%s has no line in %s; add the host key the forge publishes", d.addr, d.known)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return fmt.Errorf("%s does not take the key of %s for user %s", d.addr, d.keyFile, d.user)
	case brokeOff(err):
		return fmt.Errorf("%s ended the connection before it let us in: it may take no more of them now, or no SSH server answers there", d.addr)
	}
	return err
}

// brokeOff reports whether a connection ended where an answer was due: what the
// libraries say of that is no word for people.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// sshSession is one run of git-upload-pack on the other side.
type sshSession struct {
	lim    Limits
	client *ssh.Client
	run    *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	errs   tail
	hangUp func()
	refs   *packp.AdvRefs
	asked  bool
}

func (s *sshSession) start(conn net.Conn, addr string, cfg *ssh.ClientConfig, command string) error {
	c, chans, reqs, err := ssh.NewClientConn(conn, addr, cfg)
	if err != nil {
		return err
	}
	s.client = ssh.NewClient(c, chans, reqs)
	if s.run, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.in, err = s.run.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.run.StdoutPipe(); err != nil {
		return err
	}
	s.run.Stderr = &s.errs
	return s.run.Start(command)
}

func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if s.refs != nil {
		return s.refs, nil
	}
	head := &sniffer{r: &capped{r: s.out, left: s.lim.Adverts}}
	refs := packp.NewAdvRefs()
	err := refs.Decode(head)
	switch {
	case head.sha256():
		return nil, errSHA256
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, s.explain(ctx, err)
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	s.refs = refs
	return refs, nil
}

// explain prefers what the other side wrote for people to what its silence did
// to the protocol.
func (s *sshSession) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, packp.ErrEmptyInput) || brokeOff(err) {
		_ = s.run.Wait() // its standard error is whole then; the status says less
		if said := s.errs.String(); said != "" {
			return fmt.Errorf("the remote says: %s", said)
		}
		return errors.New("the remote ended the session without an answer")
	}
	return err
}

func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if req.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	if err := req.Validate(); err != nil {
		return nil, err
	}
	s.asked = true
	if err := s.send(req); err != nil {
		return nil, s.explain(ctx, err)
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(&capped{r: s.out, left: s.lim.Received})); err != nil {
		return nil, s.explain(ctx, err)
	}
	return resp, nil
}

func (s *sshSession) send(req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// Close ends the session; one that was only asked for refs is told so.
func (s *sshSession) Close() error {
	if !s.asked {
		_, _ = s.in.Write(pktline.FlushPkt) // a courtesy: hanging up does it too
	}
	s.hangUp()
	return nil
}

// tail keeps the beginning of what a remote writes to standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[:min(len(p), 1024-len(t.b))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneLine(t.b)
}
