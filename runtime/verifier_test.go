package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/registry"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

// judgedBy asks a program about an image.
func judgedBy(t *testing.T, program string, timeout time.Duration) (*ring.ImageVerdict, error) {
	t.Helper()
	rule := imagesign.Rule{Match: "**", Exec: []string{program, "--image={image}", "{image}"}, Timeout: timeout, At: "policy.yaml:4"}
	d := newDocker(Options{ImageRules: func() ([]imagesign.Rule, error) { return []imagesign.Rule{rule}, nil }}, &calls{}, nil)
	done, err := d.verify(t.Context(), loopbackInClear(), ring.Action{
		Kind: ring.DoVerify, Image: "quay.io/corp/web:1@sha256:" + strings.Repeat("ab", 32), Asks: &ring.ImageAsk{Written: "quay.io/corp/web:1", Rule: rule.Hash()},
	})
	return done.Verdict, err
}

func script(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "judge")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	return file
}

func TestAProgramOfTheHostJudgesAnImage(t *testing.T) {
	t.Setenv("GITRING_TOKEN", "secret of the daemon")
	said := filepath.Join(t.TempDir(), "said")
	v, err := judgedBy(t, script(t, `env >`+said+`; echo "$@" >>`+said+`; [ "$0" != sh ]`), 30*time.Second)
	require.NoError(t, err)
	require.True(t, v.Good)
	require.Equal(t, "exec", v.Form)
	require.Equal(t, "quay.io/corp/web@sha256:"+strings.Repeat("ab", 32), v.Image)
	body, err := os.ReadFile(said)
	require.NoError(t, err)
	require.NotContains(t, string(body), "GITRING_TOKEN", "nothing of the daemon's environment")
	require.Contains(t, string(body), "--image=quay.io/corp/web@sha256:"+strings.Repeat("ab", 32)+" quay.io/corp/web@sha256:", "by its digest, without the tag")
	home := ""
	for line := range strings.Lines(string(body)) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "HOME="); ok {
			home = at
		}
	}
	require.NotEmpty(t, home)
	require.NoDirExists(t, home, "what it left there goes")

	_, err = judgedBy(t, script(t, `echo first; echo "no matching signatures" >&2; exit 12`), 30*time.Second)
	require.Equal(t, ring.ImageSignature, codeOf(err))
	require.ErrorContains(t, err, "policy.yaml:4 says no (exit 12): no matching signatures")

	for name, program := range map[string]string{
		"one that is not there": "/nonexistent/judge",
		"one that hangs":        script(t, "sleep 60 & wait"),
		"one that is killed":    script(t, "kill -9 $$"),
	} {
		v, err := judgedBy(t, program, time.Second)
		require.Error(t, err, name)
		require.Nil(t, v, name)
		require.Empty(t, codeOf(err), "%s: no answer is no verdict", name)
	}
	v, err = judgedBy(t, script(t, `head -c 300000 /dev/zero; echo`), 30*time.Second)
	require.NoError(t, err, "what it says is bounded, and does not stop it")
	require.True(t, v.Good)
}

// Whoever can change the program decides what runs here.
func TestAProgramThatOthersCanWriteIsNotRun(t *testing.T) {
	file := script(t, "exit 0")
	require.NoError(t, os.Chmod(file, 0o777))
	_, err := judgedBy(t, file, time.Second)
	require.ErrorContains(t, err, "can be written by others")
	require.NoError(t, os.Chmod(file, 0o755))
	link := filepath.Join(filepath.Dir(file), "link")
	require.NoError(t, os.Symlink(file, link))
	_, err = judgedBy(t, link, time.Second)
	require.ErrorContains(t, err, "symlink")
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
	_, err = judgedBy(t, file, time.Second)
	require.ErrorContains(t, err, "can be written by others")
}

func TestRegistriesAreAskedWhereTheEngineWould(t *testing.T) {
	conf := loopbackInClear().conf
	conf.Mirrors = []string{"https://mirror.example.org/", "http://10.0.0.1:5000", "ftp://x", "https://with.a/path"}
	conf.IndexConfigs = map[string]*registry.IndexInfo{"plain.example.org:5000": {Secure: false}, "docker.io": {Secure: true}}
	for _, tt := range []struct {
		domain string
		want   []registryHost
	}{
		{"docker.io", []registryHost{{host: "mirror.example.org", mirror: true}, {host: "10.0.0.1:5000", mirror: true, plain: true}, {host: hubHost}}},
		{"203.0.113.1:5000", []registryHost{{host: "203.0.113.1:5000"}}},
		{"127.0.0.1:5000", []registryHost{{host: "127.0.0.1:5000", insecure: true}, {host: "127.0.0.1:5000", insecure: true, plain: true}}},
		{"plain.example.org:5000", []registryHost{{host: "plain.example.org:5000", insecure: true}, {host: "plain.example.org:5000", insecure: true, plain: true}}},
	} {
		require.Equal(t, tt.want, registryHosts(t.Context(), tt.domain, &conf), tt.domain)
	}
	require.Equal(t, []registryHost{{host: "127.0.0.1:5000"}}, registryHosts(t.Context(), "127.0.0.1:5000", nil), "an engine that says nothing insists")
}

// The loop asks for verdicts; this is what stands behind it.
func TestNothingUnverifiedIsPulledOrMade(t *testing.T) {
	var asked []string
	d := newDocker(Options{Verified: func(written, pin string) bool { asked = append(asked, written+" "+pin); return false }}, &calls{}, nil)
	_, err := d.pullAnew(t.Context(), nil, asking{Action: ring.Action{Image: "a@sha256:x", Asks: &ring.ImageAsk{Written: "a:1"}}})
	require.ErrorContains(t, err, "to be verified first")
	_, err = d.create(t.Context(), nil, ring.Action{Of: &ring.App{}, Want: &ring.Service{Spec: ring.Spec{Image: "a:1"}, Pin: ring.Pin{Image: "a@sha256:x"}}})
	require.ErrorContains(t, err, "to be verified first")
	require.Equal(t, []string{"a:1 a@sha256:x", "a:1 a@sha256:x"}, asked)
}
