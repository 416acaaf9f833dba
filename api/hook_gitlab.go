package api

import (
	"bytes"
	"net/http"
	"time"
)

// gitLabProof takes both ways of GitLab. A secret that begins with whsec_ is a signing
// token, any other the plain one. Where there is a signing token, a request that brings
// a signature is judged by it alone: a wrong one is not made good by the right token.
func gitLabProof(secrets [][]byte) (proof, error) {
	var keys, tokens [][]byte
	for _, s := range secrets {
		if !bytes.HasPrefix(s, []byte(SigningKey)) {
			tokens = append(tokens, s)
			continue
		}
		key, err := standardKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	bySignature, byToken := standard(keys), token("X-Gitlab-Token", tokens)
	return func(h http.Header, now time.Time) (func([]byte) bool, string) {
		if len(keys) > 0 && (len(tokens) == 0 || len(h.Values("Webhook-Signature")) > 0) {
			return bySignature(h, now)
		}
		return byToken(h, now)
	}, nil
}
