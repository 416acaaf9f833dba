package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// aHost is a name that a request may be for.
var aHost = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// listenAPI judges the listener for people and programs. Beyond loopback nothing is served
// plain by mistake.
func (k *checker) listenAPI(c *Config) {
	l := c.Listen.API
	if l == nil {
		return
	}
	const at = "listen.api"
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil || port == "" || port == "0" {
		k.wrong(at+".address", "write 127.0.0.1:9481", "listen.api.address: %q is not host:port", l.Address)
		return
	}
	if c.API.Tokens == "" {
		k.wrong(at, "api: {tokens: /etc/gitring/tokens}", "listen.api: nobody could sign in, because api.tokens is missing")
	}
	if sameAddress(l.Address, c.Listen.HTTP) {
		k.wrong(at+".address", "give each an address of its own", "listen.api.address: %s is taken by listen.http", l.Address)
	}
	k.listenAPIURL(at, l)
	if l.TLS != nil {
		if l.TLS.CertFile == "" || l.TLS.KeyFile == "" {
			k.wrong(at+".tls", "tls: {cert_file: …, key_file: …}", "listen.api.tls: a certificate and its key are two files")
		}
		k.path(at+".tls.cert_file", &l.TLS.CertFile)
		k.path(at+".tls.key_file", &l.TLS.KeyFile)
		if l.Plain {
			k.wrong(at+".plain", "take one of them out", "listen.api: plain and tls exclude each other")
		}
	}
	for _, name := range l.Hosts {
		if _, err := netip.ParseAddr(name); err != nil && !aHost.MatchString(name) {
			k.wrong(at+".hosts", "edge-1.example.org, without a scheme and a port", "listen.api.hosts: %q is no name of a host", name)
		}
	}
	if isLoopback(host) {
		return
	}
	if l.TLS == nil && !l.Plain {
		k.wrong(at+".address", "add tls, or plain: true behind a tailnet, WireGuard or a proxy that ends TLS",
			"listen.api: %s is not of this host alone, and would be plain HTTP", l.Address)
	}
	if l.URL == "" {
		k.wrong(at, "url: https://edge-1.example.org", "listen.api: %s is not of this host alone, and url is missing", l.Address)
	}
}

func (k *checker) listenAPIURL(at string, l *ListenAPI) {
	if l.URL == "" {
		return
	}
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		k.wrong(at+".url", "such as https://edge-1.example.org", "listen.api.url: %q is no address of the web, without path and query", withoutUser(l.URL))
		return
	}
	l.URL = strings.TrimRight(l.URL, "/")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// sameAddress reports whether two listeners would take one port of one address.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB {
		return false
	}
	every := func(host string) bool {
		ip, err := netip.ParseAddr(host)
		return host == "" || err == nil && ip.IsUnspecified()
	}
	return hostA == hostB || every(hostA) || every(hostB) || isLoopback(hostA) && isLoopback(hostB)
}
