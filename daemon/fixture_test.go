package daemon

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"testing/fstest"
	"time"

	"github.com/gitring/gitring/ring"
)

// environment is those of an environment, by pairs of name and value.
func environment(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

var pushSecret = []byte("0123456789abcdef0123456789abcdef")

// pushSigned is a forge's webhook, signed with pushSecret.
func pushSigned(body string, reader io.Reader) *http.Request {
	m := hmac.New(sha256.New, pushSecret)
	m.Write([]byte(body))
	r := httptest.NewRequest(http.MethodPost, "/v1/webhook/prod", reader)
	r.ContentLength = int64(len(body))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
	return r
}

// trustsNothing is a store of anchors that trusts nothing yet.
type trustsNothing struct{}

func (trustsNothing) Anchor(context.Context, string) (ring.Anchor, error) { return ring.Anchor{}, nil }

func (trustsNothing) FirstSeen(_ context.Context, _ string, shas []ring.SHA, now time.Time) (map[ring.SHA]time.Time, error) {
	out := map[ring.SHA]time.Time{}
	for _, s := range shas {
		out[s] = now
	}
	return out, nil
}

func (trustsNothing) Standing(context.Context, string, ring.SHA) (ring.Standing, error) {
	return ring.NeverSeen, nil
}

func (trustsNothing) Carriers(context.Context, string, string) ([]ring.Carrier, error) {
	return nil, nil
}

func (trustsNothing) Verified(context.Context, string, ring.SHA) (ring.Verified, bool, error) {
	return ring.Verified{}, false, nil
}

func (trustsNothing) Trust(context.Context, ring.Anchor, []ring.Verified, []ring.Event) error {
	return nil
}

// commitWith is a commit of files in memory.
func commitWith(files map[string]string) *ring.Commit {
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	return &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
}
