package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListenerForPeopleIsJudged(t *testing.T) {
	with := func(listen, more string) error {
		_, err := Parse("c.yaml", []byte("listen: {"+listen+"}\n"+more+smallConfig), env())
		return err
	}
	const tokens = "api: {tokens: tokens}\n"
	for _, ok := range []string{
		"api: {address: '127.0.0.1:9481'}", "api: {address: 'localhost:9481'}", "api: {address: '[::1]:9481', url: 'http://localhost:9481/'}",
		"api: {address: '0.0.0.0:443', url: 'https://edge-1.example.org', tls: {cert_file: c, key_file: k}, hosts: [edge-1, 10.0.0.7, 'fd00::7']}",
		"api: {address: '100.64.0.7:9481', url: 'http://edge-1:9481', plain: true}", "api: {address: ':9481', url: 'http://edge-1:9481', plain: true}",
	} {
		require.NoError(t, with(ok, tokens), ok)
	}
	for listen, says := range map[string]string{
		"api: {}":                                               `listen.api.address: "" is not host:port`,
		"api: {address: '127.0.0.1'}":                           `is not host:port`,
		"api: {address: '127.0.0.1:0'}":                         `is not host:port`,
		"api: {address: '127.0.0.1:9480'}":                      "127.0.0.1:9480 is taken by listen.http",
		"api: {address: 'localhost:9480'}":                      "is taken by listen.http",
		"http: ':9481', api: {address: '127.0.0.1:9481'}":       "is taken by listen.http",
		"api: {address: '0.0.0.0:9481'}":                        "is not of this host alone, and would be plain HTTP\nc.yaml:1: listen.api: 0.0.0.0:9481 is not of this host alone, and url is missing",
		"api: {address: ':9481', url: 'http://edge-1'}":         "would be plain HTTP",
		"api: {address: 'edge-1:9481', plain: true}":            "url is missing",
		"api: {address: '127.0.0.1:9481', tls: {cert_file: c}}": "a certificate and its key are two files",
		"api: {address: '127.0.0.1:9481', url: 'ssh://edge-1'}": "is no address of the web",
		"api: {adress: x}":                                      `unknown key "adress"`,

		"api: {address: '127.0.0.1:9481', plain: true, tls: {cert_file: c, key_file: k}}": "plain and tls exclude each other",
		"api: {address: '127.0.0.1:9481', url: 'https://me:hunter2@edge-1'}":              "is no address of the web",
		"api: {address: '127.0.0.1:9481', url: 'https://edge-1/gitring'}":                 "is no address of the web, without path",
		"api: {address: '127.0.0.1:9481', hosts: ['https://edge-1']}":                     "is no name of a host",
	} {
		err := with(listen, tokens)
		require.ErrorContains(t, err, says, listen)
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.EqualError(t, with("api: {address: '127.0.0.1:9481'}", ""), "c.yaml:1: listen.api: nobody could sign in, because api.tokens is missing")
	c, err := Parse("/etc/gitring/c.yaml", []byte("listen: {api: {address: '127.0.0.1:9481', url: 'http://edge-1/', tls: {cert_file: c, key_file: k}}}\n"+tokens+smallConfig), env())
	require.NoError(t, err)
	require.Equal(t, "/etc/gitring/tokens", c.API.Tokens)
	require.Equal(t, &ListenAPI{Address: "127.0.0.1:9481", URL: "http://edge-1", TLS: &ListenTLS{"/etc/gitring/c", "/etc/gitring/k"}}, c.Listen.API)
	c, err = Parse("c.yaml", []byte(smallConfig), env())
	require.NoError(t, err)
	require.Nil(t, c.Listen.API, "nothing listens where nobody says so")
}
