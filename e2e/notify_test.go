package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// audience is a web hook that believes a signature alone, and a chat.
type audience struct {
	*httptest.Server
	key []byte

	mu     sync.Mutex // guards what follows
	events []string   // "<type> <subject>"
	chat   []string
	forged int
}

func newAudience(t *testing.T) *audience {
	a := &audience{key: []byte("thirty-two bytes that are a key!")}
	a.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		defer a.mu.Unlock()
		if r.URL.Path == "/chat" {
			a.chat = append(a.chat, string(body))
			return
		}
		mac := hmac.New(sha256.New, a.key)
		_, _ = io.WriteString(mac, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
		var e struct{ ID, Type, Subject string }
		if json.Unmarshal(body, &e) != nil || e.ID != r.Header.Get("webhook-id") || r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			a.forged++
			return
		}
		a.events = append(a.events, strings.TrimPrefix(e.Type, "gitring.")+" "+e.Subject)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *audience) heard(what string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.events, what)
}

func (a *audience) saidInChat(part string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range a.chat {
		n += strings.Count(text, part)
	}
	return n
}

// The daemon itself tells a chat and a web hook: what is changed by hand and put in
// order, what a person set and is about to end, and a version that fails.
func TestReceiversAreToldByTheDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	a := newAudience(t)
	file := func(name, text string) string {
		at := filepath.Join(h.dir, name)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
		return at
	}
	h.config["notify"] = []any{
		obj{"name": "team", "url_file": file("chat", "generic://"+strings.TrimPrefix(a.URL, "http://")+"/chat?disabletls=yes")},
		obj{"name": "audit", "webhook": obj{"url_file": file("hook", a.URL+"/hook"), "secret_file": file("secret", string(a.key)), "allow_private": true}},
	}
	app := h.app("web")
	h.start()
	code, out := h.run("notify", "test")
	require.Equal(t, 0, code, out)
	require.Equal(t, 1, a.saidInChat("a test, as a person asked"))
	require.True(t, a.heard("notify.test notify"))

	h.deployed("The first", files{app + "/compose.yaml": h.compose(app, obj{"web": web("one", obj{})})})
	h.until("the web hook heard of it", func() bool { return a.heard("rollout.completed " + app + "/web") })

	require.NoError(t, h.engine.stop(h.one("web").ID))
	h.until("the drift and its end are told", func() bool {
		return a.heard("drift.seen "+app+"/web") && a.heard("drift.healed "+app+"/web")
	})
	code, out = h.run("hold", app, "--for", "15m2s", "--reason", "a look at it")
	require.Equal(t, 0, code, out)
	h.until("the end of the hold is announced", func() bool { return a.heard("override.expiring " + app) })
	h.until("the chat was told both", func() bool {
		return a.saidInChat("changed by hand, and put in order again") == 1 && a.saidInChat("what a person set ends soon") == 1
	})

	code, out = h.run("release", app, "--reason", "seen")
	require.Equal(t, 0, code, out)
	code, out = h.run("outbox", "list")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "everything has arrived")
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Zero(t, a.forged)
}
