package secrets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTheContentTellsTheForm(t *testing.T) {
	meta := "sops:\n    mac: x\n    lastmodified: y\n"
	for text, want := range map[string]Form{
		"a: 1\n" + meta:                     YAML,
		"sops: {lastmodified: y, mac: x}\n": YAML,

		"--- # c\n'a': 1\n\"sops\":\n  mac: x\n  lastmodified: y\n": YAML,
		"A=1\nsops_mac=x\nsops_lastmodified=y\n":                    Env,
		"[a]\nb = 1\n\n [sops] \nmac = x\n":                         INI,
		"age-encryption.org/v1\nrest":                               Age,
		"\n-----BEGIN AGE ENCRYPTED FILE-----\n":                    Age,
		"a: [\n" + meta + "b: ENC[AES256_GCM,data:x]":               YAML,

		"":                        "",
		"a: 1\n":                  "",
		"sops: written by hand\n": "",
		"about: how sops: mac: and lastmodified: look\n": "",
		`{"sops": {"mac": "x"}}`:                         "",
		"A=1\n#sops_mac=x\n":                             "",

		`{"a": 1, "sops": {"mac": "x", "lastmodified": "y"}}`:                   JSON,
		"\n {\"data\": 1, \"sops\": {\"mac\": \"x\", \"lastmodified\": \"y\"}}": Binary,
		`{"data": 1, "b": 2, "sops": {"mac": "x", "lastmodified": "y"}}`:        JSON,
		// Nothing that holds an encrypted value is taken for a plain file because it is broken.
		`{"sops": {"mac": "x", "lastmodified": "y"}, "a": "ENC[AES256_GCM,data:x]"`: JSON,
		"a: [\nsops: mac: lastmodified: no value of sops":                           "",
	} {
		form, is := FormOf([]byte(text))
		require.Equal(t, want, form, text)
		require.Equal(t, want != "", is, text)
	}
}

// What lost its metadata, or was written by a shell that makes other letters of it, is still
// no plain file: its ciphertext would be handed to a container.
func TestWhatIsBrokenIsNoPlainFile(t *testing.T) {
	keys := testKeys(t)
	rule, err := RuleFor([]byte("creation_rules: [{age: '"+keys[0].Recipient+"'}]"), "x")
	require.NoError(t, err)
	wide := func(order binary.AppendByteOrder, text string) string {
		var out []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
			out = order.AppendUint16(out, unit)
		}
		return string(out)
	}
	lines := func(text, without string) string {
		return strings.Join(slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(l string) bool { return strings.Contains(l, without) }), "")
	}
	for form, plain := range map[Form]string{YAML: "a: b\n", JSON: `{"a": "b"}`, Env: "A=b\n", INI: "[a]\nb = c\n", Binary: "a"} {
		body, err := Encrypt(form, []byte(plain), rule, nil, time.Now().UTC(), true)
		require.NoError(t, err)
		good := string(body)
		broken := map[string]string{
			"UTF-16": wide(binary.LittleEndian, good), "UTF-16 from the other end": wide(binary.BigEndian, good),
			"without what it says of time": lines(good, "lastmodified"), "other metadata": strings.ReplaceAll(good, "sops", "spos"),
			"cut": good[:strings.Index(good, "type:")+len("type:str]")],
		}
		if form != Env && form != INI {
			broken["behind another document"] = "a: 1\n---\n" + good
		}
		for name, text := range broken {
			_, is := FormOf([]byte(text))
			require.True(t, is, "%s, %s: %s", form, name, text)
			_, err := Read([]byte(text))
			var r *ring.Refusal
			require.ErrorAs(t, err, &r, "%s, %s", form, name)
			require.NotEmpty(t, r.Hint)
		}
	}
	for name, text := range map[string]string{
		"UTF-16": wide(binary.LittleEndian, ageArmor+"\r\n"), "a mark at its beginning": "\ufeff" + ageArmor + "\n",
	} {
		form, is := FormOf([]byte(text))
		require.True(t, is, name)
		require.Equal(t, Age, form, name)
		_, err := Read([]byte(text))
		_ = requireCode(t, "SecretForm", err)
	}
	_, is := FormOf([]byte("it writes values such as ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]\n"))
	require.False(t, is, "a text about SOPS")
}

// sealedYAML is a file that is whole but for its values: nothing here opens it.
func sealedYAML(values, meta string) string {
	return values + `sops:
    age:
        - recipient: age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
          enc: x
    lastmodified: "2026-01-02T03:04:05Z"
    mac: x
    version: 3.13.3
` + meta
}

func TestWhatIsNotCarriedOutIsRefusedByName(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, tt := range []struct {
		name, body, says string
		line             int
	}{
		{name: "key groups", body: sealedYAML("", "    key_groups:\n        - age: []\n"), says: "key groups (Shamir)", line: 8},
		{name: "key groups in env", body: "A=\nsops_mac=x\nsops_key_groups__list_0__map_age__list_0__map_enc=x\n", says: "key groups (Shamir)", line: 3},
		{name: "a threshold", body: sealedYAML("", "    shamir_threshold: 2\n"), says: "key groups (Shamir)", line: 8},
		{name: "a cloud's key alone", body: "sops:\n    mac: x\n    lastmodified: \"2026-01-02T03:04:05Z\"\n    version: 3.13.3\n    kms:\n        - arn: a\n          created_at: \"2026-01-02T03:04:05Z\"\n          enc: x\n", says: "keys of a cloud alone (kms)", line: 5},
		{name: "nobody", body: "sops:\n    mac: x\n    lastmodified: \"2026-01-02T03:04:05Z\"\n    version: 3.13.3\n", says: "names nobody"},
		{name: "choice by comments", body: sealedYAML("", "    encrypted_comment_regex: secret\n"), says: "chosen by comments", line: 8},
		{name: "an anchor", body: sealedYAML("a: &x b\n", ""), says: "anchor or an alias", line: 1},
		{name: "an alias", body: sealedYAML("b: [&x a, *x]\n", ""), says: "anchor or an alias", line: 1},
		{name: "a merge key", body: sealedYAML("a:\n    <<: {b: c}\n", ""), says: "merge key", line: 2},
		{name: "a tag", body: sealedYAML("a: !!binary eA==\n", ""), says: "a tag", line: 1},
		{name: "a name twice", body: sealedYAML("a: b\na: c\n", ""), says: "a name twice", line: 2},
		{name: "a name twice in json", body: "{\n\"a\": 1,\n\"a\": 2, \"sops\": {\"mac\": \"x\", \"lastmodified\": \"y\"}}", says: "a name twice", line: 3},
		{name: "a name twice in env", body: "A=1\nA=2\nsops_mac=x\n", says: "a name twice", line: 2},
		{name: "a section twice", body: "[a]\n[b]\n[a]\n[sops]\n", says: "a section twice", line: 3},
		{name: "two documents", body: sealedYAML("", "") + "---\na: b\n", says: "more than one document", line: 8},
		{name: "a number as name", body: sealedYAML("1: b\n", ""), says: "a name that is no text", line: 1},
		{name: "an unknown name of metadata", body: sealedYAML("", "    MAC_only_encrypted: true\n"), says: "MAC_only_encrypted", line: 8},
		{name: "a broken pattern", body: sealedYAML("", "    encrypted_regex: \"(\"\n"), says: "no pattern", line: 8},
		{name: "two choices", body: sealedYAML("", "    encrypted_regex: a\n    encrypted_suffix: b\n"), says: "says twice", line: 9},
		{name: "too deep", body: sealedYAML("a: "+deep+"\n", ""), says: "more than 64 levels deep", line: 1},
		{name: "too many values", body: sealedYAML("a:\n"+strings.Repeat("    - \"\"\n", 10_001), ""), says: "more than 10000 values", line: 10000},
		{name: "too large", body: sealedYAML("a: "+strings.Repeat("b", 1<<20)+"\n", ""), says: "larger than 1 MiB"},
		{name: "a comment that is a value", body: sealedYAML("# ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\na: b\n", ""), says: "an encrypted comment that is none", line: 2},
		{name: "no UTF-8", body: "A=\xff\nsops_mac=x\n", says: "no UTF-8"},
		{name: "a passphrase", body: lockedByPassphrase(t), says: "locked by a passphrase"},
		{name: "not encrypted", body: "a: b\n", says: "not encrypted"},
		{name: "many lines in ini", body: "a = \"\"\"b\nc\"\"\"\n[sops]\n", says: "every reader of ini", line: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read([]byte(tt.body))
			r := requireCode(t, "SecretForm", err)
			require.Contains(t, r.Says, tt.says)
			require.Equal(t, tt.line, r.Line)
		})
	}
}

func lockedByPassphrase(t *testing.T) string {
	t.Helper()
	r, err := age.NewScryptRecipient("word")
	require.NoError(t, err)
	r.SetWorkFactor(2)
	return ageFile(t, "x", r)
}

func ageFile(t *testing.T, text string, to ...age.Recipient) string {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

func testKeys(t *testing.T) Keys {
	t.Helper()
	lines, err := newAgeKeys()
	require.NoError(t, err)
	keys, err := ParseAgeKeys("age.key", []byte("# made for a test\n\n"+strings.Join(lines, "\n")+"\n"))
	require.NoError(t, err)
	require.Len(t, keys, 2)
	return keys
}

func TestAFileOfAgeIsOpenedByItsKeysAlone(t *testing.T) {
	keys, others := testKeys(t), testKeys(t)
	for i, to := range []age.Recipient{keys[0].age.(*age.X25519Identity).Recipient(), keys[1].age.(*age.HybridIdentity).Recipient()} {
		body := ageFile(t, "tls\x00key", to)
		f, err := Read([]byte(body))
		require.NoError(t, err)
		require.Equal(t, Age, f.Form)
		require.Empty(t, f.Names())
		got, err := f.Open(keys)
		require.NoError(t, err)
		require.Equal(t, "tls\x00key", string(got.Plain))
		require.Equal(t, keys[i].Recipient, got.By.Recipient)

		_, err = f.Open(others)
		r := requireCode(t, "SecretKey", err)
		require.Contains(t, r.Says, "this host has "+others[0].Recipient[:10])
		require.Contains(t, r.Hint, "encrypt it again with age")
		require.Contains(t, r.Hint, "-r "+others[0].Recipient)
		require.NotContains(t, r.Hint, ".sops.yaml", "sops reads no file of age")
		_, err = f.Open(nil)
		require.NotContains(t, requireCode(t, "SecretKey", err).Hint, "sops updatekeys")
		require.Contains(t, requireCode(t, "SecretKey", err).Says, "this host has no key")

		for at := range len(body) {
			changed := []byte(body)
			changed[at] ^= 1
			f, err := Read(changed)
			if err == nil {
				_, err = f.Open(keys)
			}
			require.Error(t, err, "byte %d", at)
			require.NotContains(t, err.Error(), "tls")
		}
	}
}

func TestKeyFilesAreTheirOwnersAlone(t *testing.T) {
	lines, err := newAgeKeys()
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chmod(file, mode))
		return file
	}
	good := write("good", strings.Join(lines, "\n"), 0o600)
	keys, err := ReadKeys(AgeFile, good)
	require.NoError(t, err)
	require.Len(t, keys.Recipients(), 2)
	require.NoError(t, os.Symlink(good, filepath.Join(dir, "link")))
	for says, file := range map[string]string{
		"can be read by others (mode 0640)":    write("group", lines[0], 0o640),
		"can be written by others (mode 0622)": write("open", lines[0], 0o622),
		"no identity in it":                    write("empty", "# nothing\n", 0o600),
		":2: it is no identity of age":         write("odd", lines[0]+"\nage1xyz\n", 0o600),
		"plugin of age":                        write("plugin", "AGE-PLUGIN-TPM-1QQQ", 0o600),
		"is a symlink":                         filepath.Join(dir, "link"),
		"no such file":                         filepath.Join(dir, "none"),
	} {
		_, err := ReadKeys(AgeFile, file)
		require.ErrorContains(t, err, says)
		require.True(t, strings.HasPrefix(err.Error(), "cannot "), err)
		require.NotContains(t, err.Error(), "AGE-SECRET-KEY")
	}
	_, err = ReadKeys(SSHFile, good)
	require.ErrorContains(t, err, "no private key of ssh")
	_, err = ReadKeys(OpenPGPFile, good)
	require.ErrorContains(t, err, "no armoured private key")

	// systemd shows the mask of the list that lets the unit's user in as the group's bit.
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	_, err = ReadKeys(AgeFile, filepath.Join(dir, "group"))
	require.NoError(t, err)
}

// A name in clear is anybody's to write where the MAC covers encrypted values alone.
func TestANameOfAnAppInClearServesNobody(t *testing.T) {
	keys := testKeys(t)
	rule, err := RuleFor([]byte("creation_rules: [{age: '"+keys[0].Recipient+"', mac_only_encrypted: true, encrypted_regex: ^PW$}]"), "x")
	require.NoError(t, err)
	for form, plain := range map[Form]string{YAML: "PW: b\n", Env: "PW=b\n"} {
		body, err := Encrypt(form, []byte(plain), rule, nil, time.Now().UTC(), true)
		require.NoError(t, err)
		line := map[Form]string{YAML: ForKey + ": shop\n", Env: ForKey + "=shop\n"}[form]
		f, err := Read([]byte(line + string(body)))
		require.NoError(t, err)
		o, err := f.Open(keys)
		require.NoError(t, err, "SOPS opens it, too")
		require.Empty(t, o.For, form)
		require.Equal(t, plain, string(o.Plain))
	}
}

func TestErrorsHoldNoValue(t *testing.T) {
	const canary = "canary-value-4711"
	for _, body := range []string{
		sealedYAML("db:\n    password: "+canary+"\n", ""),
		"PASSWORD=" + canary + "\nsops_mac=x\nsops_lastmodified=2026-01-02T03:04:05Z\nsops_version=3.13.3\nsops_age__list_0__map_recipient=age1x\nsops_age__list_0__map_enc=x\n",
		"PASSWORD " + canary + "\nsops_mac=x\n",
		fmt.Sprintf("[a]\npassword = %q ; %s\n[sops]\n", canary, canary),
		sealedYAML("a: \""+canary+"\n", "") + "b: ENC[AES256_GCM,data:",
		`{"a": "` + canary + `", "sops": {"mac": "x", "lastmodified": "` + canary + `"}}`,
	} {
		f, err := Read([]byte(body))
		if err == nil {
			_, err = f.Open(testKeys(t))
		}
		require.Error(t, err)
		require.NotContains(t, err.Error(), canary, body)
	}
}
