package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"
)

var errNotMine = errors.New("not for this key")

// openAge is the file's own key, from what was wrapped for a recipient of age.
func (k Key) openAge(wrapped string) ([]byte, error) {
	if k.age == nil {
		return nil, errNotMine
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(wrapped)), k.age)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, keySize+1))
}

// isPlugin reports whether a recipient is of a program beside age: a name stands between
// the first 1 and the last.
func isPlugin(recipient string) bool {
	return strings.HasPrefix(recipient, "age1") && !strings.HasPrefix(recipient, "age1pq1") && strings.Count(recipient, "1") > 1
}

// pluginsAlone refuses a file that nothing but plugins of age can open.
func (m *metadata) pluginsAlone() error {
	if len(m.openpgp) > 0 || slices.ContainsFunc(m.age, func(w wrapped) bool { return !isPlugin(w.recipient) }) {
		return nil
	}
	return faultOfFile(0, "is for plugins of age alone ("+shortened([]string{m.age[0].recipient})[0]+")",
		"add a key of this host that is no plugin's; systemd-creds keeps such a key in a TPM")
}

// readAge reads the header of a file of age: it has the kinds of its recipients, and of
// most kinds nothing more.
func readAge(body []byte) (*File, error) {
	header, err := age.ExtractHeader(ageReader(body))
	if err != nil {
		return nil, faultOfForm(0, "its header is none of age", "encrypt it anew")
	}
	f := &File{Form: Age, body: body}
	for line := range strings.SplitSeq(string(header), "\n") {
		kind, is := strings.CutPrefix(line, "-> ")
		kind, _, _ = strings.Cut(kind, " ")
		switch {
		case !is:
		case kind == "scrypt":
			return nil, faultOfFile(0, "is locked by a passphrase", "encrypt it for a key: age -r "+"age1…")
		case !slices.Contains(f.kind, "age "+kind) && !strings.HasSuffix(kind, "-grease"):
			f.kind = append(f.kind, "age "+kind)
		}
	}
	return f, nil
}

func ageReader(body []byte) io.Reader {
	if bytes.HasPrefix(body, []byte(ageIntro)) {
		return bytes.NewReader(body)
	}
	return armor.NewReader(bytes.NewReader(body))
}

// openAge opens a file of age, whole.
func (f *File) openAge(keys Keys) (*Opened, error) {
	for _, key := range keys {
		if key.age == nil {
			continue
		}
		r, err := age.Decrypt(ageReader(f.body), key.age)
		var other *age.NoIdentityMatchError
		if errors.As(err, &other) {
			continue
		}
		if err != nil {
			return nil, faultOfValue(nil, 0, "its header was changed")
		}
		plain, err := io.ReadAll(io.LimitReader(r, maxFile+1))
		switch {
		case err != nil:
			return nil, changedFile("was changed, or cut off")
		case len(plain) > maxFile:
			return nil, faultOfFile(0, "is larger than 1 MiB", "keep large files out of Git")
		}
		return &Opened{By: key, Plain: plain}, nil
	}
	return nil, f.closed(keys)
}

// ParseAgeKeys reads identities of age, one a line: X25519 and post-quantum ones.
func ParseAgeKeys(place string, body []byte) (Keys, error) {
	var out Keys
	for i, line := range strings.Split(string(body), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, recipient, says := ageIdentity(line)
		if says != "" {
			return nil, keyFault(place, i+1, says)
		}
		out = append(out, Key{Recipient: recipient, Place: place, age: id})
	}
	if len(out) == 0 {
		return nil, keyFault(place, 0, "there is no identity in it; gitring secret keys --create writes one")
	}
	return out, nil
}

func ageIdentity(line string) (id age.Identity, recipient, says string) {
	switch {
	case strings.HasPrefix(line, "AGE-SECRET-KEY-PQ-1"):
		id, err := age.ParseHybridIdentity(line)
		if err != nil {
			return nil, "", "a post-quantum identity is not whole"
		}
		return id, id.Recipient().String(), ""
	case strings.HasPrefix(line, "AGE-SECRET-KEY-1"):
		id, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, "", "an identity is not whole"
		}
		return id, id.Recipient().String(), ""
	case strings.HasPrefix(line, "AGE-PLUGIN-"):
		return nil, "", "it is of a plugin of age, which gitring does not run; systemd-creds keeps a key in a TPM"
	}
	return nil, "", "it is no identity of age"
}

// ParseSSHKey reads a private key of ssh, ed25519 or RSA, as age takes it.
func ParseSSHKey(place string, body []byte) (Keys, error) {
	id, err := agessh.ParseIdentity(body)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, keyFault(place, 0, "it is locked by a passphrase; ssh-keygen -p takes it off")
	case err != nil:
		return nil, keyFault(place, 0, "it is no private key of ssh that age takes (ed25519, or RSA from 2048 bits)")
	}
	signer, err := ssh.ParsePrivateKey(body)
	if err != nil {
		return nil, keyFault(place, 0, "it is no private key of ssh")
	}
	recipient := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return Keys{{Recipient: recipient, Place: place, age: id}}, nil
}

// NewAgeKey is a new X25519 identity, as a file of keys that age reads too, and its
// recipient.
func NewAgeKey(now time.Time) (file []byte, recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, "", fmt.Errorf("cannot make a key: %w", err)
	}
	recipient = id.Recipient().String()
	return fmt.Appendf(nil, "# created: %s\n# public key: %s\n%s\n", now.UTC().Format(time.RFC3339), recipient, id), recipient, nil
}
