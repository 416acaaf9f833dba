package config

import (
	"time"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// TrustConfig is what gitsync asks for.
func (t *TrustRules) TrustConfig() gitsync.TrustConfig {
	return gitsync.TrustConfig{
		Mode: t.Mode, AllowedSigners: t.AllowedSigners, OpenPGPKeys: t.OpenPGPKeys, RevokedKeys: t.RevokedKeys,
		Introduction: t.Introduced(), IntroductionSigner: t.Introduction.Signer,
		RequireIntroduction: t.RequireIntroduction, Version: t.TrustVersion, MinCommit: ring.SHA(t.MinCommit),
		ExpiryGrace: time.Duration(*t.ExpiryGrace), MaxRange: t.MaxRange, RequireTarget: t.RequireTarget,
		RequireUpToDate: t.RequireUpToDate,
		Bindings:        t.Signers.Bindings, SignersFile: t.Signers.File, Require: gitsync.Require(t.Require),
		SignersInRepo: t.SignersInRepo, TrustThreshold: t.TrustThreshold,
	}
}
