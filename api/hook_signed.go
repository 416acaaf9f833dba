package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// signed is HMAC-SHA256 of the raw body, in hex, in one header after a prefix: the way
// of GitHub, Gitea, Forgejo and Bitbucket. It holds no time, so a replay is as good
// as the first; that is harmless, because what it asks for is a look.
func signed(header, prefix string) func(secrets [][]byte) (proof, error) {
	return func(secrets [][]byte) (proof, error) {
		return func(h http.Header, _ time.Time) (func([]byte) bool, string) {
			text, ok := strings.CutPrefix(h.Get(header), prefix)
			given, err := hex.DecodeString(text)
			if !ok || err != nil || len(given) != sha256.Size {
				return nil, "no signature in " + header
			}
			return func(body []byte) bool { return anyMAC(secrets, [][]byte{given}, body) }, ""
		}, nil
	}
}

// anyMAC reports whether one of the signatures is the HMAC-SHA256 of the parts, one after the
// other, with one of the secrets. How long it takes tells neither which nor how nearly.
func anyMAC(secrets, given [][]byte, parts ...[]byte) bool {
	right := false
	for _, s := range secrets {
		m := hmac.New(sha256.New, s)
		for _, p := range parts {
			m.Write(p)
		}
		sum := m.Sum(nil)
		for _, g := range given {
			if hmac.Equal(sum, g) {
				right = true
			}
		}
	}
	return right
}
