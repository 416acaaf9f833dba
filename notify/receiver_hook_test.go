package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func written(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The example of the Standard Webhooks libraries.
func TestASignatureIsAsStandardWebhooksHasIt(t *testing.T) {
	s := newHookSpeaker("h", Hook{SecretFile: written(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")})
	keys, err := s.keys()
	require.NoError(t, err)
	require.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		signed(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

func TestAnEventReachesAWebHookSignedByBothKeys(t *testing.T) {
	raw, encoded := strings.Repeat("k", 32), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("n", 24)))
	var got []*http.Request
	var bodies [][]byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, bodies = append(got, r), append(bodies, b)
	}))
	defer server.Close()
	s := newHookSpeaker("edge-1", Hook{
		URLFile: written(t, server.URL+"/hook?token=CANARY\n"), SecretFile: written(t, raw+"\nwhsec_"+encoded+"\n"), AllowPrivate: true,
	})
	require.NoError(t, s.check())
	e := ring.Event{Seq: 42, At: noon, Kind: ring.RolloutFailed, Source: "prod", App: "web", Service: "api", Commit: "c1", Reason: "not ready <b>"}
	n := noteOf(e)
	n.Event = &e
	require.Equal(t, reply{taken: true}, s.say(context.Background(), n))
	require.Equal(t, reply{taken: true}, s.say(context.Background(), n))
	require.Len(t, got, 2)

	r, body := got[0], bodies[0]
	require.Equal(t, "POST /hook?token=CANARY", r.Method+" "+r.URL.RequestURI())
	require.Equal(t, "application/cloudevents+json; charset=utf-8", r.Header.Get("Content-Type"))
	var ce map[string]any
	require.NoError(t, json.Unmarshal(body, &ce))
	require.Equal(t, map[string]any{
		"specversion": "1.0", "id": "edge-1-42-1772366400", "source": "/gitring/edge-1", "type": "gitring.rollout.failed", "subject": "web/api",
		"time": "2026-03-01T12:00:00Z", "datacontenttype": "application/json",
		"data": map[string]any{
			"seq": 42.0, "at": "2026-03-01T12:00:00Z", "kind": "rollout.failed", "source": "prod", "app": "web", "service": "api", "commit": "c1", "reason": "not ready <b>",
		},
	}, ce)
	require.Equal(t, ce["id"], r.Header.Get("Webhook-Id"))
	require.Equal(t, r.Header.Get("Webhook-Id"), got[1].Header.Get("Webhook-Id"), "the same line is the same event")

	var want []string
	for _, key := range []string{raw, strings.Repeat("n", 24)} {
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte("edge-1-42-1772366400." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	require.Equal(t, strings.Join(want, " "), r.Header.Get("Webhook-Signature"))
}

func TestWhatAWebHookAnswersIsUnderstood(t *testing.T) {
	code, header := 0, http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "CANARY")
	}))
	defer server.Close()
	s := newHookSpeaker("h", Hook{URLFile: written(t, server.URL+"/CANARY"), SecretFile: written(t, strings.Repeat("CANARY", 6)), AllowPrivate: true})
	for c, want := range map[int]reply{
		200: {taken: true}, 204: {taken: true}, 410: {gone: true}, 400: {}, 404: {}, 302: {}, 401: {away: true}, 500: {away: true}, 503: {away: true}, 429: {away: true, wait: 90 * time.Second},
	} {
		code, header = c, http.Header{}
		if c == 429 {
			header.Set("Retry-After", "90")
		}
		if c == 302 {
			header.Set("Location", "http://169.254.169.254/latest")
		}
		a := s.say(context.Background(), Note{Kind: kindTest, At: noon})
		require.NotContains(t, a.says, canary)
		a.says = ""
		require.Equal(t, want, a, c)
	}
	server.Close()
	a := s.say(context.Background(), Note{Kind: kindTest, At: noon})
	require.Equal(t, reply{away: true, says: "cannot reach it: connection refused"}, a)
	s = newHookSpeaker("h", Hook{URLFile: written(t, "https://127.0.0.1:1/CANARY"), SecretFile: written(t, strings.Repeat("k", 32))})
	a = s.say(context.Background(), Note{Kind: kindTest, At: noon})
	require.Equal(t, reply{away: true, says: "cannot reach it: its address is a private address"}, a)
}

// A proxy of the environment would connect where the guard does not see.
func TestAWebHookTakesNoProxyOfTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	require.Nil(t, hookClient(nil).Transport.(*http.Transport).Proxy)
	s := newHookSpeaker("h", Hook{URLFile: written(t, "http://192.0.2.1/x"), SecretFile: written(t, strings.Repeat("k", 32)), AllowPrivate: true})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.False(t, s.say(ctx, Note{Kind: kindTest, At: noon}).taken)
}

func TestAWebHooksFilesAreCheckedAndNeverRepeated(t *testing.T) {
	good := strings.Repeat("k", 32)
	for _, tc := range []struct {
		url, secret string
		private     bool
		want        string
	}{
		{"https://h/x", good, false, ""},
		{"http://h/x", good, true, ""},
		{"http://CANARY/x", good, false, "http:// where"},
		{"ftp://CANARY/x", good, true, "begins with https://"},
		{"://CANARY", good, false, "cannot use the URL"},
		{"CANARY", good, false, "cannot use the URL"},
		{"", good, false, "is empty"},
		{"https://h/x", "CANARY", false, "less than 32 bytes"},
		{"https://h/x", "whsec_CANARY", false, "whsec_ is followed by"},
		{"https://h/x", good + "\n" + good + "\n" + good, false, "one line, or two"},
		{"https://h/x", "", false, "is empty"},
		{strings.Repeat("CANARY", 2000), good, false, "is larger"},
	} {
		s := newHookSpeaker("h", Hook{URLFile: written(t, tc.url), SecretFile: written(t, tc.secret), AllowPrivate: tc.private})
		err := s.check()
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), canary)
	}
}
