package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sample is a request as a forge sends it, of the documented shape and made up.
type sample struct {
	Forge, Name string            `json:"-"`
	Headers     map[string]string `json:"headers"`
	Body        json.RawMessage   `json:"body"`
}

func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/webhooks/*/*.json")
	require.NoError(t, err)
	var all []sample
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		s := sample{Forge: filepath.Base(filepath.Dir(file)), Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		require.NoError(t, json.Unmarshal(raw, &s), file)
		all = append(all, s)
	}
	return all
}

// sampleSource is the source of newDoor that takes a forge's samples.
var sampleSource = map[string]string{
	GitHub: "prod", GitLab: "signing-lab", Gitea: "tea", Forgejo: "forge", Bitbucket: "cloud", BitbucketDC: "dc", Generic: "other",
}

func (s *sample) request() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/webhook/"+sampleSource[s.Forge], bytes.NewReader(s.Body))
	for name, value := range s.Headers {
		r.Header.Set(name, value)
	}
	return r
}

// signed is the request as its forge signs it, with the first secret.
func (s *sample) signed(now time.Time) *http.Request {
	r := s.request()
	signAs(s.Forge, r.Header, secretOne, string(s.Body), now)
	return r
}

// want is what a sample is good for, by its name: "poke", "pulls" or "".
func (s *sample) want() string {
	switch s.Name {
	case "push", "push-first", "push-several", "push-short", "push-untold", "system-push", "mirror-synchronized":
		return "poke"
	case "pull-request-opened", "pull-request-synchronized":
		return "pulls"
	}
	return ""
}

func TestEachForgeSaysWhatItSaysAndOnlyAPushToTheBranchPokes(t *testing.T) {
	seen := map[string]map[string]bool{}
	for _, s := range samples(t) {
		if seen[s.Forge] == nil {
			seen[s.Forge] = map[string]bool{}
		}
		seen[s.Forge][s.Name] = true
		t.Run(s.Forge+"/"+s.Name, func(t *testing.T) {
			d := newDoor(t)
			require.Equal(t, http.StatusUnauthorized, d.ask(s.request()), "unsigned")
			require.Empty(t, d.pokes)
			require.Empty(t, d.pulls)
			require.Equal(t, http.StatusAccepted, d.ask(s.signed(time.Now())))
			pokes, pulls := map[string]int{}, map[string]int{}
			switch s.want() {
			case "poke":
				pokes[sampleSource[s.Forge]] = 1
			case "pulls":
				pulls[sampleSource[s.Forge]] = 1
			}
			require.Equal(t, pokes, d.pokes)
			require.Equal(t, pulls, d.pulls)
		})
	}
	for _, forge := range Forges() {
		for _, name := range []string{"push", "push-other-branch", "push-tag", "delete-branch"} {
			require.True(t, seen[forge][name], "%s has no sample %s", forge, name)
		}
		require.True(t, forge == Generic || seen[forge]["pull-request-opened"] && len(seen[forge]) > 5, forge)
	}
}

// Whoever asks nothing of pull requests hears nothing of them.
func TestWithoutAnybodyWhoAsksAPullRequestPokesNothing(t *testing.T) {
	d := newDoor(t)
	d.Pulls = nil
	for _, s := range samples(t) {
		if s.want() == "pulls" {
			require.Equal(t, http.StatusAccepted, d.ask(s.signed(time.Now())))
		}
	}
	require.Empty(t, d.pokes)
}

// A hint is cheap: what is authentic and cannot be read is one.
func TestWhatIsAuthenticAndCannotBeReadPokes(t *testing.T) {
	many := `{"push":{"changes":[` + strings.Repeat(`{"new":{"type":"branch","name":"feature"}},`, 99) + `{"new":{"type":"branch","name":"feature"}}]}}`
	manyRefs := `{"changes":[` + strings.Repeat(`{"ref":{"id":"refs/heads/feature"},"type":"ADD"},`, 99) + `{"ref":{"id":"refs/heads/feature"},"type":"ADD"}]}`
	for _, tc := range []struct{ name, forge, event, body string }{
		{"no JSON", GitHub, "push", "\x00{{"},
		{"nothing", GitHub, "push", ""},
		{"a form, which is what GitHub posts unless told otherwise", GitHub, "push", "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fother%22%7D"},
		{"a list", Gitea, "push", "[]"},
		{"a ref that is a number", Forgejo, "push", `{"ref":7}`},
		{"no ref", GitLab, "Push Hook", `{"object_kind":"push"}`},
		{"a system hook of another shape", GitLab, "System Hook", `[1]`},
		{"nested deeper than anybody does", GitLab, "Push Hook", strings.Repeat("[", 100_000)},
		{"no changes", Bitbucket, "repo:push", `{"push":{"changes":[]}}`},
		{"changes that are none", Bitbucket, "repo:push", `{"push":{"changes":{}}}`},
		{"more changes than are read", Bitbucket, "repo:push", many},
		{"more refs than are read", BitbucketDC, "repo:refs_changed", manyRefs},
		{"a mirror that counts its refs no more", BitbucketDC, "mirror:repo_synchronized", `{"refLimitExceeded":true,"changes":[]}`},
		{"a body of words", Generic, "", "deploy, please"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDoor(t)
			s := sample{Forge: tc.forge, Body: []byte(tc.body)}
			if f, _ := forgeOf(tc.forge); tc.event != "" {
				s.Headers = map[string]string{f.events[0]: tc.event}
			}
			require.Equal(t, http.StatusAccepted, d.ask(s.signed(time.Now())))
			require.Equal(t, map[string]int{sampleSource[tc.forge]: 1}, d.pokes)
		})
	}
}
