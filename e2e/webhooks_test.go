package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	hookSecret = "0123456789abcdef0123456789abcdef"
	ourPush    = `{"object_kind":"push","ref":"refs/heads/main","push":{"changes":[{"old":{},"new":{"type":"branch","name":"main"}}]}}`
	otherPush  = `{"object_kind":"push","ref":"refs/heads/next","push":{"changes":[{"old":{},"new":{"type":"branch","name":"next"}}]}}`
)

func hmacOf(secret, text string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// told are the forges of this test: how each is configured, and the headers that it
// sends with a body.
var told = []struct {
	forge, source, file string
	headers             func(secret, body string) []string
}{
	{
		"gitlab", "lab", "whsec_" + base64.StdEncoding.EncodeToString([]byte(hookSecret)),
		func(secret, body string) []string {
			at := strconv.FormatInt(time.Now().Unix(), 10)
			return []string{
				"X-Gitlab-Event", "Push Hook", "webhook-id", "f5e5f430", "webhook-timestamp", at,
				"webhook-signature", "v1," + base64.StdEncoding.EncodeToString(hmacOf(secret, "f5e5f430."+at+"."+body)),
			}
		},
	},
	{"bitbucket", "cloud", hookSecret, func(secret, body string) []string {
		return []string{"X-Event-Key", "repo:push", "X-Hub-Signature", "sha256=" + hex.EncodeToString(hmacOf(secret, body))}
	}},
	{"generic", "other", "an older secret, of 32 bytes or more\n" + hookSecret, func(secret, body string) []string {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		return []string{"X-Gitring-Signature", "t=" + at + ",v1=" + hex.EncodeToString(hmacOf(secret, at+"."+body))}
	}},
}

// One push, and three sources that hear of it, each by its own forge's webhook: what
// is signed and about the branch comes into force for the source it was posted to, and
// for no other. It is polled once a day.
func TestAPushRunsByTheWebhookOfEachForge(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	at := freePort(t)
	h.config["listen"] = obj{"socket": h.socket, "http": at}
	h.config["poll"] = "24h"
	var sources []any
	version := files{}
	fill := func(v string) files {
		for _, f := range told {
			app := h.app(f.source)
			version[f.source+"/"+app+"/compose.yaml"] = h.compose(app, obj{f.source: web(v)})
		}
		return version
	}
	for _, f := range told {
		sources = append(sources, merged(h.source(), obj{
			"name": f.source, "path": f.source,
			"webhook": obj{"forge": f.forge, "secret_file": h.secret(f.source, f.file+"\n")},
		}))
	}
	h.config["sources"] = sources
	runs := func(i int, sha string) {
		h.await(told[i].source+" runs "+sha, func(st status) bool {
			return st.Sources[i].Commit == sha && st.Sources[i].Sync == "Synced"
		})
	}
	first := h.repo.pushed("Version 1", fill("1"))
	h.start()
	for i := range told {
		runs(i, first)
	}
	second := h.repo.pushed("Version 2", fill("2"))
	for i, f := range told {
		post := func(secret, body string) int {
			r, err := http.NewRequest("POST", "http://"+at+"/v1/webhook/"+f.source, bytes.NewReader([]byte(body)))
			require.NoError(t, err)
			for head := f.headers(secret, body); len(head) > 0; head = head[2:] {
				r.Header.Set(head[0], head[1])
			}
			res, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode
		}
		require.Equal(t, http.StatusUnauthorized, post(strings.Repeat("x", 32), ourPush))
		require.Equal(t, http.StatusAccepted, post(hookSecret, otherPush))
		require.Equal(t, first, h.status().Sources[i].Commit, "neither is a reason to look, nor was what %d others were told", i)
		require.Equal(t, http.StatusAccepted, post(hookSecret, ourPush))
		runs(i, second)
		require.Equal(t, "2", h.one(f.source).env("VERSION"))
	}
	noSecret(t, h, hookSecret, strings.TrimPrefix(told[0].file, "whsec_"), "an older secret")
}
