package checkout

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
)

// targetTrailers are what the tip of a source has to say, where that is asked for.
func (r Rules) targetTrailers() []string {
	if !r.Config.RequireTarget {
		return nil
	}
	return []string{"Gitring-Target: " + r.Source}
}

// Trustees are whose commits count, as a person names them.
type Trustees struct {
	Source                      string // of a configuration
	Branch                      string // of keys given by hand
	AllowedSigners, OpenPGPKeys string
	RevokedKeys                 string
}

// ByHand reports whether keys are given, not a configuration.
func (f Trustees) ByHand() bool { return f.AllowedSigners != "" || f.OpenPGPKeys != "" }

// Rules are whose commits count.
type Rules struct {
	Config         gitsync.TrustConfig
	Source, branch string
	path           string // of the source in the repository
	File           string // the configuration that says so; "" for keys given by hand
}

// Trust is what the rules come to. Who may write the files of it matters to a
// host; an answer here changes nothing.
func (r *Rules) Trust() (*gitsync.Trust, error) {
	r.Config.AnyOwner = true
	trust, err := gitsync.LoadTrust(r.Config, r.Source, r.branch)
	if err != nil && r.Source == HandSource {
		err = fmt.Errorf("cannot use the keys given: %w", errors.Unwrap(err))
	}
	return trust, err
}

// Followed is what a configuration says that hosts follow.
func (r Rules) Followed() (source, branch, folder string) {
	return r.Source, r.branch, path.Clean("./" + r.path)
}

// RulesOf finds the rules: of keys given by hand, of a configuration that was named, or
// of the one that the clone names.
func RulesOf(ctx context.Context, c *Clone, f Trustees, file string) (Rules, error) {
	r := Rules{File: file}
	if f.ByHand() && file != "" {
		return r, &exit.Failure{Code: exit.Usage, Says: "--config and keys given by hand exclude each other", Hint: "keep one of the two"}
	}
	if f.ByHand() {
		return f.handRules()
	}
	if r.File == "" {
		r.File = c.Setting(ctx, ConfigSetting)
	}
	if r.File == "" {
		return r, &exit.Failure{
			Code: exit.Usage, Says: "nothing here says whom to trust",
			Hint: "name --config, or --allowed-signers or --openpgp-keys",
		}
	}
	_, s, err := config.ReadSource(r.File, f.Source)
	if err != nil {
		return r, err
	}
	r.Config, r.Source, r.branch, r.path = s.Trust.TrustConfig(), s.Name, s.Branch, s.Path
	return r, nil
}

// handRules are strict rules by keys given by hand.
func (f Trustees) handRules() (Rules, error) {
	t := config.TrustRules{Mode: "strict", MaxRange: config.DefaultMaxRange}
	grace := config.Duration(config.DefaultExpiryGrace)
	t.ExpiryGrace = &grace
	for _, p := range []struct{ from, to *string }{{&f.AllowedSigners, &t.AllowedSigners}, {&f.OpenPGPKeys, &t.OpenPGPKeys}, {&f.RevokedKeys, &t.RevokedKeys}} {
		abs, err := absolute(*p.from)
		if err != nil {
			return Rules{}, err
		}
		*p.to = abs
	}
	return Rules{Config: t.TrustConfig(), Source: HandSource, branch: f.Branch, path: "."}, nil
}

// HandSource is the source of keys given by hand, which have no name of one.
const HandSource = "verify"

// ConfigSetting of a clone names the configuration that its commits are for.
const ConfigSetting = "gitring.config"

// absolute leaves "" as it is.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", path, err)
	}
	return abs, nil
}
