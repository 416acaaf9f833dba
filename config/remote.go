package config

import (
	"net"
	"net/url"
	"strings"
)

// remote is what the address of a repository tells.
type remote struct {
	scheme string // "" when the address is no good
	host   string // without the port
}

// remote judges the address of a source.
func (k *checker) remote(at string, s *SourceConfig) remote {
	at += ".url"
	if s.URL == "" {
		k.wrong(at, "url: https://…, ssh://… or file:///…", "source %q has no url", s.Name)
		return remote{}
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme == "" {
		k.wrong(at, sshHint(s.URL), "url: %q is no url", withoutUser(s.URL))
		return remote{}
	}
	if _, secret := u.User.Password(); secret {
		k.wrong(at, "put it into a file and name that as auth.password_file", "url: a password does not belong here")
		return remote{}
	}
	r := remote{scheme: u.Scheme, host: u.Hostname()}
	switch u.Scheme {
	case "https", "ssh":
		if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
			k.wrong(at, "such as https://git.example.org/acme/infra.git", "url: %q names no repository", s.URL)
		}
	case "http":
		if !loopback(u.Hostname()) {
			k.wrong(at, "use https; http is for loopback addresses only", "url: http to %s would send credentials in the clear", u.Host)
		}
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			k.wrong(at, "three slashes: file:///srv/git/infra.git", "url: %q is no absolute path", s.URL)
		}
	default:
		k.wrong(at, "https, ssh or file", "url: %s is not a way to fetch", u.Scheme)
		return remote{}
	}
	return r
}

// sshHint turns git@host:path, which is no url, into one.
func sshHint(s string) string {
	host, path, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(host, "/") || path == "" {
		return "https://…, ssh://… or file:///…"
	}
	return "write ssh://" + WithoutSecret(host) + "/" + strings.TrimPrefix(path, "/")
}

// withoutUser keeps what stands before an @ out of messages.
func withoutUser(s string) string {
	if i := strings.LastIndex(s, "@"); i >= 0 {
		return s[i+1:]
	}
	return s
}

// WithoutSecret is the user and host of an address without its password.
func WithoutSecret(userHost string) string {
	user, host, ok := strings.Cut(userHost, "@")
	if !ok || strings.Contains(user, ":") {
		return withoutUser(userHost)
	}
	return user + "@" + host
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (k *checker) auth(at string, a *AuthConfig, r remote) {
	k.path(at+".password_file", &a.PasswordFile)
	k.path(at+".ssh_key_file", &a.SSHKeyFile)
	k.path(at+".known_hosts_file", &a.KnownHostsFile)
	switch r.scheme {
	case "ssh":
		if a.SSHKeyFile == "" {
			k.wrong(at, "auth: {ssh_key_file: …, known_hosts_file: …}", "auth.ssh_key_file is missing: ssh needs a key")
		}
		if a.KnownHostsFile == "" {
			k.wrong(at, "ssh-keyscan "+r.host+" shows its keys; check them before you keep them", "auth.known_hosts_file is missing: an unknown host is never trusted")
		}
		k.unused(at+".password_file", a.PasswordFile, "ssh uses ssh_key_file")
	case "https", "http":
		k.unused(at+".ssh_key_file", a.SSHKeyFile, "https uses username and password_file")
		k.unused(at+".known_hosts_file", a.KnownHostsFile, "https uses username and password_file")
		if a.Username != "" && a.PasswordFile == "" {
			k.wrong(at+".username", "add password_file, or take username out", "auth.username does nothing without a password_file")
		}
	case "file":
		for _, f := range [][2]string{{".username", a.Username}, {".password_file", a.PasswordFile}, {".ssh_key_file", a.SSHKeyFile}, {".known_hosts_file", a.KnownHostsFile}} {
			k.unused(at+f[0], f[1], "a file url needs no credentials")
		}
	}
}

func (k *checker) unused(at, value, hint string) {
	if value != "" {
		k.wrong(at, hint, "%s does nothing for this url", keyOf(at))
	}
}
