package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// signAs puts into h what a forge sends with a body.
func signAs(forge string, h http.Header, secret []byte, body string, now time.Time) {
	switch forge {
	case GitHub:
		h.Set("X-Hub-Signature-256", "sha256="+sign(secret, body))
	case Gitea:
		h.Set("X-Gitea-Signature", sign(secret, body))
		h.Set("X-Hub-Signature-256", "sha256="+sign(secret, body))
	case Forgejo:
		h.Set("X-Forgejo-Signature", sign(secret, body))
		h.Set("X-Gitea-Signature", sign(secret, body))
	case Bitbucket, BitbucketDC:
		h.Set("X-Hub-Signature", "sha256="+sign(secret, body))
	case Generic:
		at := strconv.FormatInt(now.Unix(), 10)
		h.Set("X-Gitring-Signature", "t="+at+",v1="+sign(secret, at+"."+body))
	case GitLab:
		at := strconv.FormatInt(now.Unix(), 10)
		h.Set("Webhook-Id", "f5e5f430-f57b-4e6e-9fac-d9128cd7232f")
		h.Set("Webhook-Timestamp", at)
		h.Set("Webhook-Signature", "v1,"+sign64(secret, "f5e5f430-f57b-4e6e-9fac-d9128cd7232f."+at+"."+body))
	}
}

func sign64(secret []byte, text string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// now is what the clock shows in a synctest bubble.
const now = 946684800

func TestWhoSentIt(t *testing.T) {
	const body = `{"object_kind":"push","ref":"refs/heads/main","push":{"changes":[{"new":{"type":"branch","name":"main"}}]}}`
	timed := func(secret []byte, at int64) string {
		return fmt.Sprintf("t=%d,v1=%s", at, sign(secret, fmt.Sprintf("%d.%s", at, body)))
	}
	standard := func(secret []byte, id string, at int64) string {
		return "v1," + sign64(secret, fmt.Sprintf("%s.%d.%s", id, at, body))
	}
	of := func(id string, at int64, signature string, more ...string) []string {
		return append([]string{"webhook-id", id, "webhook-timestamp", fmt.Sprint(at), "webhook-signature", signature}, more...)
	}
	one, two, zeros := string(secretOne), string(secretTwo), "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32))
	first, last := int64(now-300), int64(now+300)
	for _, tc := range []struct {
		name, source string
		headers      []string
		code         int
	}{
		{"gitlab: the token", "lab", []string{"X-Gitlab-Token", one}, 202},
		{"gitlab: the other token", "lab", []string{"X-Gitlab-Token", two}, 202},
		{"gitlab: no token", "lab", nil, 401},
		{"gitlab: an empty token", "lab", []string{"X-Gitlab-Token", ""}, 401},
		{"gitlab: the beginning of the token", "lab", []string{"X-Gitlab-Token", one[:31]}, 401},
		{"gitlab: more than the token", "lab", []string{"X-Gitlab-Token", one + "0"}, 401},
		{"gitlab: the token of another case", "lab", []string{"X-Gitlab-Token", strings.ToUpper(one)}, 401},
		{"gitlab: a signature where only the token is known", "lab", of("a", now, zeros, "X-Gitlab-Token", one), 202},
		{"gitlab: signed", "signing-lab", of("a", now, standard(secretOne, "a", now)), 202},
		{"gitlab: signed, and the right token", "signing-lab", of("a", now, standard(secretOne, "a", now), "X-Gitlab-Token", two), 202},
		{"gitlab: signed, and a wrong token", "signing-lab", of("a", now, standard(secretOne, "a", now), "X-Gitlab-Token", "x"), 202},
		{"gitlab: a wrong signature is not made good by the token", "signing-lab", of("a", now, zeros, "X-Gitlab-Token", two), 401},
		{"gitlab: nor is an empty one", "signing-lab", of("a", now, "", "X-Gitlab-Token", two), 401},
		{"gitlab: nor is an old one", "signing-lab", of("a", first-1, standard(secretOne, "a", first-1), "X-Gitlab-Token", two), 401},
		{"gitlab: the token beside a signing token, for the time of a change", "signing-lab", []string{"X-Gitlab-Token", two}, 202},
		{"gitlab: the signing token as a token", "signing-lab", []string{"X-Gitlab-Token", string(keyOf(secretOne))}, 401},
		{"gitlab: two signatures, the second is right", "signing-lab", of("a", now, zeros+" "+standard(secretOne, "a", now)), 202},
		{"gitlab: two signatures, the first is right", "signing-lab", of("a", now, standard(secretOne, "a", now)+" "+zeros), 202},
		{"gitlab: a signature of a version to come, and ours", "signing-lab", of("a", now, "v1a,AAAA v2,BBBB "+standard(secretOne, "a", now)), 202},
		{"gitlab: only of a version to come", "signing-lab", of("a", now, "v2,"+standard(secretOne, "a", now)[3:]), 401},
		{"gitlab: in hex", "signing-lab", of("a", now, "v1,"+sign(secretOne, "a.946684800."+body)), 401},
		{"gitlab: the right one after more than anybody sends", "signing-lab", of("a", now, strings.Repeat(zeros+" ", 8)+standard(secretOne, "a", now)), 401},
		{"gitlab: signed with the text of the key", "signing-lab", of("a", now, standard(keyOf(secretOne), "a", now)), 401},
		{"gitlab: of another id", "signing-lab", of("b", now, standard(secretOne, "a", now)), 401},
		{"gitlab: without an id", "signing-lab", of("", now, standard(secretOne, "", now)), 401},
		{"gitlab: a dot in the id", "signing-lab", of("a.b", now, standard(secretOne, "a.b", now)), 401},
		{"gitlab: of another time", "signing-lab", of("a", now+1, standard(secretOne, "a", now)), 401},
		{"gitlab: five minutes ago", "signing-lab", of("a", first, standard(secretOne, "a", first)), 202},
		{"gitlab: longer ago", "signing-lab", of("a", first-1, standard(secretOne, "a", first-1)), 401},
		{"gitlab: in five minutes", "signing-lab", of("a", last, standard(secretOne, "a", last)), 202},
		{"gitlab: later", "signing-lab", of("a", last+1, standard(secretOne, "a", last+1)), 401},
		{"bitbucket", "cloud", []string{"X-Hub-Signature", "sha256=" + sign(secretOne, body)}, 202},
		{"bitbucket: without the prefix", "cloud", []string{"X-Hub-Signature", sign(secretOne, body)}, 401},
		{"bitbucket: by GitHub's header", "cloud", []string{"X-Hub-Signature-256", "sha256=" + sign(secretOne, body)}, 401},
		{"bitbucket: SHA-1 under the name of SHA-256", "cloud", []string{"X-Hub-Signature", "sha256=0123456789012345678901234567890123456789"}, 401},
		{"bitbucket-dc", "dc", []string{"X-Hub-Signature", "sha256=" + sign(secretOne, body)}, 202},
		{"bitbucket-dc: another secret", "dc", []string{"X-Hub-Signature", "sha256=" + sign(secretTwo, body)}, 401},
		{"generic", "other", []string{"X-Gitring-Signature", timed(secretOne, now)}, 202},
		{"generic: the other secret", "other", []string{"X-Gitring-Signature", timed(secretTwo, now)}, 202},
		{"generic: with spaces", "other", []string{"X-Gitring-Signature", strings.ReplaceAll(timed(secretOne, now), ",", ", ")}, 202},
		{"generic: several, one is right", "other", []string{"X-Gitring-Signature", timed(secretOne, now) + ",v1=" + strings.Repeat("0", 64) + ",v0=x"}, 202},
		{"generic: a wrong one before it", "other", []string{"X-Gitring-Signature", "v1=" + strings.Repeat("0", 64) + "," + timed(secretOne, now)}, 202},
		{"generic: five minutes ago", "other", []string{"X-Gitring-Signature", timed(secretOne, first)}, 202},
		{"generic: longer ago", "other", []string{"X-Gitring-Signature", timed(secretOne, first-1)}, 401},
		{"generic: in five minutes", "other", []string{"X-Gitring-Signature", timed(secretOne, last)}, 202},
		{"generic: later", "other", []string{"X-Gitring-Signature", timed(secretOne, last+1)}, 401},
		{"generic: two times", "other", []string{"X-Gitring-Signature", timed(secretOne, now) + fmt.Sprintf(",t=%d", now)}, 401},
		{"generic: no time", "other", []string{"X-Gitring-Signature", "v1=" + sign(secretOne, body)}, 401},
		{"generic: an empty time", "other", []string{"X-Gitring-Signature", "t=,v1=" + sign(secretOne, "."+body)}, 401},
		{"generic: a time that is no number", "other", []string{"X-Gitring-Signature", "t=+946684800,v1=" + sign(secretOne, "+946684800."+body)}, 401},
		{"generic: a time without an end", "other", []string{"X-Gitring-Signature", "t=99999999999999999999,v1=" + sign(secretOne, "99999999999999999999."+body)}, 401},
		{"generic: only the body is signed", "other", []string{"X-Gitring-Signature", fmt.Sprintf("t=%d,v1=%s", now, sign(secretOne, body))}, 401},
		{"generic: nothing", "other", nil, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.EqualValues(t, now, time.Now().Unix())
				d := newDoor(t)
				require.Equal(t, tc.code, d.ask(hookRequest("/v1/webhook/"+tc.source, body, tc.headers...)))
				want := map[string]int{}
				if tc.code == 202 {
					want[tc.source] = 1
				}
				require.Equal(t, want, d.pokes)
			})
		})
	}
}

func TestEveryForgeRefusesWhatAnotherSecretSigned(t *testing.T) {
	for forge, source := range sampleSource {
		d := newDoor(t)
		for _, secret := range [][]byte{nil, []byte("another secret, of 32 bytes or more"), secretOne[:31]} {
			r := hookRequest("/v1/webhook/"+source, "{}")
			signAs(forge, r.Header, secret, "{}", time.Now())
			require.Equal(t, 401, d.ask(r), forge)
		}
		r := hookRequest("/v1/webhook/"+source, "{}")
		signAs(forge, r.Header, secretOne, "{} ", time.Now())
		require.Equal(t, 401, d.ask(r), "%s: of another body", forge)
		require.Empty(t, d.pokes)
	}
}

// Most forgeries end at their headers.
func TestABodyIsReadOnlyWhereItCanBeRight(t *testing.T) {
	for forge, source := range sampleSource {
		d := newDoor(t)
		read := false
		r := hookRequest("/v1/webhook/"+source, "")
		r.ContentLength = -1
		r.Body = reading{&read}
		require.Equal(t, 401, d.ask(r), forge)
		require.False(t, read, forge)
	}
}

type reading struct{ read *bool }

func (r reading) Read([]byte) (int, error) {
	*r.read = true
	return 0, fmt.Errorf("read without need")
}
func (reading) Close() error { return nil }
