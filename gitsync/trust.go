package gitsync

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// Modes of trust that this release carries out (docs/design/trust.md#modes).
const (
	Strict     = "strict"
	ForgeMerge = "forge-merge"
	Tip        = "tip"
	Disabled   = "disabled"
)

// Defaults for who reads the configuration.
const (
	DefaultExpiryGrace = 72 * time.Hour
	DefaultMaxRange    = 10_000
)

// TrustConfig is the trust section of one source. The three files are paths;
// "" is none. With no signer in any of them strict refuses every commit.
type TrustConfig struct {
	Mode           string // strict, forge-merge, tip or disabled; "" is an error
	AllowedSigners string // OpenSSH allowed_signers
	OpenPGPKeys    string // armoured public keys, any number
	RevokedKeys    string // public keys or fingerprints, one a line
	// Introduction is trusted by configuration and begins the trusted history.
	Introduction ring.SHA
	// IntroductionSigner has to have signed it; "" asks for nobody.
	IntroductionSigner string
	// RequireIntroduction refuses to begin with the first tip that comes along.
	RequireIntroduction bool
	// Version is trust_version, which only rises; 0 is none.
	Version int
	// MinCommit is what every tip must be or descend from.
	MinCommit ring.SHA
	// ExpiryGrace is how long after a key's expiry an earlier commit may still
	// be seen for the first time. 0 is not at all.
	ExpiryGrace time.Duration
	// MaxRange is the most commits verified at once; 0 is DefaultMaxRange.
	MaxRange int
	// RequireTarget asks for a trailer "Gitring-Target: <source>" in the tip.
	RequireTarget bool
	// RequireUpToDate refuses every landing that its head was not up to date for.
	RequireUpToDate bool
	// Bindings are what signers may do; none is the default for all of them.
	Bindings []Binding
	// SignersFile has the bindings where they are not in the configuration.
	SignersFile string
	// Require is what every signature has to have besides.
	Require Require
	// SignersInRepo is the path, in the repository, of a file with more signers; ""
	// is none. TrustThreshold is how many signers with the role trust have to answer
	// for a change of it; 0 is 1.
	SignersInRepo  string
	TrustThreshold int
	// AnyOwner skips the check of who may write the files. Only for a check in a
	// clone, whose answer changes nothing on a host.
	AnyOwner bool
}

// Trust is one source's complete trust set and rules. Its rules never
// change after LoadTrust, and it is safe for use by several goroutines.
type Trust struct {
	cfg     TrustConfig
	source  string
	branch  string
	ssh     sshSigners
	pgp     []pgpKey
	revoked revocations
	// first is the fingerprint of the first signer: of allowed_signers, else of
	// the OpenPGP keys.
	first string
	// version is trust_version of the configuration or of a file of signers; epoch
	// is the print of all that the set was read from.
	version  int
	numbered string // where version stands; "" is nowhere
	epoch    string
	// repo are the signers that the repository names as of one commit; nil is none.
	repo *repoSigners
	// lastRepo is the file that was read last, which is nearly always the same.
	lastRepo atomic.Pointer[repoFile]
	// floored is the last commit found to descend from MinCommit: what is on top
	// of it does too. Only saves a walk.
	floored atomic.Pointer[ring.SHA]
}

// LoadTrust reads and checks everything trust rests on. Its errors name the
// file, the line and what to do; nothing half-read is ever used.
func LoadTrust(cfg TrustConfig, source, branch string) (*Trust, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("cannot use trust of source %s: %w", source, err)
	}
	if cfg.MaxRange == 0 {
		cfg.MaxRange = DefaultMaxRange
	}
	t := &Trust{cfg: cfg, source: source, branch: branch, version: cfg.Version}
	t.print(fmt.Appendf(nil, "%+v", cfg))
	if cfg.Mode == Disabled {
		return t, nil
	}
	for _, f := range []struct {
		path string
		take func(path string, b []byte) error
	}{
		{cfg.AllowedSigners, func(path string, b []byte) (err error) {
			if t.ssh, err = parseAllowedSigners(path, b); err == nil {
				err = t.number(path, b)
			}
			return err
		}},
		{cfg.OpenPGPKeys, func(path string, b []byte) (err error) { t.pgp, err = parseOpenPGPKeys(path, b); return }},
		{cfg.SignersFile, func(path string, b []byte) (err error) {
			if t.cfg.Bindings, err = parseBindings(path, b); err == nil {
				err = t.number(path, b)
			}
			return err
		}},
		{cfg.RevokedKeys, func(path string, b []byte) (err error) { t.revoked, err = parseRevoked(path, b); return }},
	} {
		if f.path == "" {
			continue
		}
		b, err := readTrustFile(f.path, os.Geteuid(), cfg.AnyOwner)
		if err != nil {
			return nil, fmt.Errorf("cannot use trust of source %s: %w", source, err)
		}
		t.print(b)
		if err := f.take(f.path, b); err != nil {
			return nil, fmt.Errorf("cannot use trust of source %s: %w", source, err)
		}
	}
	t.cfg.Bindings = slices.Clone(t.cfg.Bindings)
	for i, b := range t.cfg.Bindings {
		t.cfg.Bindings[i].Signer = fingerprintForm(b.Signer)
	}
	t.first = t.firstSigner()
	if err := t.checkNames(); err != nil {
		return nil, fmt.Errorf("cannot use trust of source %s: %w", source, err)
	}
	return t, nil
}

// checkNames refuses names in the configuration that an OpenPGP key's owner chooses.
func (t *Trust) checkNames() error {
	for _, b := range t.cfg.Bindings {
		if err := t.namedByUserID("signer", b.Signer); err != nil {
			return err
		}
	}
	return t.namedByUserID("introduction's signer", t.cfg.IntroductionSigner)
}

// firstSigner is the one whom the files name first: of allowed_signers, else of
// the OpenPGP keys; "" where there is none.
func (t *Trust) firstSigner() string {
	if f := t.ssh.first(); f != "" || len(t.pgp) == 0 {
		return f
	}
	return t.pgp[0].primary
}

func (c TrustConfig) check() error {
	for _, b := range c.Bindings {
		if err := b.check(); err != nil {
			return err
		}
	}
	if _, err := c.Unfit(); err != nil {
		return err
	}
	switch c.Mode {
	case Strict, ForgeMerge, Tip, Disabled:
	case "":
		return fmt.Errorf("mode is not set: write mode: strict with allowed_signers or openpgp_keys, or mode: disabled to run unsigned commits")
	default:
		return fmt.Errorf("mode %q is unknown: use strict, forge-merge, tip or disabled", c.Mode)
	}
	for _, s := range []struct {
		name string
		sha  ring.SHA
	}{{"introduction", c.Introduction}, {"min_commit", c.MinCommit}} {
		if s.sha != "" && !idForm.MatchString(string(s.sha)) {
			return fmt.Errorf("%s %q is not a full commit id: write all 40 lower-case hex digits of git rev-parse", s.name, s.sha)
		}
	}
	if c.ExpiryGrace < 0 {
		return fmt.Errorf("expiry_grace %s is negative", c.ExpiryGrace)
	}
	if err := c.checkBeginning(); err != nil {
		return err
	}
	if c.MaxRange < 0 {
		return fmt.Errorf("max_range %d is negative", c.MaxRange)
	}
	return nil
}

// Warning is what status shows for as long as the mode stands; "" for strict.
func (t *Trust) Warning() string {
	switch t.cfg.Mode {
	case Disabled:
		return "trust is disabled: unsigned commits run"
	case Tip:
		return "trust is weak: only the newest commit is verified"
	}
	return ""
}

// First is how trust begins without an anchor: introduction or first use.
func (t *Trust) First() string {
	if t.cfg.Introduction != "" {
		return "introduction"
	}
	return "first use"
}
