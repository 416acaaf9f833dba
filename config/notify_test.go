package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/notify"
)

func TestReceiversAreReadWithTheirDefaults(t *testing.T) {
	c, err := Parse("/etc/gitring/config.yaml", []byte(smallConfig+`notify:
  - {url_file: slack-url}
  - name: hook
    webhook: {url_file: /u, secret_file: "${CREDENTIALS_DIRECTORY}/s", allow_private: true}
    events: ["rollout.*", job.failed]
    apps: [web]
  - otlp: {url_file: otlp-url}
`), env("CREDENTIALS_DIRECTORY", "/run/credentials"))
	require.NoError(t, err)
	require.Equal(t, []notify.Receiver{
		{Name: "1", URLFile: "/etc/gitring/slack-url"},
		{
			Name: "hook", Events: []string{"rollout.*", "job.failed"}, Apps: []string{"web"},
			Hook: &notify.Hook{URLFile: "/u", SecretFile: "/run/credentials/s", AllowPrivate: true},
		},
		{Name: "3", OTLP: &notify.OTLP{URLFile: "/etc/gitring/otlp-url"}},
	}, c.Receivers())
}

func TestAMistakeOfAReceiverIsToldWithItsLine(t *testing.T) {
	for says, tc := range map[string]struct{ yaml, hint string }{
		`c.yaml:7: unknown key "url_fil"`:                                                     {"- {url_fil: u}", `did you mean "url_file"?`},
		`c.yaml:7: unknown key "secret"`:                                                      {"- webhook: {url_file: u, secret: s}", "secret_file"},
		`c.yaml:7: this receiver has neither url_file nor webhook`:                            {"- {name: a}", "slack://"},
		`c.yaml:7: this receiver has url_file and webhook`:                                    {"- {url_file: u, webhook: {url_file: u, secret_file: s}}", "for a chat"},
		`c.yaml:7: webhook.secret_file is missing`:                                            {"- {webhook: {url_file: u}}", "urandom"},
		`c.yaml:7: webhook.url_file is missing`:                                               {"- {webhook: {secret_file: u}}", "https://"},
		`c.yaml:8: name: "a" is taken by the receiver in line 7`:                              {"- {name: a, url_file: u}\n  - {name: a, url_file: u}", "of its own"},
		`c.yaml:7: name: "A b" is no name for a receiver`:                                     {"- {name: A b, url_file: u}", "lower-case"},
		`c.yaml:7: events: "rollout.fialed" is no event; a pattern is such as rollout.* or *`: {"- {url_file: u, events: [rollout.fialed]}", `did you mean "rollout.failed"?`},
		`c.yaml:7: apps: "../web" is no name of an app`:                                       {"- {url_file: u, apps: [../web]}", ""},
		`c.yaml:7: template: does nothing for a web hook`:                                     {"- {webhook: {url_file: u, secret_file: s}, template: x}", ""},
		`c.yaml:7: otlp.url_file is missing`:                                                  {"- {otlp: {}}", "4318"},
		`c.yaml:7: this receiver has otlp and something else`:                                 {"- {otlp: {url_file: u}, url_file: u}", "of its own"},
		`c.yaml:7: events: does nothing for otlp`:                                             {"- {otlp: {url_file: u}, events: [rollout.failed]}", ""},
		`c.yaml:7: template: does nothing for otlp`:                                           {"- {otlp: {url_file: u}, template: x}", ""},
		`c.yaml:7: "many" where a list belongs`:                                               {"- {url_file: u, events: many}", ""},
		`c.yaml:7: template: template:1: function "readFile" not defined`:                     {"- {url_file: u, template: '{{readFile .Host}}'}", "notifications.md"},
	} {
		_, err := Parse("c.yaml", []byte(smallConfig+"notify:\n  "+tc.yaml+"\n"), env())
		var ms Mistakes
		require.ErrorAs(t, err, &ms, says)
		require.Equal(t, says, ms[0].Error())
		require.Contains(t, ms[0].Hint, tc.hint, says)
	}
	_, err := Parse("c.yaml", []byte(smallConfig+"notify:\n  - {url_file: u, template: '{{.Nothing}}'}\n"), env())
	require.ErrorContains(t, err, "Nothing")
}

func TestTheReferenceListsWhatAChatHears(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/configuration.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(page), "### What a chat hears\n")
	require.True(t, found)
	_, list, _ = strings.Cut(list, "these:\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var named []string
	for i, word := range strings.Split(list, "`") {
		if i%2 == 1 {
			named = append(named, word)
		}
	}
	require.ElementsMatch(t, notify.ChatEvents, named)
}
