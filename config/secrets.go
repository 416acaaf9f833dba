package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Where files with values lie that a commit brings encrypted.
const (
	AtRestMemory = "memory"
	AtRestDisk   = "disk"
)

// DefaultSecretsDir is where files with values lie when nobody says otherwise.
const DefaultSecretsDir = "/run/gitring/secrets"

// SecretsConfig says how encrypted files of commits are opened, and where what was in
// them lies.
type SecretsConfig struct {
	Keys []SecretKey `yaml:"keys"`
	// Dir is on a memory file system.
	Dir string `yaml:"dir"`
	// AtRest is memory or disk; "" is memory where the host places such files before its
	// engine starts, and disk elsewhere.
	AtRest string `yaml:"at_rest"`
	// HostKeyFile is the key of the keyed hashes; "" is <state>/env.key.
	HostKeyFile string `yaml:"host_key_file"`
}

// SecretKey is one file of keys. One of the three is said.
type SecretKey struct {
	AgeFile     string `yaml:"age_file"`
	SSHFile     string `yaml:"ssh_file"`
	OpenPGPFile string `yaml:"openpgp_file"`
	// Sources and Paths limit what it opens; none is no limit.
	Sources []string `yaml:"sources"`
	Paths   []string `yaml:"paths"`
}

// secrets checks what is said of encrypted files, and makes paths absolute.
func (k *checker) secrets(c *Config) {
	s := &c.Secrets
	k.folder("secrets.dir", &s.Dir)
	k.path("secrets.host_key_file", &s.HostKeyFile)
	if s.AtRest != "" && s.AtRest != AtRestMemory && s.AtRest != AtRestDisk {
		k.wrong("secrets.at_rest", "memory or disk", "secrets.at_rest: %q is not known", s.AtRest)
	}
	if c.State != "/" && (liesIn(s.Dir, c.State) || liesIn(c.State, s.Dir)) {
		k.wrong("secrets.dir", "name a folder of a memory file system, such as "+DefaultSecretsDir, "secrets.dir: %s and state share a folder", s.Dir)
	}
	for i := range s.Keys {
		k.secretKey(fmt.Sprintf("secrets.keys[%d]", i), &s.Keys[i], c.Sources)
	}
}

// liesIn reports whether a path is a folder or lies below it.
func liesIn(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, strings.TrimSuffix(folder, "/")+"/")
}

func (k *checker) secretKey(at string, key *SecretKey, sources []SourceConfig) {
	said := 0
	for _, of := range []struct {
		name string
		file *string
	}{{"age_file", &key.AgeFile}, {"ssh_file", &key.SSHFile}, {"openpgp_file", &key.OpenPGPFile}} {
		if *of.file != "" {
			said++
			k.path(at+"."+of.name, of.file)
		}
	}
	if said != 1 {
		k.wrong(at, "write {age_file: /etc/gitring/age.key}; gitring secret keys --create makes it", "secrets.keys: one of age_file, ssh_file and openpgp_file names the file of a key")
	}
	for i, name := range key.Sources {
		if !slices.ContainsFunc(sources, func(s SourceConfig) bool { return s.Name == name }) {
			k.wrong(fmt.Sprintf("%s.sources[%d]", at, i), "name a source of this configuration", "secrets.keys: there is no source %q", name)
		}
	}
	for i, p := range key.Paths {
		if bad := badPathPattern(p); bad != "" {
			k.wrong(fmt.Sprintf("%s.paths[%d]", at, i), "write a path of the commit such as apps/shop/**", "secrets.keys: %q %s", p, bad)
		}
	}
}

// badPathPattern says what is wrong with a pattern of paths inside a commit; "" is nothing.
func badPathPattern(p string) string {
	if p == "" || strings.HasPrefix(p, "/") || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../") {
		return "is no path inside a commit"
	}
	for part := range strings.SplitSeq(p, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return "is no pattern"
		}
	}
	return ""
}
