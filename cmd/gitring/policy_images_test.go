package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
)

// Public keys made for these tests alone.
const (
	onePub = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	twoPub = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"
)

// A key is as much a part of the policy as the file that names it.
func TestTheKeysOfAPolicyAreReadAgainWithIt(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{
		"p.yaml": "version: 1\nimages: {signatures: [{match: '**', keys: [key.pub]}]}\n", "key.pub": onePub,
	})
	key := filepath.Join(filepath.Dir(file), "key.pub")
	c, err := config.Read(file)
	require.NoError(t, err)
	j := admission.For(c)
	require.Contains(t, j.Rules.Own, key, "no container gets it")
	live := admission.NewLivePolicy(c)
	settledPolicy(live)
	first := live.Hash()

	require.NoError(t, os.WriteFile(key, []byte(twoPub), 0o600))
	changed, wrong := settledPolicy(live)
	require.True(t, changed)
	require.Empty(t, wrong)
	require.NotEqual(t, first, live.Hash())

	for _, mistake := range []func() error{
		func() error { return os.WriteFile(key, []byte("no key\n"), 0o600) },
		func() error { return os.Remove(key) },
		func() error {
			if err := os.WriteFile(key, []byte(onePub), 0o600); err != nil {
				return err
			}
			return os.Chmod(key, 0o666)
		},
	} {
		require.NoError(t, mistake())
		changed, wrong = settledPolicy(live)
		require.False(t, changed)
		require.Contains(t, wrong, "key.pub")
		require.NoError(t, os.RemoveAll(key))
		require.NoError(t, os.WriteFile(key, []byte(twoPub), 0o600))
		settledPolicy(live)
		_, wrong = live.Said()
		require.Empty(t, wrong)
	}
}

// What a rule of now denies was let pass when its plan came into force: it runs on, and
// gets no new instance.
func TestAnImageThatTheRulesDenyGetsNoNewInstance(t *testing.T) {
	file := withPolicy(t, "policy: p.yaml", map[string]string{"p.yaml": "version: 1\n"})
	c, err := config.Load(file)
	require.NoError(t, err)
	j := admission.For(c)
	j.Live, j.Runtimes = admission.NewLivePolicy(c), nil
	plan, refusals := j.Look(commitOf(webWith("cpu_shares: 10")), onProd)
	require.Empty(t, refusals)
	sent := payloadsOf(t, &plan.Apps[0])[0]
	require.NoError(t, j.Allow("web", sent))
	for _, rule := range []string{"signatures: [{match: '**', deny: true}]", "registries: [ghcr.io]"} {
		rewritten(t, file, "version: 1\nimages: {"+rule+"}\n")
		settledPolicy(j.Live)
		require.Error(t, j.Allow("web", sent), rule)
		rewritten(t, file, "version: 1\non_violation: report\nimages: {"+rule+"}\n")
		settledPolicy(j.Live)
		require.NoError(t, j.Allow("web", sent), "report goes on with what was accepted")
	}
}
