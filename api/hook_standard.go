package api

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// SigningKey begins a signing token: a secret of the Standard Webhooks specification, version 1.0.0:
// the key itself follows in base64.
const SigningKey = "whsec_"

// standardKey is the key of a secret. The specification asks for 24 bytes; GitLab, which
// is who uses it, takes keys of 32 and no others, and so does our own rule.
func standardKey(secret []byte) ([]byte, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(string(secret), SigningKey))
	if err != nil { // its text would hold the secret's
		return nil, errors.New("what follows " + SigningKey + " is no base64; copy it whole, with the = at its end")
	}
	if len(key) < secretBytes {
		return nil, fmt.Errorf("the key after %s has %d bytes and needs %d", SigningKey, len(key), secretBytes)
	}
	return key, nil
}

// standard is the signature of Standard Webhooks: HMAC-SHA256 over "id.timestamp.body" in
// base64, several of them apart by spaces, each after the name of its version.
func standard(keys [][]byte) proof {
	return func(h http.Header, now time.Time) (func([]byte) bool, string) {
		id, at := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
		if id == "" || strings.Contains(id, ".") { // a dot would let the parts be cut elsewhere
			return nil, "no Webhook-Id"
		}
		var given [][]byte
		for one := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
			text, ok := strings.CutPrefix(one, "v1,")
			if sum, err := base64.StdEncoding.DecodeString(text); ok && err == nil && len(sum) == sha256.Size && len(given) < mostSignatures {
				given = append(given, sum)
			}
		}
		if len(given) == 0 {
			return nil, "no signature in Webhook-Signature"
		}
		if why := untimely(at, now); why != "" {
			return nil, why
		}
		return func(body []byte) bool { return anyMAC(keys, given, []byte(id+"."+at+"."), body) }, ""
	}
}
