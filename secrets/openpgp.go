package secrets

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// openPGP is the file's own key, from what was wrapped for a key of OpenPGP.
func (k Key) openPGP(wrapped string) ([]byte, error) {
	if k.openpgp == nil {
		return nil, errNotMine
	}
	body, err := unarmored(wrapped)
	if err != nil {
		return nil, err
	}
	raw := bytes.NewReader(body)
	m, err := pgp.ReadMessage(raw, pgp.EntityList{k.openpgp}, nil, nil)
	if err != nil {
		return nil, err
	}
	if !m.IsEncrypted || len(m.EncryptedToKeyIds) == 0 {
		return nil, fmt.Errorf("not encrypted for a key")
	}
	clear, err := io.ReadAll(io.LimitReader(m.UnverifiedBody, keySize+1))
	if err == nil && raw.Len() > 0 {
		err = fmt.Errorf("something stands behind the message")
	}
	return clear, err
}

const (
	beginMessage = "-----BEGIN PGP MESSAGE-----"
	endMessage   = "-----END PGP MESSAGE-----"
)

// armorHeaders are those that gpg writes and takes.
var armorHeaders = regexp.MustCompile(`^((Version|Comment): [ -~]*\n?)*$`)

// unarmored reads one armoured message, and holds it to its checksum, as gpg does and the
// library does not.
func unarmored(text string) ([]byte, error) {
	in, begins := strings.CutPrefix(strings.ReplaceAll(text, "\r\n", "\n"), beginMessage+"\n")
	in, ends := strings.CutSuffix(strings.TrimRight(in, "\n"), "\n"+endMessage)
	headers, in, blank := cutHeaders(in)
	body, sum, summed := strings.Cut(in, "\n=")
	if !begins || !ends || !blank || !summed || !armorHeaders.MatchString(headers) {
		return nil, fmt.Errorf("no armoured message")
	}
	strict := base64.StdEncoding.Strict()
	out, err := strict.DecodeString(strings.ReplaceAll(body, "\n", ""))
	if err != nil {
		return nil, err
	}
	crc, err := strict.DecodeString(sum)
	if err != nil || !bytes.Equal(crc, crc24(out)) {
		return nil, fmt.Errorf("the checksum of the armour does not hold")
	}
	return out, nil
}

// cutHeaders takes the lines before the first empty one off.
func cutHeaders(text string) (headers, body string, found bool) {
	if body, has := strings.CutPrefix(text, "\n"); has {
		return "", body, true
	}
	return strings.Cut(text, "\n\n")
}

// crc24 is the checksum of RFC 4880, section 6.1.
func crc24(b []byte) []byte {
	sum := uint32(0xb704ce)
	for _, c := range b {
		sum ^= uint32(c) << 16
		for range 8 {
			sum <<= 1
			if sum&0x1000000 != 0 {
				sum ^= 0x1864cfb
			}
		}
	}
	return []byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}
}

// ParseOpenPGPKeys reads armoured private keys of OpenPGP that no passphrase locks.
func ParseOpenPGPKeys(place string, body []byte) (Keys, error) {
	block, err := armor.Decode(bytes.NewReader(body))
	if err != nil || block.Type != pgp.PrivateKeyType {
		return nil, keyFault(place, 0, "it is no armoured private key of OpenPGP; gpg --armor --export-secret-keys writes one")
	}
	entities, err := pgp.ReadKeyRing(block.Body)
	if err != nil || len(entities) == 0 {
		return nil, keyFault(place, 0, "there is no private key of OpenPGP in it that gitring can read")
	}
	var out Keys
	for _, e := range entities {
		fingerprint := fmt.Sprintf("%X", e.PrimaryKey.Fingerprint)
		if says := unusable(e); says != "" {
			return nil, keyFault(place, 0, "key "+fingerprint+" "+says)
		}
		out = append(out, Key{Recipient: "OpenPGP " + fingerprint, Place: place, openpgp: e})
	}
	return out, nil
}

// unusable says why no secret of an OpenPGP key can be used; "" is that one can.
func unusable(e *pgp.Entity) string {
	secrets := 0
	for _, k := range e.Subkeys {
		switch {
		case k.PrivateKey == nil || k.PrivateKey.Dummy():
		case k.PrivateKey.Encrypted:
			return "is locked by a passphrase; take it off (gpg --edit-key, passwd), then export it anew"
		default:
			secrets++
		}
	}
	if secrets == 0 && (e.PrivateKey == nil || e.PrivateKey.Dummy() || e.PrivateKey.Encrypted) {
		return "holds no secret that opens anything"
	}
	return ""
}
