package imagesign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // for SHA-384 and SHA-512 by their names
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Key is a public key. The zero value signs nothing.
type Key struct {
	// ID is the print of the key itself: "sha256:…" of its PKIX form.
	ID   string
	File string `json:"-"` // where it was read
	key  crypto.PublicKey
}

// leastRSA is the shortest RSA key that counts, in bits.
const leastRSA = 2048

// ParseKeys reads the public keys of a PEM file.
func ParseKeys(body []byte) ([]Key, error) {
	var out []Key
	for len(strings.TrimSpace(string(body))) > 0 {
		block, rest := pem.Decode(body)
		if block == nil {
			return nil, errors.New("no public key in PEM form")
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a %s, and no PUBLIC KEY", strings.ToLower(block.Type))
		}
		k, err := parseKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		out, body = append(out, k), rest
	}
	if len(out) == 0 {
		return nil, errors.New("no public key in PEM form")
	}
	return out, nil
}

func parseKey(der []byte) (Key, error) {
	pub, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Key{}, errors.New("a public key that cannot be read")
	}
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return Key{}, fmt.Errorf("a key on curve %s; P-256, P-384 and P-521 are known", k.Curve.Params().Name)
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < leastRSA {
			return Key{}, fmt.Errorf("an RSA key of %d bits; it needs %d", k.N.BitLen(), leastRSA)
		}
	case ed25519.PublicKey:
	default:
		return Key{}, errors.New("a key of a kind that is not known: ECDSA, Ed25519 and RSA are")
	}
	again, err := x509.MarshalPKIXPublicKey(pub) // one key has one print, however its file writes it
	if err != nil {
		return Key{}, errors.New("a public key that cannot be written")
	}
	printed := sha256.Sum256(again)
	return Key{ID: "sha256:" + hex.EncodeToString(printed[:]), key: pub}, nil
}

// signed reports whether the key signed a message, in one of the ways in which cosign signs
// with a key of its kind. Until 2.5 it hashed with SHA-256 for each curve; by now with the
// hash that is as long as the curve. With an Ed25519 key it signs the hash of a message by now
// (RFC 8032, Ed25519ph), which its own verify refuses; the key signed it all the same.
func (k *Key) signed(message, sig []byte) bool {
	switch pub := k.key.(type) {
	case *ecdsa.PublicKey:
		for _, h := range hashesOf(pub.Curve) {
			if ecdsa.VerifyASN1(pub, sum(h, message), sig) {
				return true
			}
		}
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(pub, crypto.SHA256, sum(crypto.SHA256, message), sig) == nil
	case ed25519.PublicKey:
		if ed25519.Verify(pub, message, sig) {
			return true
		}
		return ed25519.VerifyWithOptions(pub, sum(crypto.SHA512, message), sig, &ed25519.Options{Hash: crypto.SHA512}) == nil
	}
	return false
}

func hashesOf(c elliptic.Curve) []crypto.Hash {
	switch c {
	case elliptic.P384():
		return []crypto.Hash{crypto.SHA384, crypto.SHA256}
	case elliptic.P521():
		return []crypto.Hash{crypto.SHA512, crypto.SHA256}
	}
	return []crypto.Hash{crypto.SHA256}
}

func sum(h crypto.Hash, message []byte) []byte {
	w := h.New()
	w.Write(message)
	return w.Sum(nil)
}

// whoSigned are the prints of the keys that signed a message.
func whoSigned(keys []Key, message, sig []byte) []string {
	for i := range keys {
		if keys[i].signed(message, sig) {
			return []string{keys[i].ID} // a signature is of one key
		}
	}
	return nil
}
