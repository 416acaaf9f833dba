package runtime

import (
	"encoding/json"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
)

// bundleOf is the one bundle about an image, and the manifest that holds it.
func (s *signedAt) bundleOf(t *testing.T, repo, digest string) (manifest string, bundle []byte) {
	t.Helper()
	all := s.referring("acme/"+repo, digest)
	for _, d := range all {
		c, _ := s.Manifest("acme/"+repo, d)
		var m struct {
			Layers []struct{ MediaType, Digest string }
		}
		require.NoError(t, json.Unmarshal(c.Body, &m))
		for _, l := range m.Layers {
			if strings.HasPrefix(l.MediaType, imagesign.BundleTypes) {
				b, ok := s.Blob("acme/"+repo, l.Digest)
				require.True(t, ok)
				return d, b
			}
		}
	}
	require.FailNow(t, "no bundle")
	return "", nil
}

// mutate changes a text a little, in ways that a reader of it may pass over.
func mutate(r *rand.Rand, body []byte) []byte {
	s := string(body)
	at := r.Intn(len(s))
	words := []string{" ", "\n", "\t", "\"", ",", "null", "{}", "[]", "0", "A", "=", "\\u0041", "é", "\x00", "/*x*/", `"keyid":"x",`, `"hint":"y",`, `"extra":1,`, `"tlogEntries":[],`, `"mediaType":"x",`}
	switch r.Intn(6) {
	case 0:
		return []byte(s[:at] + string(rune(33+r.Intn(90))) + s[at+1:])
	case 1:
		return []byte(s[:at] + s[min(len(s), at+1+r.Intn(4)):])
	case 2:
		return []byte(s[:at] + words[r.Intn(len(words))] + s[at:])
	case 3: // behind a comma or a brace, where more may stand
		if i := strings.IndexAny(s[at:], "{,"); i >= 0 {
			at += i + 1
		}
		return []byte(s[:at] + words[r.Intn(len(words))] + s[at:])
	case 4: // in another case
		i := strings.IndexAny(s[at:], "abcdefghijklmnopqrstuvwxyz")
		if i < 0 {
			return body
		}
		return []byte(s[:at+i] + strings.ToUpper(s[at+i:at+i+1]) + s[at+i+1:])
	}
	end := min(len(s), at+r.Intn(40)) // twice
	return []byte(s[:end] + s[at:end] + s[end:])
}

// TestNothingIsAcceptedThatCosignRefuses holds the judge to the real program: of many changed
// bundles, each that still counts is one that cosign takes, too. make cosign builds it.
func TestNothingIsAcceptedThatCosignRefuses(t *testing.T) {
	program, err := filepath.Abs("../bin/cosign3")
	require.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Skip("no bin/cosign3; make cosign builds it")
	}
	n := 5000
	if said := os.Getenv("GITRING_SIGNATURE_MUTATIONS"); said != "" {
		n, err = strconv.Atoi(said)
		require.NoError(t, err)
	}
	s := signedRegistry(t, "cosign3-referrers")
	index := s.Images["index"]
	keys := s.keys(t, "p256")
	manifest, bundle := s.bundleOf(t, "p256", index)
	held, _ := s.Manifest("acme/p256", manifest)
	dir := t.TempDir()
	pub := filepath.Join(dir, "key.pub")
	require.NoError(t, os.WriteFile(pub, []byte(s.Keys["p256"]), 0o600))
	cosign := func() ([]byte, error) {
		cmd := exec.Command(program, "verify", "--key", pub, "--allow-http-registry", "--insecure-ignore-tlog=true", s.at+"/acme/p256@"+index)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		return cmd.CombinedOutput()
	}
	out, err := cosign()
	require.NoError(t, err, "%s", out)

	r := rand.New(rand.NewSource(1))
	accepted, asked := 0, map[string]bool{}
	last := manifest
	for range n {
		changed := mutate(r, bundle)
		who, err := imagesign.JudgeBundle(changed, index, keys)
		if err != nil || len(who) == 0 {
			continue
		}
		if accepted++; asked[string(changed)] || string(changed) == string(bundle) {
			continue
		}
		asked[string(changed)] = true
		s.Forget("acme/p256", last)
		d := s.PutBlob("acme/p256", changed)
		body := strings.Replace(string(held.Body), digestIn(t, held.Body), d, 1)
		body = strings.Replace(body, `"size":`+strconv.Itoa(len(bundle))+`,"digest":"`+d, `"size":`+strconv.Itoa(len(changed))+`,"digest":"`+d, 1)
		last = s.PutManifest("acme/p256", "", held.Type, []byte(body))
		out, err := cosign()
		require.NoError(t, err, "%q: %s", changed, out)
	}
	t.Logf("%d of %d changed bundles are accepted, and cosign takes each of the %d kinds", accepted, n, len(asked))
	require.NotEmpty(t, asked, "some changes say nothing, such as a space")
}

// digestIn is that of the bundle in a manifest.
func digestIn(t *testing.T, manifest []byte) string {
	t.Helper()
	var m struct {
		Layers []struct{ MediaType, Digest string }
	}
	require.NoError(t, json.Unmarshal(manifest, &m))
	for _, l := range m.Layers {
		if strings.HasPrefix(l.MediaType, imagesign.BundleTypes) {
			return l.Digest
		}
	}
	return ""
}
