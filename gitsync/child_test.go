package gitsync

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// isolated fetches in a process of its own.
func isolated(c *Config) { c.Isolated = true }

// apart is a follower whose process ends with the test.
func (o *origin) apart(a Anchors, change ...func(*Config)) *Follower {
	f := o.follow(a, append(change, isolated)...)
	o.t.Cleanup(f.child.rest)
	return f
}

func TestASourceIsFollowedThroughAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, url := range map[string]string{"file": o.url(), "http": serve(t, o.httpBackend()) + "/remote.git"} {
		t.Run(name, func(t *testing.T) {
			one := o.signed("one " + name)
			f := o.apart(&ledger{}, at(url))
			w := lookAt(t, f)
			require.Equal(t, one, w.must().Commit.SHA)
			first := f.child.proc
			two := o.signed("two " + name)
			require.Equal(t, two, w.must().Commit.SHA)
			require.Same(t, first, f.child.proc, "a burst of looks shares one process")
			f.child.rest()
			require.Equal(t, two, w.must().Commit.SHA)
			require.NotSame(t, first, f.child.proc)
			o.git(f.cfg.Dir, "fsck", "--strict")
			f.child.rest()
			require.NoDirExists(t, f.cfg.Dir+incomingEnds)
			require.Error(t, syscall.Kill(first.cmd.Process.Pid, 0), "the process is gone and was waited for")
		})
	}
}

func TestAnIdleProcessEndsByItself(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	f := o.apart(&ledger{})
	lookAt(t, f).must()
	p := f.child.proc
	require.Eventually(t, func() bool { return syscall.Kill(p.cmd.Process.Pid, 0) != nil }, linger+20*time.Second, 50*time.Millisecond)
}

func TestAnSSHRemoteIsFollowedThroughAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: sshd logs root in")
	}
	s := startSSHD(t)
	o := newOrigin(t)
	sha := o.signed("one")
	f := o.apart(&ledger{}, s.follow(o.bare))
	require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
	other := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	r := lookAt(t, o.apart(&ledger{}, s.follow(o.bare), func(c *Config) { c.Auth.KnownHostsFile = other })).look(t.Context())
	require.ErrorContains(t, r.Err, "has no line in "+other)
}

func TestCredentialsAreInNoArgumentVariableOrDescriptor(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hunter2-hunter2\n"), 0o600))
	url := serve(t, withPassword("hunter2-hunter2", o.httpBackend())) + "/remote.git"
	o.signed("one")
	// As systemd hands sockets over: open, and not to be closed on exec.
	left, err := syscall.Open(token, syscall.O_RDONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(left) })
	f := o.apart(&ledger{}, at(url), func(c *Config) { c.Auth = Auth{Username: "bot", PasswordFile: token} })
	w := lookAt(t, f)
	w.must()

	proc := filepath.Join("/proc", strconv.Itoa(f.child.proc.cmd.Process.Pid))
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(proc, name))
		require.NoError(t, err)
		return strings.ReplaceAll(string(b), "\x00", " ")
	}
	require.Equal(t, "gitring "+FetchVerb+" ", read("cmdline"))
	require.Equal(t, "GODEBUG=netdns=go ", read("environ"))
	limits := strings.Join(strings.Fields(read("limits")), " ")
	for _, l := range []string{
		"Max data size 1073741824 1073741824", "Max file size 1073741824 1073741824", "Max open files 256 256", "Max core file size 0 0",
	} {
		require.Contains(t, limits, l)
	}
	status := strings.Join(strings.Fields(read("status")), " ")
	require.Contains(t, status, "NoNewPrivs: 1")
	require.Contains(t, status, "Seccomp: 2")
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	require.NoError(t, err)
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		require.NoError(t, err)
		own := strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "/sys/fs/cgroup") || strings.HasPrefix(to, "/proc/")
		require.True(t, own, "it holds %s open as %s", to, fd.Name())
	}
	group, err := syscall.Getpgid(f.child.proc.cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, f.child.proc.cmd.Process.Pid, group)

	// What the forge sends back is shown without it.
	f.child.rest()
	f.address, _ = parseAddress(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, "no "+password+" and "+r.Header.Get("Authorization"), http.StatusTeapot)
	})) + "/remote.git")
	f.child.begin.Host, f.child.begin.Port = f.address.host, f.address.port
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "the remote answers 418 I'm a teapot: no [secret] and Basic [secret]")
}

func TestARotatedTokenCountsAtTheNextLook(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	token := filepath.Join(t.TempDir(), "token")
	url := serve(t, withPassword("second", o.httpBackend())) + "/remote.git"
	sha := o.signed("one")
	require.NoError(t, os.WriteFile(token, []byte("first"), 0o600))
	w := lookAt(t, o.apart(&ledger{}, at(url), func(c *Config) { c.Auth = Auth{Username: "bot", PasswordFile: token} }))
	require.ErrorContains(t, w.look(t.Context()).Err, "does not take the user name and password")
	require.NoError(t, os.WriteFile(token, []byte("second"), 0o600))
	require.Equal(t, sha, w.must().Commit.SHA)
	require.NoError(t, os.Remove(token))
	require.ErrorContains(t, w.look(t.Context()).Err, "cannot read password_file")
}

// script is a process that fetches as somebody else would have it.
func script(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "fetch")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700))
	return file
}

// says is the command that sends one message.
func says(message string) string {
	n := len(message)
	return fmt.Sprintf("printf '\\%03o\\%03o\\%03o\\%03o%s'\n", n>>24&255, n>>16&255, n>>8&255, n&255, message)
}

func TestWhatBecameOfAProcessIsSaidInWords(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hunter2-hunter2\n"), 0o600))
	for name, tt := range map[string]struct{ does, want string }{
		"it is killed":             {"kill -9 $$", "was killed from outside, most likely because this host ran out of memory"},
		"it needs too much memory": {"echo 'fatal error: runtime: out of memory' >&2; exit 2", "needed more than 1 GiB of memory (RLIMIT_DATA)"},
		"its runtime gets none":    {"echo 'SIGSEGV: segmentation violation\nPC=0x435fdd m=7 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0xc15 m=7 [idle]:' >&2; exit 2", "needed more than 1 GiB of memory (RLIMIT_DATA)"},
		"our own code is at fault": {"echo 'panic: runtime error: invalid memory address\n[signal SIGSEGV: segmentation violation]\ngoroutine 7 [running]:' >&2; exit 2", "ended by itself (exit status 2): panic: runtime error"},
		"it writes too much":       {"kill -XFSZ $$", "wrote a file of more than 1 GiB (RLIMIT_FSIZE)"},
		"a call was refused":       {"kill -SYS $$", "made a system call that it may not make"},
		"it panics":                {"echo 'panic: index out of range\n\ngoroutine 1' >&2; exit 2", "ended by itself (exit status 2): panic: index out of range goroutine 1"},
		"it says nothing":          {"exit 3", "ended by itself (exit status 3) without a word"},
		"it gossips":               {says("{}") + "echo my token is hunter2-hunter2 >&2; exit 1", "my token is [secret]"},
		"it sends garbage":         {"echo hello there", "does not answer as it should: a message on the pipe makes no sense"},
		"it sends too much":        {"printf '\\377\\377\\377\\377'; exec cat /dev/zero", "makes no sense: it says it has 4294967295 bytes"},
		"it sends another field":   {says(`{"trust":true}`), "makes no sense: json: unknown field"},
		"it sends two at once":     {says(`{}{}`), "makes no sense: something follows it"},
		"its tip is no id":         {says("{}") + says(`{"tip":"../../etc"}`) + "cat", `makes no sense: "../../etc" is no id`},
	} {
		t.Run(name, func(t *testing.T) {
			f := o.apart(&ledger{}, at("http://127.0.0.1:1/x.git"), func(c *Config) { c.Auth = Auth{PasswordFile: token} })
			f.child.program = script(t, tt.does)
			r := lookAt(t, f).look(t.Context())
			require.ErrorContains(t, r.Err, tt.want)
			require.NotContains(t, r.Err.Error(), "hunter2")
			require.False(t, r.Reached)
			require.Nil(t, f.child.proc, "it is not used again")
		})
	}
}

func TestAProcessThatHangsIsEndedInTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, does := range map[string]string{
		"from the start":          "exec sleep 1000",
		"and hears nothing":       "exec <&-; exec sleep 1000",
		"when it should look":     says("{}") + "exec sleep 1000",
		"within an answer":        says("{}") + "printf '\\000\\000\\000\\377{'; exec sleep 1000",
		"and speaks drop by drop": says("{}") + "printf '\\000\\000\\377\\377'; while :; do printf ' '; sleep 0.01; done",
	} {
		t.Run(name, func(t *testing.T) {
			f := o.apart(&ledger{}, func(c *Config) { c.Limits.Clone = 300 * time.Millisecond })
			f.child.program = script(t, does)
			began := time.Now()
			r := lookAt(t, f).look(t.Context())
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.ErrorContains(t, r.Err, "it took longer than 300ms")
			require.Less(t, time.Since(began), 10*time.Second)
			require.Nil(t, f.child.proc)
		})
	}
}

// hears waits for one question, whatever it asks.
const hears = `head -c "$(head -c 4 | od -An -tu1 | { read a b c d; echo $((a*16777216 + b*65536 + c*256 + d)); })" >/dev/null; `

func TestTheTipOfALyingProcessIsOnlyAClaim(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	good := o.signed("one")
	f := o.apart(a)
	w := lookAt(t, f)
	w.must()
	f.child.rest()
	unsigned := o.commit("two")
	mirror := f.cfg.Dir
	// It acts when it is asked to fetch, not before: the daemon clears the folder first.
	claim := func(sha ring.SHA) string {
		return hears + says("{}") + hears + says(`{"tip":"`+string(sha)+`","bring":true}`) + hears
	}
	stage := f.child.begin.Stage
	name := strings.Repeat("a", 40)
	for does, tt := range map[string]struct{ script, want string }{
		"it brings nothing":       {claim(unsigned) + says("{}") + "cat", "it did not send " + string(unsigned)},
		"it brings a symlink":     {claim(unsigned) + "ln -s /etc/passwd " + stage + "/pack-" + name + ".pack\n" + says("{}") + "cat", "is not a regular file"},
		"it brings a folder":      {claim(unsigned) + "mkdir -p " + stage + "/" + name + "/x\n" + says("{}") + "cat", "is not a regular file"},
		"it brings other files":   {claim(unsigned) + "echo x >" + stage + "/config\n" + says("{}") + "cat", "it did not send"},
		"it says it has an error": {says("{}") + says(`{"fault":{"kind":"wait","says":"429","until":"2999-01-01T00:00:00Z"}}`) + "cat", "answers 429 and asks to wait until"},
	} {
		t.Run(does, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join(mirror, "config"))
			require.NoError(t, err)
			f.child.program = script(t, tt.script)
			r := w.look(t.Context())
			f.child.rest()
			require.ErrorContains(t, r.Err, tt.want)
			require.Equal(t, good, a.anchor.SHA)
			after, err := os.ReadFile(filepath.Join(mirror, "config"))
			require.NoError(t, err)
			require.Equal(t, before, after)
			if wait, ok := errors.AsType[*errWait](r.Err); ok {
				require.Less(t, time.Until(wait.until), maxWait+time.Minute)
			}
		})
	}

	// A commit that somebody put there by hand is judged like any other.
	loose := filepath.Join(o.work, ".git", "objects", string(unsigned[:2]), string(unsigned[2:]))
	f.child.program = script(t, claim(unsigned)+"cp "+loose+" "+stage+"/"+string(unsigned)+"\n"+says("{}")+"cat")
	r := w.must()
	f.child.rest()
	require.Equal(t, ring.Unsigned, r.Refusal.Code)
	require.Equal(t, good, a.anchor.SHA)

	// The same bytes under the name of a commit that nobody has seen.
	wrong := ring.SHA(name)
	f.child.program = script(t, claim(wrong)+"cp "+loose+" "+stage+"/"+name+"\n"+says("{}")+"cat")
	r = w.look(t.Context())
	require.Error(t, r.Err)
	require.Equal(t, good, a.anchor.SHA)
}

func TestAMessageOfThePipeIsReadStrictly(t *testing.T) {
	t.Parallel()
	frame := func(s string) []byte { return append([]byte{0, 0, byte(len(s) >> 8), byte(len(s))}, s...) }
	for name, tt := range map[string]struct {
		bytes []byte
		ok    bool
	}{
		"a tip":           {frame(`{"tip":"x"}`), true},
		"nothing":         {nil, false},
		"half a length":   {[]byte{0, 0}, false},
		"half a message":  {frame(`{"tip":"x"}`)[:8], false},
		"another field":   {frame(`{"tip":"x","accept":true}`), false},
		"not an object":   {frame(`["tip"]`), false},
		"something after": {frame(`{"tip":"x"} {}`), false},
		"another type":    {frame(`{"tip":7}`), false},
		"too long":        {[]byte{0, 1, 0, 0}, false},
	} {
		var got told
		err := readMessage(bytes.NewReader(tt.bytes), &got, 1000)
		require.Equal(t, tt.ok, err == nil, "%s: %v", name, err)
	}
	require.Error(t, writeMessage(io.Discard, told{Tip: strings.Repeat("x", 2000)}, 1000))
}

func TestARemoteThatSendsAConversationOutOfTurnGetsNone(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]question{
		"nothing":             {},
		"a look at the start": {Look: &asked{Ref: "refs/heads/main"}},
		"a fetch at once":     {Fetch: &wanted{}},
	} {
		s := &server{out: io.Discard}
		require.ErrorIs(t, s.answer(q), errMessage, name)
	}
}

// listen takes connections until the test ends.
func listen(t *testing.T, network, addr string) string {
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

const breakOutVerb = "break-out"

// trial is what the process that tries to break out is told.
type trial struct {
	Begin                          beginning
	Unix, Secret, Mirror, Readable string
	Port, OtherPort                string
	Exec                           string
}

// breakOut confines itself and then tries what it may not.
func breakOut() {
	var tr trial
	if err := json.NewDecoder(os.Stdin).Decode(&tr); err != nil {
		panic(err)
	}
	t, err := confine(&tr.Begin)
	if err != nil {
		panic(err)
	}
	out := map[string]string{"confined": strings.Join(t.Confined, ", "), "free": strings.Join(t.Free, ", ")}
	try := func(name string, err error) {
		out[name] = "done"
		if err != nil {
			out[name] = err.Error()
		}
	}
	dial := func(network, addr string) error {
		c, err := (&dialer{idle: time.Second}).dial(context.Background(), network, addr)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	read := func(path string) error { _, err := os.ReadFile(path); return err }
	try("unix socket", dial("unix", tr.Unix))
	try("its port", dial("tcp", tr.Port))
	try("another port", dial("tcp", tr.OtherPort))
	try("a secret", read(tr.Secret))
	try("what it needs", read(tr.Readable))
	try("into the mirror", os.WriteFile(filepath.Join(tr.Mirror, "config"), nil, 0o600))
	try("into its folder", os.WriteFile(filepath.Join(tr.Begin.Stage, "x"), nil, 0o600))
	try("a symlink", os.Symlink("/etc/passwd", filepath.Join(tr.Begin.Stage, "y")))
	_, err = os.StartProcess(tr.Exec, []string{tr.Exec}, &os.ProcAttr{})
	try("a program", err)
	try("more files", syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
	try("root's file", os.Chown(filepath.Join(tr.Begin.Stage, "x"), 1, 1))
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}

// static is this test without cgo, as gitring is built: only then can all threads
// be confined at once. make test builds it so to begin with.
func static(t *testing.T) string {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		self, err := os.Executable()
		require.NoError(t, err)
		return self
	}
	file := filepath.Join(t.TempDir(), "static.test")
	cmd := exec.Command("go", "test", "-c", "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

func TestTheProcessThatFetchesCannotBreakOut(t *testing.T) {
	t.Parallel()
	program := static(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	mirrors := filepath.Join(state, "git")
	tr := trial{
		Unix: filepath.Join(dir, "docker.sock"), Secret: filepath.Join(state, "gitring.db"), Mirror: filepath.Join(mirrors, "prod"),
		Readable: filepath.Join(dir, "repository", "HEAD"), Exec: "/bin/true",
	}
	for _, d := range []string{tr.Mirror, tr.Mirror + incomingEnds, filepath.Dir(tr.Readable)} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	for _, f := range []string{tr.Secret, tr.Readable} {
		require.NoError(t, os.WriteFile(f, []byte("x"), 0o600))
	}
	listen(t, "unix", tr.Unix)
	tr.Port, tr.OtherPort = listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	tr.Begin = beginning{Stage: tr.Mirror + incomingEnds, Mirrors: mirrors, Memory: 1 << 30, Target: 768 << 20, File: 1 << 30, Open: 256}

	attempt := func(t *testing.T) map[string]string {
		in, err := json.Marshal(tr)
		require.NoError(t, err)
		cmd := exec.Command(program, breakOutVerb)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		var got map[string]string
		require.NoError(t, json.Unmarshal(out, &got))
		return got
	}
	t.Run("of a network", func(t *testing.T) {
		tr.Begin.Scheme, tr.Begin.Host, tr.Begin.Path = "http", "127.0.0.1", "/x"
		_, tr.Begin.Port, _ = strings.Cut(tr.Port, ":")
		got := attempt(t)
		require.Contains(t, got["confined"], "system calls")
		require.Contains(t, got["unix socket"], "operation not permitted")
		require.Contains(t, got["a program"], "operation not permitted")
		require.Contains(t, got["a symlink"], "operation not permitted")
		require.Equal(t, "done", got["its port"])
		require.Equal(t, "done", got["into its folder"])
		if os.Getuid() == 0 {
			require.Contains(t, got["more files"], "operation not permitted")
			require.Contains(t, got["root's file"], "operation not permitted")
		}
		if strings.Contains(got["free"], "files and ports") {
			t.Skipf("this kernel has no Landlock: %s", got["free"])
		}
		for _, what := range []string{"a secret", "what it needs", "into the mirror"} {
			require.Contains(t, got[what], "permission denied", what)
		}
		require.Contains(t, got["another port"], "permission denied")
	})
	t.Run("of a folder", func(t *testing.T) {
		tr.Begin.Scheme, tr.Begin.Host, tr.Begin.Path = "file", "", filepath.Dir(tr.Readable)
		got := attempt(t)
		for _, what := range []string{"unix socket", "its port", "another port", "a program"} {
			require.Contains(t, got[what], "operation not permitted", what)
		}
		require.Equal(t, "done", got["what it needs"])
		if strings.Contains(got["free"], "files and ports") {
			t.Skipf("this kernel has no Landlock: %s", got["free"])
		}
		require.Contains(t, got["a secret"], "permission denied")
		require.Contains(t, got["into the mirror"], "permission denied")
	})
}

func TestHowFetchingIsConfinedIsToldOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	f := o.apart(&ledger{})
	var log bytes.Buffer
	f.child.log = slog.New(slog.NewTextHandler(&log, nil))
	w := lookAt(t, f)
	w.must()
	f.child.rest()
	w.must()
	require.Equal(t, 1, strings.Count(log.String(), "confined the process that fetches"))
	require.Contains(t, log.String(), "limits, no new privileges, ")
}
