package setup

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
func (in *Setup) signingKey(ctx context.Context) (signingKey, error) {
	if in.options.Generate != "" {
		return in.generated(ctx)
	}
	if in.options.Key != "" {
		return in.keyOf(ctx, in.options.Key, fingerprint.MatchString(in.options.Key))
	}
	format := cmp.Or(in.Setting(ctx, "gpg.format"), "openpgp")
	if set := in.Setting(ctx, "user.signingkey"); set != "" && format != "x509" {
		return in.keyOf(ctx, set, format == "openpgp")
	}
	if files := sshKeys(); len(files) > 0 {
		file := files[0]
		if !in.options.Yes && in.person.Terminal && !in.person.Machine {
			var err error
			if file, err = in.person.Ask("which key signs?", file); err != nil {
				return signingKey{}, err
			}
		}
		return in.keyOf(ctx, file, fingerprint.MatchString(file))
	}
	if in.asks() {
		ok, err := in.person.Confirm("nothing signs your commits yet: Git is set to no key, and ~/.ssh has none. Make one now, of OpenSSH, in ~/.ssh/gitring_ed25519?")
		if err != nil {
			return signingKey{}, err
		}
		if ok {
			in.options.Generate = "ed25519"
			return in.generated(ctx)
		}
	}
	return signingKey{}, &exit.Failure{
		Code: exit.NotFound, Says: "no signing key: Git is set to none, and ~/.ssh has none",
		Hint: string(in.again("gitring init --generate-key")) + " makes one (--generate-key=ed25519-sk on a security key, which asks for a touch at each commit), --key names one",
	}
}

func (in *Setup) keyOf(ctx context.Context, name string, openPGP bool) (signingKey, error) {
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
func (in *Setup) generated(ctx context.Context) (signingKey, error) {
	if in.options.Generate != "ed25519" && in.options.Generate != "ed25519-sk" {
		return signingKey{}, &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("--generate-key: %q is not known", in.options.Generate), Hint: "ed25519, or ed25519-sk on a security key"}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return signingKey{}, fmt.Errorf("cannot find a place for the key: %w", err)
	}
	file := filepath.Join(home, ".ssh", "gitring_"+strings.ReplaceAll(in.options.Generate, "-", "_"))
	if _, err := os.Stat(file); err == nil {
		return in.keyOf(ctx, file, false) // of an earlier run
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return signingKey{}, fmt.Errorf("cannot make a key: %w", err)
	}
	args := []string{"-q", "-t", in.options.Generate, "-C", cmp.Or(in.Setting(ctx, "user.email"), "gitring"), "-f", file}
	asked := in.person.Terminal && !in.options.Yes
	if !asked {
		args = append(args, "-N", "")
		in.Notice("%s has no passphrase: ssh-keygen -p -f %s sets one", file, file)
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if asked {
		in.Notice("%s will be the key that signs your commits. ssh-keygen asks for a passphrase of that file, to be typed whenever it signs: a new one of your choice, or Enter for none", file)
	}
	if asked || in.options.Generate == "ed25519-sk" {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in.person.In, in.Errs, in.Errs
	}
	if err := cmd.Run(); err != nil {
		return signingKey{}, fmt.Errorf("cannot make a key with ssh-keygen: %s", cmp.Or(checkout.LastLine(errs.String()), err.Error()))
	}
	in.Result.Wrote = append(in.Result.Wrote, file)
	in.Result.Undo = append(in.Result.Undo, fmt.Sprintf("rm %s %s", pasteable(file), pasteable(file+".pub")))
	return in.keyOf(ctx, file, false)
}

// gpgKey exports an OpenPGP key.
func (in *Setup) gpgKey(ctx context.Context, name string) (signingKey, error) {
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
func (in *Setup) signerBefore() string {
	if in.before == nil || in.Result.key.openPGP {
		return ""
	}
	b, err := config.ReadLimited(in.before.Trust.AllowedSigners)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, rest, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(rest, in.Result.key.public) && principal.MatchString(name) {
			return name
		}
	}
	return ""
}

// trustOf is complete trust in one key alone, strict: the commit that trust begins
// with is signed by a person.
func (in *Setup) trustOf(k signingKey) (*gitsync.Trust, error) {
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
	return gitsync.LoadTrust(cfg, in.Result.Source, in.Result.Branch)
}

// signersFile is the content of the file that says who may sign.
func (in *Setup) signersFile() string {
	if in.Result.key.openPGP {
		return in.Result.key.public
	}
	return fmt.Sprintf("%s namespaces=\"git\" %s\n", in.Result.Signer, in.Result.key.public)
}
