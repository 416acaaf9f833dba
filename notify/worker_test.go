package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// canary is in every part of the URLs below that may be a secret.
const canary = "CANARY"

// chatURLs have a canary in every part that may be a secret, in the form that the
// service has it.
var chatURLs = map[string]string{
	"slack":       "slack://hook:T0CANARY1-B0CANARY1-aaaaaaaaaaCANARYaaaaaaaa@webhook",
	"slack-api":   "slack://xoxb:123456789CANARY-123456789CANARY-aaaaaaaaaaCANARYaaaaaaaa@C0CANARY01",
	"discord":     "discord://tokenCANARYtoken@1234CANARY",
	"teams":       "teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyCANARYCANARY?host=canary.webhook.office.com",
	"teams-flow":  "teams+https://canary.logic.azure.com/workflows/CANARY/triggers/manual/paths/invoke?sig=CANARY",
	"telegram":    "telegram://123456789:AAaaCANARYaaaaaaaaaaaaaaaaaaaaaaaaa@telegram?chats=-100123",
	"matrix":      "matrix://:tokenCANARYtoken@canary.example.org/?rooms=!CANARY:example.org",
	"ntfy":        "ntfy://user:passCANARY@ntfy.example.org/topicCANARY",
	"gotify":      "gotify://gotify.example.org/pathCANARY/A1234CANARY1234",
	"pushover":    "pushover://shoutrrr:tokenCANARYtoken@userCANARYuser/",
	"generic":     "generic+https://generic.example.org/hooks/CANARY?key=CANARY&template=json&@Authorization=CANARY",
	"generic-raw": "generic://generic.example.org/hooks/CANARY?disabletls=yes",
}

// oneChat is a server that stands for every chat there is, and notes what it got.
type oneChat struct {
	*httptest.Server
	status int
	body   string
	header http.Header
	mu     sync.Mutex
	got    []taken
}

type taken struct {
	Method, Host, Path string
	Query              url.Values
	Header             http.Header
	Body               string
}

func newOneChat(t *testing.T) *oneChat {
	c := &oneChat{status: 200}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.got = append(c.got, taken{r.Method, r.Host, r.URL.Path, r.URL.Query(), r.Header, string(b)})
		c.mu.Unlock()
		for k, v := range c.header {
			w.Header()[k] = v
		}
		w.WriteHeader(c.status)
		body := c.body
		if body == "" {
			switch {
			case strings.HasSuffix(r.Host, "slack.com") && !strings.HasPrefix(r.Host, "hooks."):
				body = `{"ok":true}`
			case strings.HasPrefix(r.Host, "hooks.slack"):
				body = "ok"
			case strings.HasPrefix(r.Host, "gotify"):
				body = `{"id":1}`
			case strings.Contains(r.URL.Path, "/join"):
				body = `{"room_id":"!CANARY:example.org"}`
			default:
				body = `{"ok":true,"id":"1"}`
			}
		}
		_, _ = io.WriteString(w, body)
	})
	c.Server = httptest.NewTLSServer(h)
	plain := httptest.NewServer(h)
	t.Cleanup(func() { c.Close(); plain.Close() })
	c.Config.ErrorLog = quiet
	c.URL = plain.URL // for http
	return c
}

// road leads every address to the server.
func (c *oneChat) road() *road {
	secure := c.Listener.Addr().String()
	return newRoad(func(ctx context.Context, network, address string) (net.Conn, error) {
		at := secure
		if strings.HasSuffix(address, ":80") {
			at = strings.TrimPrefix(c.URL, "http://")
		}
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a server of the test
}

func fields(t *testing.T, body string) map[string]any {
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &m), body)
	return m
}

// Each service is told in the form of its own documentation.
func TestEachChatIsToldInItsOwnForm(t *testing.T) {
	const text = "edge-1: web/web: a rollout failed\nnot ready within 30s"
	checks := map[string]func(t *testing.T, got []taken){
		"slack": func(t *testing.T, got []taken) {
			require.Equal(t, "POST hooks.slack.com /services/T0CANARY1/B0CANARY1/aaaaaaaaaaCANARYaaaaaaaa", road1(got))
			require.Contains(t, got[0].Body, `"text":"edge-1: web/web: a rollout failed"`)
			require.Contains(t, got[0].Body, `"text":"not ready within 30s"`)
		},
		"slack-api": func(t *testing.T, got []taken) {
			require.Equal(t, "POST slack.com /api/chat.postMessage", road1(got))
			require.Equal(t, "Bearer xoxb-123456789CANARY-123456789CANARY-aaaaaaaaaaCANARYaaaaaaaa", got[0].Header.Get("Authorization"))
			require.Equal(t, "C0CANARY01", fields(t, got[0].Body)["channel"])
		},
		"discord": func(t *testing.T, got []taken) {
			require.Equal(t, "POST discord.com /api/webhooks/1234CANARY/tokenCANARYtoken", road1(got))
			embeds := fields(t, got[0].Body)["embeds"].([]any)
			require.Equal(t, "edge-1: web/web: a rollout failed", embeds[0].(map[string]any)["description"])
			require.Nil(t, fields(t, got[0].Body)["content"], "what mentions people is in no embed")
		},
		"teams": func(t *testing.T, got []taken) {
			require.Equal(t, "POST canary.webhook.office.com /webhookb2/11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/IncomingWebhook/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyCANARYCANARY", road1(got))
			require.Equal(t, "MessageCard", fields(t, got[0].Body)["@type"])
		},
		"teams-flow": func(t *testing.T, got []taken) {
			require.Equal(t, "POST canary.logic.azure.com /workflows/CANARY/triggers/manual/paths/invoke", road1(got))
			require.Equal(t, "CANARY", got[0].Query.Get("sig"))
			m := fields(t, got[0].Body)
			require.Equal(t, "message", m["type"])
			card := m["attachments"].([]any)[0].(map[string]any)
			require.Equal(t, "application/vnd.microsoft.card.adaptive", card["contentType"])
			body := card["content"].(map[string]any)["body"].([]any)
			require.Equal(t, "not ready within 30s", body[1].(map[string]any)["text"])
		},
		"telegram": func(t *testing.T, got []taken) {
			require.Equal(t, "POST api.telegram.org /bot123456789:AAaaCANARYaaaaaaaaaaaaaaaaaaaaaaaaa/sendMessage", road1(got))
			m := fields(t, got[0].Body)
			require.Equal(t, text, m["text"])
			require.Equal(t, "-100123", m["chat_id"])
			require.NotContains(t, m, "parse_mode")
		},
		"matrix": func(t *testing.T, got []taken) {
			require.Len(t, got, 2)
			require.Equal(t, "/_matrix/client/r0/join/!CANARY:example.org", got[0].Path)
			require.Equal(t, "/_matrix/client/r0/rooms/!CANARY:example.org/send/m.room.message", got[1].Path)
			require.Equal(t, map[string]any{"msgtype": "m.text", "body": text}, fields(t, got[1].Body))
		},
		"ntfy": func(t *testing.T, got []taken) {
			require.Equal(t, "POST ntfy.example.org /topicCANARY", road1(got))
			require.Equal(t, text, got[0].Body)
			require.Equal(t, "gitring on edge-1", got[0].Header.Get("Title"))
			user, pass, ok := (&http.Request{Header: got[0].Header}).BasicAuth()
			require.Equal(t, []any{"user", "passCANARY", true}, []any{user, pass, ok})
		},
		"gotify": func(t *testing.T, got []taken) {
			require.Equal(t, "POST gotify.example.org /pathCANARY/message", road1(got))
			require.Equal(t, "A1234CANARY1234", got[0].Query.Get("token"))
			m := fields(t, got[0].Body)
			require.Equal(t, text, m["message"])
			require.Equal(t, "gitring on edge-1", m["title"])
		},
		"pushover": func(t *testing.T, got []taken) {
			require.Equal(t, "POST api.pushover.net /1/messages.json", road1(got))
			form, err := url.ParseQuery(got[0].Body)
			require.NoError(t, err)
			require.Equal(t, []string{"tokenCANARYtoken", "userCANARYuser", text}, []string{form.Get("token"), form.Get("user"), form.Get("message")})
		},
		"generic": func(t *testing.T, got []taken) {
			require.Equal(t, "POST generic.example.org /hooks/CANARY", road1(got))
			require.Equal(t, "CANARY", got[0].Header.Get("Authorization"))
			require.Equal(t, "CANARY", got[0].Query.Get("key"))
			require.Equal(t, text, fields(t, got[0].Body)["message"])
		},
		"generic-raw": func(t *testing.T, got []taken) {
			require.Equal(t, "POST generic.example.org /hooks/CANARY", road1(got))
			require.Equal(t, text, got[0].Body)
		},
	}
	for name, raw := range chatURLs {
		t.Run(name, func(t *testing.T) {
			c := newOneChat(t)
			done := chatMessage{URL: raw, Text: text, Title: "gitring on edge-1"}.send(c.road())
			require.Equal(t, chatOutcome{Outcome: chatTaken}, done)
			checks[name](t, c.got)
		})
	}
}

func road1(got []taken) string { return got[0].Method + " " + got[0].Host + " " + got[0].Path }

// What failed is told by its kind and its code: Telegram's too, of which the
// library says that it went well. Nothing is tried a second time by the library.
func TestNoChatThatFailedIsTakenForTold(t *testing.T) {
	for name, raw := range chatURLs {
		t.Run(name, func(t *testing.T) {
			c := newOneChat(t)
			c.status, c.body, c.header = 500, "CANARY", http.Header{"Retry-After": {"90"}}
			done := chatMessage{URL: raw, Text: "x"}.send(c.road())
			require.Equal(t, chatAnswer, done.Outcome)
			require.Equal(t, 500, done.Code)
			require.InDelta(t, 90, done.Wait.Seconds(), 1)
			require.Len(t, c.got, 1)

			c.status, c.header = 302, http.Header{"Location": {"https://elsewhere.example.org/CANARY"}}
			c.got = nil
			done = chatMessage{URL: raw, Text: "x"}.send(c.road())
			require.NotEqual(t, chatTaken, done.Outcome)
			require.Len(t, c.got, 1, "it followed a redirect")

			closed := newRoad(func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connect: connection refused")}
			}, nil)
			require.Equal(t, chatOutcome{Outcome: chatRefused}, chatMessage{URL: raw, Text: "x"}.send(closed))
			guard := newRoad(guarded(false).DialContext, nil)
			guard.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return guarded(false).DialContext(ctx, "tcp", "127.0.0.1:1")
			}
			require.Equal(t, chatOutcome{Outcome: chatForbidden}, chatMessage{URL: raw, Text: "x"}.send(guard))
		})
	}
}

// A 200 that says in its body that nothing was taken is no success.
func TestAChatsBodyIsBelieved(t *testing.T) {
	for name, body := range map[string]string{
		"telegram": `{"ok":false}`, "slack": "invalid_token", "slack-api": `{"ok":false,"error":"not_in_channel"}`,
		"teams": "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429", "teams-flow": "Webhook message delivery failed with error: 413",
	} {
		c := newOneChat(t)
		c.body = body
		done := chatMessage{URL: chatURLs[name], Text: "x"}.send(c.road())
		require.Equal(t, chatOutcome{Outcome: chatAnswer, Code: 200}, done, name)
		require.False(t, done.reply(name).taken)
	}
}

func TestAURLThatDoesNotParseIsToldWithoutIt(t *testing.T) {
	for _, raw := range []string{
		"", "CANARY", "https://hooks.slack.com/services/CANARY", "slack://CANARY", "discord://CANARY", "discord://CANARY@1/x/y", "teams://CANARY",
		"telegram://CANARY@telegram?chats=1", "telegram://1:CANARY@telegram", "matrix://CANARY", "ntfy://CANARY", "gotify://CANARY/CANARY",
		"pushover://CANARY", "smtp://CANARY", "generic://", "generic+ftp://CANARY/x", "slack+https://CANARY", "ntfy://h/t?CANARY=1", "gotify://h/A23456789012345?CANARY=1",
		"slack://%zz", "ntfy://h/t?priority=CANARY", "unknown://CANARY", "logger://CANARY", "script://CANARY", "teams+https:///CANARY",
	} {
		_, _, err := parseChatURL(raw)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), canary, raw)
		require.Equal(t, chatOutcome{Outcome: chatURL}, chatMessage{URL: raw, Text: "x"}.send(newRoad(nil, nil)), raw)
	}
	for name, raw := range chatURLs {
		scheme, _, err := parseChatURL(raw)
		require.NoError(t, err, name)
		require.True(t, strings.HasPrefix(name, scheme), name)
	}
}

// mailServer speaks just enough SMTP.
func mailServer(t *testing.T, refuse string) (address string, mail func() string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	got := make(chan string, 1)
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in, all := bufio.NewScanner(conn), ""
		say := func(s string) { _, _ = io.WriteString(conn, s+"\r\n") }
		say("220 mail")
		for data := false; in.Scan(); {
			line := in.Text()
			all += line + "\n"
			switch word := strings.ToUpper(strings.SplitN(line, " ", 2)[0]); {
			case data && line == ".":
				data = false
				say("250 ok")
			case data:
			case word == refuse:
				say("535 no CANARY")
			case word == "EHLO":
				say("250-mail\r\n250 AUTH PLAIN")
			case word == "AUTH":
				say("235 ok")
			case word == "DATA":
				data = true
				say("354 go on")
			case word == "QUIT":
				say("221 bye")
				got <- all
				return
			default:
				say("250 ok")
			}
		}
		got <- all
	})
	return l.Addr().String(), func() string { return <-got }
}

func TestAMailIsSentAndARefusalToldByItsCode(t *testing.T) {
	at, mail := mailServer(t, "")
	raw := "smtp://user:passCANARY@" + at + "/?from=gitring@example.org&to=ops@example.org&starttls=no"
	done := chatMessage{URL: raw, Text: "edge-1: down\nsecond", Title: "gitring on edge-1"}.send(newRoad(nil, nil))
	require.Equal(t, chatOutcome{Outcome: chatTaken}, done)
	all := mail()
	require.Contains(t, all, "MAIL FROM:<gitring@example.org>")
	require.Contains(t, all, "RCPT TO:<ops@example.org>")
	require.Contains(t, all, "Subject: gitring on edge-1\n")
	require.Contains(t, all, "edge-1: down\nsecond\n")

	for _, host := range []string{"169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "100.100.100.200"} {
		done = chatMessage{URL: "smtp://" + host + ":25/?from=a@b.example&to=c@d.example", Text: "x"}.send(newRoad(nil, nil))
		require.Equal(t, chatOutcome{Outcome: chatForbidden}, done, host)
	}

	at, mail = mailServer(t, "AUTH")
	raw = "smtp://user:passCANARY@" + at + "/?from=gitring@example.org&to=ops@example.org&starttls=no"
	done = chatMessage{URL: raw, Text: "x"}.send(newRoad(nil, nil))
	require.Equal(t, chatOutcome{Outcome: chatAnswer, Code: 535}, done)
	mail()
}

// The process says an outcome and nothing else, whatever goes wrong.
func TestTheProcessThatTellsSaysNoSecret(t *testing.T) {
	var out strings.Builder
	in, err := json.Marshal(chatMessage{URL: "generic://127.0.0.1:1/CANARY?disabletls=yes", Text: "x"})
	require.NoError(t, err)
	require.NoError(t, ServeWorker(strings.NewReader(string(in)), &out))
	require.JSONEq(t, `{"Outcome":"refused","Code":0,"Wait":0}`, out.String())
	require.Error(t, ServeWorker(strings.NewReader("CANARY"), &out))
}
