package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzWebhook sends whatever comes to every forge's endpoint, with the headers that the
// fuzzer makes of lines. Nothing panics, only what a secret signed is taken, and only
// what was taken pokes; and the same signed is taken, and does not panic either.
func FuzzWebhook(f *testing.F) {
	for _, s := range samples(f) {
		lines := ""
		for name, value := range s.signed(time.Now()).Header {
			lines += name + ": " + value[0] + "\n"
		}
		f.Add(sampleSource[s.Forge], lines, []byte(s.Body))
	}
	f.Add("prod", "X-Hub-Signature-256: sha256="+sign(secretOne, "x"), []byte("x"))
	f.Add("prod/", "", []byte(nil))
	f.Add("lab", "X-Gitlab-Token: "+string(secretOne), []byte("{"))
	f.Add("signing-lab", "Webhook-Signature: v1, v1,= ,\nX-Gitlab-Token: "+string(secretTwo), []byte("[]"))
	f.Add("other", "X-Gitring-Signature: t=1,t=2,v1=,v1", bytes.Repeat([]byte("x"), 100))
	d := newDoor(f)
	d.rate = newRate(1 << 40)
	forges := map[string]string{"lab": GitLab}
	for forge, source := range sampleSource {
		forges[source] = forge
	}
	f.Fuzz(func(t *testing.T, source, lines string, body []byte) {
		clear(d.pokes)
		clear(d.pulls)
		header := http.Header{}
		for line := range strings.SplitSeq(lines, "\n") {
			name, value, _ := strings.Cut(line, ":")
			header.Add(name, strings.TrimSpace(value))
		}
		ask := func() int {
			return d.ask(&http.Request{
				Method: http.MethodPost, URL: &url.URL{Path: HookPath(source)}, Header: header,
				Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1, RemoteAddr: "192.0.2.1:1",
			})
		}
		taken := ask() == http.StatusAccepted
		if taken && !proven(forges[source], source, header, string(body)) {
			t.Fatalf("taken without a proof: %s %v", source, header)
		}
		if len(d.pokes)+len(d.pulls) > 0 && !taken {
			t.Fatal("poked by what was not taken")
		}
		forge, known := forges[source]
		if !known {
			if taken {
				t.Fatal("taken for a source that there is not")
			}
			return
		}
		if source == "lab" {
			header.Set("X-Gitlab-Token", string(secretTwo))
		} else {
			signAs(forge, header, secretOne, string(body), time.Now())
		}
		if code := ask(); code != http.StatusAccepted && len(body) <= hookBody {
			t.Fatalf("signed, and answered %d: %s %v", code, source, header)
		}
	})
}

// proven says, by other code than that under test, that headers prove a secret: the
// signature of one of them stands in some header, or the token does.
func proven(forge, source string, h http.Header, body string) bool {
	switch forge {
	case GitHub:
		got := strings.ToLower(h.Get("X-Hub-Signature-256"))
		return got == "sha256="+sign(secretOne, body) || got == "sha256="+sign(secretTwo, body)
	case Gitea:
		return strings.ToLower(h.Get("X-Gitea-Signature")) == sign(secretOne, body)
	case Forgejo:
		return strings.ToLower(h.Get("X-Forgejo-Signature")) == sign(secretOne, body)
	case Bitbucket, BitbucketDC:
		return strings.ToLower(h.Get("X-Hub-Signature")) == "sha256="+sign(secretOne, body)
	case Generic:
		for at := time.Now().Unix() - 310; at < time.Now().Unix()+310; at++ {
			t := strconv.FormatInt(at, 10)
			got := strings.ToLower(h.Get("X-Gitring-Signature"))
			if strings.Contains(got, "t="+t) && (strings.Contains(got, sign(secretOne, t+"."+body)) || strings.Contains(got, sign(secretTwo, t+"."+body))) {
				return true
			}
		}
	case GitLab:
		token := h.Get("X-Gitlab-Token")
		if source == "lab" {
			return token == string(secretOne) || token == string(secretTwo)
		}
		if len(h.Values("Webhook-Signature")) == 0 {
			return token == string(secretTwo)
		}
		text := h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "." + body
		return strings.Contains(h.Get("Webhook-Signature"), "v1,"+sign64(secretOne, text))
	}
	return false
}
