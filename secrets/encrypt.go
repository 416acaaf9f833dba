package secrets

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"errors"
	"fmt"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	pgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// formatVersion is the release of sops to which the files are held that Encrypt writes.
const formatVersion = "3.13.3"

// PublicKeys are armoured public keys of OpenPGP by their fingerprints.
type PublicKeys map[string]*pgp.Entity

// ParsePublicKeys reads one armoured block of public keys.
func ParsePublicKeys(place string, body []byte) (PublicKeys, error) {
	block, err := pgparmor.Decode(bytes.NewReader(body))
	if err != nil || block.Type != pgp.PublicKeyType {
		return nil, keyFault(place, 0, "it is no armoured public key of OpenPGP; gpg --armor --export writes one")
	}
	entities, err := pgp.ReadKeyRing(block.Body)
	if err != nil {
		return nil, keyFault(place, 0, "there is a key in it that gitring cannot read")
	}
	out := PublicKeys{}
	for _, e := range entities {
		out[fmt.Sprintf("%X", e.PrimaryKey.Fingerprint)] = e
	}
	return out, nil
}

// Encrypt writes a plain file as a file of SOPS. Comments have no place in what it writes,
// so a file with comments is refused unless dropComments.
func Encrypt(form Form, plain []byte, rule Rule, public PublicKeys, now time.Time, dropComments bool) ([]byte, error) {
	if _, is := FormOf(plain); is {
		return nil, faultOfFile(0, "is encrypted already", "sops edit changes it, sops updatekeys its recipients")
	}
	tree, err := plainTree(form, plain)
	if err != nil {
		return nil, err
	}
	if line := commentOf(form, plain); line > 0 && !dropComments {
		return nil, faultOfFile(line, "has a comment, and gitring writes none", "sops encrypt -i keeps it; --drop-comments leaves comments out")
	}
	if tree, err = rule.withFor(form, tree); err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	s := &sealing{key: key, rule: rule}
	meta, err := s.metadata(tree, public, now)
	if err != nil {
		return nil, err
	}
	return joined(form, tree, meta)
}

// plainTree reads a plain file as its encrypted form has it.
func plainTree(form Form, plain []byte) (tree branch, err error) {
	if len(plain) > maxFile/2 {
		return nil, faultOfFile(0, "is larger than 512 KiB, and encrypting makes it larger", "keep large files out of Git")
	}
	switch form {
	case YAML:
		tree, err = parseYAML(plain)
	case JSON:
		tree, err = parseJSON(plain)
	case Env:
		tree, err = parseEnv(plain)
	case INI:
		tree, err = parseINI(plain)
	default:
		tree = branch{{name: "data", line: 1, value: string(plain)}}
	}
	for _, e := range tree {
		if e.name == metaName || form == Env && strings.HasPrefix(e.name, envPrefix) {
			return nil, faultOfFile(e.line, "has the name "+oneLine(e.name)+", which is SOPS's own", "call it otherwise")
		}
	}
	return tree, err
}

// sealing is one file while its values are encrypted.
type sealing struct {
	key  []byte
	rule Rule
}

// metadata encrypts the values of a tree in place, and is what stands beside them.
func (s *sealing) metadata(tree branch, public PublicKeys, now time.Time) (branch, error) {
	mac := sha512.New()
	if s.rule.onlySealed {
		mac.Write(onlySealedStart)
	}
	err := eachValue(tree, nil, func(e *entry, path []string) error {
		text, ok := textOf(e.value)
		if !ok {
			return nil
		}
		encrypts := s.rule.choice.encrypts(path)
		if encrypts || !s.rule.onlySealed {
			mac.Write([]byte(text))
		}
		if !encrypts || text == "" {
			return nil
		}
		sealed, err := s.seal(text, labelOf(e.value), placeOf(path))
		e.value = sealed
		return err
	})
	if err != nil {
		return nil, err
	}
	modified := now.UTC().Format(time.RFC3339)
	sum, err := s.seal(fmt.Sprintf("%X", mac.Sum(nil)), "str", modified)
	if err != nil {
		return nil, err
	}
	meta, err := s.recipients(public, modified)
	meta = append(meta, entry{name: "lastmodified", value: modified}, entry{name: "mac", value: sum})
	if s.rule.onlySealed {
		meta = append(meta, entry{name: "mac_only_encrypted", value: true})
	}
	choice := entry{name: "unencrypted_suffix", value: defaultSuffix}
	if s.rule.choice.name != "" {
		choice = entry{name: s.rule.choice.name, value: s.rule.choice.text}
	}
	return append(meta, choice, entry{name: "version", value: formatVersion}), err
}

func (s *sealing) seal(text, label, place string) (string, error) {
	nonce := make([]byte, nonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return "", fmt.Errorf("cannot make a nonce: %w", err)
	}
	return seal(s.key, nonce, text, label, place)
}

func labelOf(v any) string {
	switch v.(type) {
	case int:
		return "int"
	case float64:
		return "float"
	case bool:
		return "bool"
	case time.Time:
		return "time"
	}
	return "str"
}

// recipients wraps the file's key for each recipient of the rule.
func (s *sealing) recipients(public PublicKeys, made string) (meta branch, err error) {
	var ages, pgps list
	for _, recipient := range s.rule.Age {
		wrapped, err := s.forAge(recipient)
		if err != nil {
			return nil, err
		}
		ages = append(ages, entry{value: branch{{name: "enc", value: wrapped}, {name: "recipient", value: recipient}}})
	}
	for _, fingerprint := range s.rule.OpenPGP {
		wrapped, err := s.forOpenPGP(fingerprint, public)
		if err != nil {
			return nil, err
		}
		pgps = append(pgps, entry{value: branch{{name: "created_at", value: made}, {name: "enc", value: wrapped}, {name: "fp", value: fingerprint}}})
	}
	if len(ages) > 0 {
		meta = append(meta, entry{name: "age", value: ages})
	}
	if len(pgps) > 0 {
		meta = append(meta, entry{name: "pgp", value: pgps})
	}
	return meta, nil
}

func (s *sealing) forAge(recipient string) (string, error) {
	to, err := ageRecipient(recipient)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to)
	if err == nil {
		_, err = w.Write(s.key)
	}
	if err == nil {
		err = errors.Join(w.Close(), armored.Close())
	}
	if err != nil {
		return "", fmt.Errorf("cannot encrypt for %s: %w", oneLine(recipient), err)
	}
	return out.String(), nil
}

func ageRecipient(text string) (to age.Recipient, err error) {
	switch {
	case strings.HasPrefix(text, "age1pq1"):
		to, err = age.ParseHybridRecipient(text)
	case isPlugin(text):
		return nil, faultOfForm(0, "recipient "+shortened([]string{text})[0]+" is of a plugin of age", "encrypt this file with sops")
	case strings.HasPrefix(text, "ssh-"):
		to, err = agessh.ParseRecipient(text)
	default:
		to, err = age.ParseX25519Recipient(text)
	}
	if err != nil {
		return nil, faultOfForm(0, "recipient "+shortened([]string{text})[0]+" is none of age or ssh", "gitring secret keys prints those of a host")
	}
	return to, nil
}

func (s *sealing) forOpenPGP(fingerprint string, public PublicKeys) (string, error) {
	to := public[strings.ToUpper(fingerprint)]
	if to == nil {
		return "", faultOfKey("the public key of OpenPGP "+oneLine(fingerprint)+" is not at hand",
			"gpg --armor --export "+oneLine(fingerprint)+" > keys.asc, then --openpgp-keys keys.asc")
	}
	var out strings.Builder
	armored, err := pgparmor.Encode(&out, "PGP MESSAGE", nil)
	if err != nil {
		return "", err
	}
	w, err := pgp.Encrypt(armored, []*pgp.Entity{to}, nil, nil, nil, nil)
	if err == nil {
		_, err = w.Write(s.key)
	}
	if err == nil {
		err = errors.Join(w.Close(), armored.Close())
	}
	if err != nil {
		return "", fmt.Errorf("cannot encrypt for OpenPGP %s: %w", oneLine(fingerprint), err)
	}
	return out.String(), nil
}

// joined writes values and metadata as one file.
func joined(form Form, tree, meta branch) ([]byte, error) {
	switch form {
	case Env:
		return writeEnv(append(tree, folded(envPrefix, meta)...))
	case INI:
		flat := folded("", meta)
		for i := range flat {
			flat[i].value = strings.ReplaceAll(plainText(flat[i].value), "\n", escapedBreak)
		}
		return writeINI(append(tree, entry{name: metaName, value: flat}))
	case YAML:
		return writeYAML(append(tree, entry{name: metaName, value: meta}))
	}
	return writeJSON(append(tree, entry{name: metaName, value: meta}))
}

// folded has flat names for what stands in lists.
func folded(prefix string, meta branch) (flat branch) {
	for _, e := range meta {
		rows, ok := e.value.(list)
		if !ok {
			flat = append(flat, entry{name: prefix + e.name, value: e.value})
			continue
		}
		for i, row := range rows {
			for _, v := range row.value.(branch) {
				flat = append(flat, entry{name: fmt.Sprintf("%s%s__list_%d__map_%s", prefix, e.name, i, v.name), value: v.value})
			}
		}
	}
	return flat
}
