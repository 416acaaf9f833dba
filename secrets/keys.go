package secrets

import (
	"fmt"
	"slices"

	"filippo.io/age"
	pgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// Key is one identity of this host: what it opens is encrypted for its Recipient.
type Key struct {
	// Recipient is what others encrypt for, as .sops.yaml has it: age1…, ssh-ed25519 …, or
	// the fingerprint of an OpenPGP key after the word OpenPGP.
	Recipient string
	// Place is the file that it is from.
	Place string

	age     age.Identity
	openpgp *pgp.Entity
}

// Keys are those of a host, in the order of its configuration.
type Keys []Key

// Recipients are what others encrypt for, each once.
func (k Keys) Recipients() (all []string) {
	for _, key := range k {
		if !slices.Contains(all, key.Recipient) {
			all = append(all, key.Recipient)
		}
	}
	return all
}

// unwrap is the file's own key, and the key that gave it; nil where none of them does. The
// order is SOPS's: age first, then OpenPGP.
func (m *metadata) unwrap(keys Keys) ([]byte, Key, error) {
	for _, kind := range []struct {
		wrapped []wrapped
		open    func(Key, string) ([]byte, error)
	}{{m.age, Key.openAge}, {m.openpgp, Key.openPGP}} {
		for _, w := range kind.wrapped {
			for _, key := range keys {
				clear, err := kind.open(key, w.key)
				if err != nil {
					continue // it is another's, or was changed: another entry may hold
				}
				if len(clear) != keySize {
					return nil, key, faultOfForm(0, fmt.Sprintf("its key has %d bytes, and SOPS writes %d", len(clear), keySize), "encrypt it anew")
				}
				return clear, key, nil
			}
		}
	}
	return nil, Key{}, m.pluginsAlone()
}
