package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReportGoesOverNothingPlainByMistake(t *testing.T) {
	const base = "host: edge-1\nsources: [{name: prod, url: 'file:///srv/git', trust: {mode: disabled}}]\n"
	for report, says := range map[string]string{
		"{url: https://hub.example.org, token_file: t}":                             "",
		"{url: https://hub.example.org:9482/, token_file: t}":                       "",
		"{url: http://127.0.0.1:9482, token_file: t}":                               "",
		"{url: 'http://[::1]:9482', token_file: t}":                                 "",
		"{url: http://hub.tailnet, token_file: t, plain: true}":                     "",
		"{url: http://hub.example.org, token_file: t}":                              "would show the token",
		"{url: http://127.0.0.1.example.org, token_file: t}":                        "would show the token",
		"{url: https://hub.example.org, token_file: t, plain: true}":                "the url is https",
		"{url: https://hub.example.org}":                                            "report.token_file is missing",
		"{token_file: t}":                                                           "report.url is missing",
		"{url: ftp://hub.example.org, token_file: t}":                               "no address of a hub",
		"{url: https://user:secret@hub.example.org, token_file: t}":                 "no address of a hub",
		"{url: https://hub.example.org/x, token_file: t}":                           "no address of a hub",
		"{url: 'https://hub.example.org/?a=b', token_file: t}":                      "no address of a hub",
		"{url: https://hub.example.org, token_file: t, insecure_skip_verify: true}": "unknown key",
	} {
		c, err := Parse("/etc/gitring/config.yaml", []byte(base+"report: "+report+"\n"), func(string) string { return "" })
		if says == "" {
			require.NoError(t, err, report)
			require.Equal(t, "/etc/gitring/t", c.Report.TokenFile)
			continue
		}
		require.ErrorContains(t, err, says, report)
		require.NotContains(t, err.Error(), "secret", "a password is in no sentence")
		require.Contains(t, err.Error(), ":3:", "it has its line")
	}
}

func TestAFileOfAHubIsToldFromThatOfADaemon(t *testing.T) {
	dir := t.TempDir()
	for text, says := range map[string]string{
		"listen: {api: {address: 127.0.0.1:9482}}\napi: {tokens: /t}\n":            "",
		"state: /s\nlisten: {api: {address: 127.0.0.1:9482}}\napi: {tokens: /t}\n": "",
		"listen: {api: {address: 127.0.0.1:9482}}\n":                               "api.tokens is missing",
		"api: {tokens: /t}\n": "listen.api is missing",
		"listen: {api: {address: '0.0.0.0:9482', url: 'https://hub.example.org'}}\napi: {tokens: /t}": "would be plain HTTP",
		"listen: {api: {address: '0.0.0.0:9482', plain: true}}\napi: {tokens: /t}":                    "url is missing",
		"listen: {http: '127.0.0.1:1', api: {address: 127.0.0.1:9482}}\napi: {tokens: /t}":            "unknown key \"http\"",
	} {
		file := filepath.Join(dir, "hub.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.True(t, IsHub(file), text)
		h, err := LoadHub(file)
		if says == "" {
			require.NoError(t, err, text)
			require.Equal(t, "/t", h.API.Tokens)
			require.NotEmpty(t, h.State)
			continue
		}
		require.ErrorContains(t, err, says, text)
	}
	for _, text := range []string{"host: edge-1\nlisten: {api: {address: a}}\n", "sources: []\n", "", "- a\n", "{"} {
		file := filepath.Join(dir, "config.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.False(t, IsHub(file), text)
	}
	_, err := LoadHub(filepath.Join(dir, "none.yaml"))
	require.ErrorContains(t, err, "cannot read the hub's configuration")
}
