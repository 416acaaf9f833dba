package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// Two public keys made for this test alone.
const (
	keyOne = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	keyTwo = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"
)

// What was verified counts by the very rule that it was verified by, and a no by the rule of
// now is a violation of what is in force.
func TestAnImageThatLostItsKeyIsAViolation(t *testing.T) {
	cfg := lonely(t, "")
	key := filepath.Join(filepath.Dir(cfg.File), "key.pub")
	require.NoError(t, os.WriteFile(key, []byte(keyOne), 0o600))
	body, err := os.ReadFile(cfg.File)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.File, append(body, []byte("policy: {images: {signatures: [{match: 'ghcr.io/acme/**', keys: [key.pub]}]}}\n")...), 0o600))
	cfg, err = config.Load(cfg.File)
	require.NoError(t, err)
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer d.Close()
	ctx := t.Context()
	d.policy.Look()

	const written, pin = "GHCR.io/acme/web:1", "GHCR.io/acme/web:1@sha256:ab"
	app := ring.App{Name: "web", Source: "prod", Path: "web", Services: []ring.Service{{Name: "web", Kind: ring.Worker, Spec: ring.Spec{Image: written}, Pin: ring.Pin{Image: pin}}}}
	rule := d.signing().Rules.For(written)
	require.NotEmpty(t, rule)
	require.False(t, d.isVerified(written, pin))
	require.True(t, d.isVerified("nginx:1", "nginx:1@sha256:ab"), "no rule is about it")
	verdict := ring.ImageVerdict{Image: "ghcr.io/acme/web@sha256:ab", Rule: rule, Good: true, At: time.Now()}
	require.NoError(t, d.ledger.Record(ctx, []ring.Fact{ring.InForce{App: app}, verdict}, nil))
	require.True(t, d.isVerified(written, pin))
	require.False(t, d.isVerified(written, "GHCR.io/acme/web:1@sha256:cd"), "another digest")
	d.judgeInForce(ctx)
	require.Empty(t, d.violations.now())

	print := d.violationPrint()
	require.NoError(t, os.WriteFile(key, []byte(keyTwo), 0o600))
	d.policy.Look()
	d.policy.Look()
	now := d.signing().Rules.For(written)
	require.NotEqual(t, rule, now)
	require.False(t, d.isVerified(written, pin), "by the rule of now nobody has answered")
	d.judgeInForce(ctx)
	require.Empty(t, d.violations.now(), "and nobody has said no")
	require.NotEqual(t, print, d.violationPrint())
	print = d.violationPrint()

	no := ring.ImageVerdict{Image: "ghcr.io/acme/web@sha256:ab", Rule: now, At: time.Now(), Code: ring.ImageSignature, Says: "image ghcr.io/acme/web:1 has 1 signature, and none by a listed key"}
	require.NoError(t, d.ledger.Record(ctx, []ring.Fact{no}, nil))
	require.NotEqual(t, print, d.violationPrint(), "so it is judged anew")
	d.judgeInForce(ctx)
	require.Len(t, d.violations.now(), 1)
	require.Equal(t, "images.signatures", d.violations.now()[0].rule)
	require.Contains(t, d.policyConditions("prod")[0].Reason, "web/web: services.web.image: image ghcr.io/acme/web:1 has 1 signature")

	require.NoError(t, os.WriteFile(key, []byte("no key\n"), 0o600))
	d.policy.Look()
	d.policy.Look()
	_, err = d.imageRules()
	require.ErrorIs(t, err, errPolicyInvalid, "no new image passes while nobody can say what the policy is")
	require.Equal(t, now, d.signing().Rules.For(written), "what was verified goes on by the rules before")

	// A verdict outlives the daemon.
	f, err := d.store.Facts(ctx)
	require.NoError(t, err)
	require.Equal(t, no.Says, f.Signed[no.Image].Says)
}
