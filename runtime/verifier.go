package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/program"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

const (
	// mostSaid is how much is kept of what a program of a rule says, and of what a credential helper does.
	mostSaid = 64 << 10
	// toldOfIt is how much of its last line stands in a refusal.
	toldOfIt = 200
)

// verifyBy has a program of the host judge an image: it runs as it stands in the policy,
// without a shell, and with nothing of the daemon's environment.
func (d *Docker) verifyBy(ctx context.Context, a ring.Action, rule *imagesign.Rule, name reference.Named, digest string) (ring.Done, error) {
	cannot := fmt.Sprintf("cannot verify image %s by the program of %s", a.Image, rule.At)
	if err := disk.OwnProgram(rule.Exec[0], os.Geteuid()); err != nil {
		return ring.Done{}, fmt.Errorf("%s: %w", cannot, err)
	}
	home, err := os.MkdirTemp("", "gitring-verify-")
	if err != nil {
		return ring.Done{}, fmt.Errorf("%s: %w", cannot, err)
	}
	defer os.RemoveAll(home) //nolint:errcheck // it is below the host's folder for such
	heard, err := d.runVerifier(ctx, rule, name.String()+"@"+digest, home)
	said, exit := d.withoutLogins(ctx, name, heard.Out+heard.Err), heard.Exit
	lines := strings.Split(strings.TrimSpace(wording.DropControls(strings.ReplaceAll(said, "\r", ""), "\n")), "\n")
	for _, line := range lines {
		if line != "" {
			d.opts.Log.Info("heard from the program that verifies images", "image", a.Image, "says", line)
		}
	}
	switch {
	case err != nil:
		return ring.Done{}, fmt.Errorf("%s: %w", cannot, err)
	case exit == 0:
		return ring.Done{Verdict: &ring.ImageVerdict{
			Image: ring.VerdictKey(a.Image), Rule: a.Asks.Rule, Good: true, Form: string(imagesign.Exec), At: d.opts.Now().UTC(),
		}}, nil
	}
	return ring.Done{}, notSigned(a, &ring.Refusal{
		Code: ring.ImageSignature,
		Says: fmt.Sprintf("image %s: the program of %s says no (exit %d): %s", a.Image, rule.At, exit, wording.CutRunes(lines[len(lines)-1], toldOfIt)),
		Hint: "sign the image as the rule asks, or change the rule on this host; the daemon's log has all that the program said",
	})
}

// runVerifier runs the program, and ends it with all that it started.
func (d *Docker) runVerifier(ctx context.Context, rule *imagesign.Rule, image, home string) (program.Said, error) {
	argv := slices.Clone(rule.Exec)
	for i := range argv[1:] {
		argv[i+1] = strings.ReplaceAll(argv[i+1], imagesign.Image, image)
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	if dir := dockerConfigFolder(d.opts.DockerConfig); dir != "" {
		env = append(env, "DOCKER_CONFIG="+dir)
	}
	return program.Answer(ctx, program.Call{Argv: argv, Env: env, Dir: home, Within: rule.Timeout, Most: mostSaid})
}

// dockerConfigFolder is the folder to name in DOCKER_CONFIG; "" where there is none.
func dockerConfigFolder(path string) string {
	if path == "" {
		return ""
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return path
	}
	if filepath.Base(path) != "config.json" {
		return "" // programs look for that name alone
	}
	return filepath.Dir(path)
}

// withoutLogins strikes out what the program may have been given to sign in with.
func (d *Docker) withoutLogins(ctx context.Context, name reference.Named, said string) string {
	creds, err := d.login(ctx, name)
	if err != nil || creds == (registry.AuthConfig{}) {
		return said
	}
	for _, secret := range []string{creds.Password, creds.IdentityToken, creds.RegistryToken, basic(creds.Username, creds.Password)} {
		if secret != "" {
			said = strings.ReplaceAll(said, secret, "[login]")
		}
	}
	return said
}
