package runtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

// The real notation signs, and judges as the program of a rule. It reads its trust from a folder
// of configuration alone, and a program gets a home of its own: so env says where that folder is,
// as the how-to does. make cosign builds it.
func TestNotationJudgesASignatureAsTheProgramOfARule(t *testing.T) {
	program, dir := realProgram(t, "notation")
	p := newByProgram(t)
	signer := func(name string) (folder string) {
		folder = filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(folder, 0o755))
		run(t, folder, program, "cert", "generate-test", "--default", "keys.example")
		return folder
	}
	ours, theirs := signer("ours"), signer("theirs")
	policy := `{"version":"1.0","trustPolicies":[{"name":"acme","registryScopes":["*"],"signatureVerification":{"level":"strict"},"trustStores":["ca:keys.example"],"trustedIdentities":["*"]}]}`
	require.NoError(t, os.WriteFile(filepath.Join(ours, "notation", "trustpolicy.json"), []byte(policy), 0o644))
	argv := []string{"/usr/bin/env", "XDG_CONFIG_HOME=" + ours, program, "verify", "--insecure-registry", imagesign.Image}
	for _, tt := range []struct {
		name, by string
		other    bool // signed is another digest of the repository
		good     bool
	}{
		{name: "good", by: ours, good: true},
		{name: "theirs", by: theirs},
		{name: "replayed", by: ours, other: true},
		{name: "unsigned"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := "acme/" + tt.name
			digest := p.image(repo)
			signed := digest
			if tt.other {
				signed = p.PutManifest(repo, "2", "application/vnd.oci.image.manifest.v1+json", []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":"`+p.PutBlob(repo, []byte("{}"))+`"},"layers":[]}`))
			}
			if tt.by != "" {
				run(t, tt.by, program, "sign", "--insecure-registry", p.at+"/"+repo+"@"+signed)
			}
			v, err := p.judged(t, repo, digest, argv...)
			if tt.good {
				require.NoError(t, err)
				require.True(t, v.Good)
				return
			}
			require.Nil(t, v)
			require.Equal(t, ring.ImageSignature, codeOf(err), "%v", err)
		})
	}
}

// run has a program do its work with a folder of configuration.
func run(t *testing.T, config string, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"HOME=" + config, "XDG_CONFIG_HOME=" + config, "PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
