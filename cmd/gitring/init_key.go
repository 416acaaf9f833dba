package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
)

// signingKey is the key that a person signs with, its public half.
type signingKey struct {
	openPGP bool
	public  string // one line of SSH, or armour
	where   string // what user.signingKey says: a file, a fingerprint, or the key itself
	print   string // the fingerprint, as verify shows it
}

func (k signingKey) format() string {
	if k.openPGP {
		return "openpgp"
	}
	return "ssh"
}

// onSecurityKey reports whether a signature needs a touch.
func (k signingKey) onSecurityKey() bool { return strings.HasPrefix(k.public, "sk-") }

var fingerprint = regexp.MustCompile(`^(0x)?([0-9A-Fa-f]{16}|[0-9A-Fa-f]{40})$`)

// signingKey finds the key, or makes it: the one named, the one that Git signs
// with, the first of ~/.ssh.
func (in *initial) signingKey(ctx context.Context) (signingKey, error) {
	if in.f.generate != "" {
		return in.generated(ctx)
	}
	if in.f.key != "" {
		return in.keyOf(ctx, in.f.key, fingerprint.MatchString(in.f.key))
	}
	format := cmp.Or(in.Setting(ctx, "gpg.format"), "openpgp")
	if set := in.Setting(ctx, "user.signingkey"); set != "" && format != "x509" {
		return in.keyOf(ctx, set, format == "openpgp")
	}
	if files := sshKeys(); len(files) > 0 {
		file := files[0]
		if !in.f.yes && in.person.terminal && !in.person.machine {
			var err error
			if file, err = in.person.ask("which key signs?", file); err != nil {
				return signingKey{}, err
			}
		}
		return in.keyOf(ctx, file, fingerprint.MatchString(file))
	}
	return signingKey{}, &exit.Failure{
		Code: exit.NotFound, Says: "no signing key: Git is set to none, and ~/.ssh has none",
		Hint: "--generate-key makes one (--generate-key=ed25519-sk on a security key, which asks for a touch at each commit), --key names one",
	}
}

func (in *initial) keyOf(ctx context.Context, name string, openPGP bool) (signingKey, error) {
	if openPGP {
		return in.gpgKey(ctx, name)
	}
	line, found := strings.CutPrefix(name, "key::")
	where := name
	if !found && !strings.HasPrefix(name, "ssh-") && !strings.HasPrefix(name, "sk-") && !strings.HasPrefix(name, "ecdsa-") {
		file, err := publicFile(name)
		if err != nil {
			return signingKey{}, err
		}
		b, err := config.ReadLimited(file)
		if err != nil {
			return signingKey{}, fmt.Errorf("cannot read the public key: %w", err)
		}
		line, where = string(b), file
	} else if !found {
		line = name
	}
	f := strings.Fields(line)
	if len(f) < 2 {
		return signingKey{}, notAKey(where)
	}
	if strings.Contains(f[0], "-cert-") {
		return signingKey{}, &exit.Failure{
			Code: exit.Error, Says: where + " is a certificate, whose authority a host trusts, not itself",
			Hint: "write the authority's key into allowed_signers as docs/reference/signers.md says, or name the plain key with --key",
		}
	}
	blob, err := base64.StdEncoding.DecodeString(f[1])
	if err != nil || !strings.Contains(string(blob[:min(len(blob), 64)]), f[0]) {
		return signingKey{}, notAKey(where)
	}
	sum := sha256.Sum256(blob)
	return signingKey{public: f[0] + " " + f[1], where: where, print: "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])}, nil
}

func notAKey(where string) error {
	return &exit.Failure{Code: exit.Error, Says: where + " is no SSH public key", Hint: "name the .pub file, or an OpenPGP key by its fingerprint"}
}

// publicFile is the public half of a key that a person named by either.
func publicFile(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot find %s: %w", name, err)
		}
		name = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", name, err)
	}
	if !strings.HasSuffix(abs, ".pub") {
		if _, err := os.Stat(abs + ".pub"); err == nil {
			return abs + ".pub", nil
		}
	}
	return abs, nil
}

// sshKeys are the public keys of ~/.ssh whose private half is there, the kinds
// that are worth proposing, the best first.
func sshKeys() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(home, ".ssh", "*.pub"))
	kinds := []string{"ssh-ed25519", "sk-ssh-ed25519@openssh.com", "ecdsa-sha2-nistp256", "sk-ecdsa-sha2-nistp256@openssh.com"}
	byKind := make([][]string, len(kinds))
	for _, file := range files {
		b, err := config.ReadLimited(file)
		if err != nil {
			continue
		}
		kind, _, _ := strings.Cut(string(b), " ")
		if _, err := os.Stat(strings.TrimSuffix(file, ".pub")); err != nil {
			continue
		}
		if i := slices.Index(kinds, kind); i >= 0 {
			byKind[i] = append(byKind[i], file)
		}
	}
	return slices.Concat(byKind...)
}

// generated makes a key of its own for signing. It has a passphrase where
// somebody can be asked for one.
func (in *initial) generated(ctx context.Context) (signingKey, error) {
	if in.f.generate != "ed25519" && in.f.generate != "ed25519-sk" {
		return signingKey{}, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--generate-key: %q is not known", in.f.generate), Hint: "ed25519, or ed25519-sk on a security key"}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return signingKey{}, fmt.Errorf("cannot find a place for the key: %w", err)
	}
	file := filepath.Join(home, ".ssh", "gitring_"+strings.ReplaceAll(in.f.generate, "-", "_"))
	if _, err := os.Stat(file); err == nil {
		return in.keyOf(ctx, file, false) // of an earlier run
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return signingKey{}, fmt.Errorf("cannot make a key: %w", err)
	}
	args := []string{"-q", "-t", in.f.generate, "-C", cmp.Or(in.Setting(ctx, "user.email"), "gitring"), "-f", file}
	asked := in.person.terminal && !in.f.yes
	if !asked {
		args = append(args, "-N", "")
		in.Notice("%s has no passphrase: ssh-keygen -p -f %s sets one", file, file)
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if asked || in.f.generate == "ed25519-sk" {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in.person.in, in.Errs, in.Errs
	}
	if err := cmd.Run(); err != nil {
		return signingKey{}, fmt.Errorf("cannot make a key with ssh-keygen: %s", cmp.Or(checkout.LastLine(errs.String()), err.Error()))
	}
	return in.keyOf(ctx, file, false)
}

// gpgKey exports an OpenPGP key.
func (in *initial) gpgKey(ctx context.Context, name string) (signingKey, error) {
	gpg := cmp.Or(in.Setting(ctx, "gpg.openpgp.program"), in.Setting(ctx, "gpg.program"), "gpg")
	var outs [2]bytes.Buffer
	for i, args := range [][]string{{"--with-colons", "--fingerprint"}, {"--armor", "--export"}} {
		cmd := exec.CommandContext(ctx, gpg, append(append([]string{"--batch", "--no-tty"}, args...), "--", strings.TrimSuffix(name, "!"))...)
		cmd.Stdout = &outs[i]
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			return signingKey{}, fmt.Errorf("cannot run gpg: %w", err)
		}
	}
	for line := range strings.Lines(outs[0].String()) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if f[0] == "fpr" && len(f) > 9 && outs[1].Len() > 0 {
			return signingKey{openPGP: true, public: outs[1].String(), where: f[9], print: f[9]}, nil
		}
	}
	return signingKey{}, &exit.Failure{Code: exit.NotFound, Says: "gpg has no key " + name, Hint: "gpg --list-secret-keys shows those it has; --key takes another one"}
}

// signerBefore is the name that a file of signers here has for the key; "" when
// it does not have it.
func (in *initial) signerBefore() string {
	if in.before == nil || in.out.key.openPGP {
		return ""
	}
	b, err := config.ReadLimited(in.before.Trust.AllowedSigners)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, rest, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(rest, in.out.key.public) && principal.MatchString(name) {
			return name
		}
	}
	return ""
}

// trustOf is complete trust in one key alone, strict: the commit that trust begins
// with is signed by a person.
func (in *initial) trustOf(k signingKey) (*gitsync.Trust, error) {
	dir, err := os.MkdirTemp("", "gitring-init-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "signers")
	if err := os.WriteFile(file, []byte(in.signersFile()), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", file, err)
	}
	cfg := gitsync.TrustConfig{Mode: gitsync.Strict, AnyOwner: true, ExpiryGrace: config.DefaultExpiryGrace}
	if k.openPGP {
		cfg.OpenPGPKeys = file
	} else {
		cfg.AllowedSigners = file
	}
	return gitsync.LoadTrust(cfg, in.out.Source, in.out.Branch)
}

// signersFile is the content of the file that says who may sign.
func (in *initial) signersFile() string {
	if in.out.key.openPGP {
		return in.out.key.public
	}
	return fmt.Sprintf("%s namespaces=\"git\" %s\n", in.out.Signer, in.out.key.public)
}
