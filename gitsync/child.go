package gitsync

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/wording"
)

// FetchVerb is the word of the command line that makes the daemon's own binary
// the process that fetches.
const FetchVerb = "fetch-child"

// linger is how long a process stays after its last use. A burst of looks, and a
// look with the fetch that follows, share one; a poll a minute later takes the
// spare one, so an idle host has one, however many sources there are.
const linger = 2 * time.Second

// child is the process that fetches for one source: whatever a remote sends is
// first read there, under limits of its own. It is started when it is needed and
// knows one remote, one folder that it may fill, and no more.
type child struct {
	source  string
	begin   beginning
	auth    Auth
	log     *slog.Logger
	strict  bool   // it is used only where it is confined whole
	program string // "" is this binary
	spare   *Spare // nil for none
	names   *net.Resolver

	mu   sync.Mutex // guards what follows
	proc *process   // nil while there is none
	idle *time.Timer
	open int  // views that are not closed; only the last may be used
	runs int  // that were started
	told bool // how it is confined was logged
	free string
}

// newChild starts nothing.
func newChild(cfg Config, a address, log *slog.Logger) *child {
	lim := cfg.Limits
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		dir = cfg.Dir // it says so itself when it is used
	}
	return &child{
		source: cfg.Name, auth: cfg.Auth, log: log, strict: cfg.RequireConfinement, spare: cfg.Spare, names: net.DefaultResolver,
		begin: beginning{
			Scheme: a.scheme, User: a.user, Host: a.host, Port: a.port, Path: a.path,
			Stage: dir + incomingEnds, Mirrors: filepath.Dir(dir),
			Memory: lim.Memory, Target: lim.Target, File: lim.File, Open: lim.Descriptors,
		},
	}
}

// remote is what the process is asked for about one ref.
func (c *child) remote(ref plumbing.ReferenceName, lim Limits) remote {
	return &childRemote{c, ref, lim}
}

type childRemote struct {
	child *child
	ref   plumbing.ReferenceName
	lim   Limits
}

// rest does nothing: the process ends soon by itself, and other refs may be asked
// for before.
func (r *childRemote) rest() {}

func (r *childRemote) look(ctx context.Context) (*view, error) {
	files, err := contentsOf(r.child.auth)
	if err != nil {
		return nil, err
	}
	known, err := r.child.begin.lookUp(ctx, r.child.names, r.lim)
	if err != nil {
		return nil, err
	}
	p, err := r.child.take(ctx, files)
	if err != nil {
		return nil, err
	}
	q := question{Look: &asked{Ref: r.ref.String(), Auth: r.child.auth, Files: files, Hosts: known, Limits: r.lim, Within: within(ctx)}}
	t, err := p.ask(ctx, q)
	if err == nil && t.Tip != "" && !plumbing.IsHash(t.Tip) {
		err = p.fail(fmt.Errorf("%w: %.50q is no id", errMessage, t.Tip))
	}
	if err != nil {
		r.child.give(p)
		return nil, err
	}
	v := &view{missing: p.text(t.Missing), shallow: t.Shallow, stage: r.child.begin.Stage}
	v.close = sync.OnceFunc(func() {
		p.close()
		r.child.give(p)
	})
	if t.Tip != "" {
		v.tip = plumbing.NewHash(t.Tip)
	}
	if t.Bring {
		v.bring = func(ctx context.Context, o order, in *incoming) error { return p.fetch(ctx, o) }
	}
	return v, nil
}

// within is how long ctx still has.
func within(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return time.Until(end)
	}
	return 24 * time.Hour
}

// contentsOf reads the files that Auth names.
func contentsOf(auth Auth) (map[string][]byte, error) {
	files := map[string][]byte{}
	for what, path := range map[string]string{
		"password_file": auth.PasswordFile, "ssh_key_file": auth.SSHKeyFile, "known_hosts_file": auth.KnownHostsFile,
	} {
		if path == "" {
			continue
		}
		b, err := readBounded(path, maxCredential(what))
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", what, err)
		}
		files[path] = b
	}
	return files, nil
}

func maxCredential(what string) int64 {
	if what == "known_hosts_file" {
		return 1 << 20
	}
	return maxSecret
}

// take is the running process, or a new one; give ends its use.
func (c *child) take(ctx context.Context, files map[string][]byte) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	if c.proc == nil || c.proc.dead() != nil {
		p, err := c.start(ctx, files)
		if err != nil {
			return nil, err
		}
		c.proc = p
		c.runs++
	}
	c.proc.hide(c.user(), c.auth, files, c.begin.Proxies)
	c.open++
	return c.proc, nil
}

// user is who logs in.
func (c *child) user() string { return cmp.Or(c.auth.Username, c.begin.User, "git") }

// give ends the use of a process. One that failed is not used again.
func (c *child) give(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.proc == p && p.dead() != nil {
		c.proc = nil
	}
	if c.proc == nil || c.open > 0 {
		return
	}
	c.idle = time.AfterFunc(linger, c.rest)
}

// rest ends the process, if there is one that is not in use.
func (c *child) rest() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open > 0 || c.proc == nil {
		return
	}
	c.proc.end()
	c.proc = nil
	c.spare.want()                  // now, when nobody waits for what the machine does
	_ = os.RemoveAll(c.begin.Stage) // whatever stays is in nobody's way
}

// still ends a process that is not in use and says how many there were so far, and
// whether there is none now: nobody then holds a file open that came by one.
func (c *child) still() (runs int, none bool) {
	if c == nil {
		return 0, true
	}
	c.rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs, c.proc == nil
}

// start must be called with mu held.
func (c *child) start(ctx context.Context, files map[string][]byte) (*process, error) {
	if err := os.MkdirAll(c.begin.Stage, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder for what is fetched: %w", err)
	}
	c.begin.Proxies = map[string]string{}
	for _, name := range proxyNames {
		if v := os.Getenv(name); v != "" && c.begin.Scheme != "file" {
			c.begin.Proxies[name] = v
		}
	}
	p, t, err := c.begun(ctx, files)
	if err != nil {
		if p != nil && p.dead() == nil {
			p.end() // it could not shut the door behind it
		}
		return nil, fmt.Errorf("cannot start the process that fetches: %w", err)
	}
	c.free = p.text(strings.Join(t.Free, ", "))
	if c.strict && c.free != "" {
		p.end()
		return nil, &NotConfinedError{c.free}
	}
	if !c.told {
		c.told = true
		reason := strings.Join(t.Confined, ", ")
		if c.free != "" {
			reason += "; not: " + c.free
		}
		c.log.InfoContext(ctx, "confined the process that fetches", "source", c.source, "reason", p.text(reason))
	}
	return p, nil
}

// unconfined is what the process that was started last is not kept from.
func (c *child) unconfined() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free
}

// NotConfinedError says what a host cannot keep the process that fetches from, where
// the configuration requires that it does.
type NotConfinedError struct{ Free string }

func (e *NotConfinedError) Error() string {
	return "cannot fetch: require_confinement is true, and this host does not keep the process that fetches from " + e.Free
}

// CheckConfinement starts the process that fetches for a follower and ends it. It
// returns a *NotConfinedError where the configuration requires what this host does
// not have. Nothing is fetched.
func CheckConfinement(ctx context.Context, cfg Config) error {
	a, err := parseAddress(cfg.URL)
	if err != nil {
		return err
	}
	cfg.Spare, cfg.Limits = nil, cfg.Limits.withDefaults()
	return newChild(cfg, a, slog.New(slog.DiscardHandler)).check(ctx)
}

func (c *child) check(ctx context.Context) error {
	const within = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer func() { _ = os.RemoveAll(c.begin.Stage) }() // it is empty
	p, err := c.take(ctx, nil)
	if err != nil {
		return err
	}
	c.give(p)
	c.rest()
	return nil
}

// process is one run of the verb.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	errs   lastWords
	memory int64 // what it was limited to, for its last words
	file   int64

	mu     sync.Mutex // guards what follows
	cause  error      // why it is not to be used any more
	redact func(string) string
}

// startProcess runs the verb of a program, "" for this binary, with two pipes, a
// group of its own, an empty environment and no other descriptor.
func startProcess(program string) (*process, error) {
	p := &process{redact: redactor()}
	p.cmd = exec.Command(cmp.Or(program, "/proc/self/exe"))
	p.cmd.Args = []string{"gitring", FetchVerb}
	p.cmd.Dir = "/"
	// Without cgo names are looked up by Go anyway; with it, no library is loaded
	// after the process was confined.
	p.cmd.Env = []string{"GODEBUG=netdns=go"}
	p.cmd.SysProcAttr = endsWithUs()
	p.cmd.Stderr = &p.errs
	p.cmd.WaitDelay = time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	keepDescriptors()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// hide adds to what is never shown of its words.
func (p *process) hide(user string, auth Auth, files map[string][]byte, proxies map[string]string) {
	var secrets []string
	for path, b := range files {
		if path == auth.KnownHostsFile {
			continue
		}
		s := strings.TrimRight(string(b), "\r\n")
		secrets = append(secrets, s)
		if path == auth.PasswordFile {
			secrets = append(secrets, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(user+":"+s)))
		}
	}
	for _, v := range proxies {
		if m := proxyPassword.FindStringSubmatch(v); m != nil {
			secrets = append(secrets, m[1])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redact = redactor(secrets...)
}

// text makes words of the process fit to be shown.
func (p *process) text(s string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return oneLine([]byte(p.redact(s)))
}

// dead is why the process is not to be used; nil while it is fine.
func (p *process) dead() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// ask sends a question and waits for the answer, at most until ctx ends: then the
// process is killed, whatever it does.
func (p *process) ask(ctx context.Context, q question) (told, error) {
	if err := ctx.Err(); err != nil {
		return told{}, context.Cause(ctx)
	}
	if err := p.dead(); err != nil {
		return told{}, err
	}
	stop := context.AfterFunc(ctx, p.kill)
	var t told
	err := writeMessage(p.in, q, maxQuestion)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		if read := readMessage(p.out, &t, maxAnswer); read != nil || err == nil {
			err = read // it says more than a broken pipe
		}
	}
	if !stop() {
		p.finish()
		return told{}, p.failed(context.Cause(ctx))
	}
	if err != nil {
		return told{}, p.fail(err)
	}
	if t.Fault != nil {
		return t, t.Fault.err(p.text)
	}
	return t, nil
}

// fetch brings what an order asks for into the folder that the process knows.
func (p *process) fetch(ctx context.Context, o order) error {
	w := wanted{Wants: ids(o.wants), Haves: ids(o.haves), Clone: o.clone, Copies: o.copies, Within: within(ctx)}
	for m, ok := o.here.(*mirror); ok && m != nil; m = m.under {
		dir, err := filepath.Abs(m.dir)
		if err != nil {
			return err
		}
		w.Stores = append(w.Stores, dir)
	}
	_, err := p.ask(ctx, question{Fetch: &w})
	return err
}

// close lets it hang up; one that does not hear it is killed soon anyway.
func (p *process) close() {
	if p.dead() == nil {
		if err := writeMessage(p.in, question{Close: true}, maxQuestion); err != nil {
			_ = p.fail(err)
		}
	}
}

// kill ends the process. It cannot have started any other.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // or it is gone already

// end is kill for one that did nothing wrong.
func (p *process) end() {
	p.kill()
	p.finish()
	_ = p.failed(errors.New("the process that fetches was ended"))
}

// finish waits for the process.
func (p *process) finish() {
	_ = p.in.Close()
	_ = p.cmd.Wait() // its state says more
}

func (p *process) failed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = err
	return err
}

// fail ends a process that broke off, and says why in words.
func (p *process) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) {
		p.finish()
		return p.failed(p.why())
	}
	p.kill()
	p.finish()
	return p.failed(fmt.Errorf("the process that fetches does not answer as it should: %w", said{err}))
}

// outOfMemory are the last words of Go's runtime, and of its libraries, when they
// get no more.
var outOfMemory = []string{"out of memory", "cannot allocate memory", "cannot map pages", "cannot reserve arena", "buffer: too large", "failed to create new OS thread", "pthread_create failed"}

// hungry reports whether those are the words of a process that got no more memory. A
// segmentation fault of goroutine 0 is the runtime's own, which does not look at
// every allocation that failed: the collector's queues, for one.
func hungry(said string) bool {
	return strings.Contains(said, "SIGSEGV") && strings.Contains(said, "goroutine 0 ") ||
		slices.ContainsFunc(outOfMemory, func(s string) bool { return strings.Contains(strings.ToLower(said), strings.ToLower(s)) })
}

// lastWords keeps the beginning of what a process writes to standard error.
type lastWords struct{ b []byte }

func (l *lastWords) Write(b []byte) (int, error) {
	l.b = append(l.b, b[:min(len(b), 8<<10-len(l.b))]...)
	return len(b), nil
}

// why is what became of a process that is gone.
func (p *process) why() error {
	said := p.text(string(p.errs.b)) // whole: it was waited for
	state := p.cmd.ProcessState
	ws, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case hungry(said):
		return fmt.Errorf("the process that fetches needed more than %s of memory (RLIMIT_DATA): %w; the repository is too large for it, or was made to be", wording.ExactSize(p.memory), errLimit)
	case ok && ws.Signaled() && ws.Signal() == fileTooLarge:
		return fmt.Errorf("the process that fetches wrote a file of more than %s (RLIMIT_FSIZE): %w", wording.ExactSize(p.file), errLimit)
	case ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL:
		return errors.New("the process that fetches was killed from outside, most likely because this host ran out of memory; the kernel's log (dmesg) tells")
	case ok && ws.Signaled() && ws.Signal() == deniedCall:
		return errors.New("the process that fetches made a system call that it may not make, and was ended; somebody may have taken it over; " + seeAudit)
	case said != "":
		return fmt.Errorf("the process that fetches ended by itself (%s): %s", state, clip(said))
	}
	return fmt.Errorf("the process that fetches ended by itself (%s) without a word", state)
}
