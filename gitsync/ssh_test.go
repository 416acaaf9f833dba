package gitsync

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sshServer is a real sshd on a loopback port with its own host key.
type sshServer struct {
	addr, host, port string
	known            string // known_hosts with its key
	key              string // private key it lets in
}

func startSSHD(t *testing.T) *sshServer {
	t.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		t.Skip("needs /usr/sbin/sshd (openssh-server)")
	}
	dir := t.TempDir()
	s := &sshServer{known: filepath.Join(dir, "known_hosts"), key: filepath.Join(dir, "deploy")}
	hostLine := newKey(t, filepath.Join(dir, "host"))
	newKey(t, s.key)
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	for range 5 {
		if s.listens(t, sshd, dir) {
			require.NoError(t, os.WriteFile(s.known, fmt.Appendf(nil, "[%s]:%s %s", s.host, s.port, hostLine), 0o600))
			return s
		}
	}
	require.Fail(t, "sshd does not answer")
	return nil
}

// listens starts the server on a port that was free a moment ago, and reports whether
// it answers: another program may have taken the port meanwhile. It drops none of the
// connections of a test, however many wait, and none of those that are slow.
func (s *sshServer) listens(t *testing.T, sshd, dir string) bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	s.host, s.port, _ = net.SplitHostPort(s.addr)
	require.NoError(t, l.Close())
	config := fmt.Sprintf(`Port %s
ListenAddress %s
HostKey %s/host
PidFile none
AuthorizedKeysFile %s.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
LogLevel ERROR
MaxStartups 1000
LoginGraceTime 600
`, s.port, s.host, dir, s.key)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(config), 0o600))
	cmd := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		if c, err := net.Dial("tcp", s.addr); err == nil {
			greeting := make([]byte, 4) // "SSH-": another program says something else
			_, err = io.ReadFull(c, greeting)
			_ = c.Close()
			if err == nil && string(greeting) == "SSH-" {
				return true
			}
		}
		select {
		case <-ended:
			t.Logf("sshd ended: %s", &log)
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

func (s *sshServer) follow(path string) func(*Config) {
	return func(c *Config) {
		c.URL = "ssh://root@" + s.addr + path
		c.Auth = Auth{SSHKeyFile: s.key, KnownHostsFile: s.known}
	}
}

func TestAnSSHRemoteIsFollowedWithARealServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: sshd logs root in")
	}
	s := startSSHD(t)
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	f := o.follow(a, s.follow(o.bare))
	w := lookAt(t, f)

	t.Run("clone, update and the look at nothing new", func(t *testing.T) {
		require.Equal(t, sha, w.must().Commit.SHA)
		o.commit("two", "-S")
		sha = o.signed("three")
		require.Equal(t, sha, w.must().Commit.SHA)
		require.Equal(t, sha, w.must().Commit.SHA)
	})
	t.Run("a path with a quote is one word", func(t *testing.T) {
		odd := filepath.Join(filepath.Dir(o.bare), "it's; touch pwned!.git")
		o.git("", "clone", "-q", "--bare", o.bare, odd)
		f := o.follow(&ledger{}, s.follow(strings.ReplaceAll(strings.ReplaceAll(odd, " ", "%20"), ";", "%3B")))
		require.Equal(t, sha, lookAt(t, f).must().Commit.SHA)
		require.NoFileExists(t, "/root/pwned!.git")
	})
	t.Run("an empty remote and a missing branch", func(t *testing.T) {
		empty := filepath.Join(filepath.Dir(o.bare), "empty.git")
		o.git("", "init", "-q", "--bare", empty)
		require.Equal(t, "RefMissing: the remote has no branch at all; push a signed commit to it (git push origin main), or name another branch in the configuration", lookAt(t, o.follow(&ledger{}, s.follow(empty))).must().Reason)
		r := lookAt(t, o.follow(&ledger{}, s.follow(o.bare), func(c *Config) { c.Branch = "dev" })).must()
		require.Equal(t, "RefMissing: the remote has no branch dev; push a signed commit to it (git push origin dev), or name another branch in the configuration", r.Reason)
	})
	t.Run("a repository that is not there", func(t *testing.T) {
		r := lookAt(t, o.follow(&ledger{}, s.follow("/nowhere.git"))).look(t.Context())
		require.ErrorContains(t, r.Err, "the remote says: fatal: '/nowhere.git' does not appear to be a git repository")
	})
	t.Run("a host key that changed", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "known_hosts")
		require.NoError(t, os.WriteFile(other, fmt.Appendf(nil, "[%s]:%s %s", s.host, s.port, newKey(t, other+".key")), 0o600))
		r := lookAt(t, o.follow(&ledger{}, s.follow(o.bare), func(c *Config) { c.Auth.KnownHostsFile = other })).look(t.Context())
		require.ErrorContains(t, r.Err, "the host key of "+s.addr+" is not the one in")
	})
	t.Run("a host that is not known", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "known_hosts")
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		r := lookAt(t, o.follow(&ledger{}, s.follow(o.bare), func(c *Config) { c.Auth.KnownHostsFile = other })).look(t.Context())
		require.ErrorContains(t, r.Err, "has no line in "+other)
	})
	t.Run("a key that is not let in", func(t *testing.T) {
		key := filepath.Join(t.TempDir(), "stranger")
		newKey(t, key)
		r := lookAt(t, o.follow(&ledger{}, s.follow(o.bare), func(c *Config) { c.Auth.SSHKeyFile = key })).look(t.Context())
		require.ErrorContains(t, r.Err, "does not take the key of "+key+" for user root")
	})
	t.Run("a key file that is gone", func(t *testing.T) {
		r := lookAt(t, o.follow(&ledger{}, s.follow(o.bare), func(c *Config) { c.Auth.SSHKeyFile = s.key + ".gone" })).look(t.Context())
		require.ErrorContains(t, r.Err, "cannot read ssh_key_file")
	})
	t.Run("an object the server will not send", func(t *testing.T) {
		o.git(o.work, "checkout", "-q", "--orphan", "fresh")
		o.signed("fresh")
		o.git(o.bare, "reflog", "expire", "--expire=now", "--all")
		o.git(o.bare, "gc", "-q", "--prune=now")
		r := lookAt(t, o.follow(a, s.follow(o.bare))).must()
		require.EqualValues(t, "AnchorUnavailable", r.Refusal.Code)
	})
}

func TestADeadSSHServerIsGivenUpAfterItsIdleTime(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	known := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(known, nil, 0o600))
	for name, beginning := range map[string]string{
		"it never says a word":                "",
		"it dies within the handshake":        "SSH-2.0-OpenSSH_9.2\r\n",
		"it dies within the version exchange": "SSH-2.0-",
	} {
		t.Run(name, func(t *testing.T) {
			f := o.follow(&ledger{}, func(c *Config) {
				c.URL = "ssh://git@" + deaf(t, beginning) + "/x.git"
				c.Auth = Auth{SSHKeyFile: o.key, KnownHostsFile: known}
				c.Limits.Idle = 200 * time.Millisecond
			})
			began := time.Now()
			r := lookAt(t, f).look(t.Context())
			require.Error(t, r.Err)
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

func TestARemoteThatFailsIsToldInWords(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	known := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(known, nil, 0o600))
	for _, x := range []struct{ scheme, says, want string }{
		{"ssh://git@", "", "ended the connection before it let us in"},
		{"ssh://git@", "SSH-2.0-OpenSSH_9.2\r\n", "ended the connection before it let us in"},
		{"http://", "", "the remote closed the connection without an answer"},
		{"http://", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n001e# service=git-upload-pack\n0000", "the remote closed the connection in the middle of its answer"},
	} {
		t.Run(x.scheme+x.says, func(t *testing.T) {
			r := lookAt(t, o.follow(&ledger{}, func(c *Config) {
				c.URL = x.scheme + hangsUp(t, x.says) + "/x.git"
				if strings.HasPrefix(x.scheme, "ssh") {
					c.Auth = Auth{SSHKeyFile: o.key, KnownHostsFile: known}
				}
			})).look(t.Context())
			require.ErrorContains(t, r.Err, x.want)
			require.NotContains(t, r.Err.Error(), "EOF")
		})
	}
}

// hangsUp takes connections, writes a beginning and closes them.
func hangsUp(t *testing.T, beginning string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = fmt.Fprint(c, beginning)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestAnSSHLookEndsWithItsContextInsideTheHandshake(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	known := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(known, nil, 0o600))
	f := o.follow(&ledger{}, func(c *Config) {
		c.URL = "ssh://git@" + deaf(t, "") + "/x.git"
		c.Auth = Auth{SSHKeyFile: o.key, KnownHostsFile: known}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := f.remote.look(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second, "the idle time is 30 s: the context did not end it")
}
