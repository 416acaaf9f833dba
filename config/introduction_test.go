package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestWhereTrustBeginsIsReadInBothForms(t *testing.T) {
	const sha = "0123456789012345678901234567890123456789" // digits alone are no number
	read := func(trust string) (*Config, error) {
		return Parse("c.yaml", []byte("host: edge-1\nsources:\n  - name: prod\n    url: file:///x\n    trust:\n      allowed_signers: /s\n"+trust), env())
	}
	for trust, want := range map[string]Introduction{
		"":                                  {},
		"      introduction: " + sha + "\n": {Commit: sha},
		"      introduction: {commit: " + sha + ", signer: alice@example.org}\n":                {Commit: sha, Signer: "alice@example.org"},
		"      introduction:\n        signer: alice@example.org\n        commit: " + sha + "\n": {Commit: sha, Signer: "alice@example.org"},
		"      introduction: {commit: " + sha + "}\n":                                           {Commit: sha},
	} {
		c, err := read(trust)
		require.NoError(t, err, trust)
		require.Equal(t, want, c.Sources[0].Trust.Introduction, trust)
		got := c.Sources[0].Trust.TrustConfig()
		require.Equal(t, []string{want.Commit, want.Signer}, []string{string(got.Introduction), got.IntroductionSigner})
	}
	for trust, want := range map[string]string{
		"      introduction: abc\n":                                                    `c.yaml:7: trust.introduction: "abc" is no full commit id`,
		"      introduction: [a]\n":                                                    "c.yaml:7: a list where a commit id or {commit, signer} belongs",
		"      introduction: {signer: alice}\n":                                        "c.yaml:7: trust.introduction has no commit",
		"      introduction: {commit: abc}\n":                                          `c.yaml:7: trust.introduction: "abc" is no full commit id`,
		"      introduction: {commit: [a]}\n":                                          "c.yaml:7: introduction.commit is no text",
		"      introduction:\n        comit: " + sha + "\n":                            `c.yaml:8: unknown key "comit"`,
		"      introduction: {commit: " + sha + ", commit: " + sha + "}\n":             `c.yaml:7: key "commit" is given twice`,
		"      trust_version: -1\n":                                                    "c.yaml:7: trust.trust_version: -1 is less than none",
		"      trust_version: seven\n":                                                 `c.yaml:7: "seven" where a number belongs`,
		"      require_introduction: perhaps\n":                                        `c.yaml:7: "perhaps" where true or false belongs`,
		"      mode: disabled\n      introduction: {commit: " + sha + ", signer: a}\n": "c.yaml:8: trust.introduction names a signer",
	} {
		_, err := read(trust)
		require.ErrorContains(t, err, want, trust)
		require.NotContains(t, err.Error(), "config.", trust)
	}
	c, err := read("      trust_version: 7\n      require_introduction: true\n")
	require.NoError(t, err)
	got := c.Sources[0].Trust.TrustConfig()
	require.Equal(t, []any{7, true, ring.SHA("")}, []any{got.Version, got.RequireIntroduction, got.Introduction})
	var ms Mistakes
	_, err = read("      introduction: {comit: x}\n")
	require.ErrorAs(t, err, &ms)
	require.True(t, strings.Contains(ms[0].Hint, `"commit"`), ms[0].Hint)
}
