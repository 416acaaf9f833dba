package config

import (
	"path/filepath"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
)

// GitConfig is what gitsync follows a source by.
func GitConfig(c *Config, s *SourceConfig) gitsync.Config {
	return gitsync.Config{
		Name: s.Name, URL: s.URL, Branch: s.Branch, Path: s.Path, Poll: s.Poll, Dir: mirrorDir(c.State, s.Name),
		Auth: gitsync.Auth{
			Username: s.Auth.Username, PasswordFile: s.Auth.PasswordFile,
			SSHKeyFile: s.Auth.SSHKeyFile, KnownHostsFile: s.Auth.KnownHostsFile,
		},
		Trust:    s.Trust.TrustConfig(),
		Limits:   s.limits.git,
		Isolated: true,

		RequireConfinement: c.RequireConfinement,

		Pulls: s.Status != nil && s.Status.PullRequests,
	}
}

// SettingsOf is what plans of a source depend on, but for the values of the
// host's env folder, which change while the daemon runs.
func SettingsOf(c *Config, s *SourceConfig) manifest.Settings {
	return manifest.Settings{
		Source: s.Name, Path: s.Path, Host: c.OwnerName(), Swarm: c.Engine.Swarm(), Facts: c.Facts, Interpolation: c.Interpolation, DataRoots: s.dataRoots(),
		Limits: s.limits.content, Traffic: c.Traffic.Settings(), NoStatus: s.Status == nil,
	}
}

func mirrorDir(state, source string) string { return filepath.Join(state, "git", source) }
