package secrets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// bench has the real sops, and one key of each kind for it and for gitring.
type bench struct {
	t    *testing.T
	sops string
	home string
	env  []string
	// kinds are recipients by their kind, keys what opens what is for them.
	kinds []kindOfKey
	keys  Keys
}

type kindOfKey struct {
	name, flag, recipient string
	keys                  Keys
}

// newBench skips where sops was not built (make sops).
func newBench(t *testing.T) *bench {
	t.Helper()
	sops, err := filepath.Abs("../bin/sops")
	require.NoError(t, err)
	if _, err := os.Stat(sops); err != nil {
		t.Skip("bin/sops is not here: make sops (scripts/sops.sh)")
	}
	// A short name: the socket of gpg-agent lies below it.
	home, err := os.MkdirTemp("", "sops")
	require.NoError(t, err)
	b := &bench{t: t, sops: sops, home: home}
	b.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GNUPGHOME=" + home, "SOPS_AGE_KEY_FILE=" + b.path("age.key"),
		"SOPS_AGE_SSH_PRIVATE_KEY_FILE=" + b.path("id_ed25519"),
	}
	t.Cleanup(func() {
		_, _ = b.run(nil, "gpgconf", "--kill", "all")
		require.NoError(t, os.RemoveAll(home))
	})
	b.makeKeys()
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.home, name) }

func (b *bench) run(in []byte, program string, args ...string) ([]byte, error) {
	c := exec.Command(program, args...)
	var out, errs bytes.Buffer
	c.Env, c.Dir, c.Stdin, c.Stdout, c.Stderr = b.env, b.home, bytes.NewReader(in), &out, &errs
	if err := c.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes(), nil
}

func (b *bench) must(program string, args ...string) []byte {
	b.t.Helper()
	out, err := b.run(nil, program, args...)
	require.NoError(b.t, err)
	return out
}

func (b *bench) makeKeys() {
	t := b.t
	b.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", b.path("id_ed25519"))
	b.must("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-C", "", "-f", b.path("id_rsa"))
	lines, err := newAgeKeys()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.path("age.key"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	for i, line := range lines {
		k, err := ParseAgeKeys("age.key", []byte(line))
		require.NoError(t, err)
		b.add([]string{"age", "post-quantum"}[i], "--age", k[0].Recipient, k)
	}
	pub, err := os.ReadFile(b.path("id_ed25519.pub"))
	require.NoError(t, err)
	private, err := os.ReadFile(b.path("id_ed25519"))
	require.NoError(t, err)
	k, err := ParseSSHKey("id_ed25519", private)
	require.NoError(t, err)
	b.add("ssh", "--age", strings.TrimSpace(string(pub)), k)
	for _, algo := range []string{"rsa2048", "cv25519"} {
		b.addOpenPGP(algo)
	}
}

func (b *bench) addOpenPGP(algo string) {
	mail := algo + "@example.org"
	first := map[string]string{"cv25519": "ed25519"}[algo]
	if first == "" {
		first = algo
	}
	b.must("gpg", "--batch", "--passphrase", "", "--quick-generate-key", mail, first, "sign,cert", "never")
	var fingerprint string
	for line := range strings.SplitSeq(string(b.must("gpg", "--batch", "--with-colons", "--list-keys", mail)), "\n") {
		if f := strings.Split(line, ":"); f[0] == "fpr" && fingerprint == "" {
			fingerprint = f[9]
		}
	}
	b.must("gpg", "--batch", "--passphrase", "", "--quick-add-key", fingerprint, algo, "encr", "never")
	k, err := ParseOpenPGPKeys("secret.asc", b.must("gpg", "--batch", "--armor", "--export-secret-keys", fingerprint))
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"OpenPGP " + fingerprint}, k.Recipients())
	b.add("OpenPGP "+algo, "--pgp", fingerprint, k)
}

func (b *bench) add(name, flag, recipient string, keys Keys) {
	b.kinds = append(b.kinds, kindOfKey{name: name, flag: flag, recipient: recipient, keys: keys})
	b.keys = append(b.keys, keys...)
}

// typeOf is what sops calls a form.
func typeOf(f Form) string {
	if f == Env {
		return "dotenv"
	}
	return string(f)
}

// encrypt has the real sops encrypt a text.
func (b *bench) encrypt(form Form, plain string, args ...string) []byte {
	b.t.Helper()
	out, err := b.run([]byte(plain), b.sops, append(append([]string{"encrypt"}, args...), "--input-type", typeOf(form), "--output-type", typeOf(form), "/dev/stdin")...)
	require.NoError(b.t, err)
	return out
}

// decrypt has the real sops decrypt a file into a form.
func (b *bench) decrypt(form, into Form, body []byte) ([]byte, error) {
	return b.run(body, b.sops, "decrypt", "--input-type", typeOf(form), "--output-type", typeOf(into), "/dev/stdin")
}

// plains are files that have all that each form can hold and gitring carries out.
var plains = map[Form]string{
	YAML: `# a comment
db:
    # another
    password: "p4ss: with # signs"   # behind it
    port: 5432
    ratio: 0.25
    large: 1.0e+21
    "yes": true
    "no": false
    none: null
    empty: ""
    when: 2026-01-02T03:04:05Z
list:
    - a
    - 2
    - true
    - x: y
      z: [1, [2]]
nothing: []
multi: |
    line one
    line two
ünï: cødé
plain_unencrypted: shown
`,
	JSON: `{"db": {"password": "p4ss <&> \u00e9", "port": 5432, "ratio": 0.25, "exact": 9007199254740993, "on": true, "none": null, "empty": ""},
 "list": ["a", 2, false, {"x": "y"}, []], "plain_unencrypted": 1.5}`,
	Env: "# a comment\nPASSWORD=p4ss = with # signs\nEMPTY=\nQUOTED=\"as it is\"\nMULTI=line one\\nline two\nPLAIN_unencrypted=shown\\nhere\n",
	INI: `; a comment
top = before any section

[database]
# another
password = p4ss
port = 5432
hash = ` + "`with # and ;`" + `
shown_unencrypted = ` + "`a;b`" + `
empty =

[other one]
key = "quoted"
`,
	Binary: "\x00\xff any bytes\r\n\x1b[0m {\"sops\": 1}",
}

var forms = []Form{YAML, JSON, Env, INI, Binary}

func TestFilesOfSOPSAreOpenedToEqualValues(t *testing.T) {
	b := newBench(t)
	equal := 0
	for _, kind := range b.kinds {
		for _, form := range forms {
			t.Run(kind.name+"/"+string(form), func(t *testing.T) {
				body := b.encrypt(form, plains[form], kind.flag, kind.recipient)
				f, err := Read(body)
				require.NoError(t, err)
				require.Equal(t, form, f.Form)
				got, err := f.Open(kind.keys)
				require.NoError(t, err)
				require.Equal(t, kind.keys[0].Recipient, got.By.Recipient)
				b.requireSame(form, body, got)
				require.Contains(t, strings.Join(f.Recipients(), "\n"), kind.recipient)
				equal++

				for _, other := range b.kinds {
					if other.name != kind.name {
						_, err := f.Open(other.keys)
						_ = requireCode(t, "SecretKey", err)
						require.Contains(t, err.Error(), kind.recipient[:12])
					}
				}
			})
		}
	}
	require.Equal(t, 25, equal)
}

// Versions are made of values: whoever changes recipients or the file's own key rolls nothing.
// A binary file to which somebody adds a name is one of the form json, and its MAC still holds: the
// value added is empty. SOPS prints other bytes then, and so would the engine.
func TestAValueThatIsNoTextIsReadFromABinaryFileAlone(t *testing.T) {
	b := newBench(t)
	kind := b.kinds[0]
	body := string(b.encrypt(Binary, "\xff\x00", kind.flag, kind.recipient))
	f, err := Read([]byte(body))
	require.NoError(t, err)
	got, err := f.Open(kind.keys)
	require.NoError(t, err)
	require.Equal(t, "\xff\x00", string(got.Plain))

	f, err = Read([]byte(strings.Replace(body, "{", `{"More": "",`, 1)))
	require.NoError(t, err)
	require.Equal(t, JSON, f.Form)
	_, err = f.Open(kind.keys)
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "data is no text in UTF-8")

	f, err = Read(b.encrypt(Env, "NAME=caf\xe9\n", kind.flag, kind.recipient))
	require.NoError(t, err)
	_, err = f.Open(kind.keys)
	require.Contains(t, requireCode(t, "SecretForm", err).Says, "NAME is no text in UTF-8")
}

func TestNewRecipientsAndANewKeyOfAFileChangeNoValue(t *testing.T) {
	b := newBench(t)
	first, second := b.kinds[0], b.kinds[1]
	for _, form := range forms {
		t.Run(string(form), func(t *testing.T) {
			file := b.path("x.enc." + string(form))
			require.NoError(t, os.WriteFile(file, b.encrypt(form, plains[form], first.flag, first.recipient), 0o600))
			opened := func(keys Keys) (*Opened, []byte) {
				body, err := os.ReadFile(file)
				require.NoError(t, err)
				f, err := Read(body)
				require.NoError(t, err)
				o, err := f.Open(keys)
				require.NoError(t, err)
				return o, body
			}
			was, before := opened(first.keys)
			rules := "creation_rules: [{age: '" + second.recipient + "'}]\n"
			require.NoError(t, os.WriteFile(b.path(".sops.yaml"), []byte(rules), 0o600))
			for _, args := range [][]string{{"updatekeys", "--yes"}, {"rotate", "--in-place"}} {
				b.must(b.sops, append(args, "--input-type", typeOf(form), file)...)
				is, body := opened(second.keys)
				require.NotEqual(t, before, body, args)
				require.Equal(t, was.Plain, is.Plain, args)
				before = body
			}
		})
	}
}

// requireSame holds what gitring opened to what sops writes of the same file.
func (b *bench) requireSame(form Form, body []byte, got *Opened) {
	t := b.t
	t.Helper()
	plain, err := b.decrypt(form, form, body)
	require.NoError(t, err, "gitring opened what sops does not")
	switch form {
	case Binary:
		require.Equal(t, plain, got.Plain)
		return
	case JSON:
		require.Equal(t, string(plain), string(got.Plain))
	case Env:
		require.Equal(t, withoutComments(string(plain)), string(got.Plain))
	case YAML:
		var want, is any
		require.NoError(t, yaml.Unmarshal(plain, &want))
		require.NoError(t, yaml.Unmarshal(got.Plain, &is))
		require.Equal(t, want, is)
	case INI:
		anew := b.encrypt(INI, string(got.Plain), "--age", b.kinds[0].recipient)
		again, err := b.decrypt(INI, JSON, anew)
		require.NoError(t, err)
		want, err := b.decrypt(INI, JSON, body)
		require.NoError(t, err)
		require.Equal(t, jsonTexts(t, want), jsonTexts(t, again))
	}
	asJSON, err := b.decrypt(form, JSON, body)
	require.NoError(t, err)
	var is []string
	for _, v := range got.Values {
		is = append(is, strings.Join(v.Path, "/")+"="+number(v.Text))
	}
	require.Equal(t, jsonTexts(t, asJSON), is)
}

func withoutComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// number has one text for all that are the same number.
func number(text string) string {
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return text
}

// jsonTexts are the values of a json text in its order, with the names on the way to them.
func jsonTexts(t *testing.T, body []byte) (out []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var read func(path []string)
	read = func(path []string) {
		token, err := d.Token()
		require.NoError(t, err)
		switch v := token.(type) {
		case json.Delim:
			for d.More() {
				at := path
				if v == '{' {
					name, err := d.Token()
					require.NoError(t, err)
					at = append(append([]string{}, path...), name.(string))
				}
				read(at)
			}
			_, err = d.Token()
			require.NoError(t, err)
		case nil:
		case json.Number:
			out = append(out, strings.Join(path, "/")+"="+number(v.String()))
		default:
			out = append(out, fmt.Sprintf("%s=%v", strings.Join(path, "/"), number(fmt.Sprint(v))))
		}
	}
	read(nil)
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
	return out
}
