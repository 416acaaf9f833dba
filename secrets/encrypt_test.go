package secrets

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

var writtenAt = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// What gitring encrypts the real sops opens, for each kind of key by itself.
func TestWhatIsEncryptedSOPSOpens(t *testing.T) {
	b := newBench(t)
	public, err := ParsePublicKeys("keys.asc", b.must("gpg", "--batch", "--armor", "--export"))
	require.NoError(t, err)
	opened := 0
	for _, form := range forms {
		for _, kind := range b.kinds {
			t.Run(string(form)+"/"+kind.name, func(t *testing.T) {
				list := map[string]string{"--age": "age", "--pgp": "pgp"}[kind.flag]
				rule, err := RuleFor([]byte(fmt.Sprintf("creation_rules: [{%s: %q}]", list, kind.recipient)), "a")
				require.NoError(t, err)
				body, err := Encrypt(form, []byte(plains[form]), rule, public, writtenAt, true)
				require.NoError(t, err)
				is, ok := FormOf(body)
				require.True(t, ok)
				require.Equal(t, form, is)
				f, err := Read(body)
				require.NoError(t, err)
				got, err := f.Open(kind.keys)
				require.NoError(t, err)
				b.requireSame(form, body, got)

				// The same values as in the plain file, by what sops itself makes of that.
				want, err := b.decrypt(form, into(form), b.encrypt(form, plains[form], "--age", b.kinds[0].recipient))
				require.NoError(t, err)
				have, err := b.decrypt(form, into(form), body)
				require.NoError(t, err)
				require.Equal(t, string(want), string(have))
				opened++
			})
		}
	}
	require.Equal(t, 25, opened)
}

// into is a form that shows all values of another in their order.
func into(f Form) Form {
	if f == Binary {
		return Binary
	}
	return JSON
}

func TestARuleSaysWhatIsEncryptedAsSOPSDoes(t *testing.T) {
	b := newBench(t)
	for _, says := range []string{
		"mac_only_encrypted: true, encrypted_regex: ^(pass|PASS|port)", "unencrypted_regex: ^(port|list|QUOTED)$", "encrypted_suffix: word", "unencrypted_suffix: ORD",
	} {
		for _, form := range []Form{YAML, JSON, Env, INI} {
			rule, err := RuleFor([]byte(fmt.Sprintf("creation_rules: [{age: %s, %s}]", b.kinds[0].recipient, says)), "a")
			require.NoError(t, err)
			ours, err := Encrypt(form, []byte(plains[form]), rule, nil, writtenAt, true)
			require.NoError(t, err)
			_, err = b.decrypt(form, into(form), ours)
			require.NoError(t, err, says)
			require.Equal(t, shape(string(b.encryptBy(form, says))), shape(string(ours)), says)
		}
	}
}

var sealedAnyhow = regexp.MustCompile(`ENC\[AES256_GCM,[^\]]*type:(\w+)\]`)

// shape are the lines of a file's values, with the type for each that is encrypted.
func shape(text string) (lines []string) {
	for line := range strings.SplitSeq(sealedAnyhow.ReplaceAllString(text, "<$1>"), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "sops") || strings.HasPrefix(line, "\"sops") || strings.HasPrefix(line, "[sops]") {
			break
		}
		// Comments are left out, and with them what stands behind a value.
		line, _, _ = strings.Cut(line, " #")
		if line != "" && line[0] != '#' && line[0] != ';' {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}

func TestTheFirstRuleThatMatchesCounts(t *testing.T) {
	const config = `
stores: {yaml: {indent: 2}}
creation_rules:
    - path_regex: ^apps/kms/
      kms: arn:aws:kms:x
    - path_regex: \.env$
      age: age1a, age1b,
      encrypted_regex: ^PW
    - path_regex: ^groups/
      key_groups: [{age: [age1c], pgp: [ABCD]}]
    - path_regex: ^shamir/
      key_groups: [{age: [age1c]}, {age: [age1d]}]
    - path_regex: ^comments/
      age: age1c
      encrypted_comment_regex: secret
    - path_regex: ^nobody/
      encrypted_suffix: x
    - age: [age1e, "ssh-ed25519 AAAA"]
      pgp: "FFFF,EEEE"
      mac_only_encrypted: true
`
	r, err := RuleFor([]byte(config), "apps/web/.env")
	require.NoError(t, err)
	require.Equal(t, []string{"age1a", "age1b"}, r.Age)
	require.True(t, r.choice.encrypts([]string{"PW_1"}))
	require.False(t, r.choice.encrypts([]string{"A"}))
	r, err = RuleFor([]byte(config), "groups/x.yaml")
	require.NoError(t, err)
	require.Equal(t, []string{"age1c"}, r.Age)
	require.Equal(t, []string{"ABCD"}, r.OpenPGP)
	r, err = RuleFor([]byte(config), "other")
	require.NoError(t, err)
	require.Equal(t, Rule{Age: []string{"age1e", "ssh-ed25519 AAAA"}, OpenPGP: []string{"FFFF", "EEEE"}, onlySealed: true}, r)
	for path, says := range map[string]string{
		"apps/kms/a": "has kms, which", "shamir/a": "several key_groups", "comments/a": "chosen by comments", "nobody/a": "names no recipient",
	} {
		_, err := RuleFor([]byte(config), path)
		require.Contains(t, requireCode(t, "SecretForm", err).Says, says)
	}
	_, err = RuleFor([]byte("creation_rules: [{path_regex: ^a, age: b}]"), "c")
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "no rule of it is for c")
}

// What the file says of its apps is among its encrypted values: sops has it, and programs do not.
func TestAFileIsWrittenForItsApps(t *testing.T) {
	b := newBench(t)
	rule, err := RuleFor([]byte(fmt.Sprintf("creation_rules: [{age: %s}]", b.kinds[0].recipient)), "a")
	require.NoError(t, err)
	for _, form := range []Form{YAML, JSON, Env, INI} {
		for _, apps := range [][]string{{"shop"}, {"shop", "blog"}} {
			rule.For = apps
			body, err := Encrypt(form, []byte(plains[form]), rule, nil, writtenAt, true)
			require.NoError(t, err, form)
			require.Equal(t, 1, strings.Count(string(body), "gitring_for"), "%s", body)
			require.Regexp(t, `gitring_for"?( = |=|: )"?ENC\[AES256_GCM,`, string(body))
			plain, err := b.decrypt(form, form, body)
			require.NoError(t, err, "%s", body)
			require.Regexp(t, `gitring_for"?\s*[=:] *"?`+strings.Join(apps, ","), string(plain))
			f, err := Read(body)
			require.NoError(t, err)
			got, err := f.Open(b.kinds[0].keys)
			require.NoError(t, err)
			require.Equal(t, apps, got.For, form)
			require.NotContains(t, string(got.Plain), "gitring_for")
			require.NotContains(t, string(got.Plain), "blog")
		}
	}
}

func TestAFileThatCannotSayItsAppsIsRefused(t *testing.T) {
	recipient := testKeys(t).Recipients()[0]
	for _, tt := range []struct {
		form              Form
		more, plain, says string
	}{
		{Binary, "", "x", "no place for gitring_for"},
		{Env, "", "A=b\ngitring_for=blog\n", "gitring_for already"},
		{INI, "", "gitring_for = blog\n[a]\nb = c\n", "gitring_for already"},
		{YAML, ", encrypted_regex: ^PW", "a: b\n", "leaves gitring_for in clear"},
		{YAML, ", unencrypted_suffix: _for", "a: b\n", "leaves gitring_for in clear"},
	} {
		rule, err := RuleFor([]byte("creation_rules: [{age: "+recipient+tt.more+"}]"), "a")
		require.NoError(t, err)
		rule.For = []string{"shop"}
		_, err = Encrypt(tt.form, []byte(tt.plain), rule, nil, writtenAt, false)
		r := requireCode(t, "SecretForm", err)
		require.Contains(t, r.Says, tt.says)
		require.NotEmpty(t, r.Hint)
	}
}

func TestWhatWouldBeLostIsNotEncrypted(t *testing.T) {
	keys := testKeys(t)
	rule := Rule{Age: keys.Recipients()}
	for _, tt := range []struct {
		form       Form
		body, says string
		line       int
	}{
		{YAML, "a: b\n# c\nd: e\n", "a comment", 3},
		{YAML, "a: b # c\n", "a comment", 1},
		{Env, "A=b # no comment\n#c\n", "a comment", 2},
		{INI, "[a]\n  ; c\n", "a comment", 2},
		{YAML, "sops: x\n", "SOPS's own", 1},
		{Env, "sops_x=1\n", "SOPS's own", 1},
		{YAML, "a: &x b\n", "an anchor", 1},
		{JSON, `[1]`, "no object", 1},
		{Binary, strings.Repeat("x", 1<<20), "larger than 512 KiB", 0},
	} {
		_, err := Encrypt(tt.form, []byte(tt.body), rule, nil, writtenAt, false)
		r := requireCode(t, "SecretForm", err)
		require.Contains(t, r.Says, tt.says)
		require.Equal(t, tt.line, r.Line, tt.body)
	}
	body, err := Encrypt(YAML, []byte("a: b\n"), rule, nil, writtenAt, false)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(body, &map[string]any{}))
	_, err = Encrypt(YAML, body, rule, nil, writtenAt, false)
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "encrypted already")

	_, err = Encrypt(YAML, []byte("a: b\n"), Rule{OpenPGP: []string{"ABCD"}}, nil, writtenAt, false)
	require.Contains(t, requireCode(t, "SecretKey", err).Hint, "--openpgp-keys")
	_, err = Encrypt(YAML, []byte("a: b\n"), Rule{Age: []string{"age1yubikey1qqq"}}, nil, writtenAt, false)
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "plugin of age")
	_, err = Encrypt(YAML, []byte("a: b\n"), Rule{Age: []string{"bob"}}, nil, writtenAt, false)
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "bob is none of age")
}
