package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Headers that stand there twice, in another case, with spaces or with more than was
// asked for: what counts is the first, whole and as the forge writes it.
func TestHeadersThatMeanTwoThings(t *testing.T) {
	const body = `{"ref":"refs/heads/main"}`
	wrong := strings.Repeat("0", 64)
	right := sign(secretOne, body)
	for _, tc := range []struct {
		name, source, header string
		values               []string
		code                 int
	}{
		{"a wrong one after the right one", "prod", "X-Hub-Signature-256", []string{"sha256=" + right, "sha256=" + wrong}, 202},
		{"the right one after a wrong one", "prod", "X-Hub-Signature-256", []string{"sha256=" + wrong, "sha256=" + right}, 401},
		{"both in one", "prod", "X-Hub-Signature-256", []string{"sha256=" + wrong + ", sha256=" + right}, 401},
		{"in capitals", "prod", "X-Hub-Signature-256", []string{"sha256=" + strings.ToUpper(right)}, 202},
		{"the prefix in capitals", "prod", "X-Hub-Signature-256", []string{"SHA256=" + right}, 401},
		{"a space within", "prod", "X-Hub-Signature-256", []string{"sha256= " + right}, 401},
		{"a zero byte behind", "prod", "X-Hub-Signature-256", []string{"sha256=" + right + "\x00"}, 401},
		{"the prefix twice", "prod", "X-Hub-Signature-256", []string{"sha256=sha256=" + right}, 401},
		{"wide digits", "prod", "X-Hub-Signature-256", []string{"sha256=" + strings.ReplaceAll(right, "0", "０")}, 401},
		{"a token after a wrong one", "lab", "X-Gitlab-Token", []string{"x", string(secretOne)}, 401},
		{"two tokens in one", "lab", "X-Gitlab-Token", []string{string(secretOne) + "," + string(secretTwo)}, 401},
		{"both secrets of a rotation, one behind the other", "lab", "X-Gitlab-Token", []string{string(secretOne) + "\n" + string(secretTwo)}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDoor(t)
			r := hookRequest("/v1/webhook/"+tc.source, body)
			r.Header[tc.header] = tc.values
			require.Equal(t, tc.code, d.ask(r))
		})
	}
}

// A time is the digits that were signed: no sign, no point, no word, nothing that
// overflows, and nothing that another alphabet calls a digit.
func TestTimesThatAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		for _, at := range []string{
			"-1", "-946684800", "946684800.0", "9.466848e8", "0x386d4380", "NaN", "Inf", "-Inf", "1_000", "９４６６８４８００", "946684800 ", " 946684800", "946684800\x00",
			"999999999999", "9223372036854775807", "9223372036854775808", "18446744074656236416", "0", "000000000000", strings.Repeat("9", 4000),
		} {
			r := hookRequest("/v1/webhook/other", "x", "X-Gitring-Signature", "t="+at+",v1="+sign(secretOne, at+".x"))
			require.Equal(t, 401, d.ask(r), at)
			r = hookRequest("/v1/webhook/signing-lab", "x", "Webhook-Id", "a", "Webhook-Timestamp", at, "Webhook-Signature", "v1,"+sign64(secretOne, "a."+at+".x"))
			require.Equal(t, 401, d.ask(r), at)
		}
		require.Equal(t, 202, d.ask(hookRequest("/v1/webhook/other", "x", "X-Gitring-Signature", "t=000946684800,v1="+sign(secretOne, "000946684800.x"))))
	})
}

// A signature over "id.time.body" or "time.body" is of one cut alone.
func TestASignatureIsNotOfAnotherCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		// Signed: id "a", time 946684800, body "1.x". Sent: id "a.946684800", time "1", or the
		// time with the body's first part.
		sig := "v1," + sign64(secretOne, "a.946684800.1.x")
		require.Equal(t, 202, d.ask(hookRequest("/v1/webhook/signing-lab", "1.x", "Webhook-Id", "a", "Webhook-Timestamp", "946684800", "Webhook-Signature", sig)))
		require.Equal(t, 401, d.ask(hookRequest("/v1/webhook/signing-lab", "x", "Webhook-Id", "a.946684800", "Webhook-Timestamp", "1", "Webhook-Signature", sig)))
		require.Equal(t, 401, d.ask(hookRequest("/v1/webhook/signing-lab", "x", "Webhook-Id", "a", "Webhook-Timestamp", "946684800.1", "Webhook-Signature", sig)))
		// What GitHub's way signed is not good for the generic one with the same secret.
		require.Equal(t, 401, d.ask(hookRequest("/v1/webhook/other", "946684800.x", "X-Gitring-Signature", "t=946684800,v1="+sign(secretOne, "946684800.x"))))
	})
}

// A body says which branch in more than one way: the worst that comes of it is one
// look too many, or the next poll.
func TestABodyThatMeansTwoThings(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 40_000) + "1" + strings.Repeat("}", 40_000)
	for _, tc := range []struct {
		name, body string
		poked      int
	}{
		{"a key twice, the last is ours", `{"ref":"refs/heads/other","ref":"refs/heads/main"}`, 1},
		{"a key twice, the last is not ours", `{"ref":"refs/heads/main","ref":"refs/heads/other"}`, 0},
		{"escaped", `{"ref":"refs\/heads\/m\u0061in"}`, 1},
		{"half a pair", `{"ref":"refs/heads/main\ud800"}`, 0},
		{"a letter that looks alike", `{"ref":"refs/heads/mаin"}`, 0},
		{"a branch called like a ref", `{"ref":"refs/heads/refs/heads/main"}`, 0},
		{"a zero byte behind", `{"ref":"refs/heads/main\u0000"}`, 0},
		{"two values", `{"ref":"refs/heads/other"}{"ref":"refs/heads/main"}`, 1},
		{"nested beside it", `{"x":{"ref":"refs/heads/main"},"ref":"refs/heads/other"}`, 0},
		{"nested too deep to read", deep, 1},
		{"a list of a hundred thousand", `{"x":[` + strings.Repeat("0,", 100_000) + `0],"ref":"refs/heads/other"}`, 0},
		{"a mark in front", "\ufeff" + `{"ref":"refs/heads/other"}`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDoor(t)
			require.Equal(t, 202, d.ask(hookRequest("/v1/webhook/prod", tc.body, "X-Hub-Signature-256", "sha256="+sign(secretOne, tc.body), "X-GitHub-Event", "push")))
			require.Equal(t, tc.poked, d.poked("prod"))
		})
	}
}

// Whatever stands on the wire, at most one of two requests that a proxy and we could
// tell apart in two ways is heard, and none that is not signed.
func TestRequestsThatMeanTwoThingsOnTheWire(t *testing.T) {
	d := newDoor(t)
	addr := start(t, d.Run)
	signed := "X-Hub-Signature-256: sha256=" + sign(secretOne, "x") + "\r\n"
	for name, request := range map[string]string{
		"two lengths":             "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
		"a length of minus one":   "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "Content-Length: -1\r\n\r\nx",
		"a length with a plus":    "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "Content-Length: +1\r\n\r\nx",
		"a space before the sign": "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + strings.Replace(signed, ":", " :", 1) + "Content-Length: 1\r\n\r\nx",
		"a folded header":         "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\nX-Hub-Signature-256:\r\n " + signed[21:] + "Content-Length: 1\r\n\r\ny",
		"an encoding twice":       "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "Transfer-Encoding: chunked, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"an unknown encoding":     "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "Transfer-Encoding: xchunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"too much of a header":    "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "X: " + strings.Repeat("x", 64<<10) + "\r\nContent-Length: 1\r\n\r\nx",
		"all options":             "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
		"a path that climbs":      "POST /v1/webhook/prod/../tea HTTP/1.1\r\nHost: h\r\n" + signed + "Content-Length: 1\r\n\r\nx",
		"a path in disguise":      "POST /v1%2fwebhook/prod/ HTTP/1.1\r\nHost: h\r\n" + signed + "Content-Length: 1\r\n\r\nx",
		"HTTP/2 without asking":   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a trailer that signs":    "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\nTrailer: X-Hub-Signature-256\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n" + signed + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
			_, _ = io.WriteString(c, request)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return // hung up on
			}
			defer res.Body.Close()
			require.GreaterOrEqual(t, res.StatusCode, 400)
		})
	}
	require.Empty(t, d.pokes)
}

// Of two secrets each is good by itself, and of one that was taken out nothing is.
func TestASecretThatWasTakenOutIsGoodForNothing(t *testing.T) {
	for forge := range sampleSource {
		for _, tc := range []struct {
			secrets [][]byte
			taken   []int
		}{
			{[][]byte{secretOne}, []int{202, 401}},
			{[][]byte{secretOne, secretTwo}, []int{202, 202}},
			{[][]byte{secretTwo, secretOne}, []int{202, 202}},
			{[][]byte{secretTwo}, []int{401, 202}},
		} {
			secrets := tc.secrets
			if forge == GitLab {
				secrets = nil
				for _, s := range tc.secrets {
					secrets = append(secrets, keyOf(s))
				}
			}
			w, err := NewWebhooks([]Hook{{Source: "s", Forge: forge, Secret: secrets}}, HookOptions{Poke: func(string) {}, Log: quiet})
			require.NoError(t, err)
			d := &door{Webhooks: w}
			for i, secret := range [][]byte{secretOne, secretTwo} {
				r := hookRequest("/v1/webhook/s", "{}")
				signAs(forge, r.Header, secret, "{}", time.Now())
				require.Equal(t, tc.taken[i], d.ask(r), "%s %v", forge, i)
			}
		}
	}
}

// Many at once, each with its own number, and all of them replayed: nothing is
// counted twice and nothing races.
func TestReplaysAtOnce(t *testing.T) {
	d := newDoor(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 20 {
				d.ask(hookRequest("/v1/webhook/prod", "x", "X-Hub-Signature-256", "sha256="+sign(secretOne, "x"), "X-GitHub-Delivery", fmt.Sprint(i*j)))
			}
		})
	}
	all.Wait()
	require.Equal(t, len(d.seen.seen), d.seen.order.Len())
	require.Equal(t, 320, d.poked("prod"))
}
