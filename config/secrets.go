package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Where files with values lie that a commit brings encrypted.
const (
	AtRestMemory = "memory"
	AtRestDisk   = "disk"
)

// What becomes of a provider's answer.
const (
	KeepSealed = "sealed" // it is kept encrypted under the host's key
	KeepNone   = "none"   // the provider is asked again at each create and after each reboot
)

// How long a provider may take, and how often at most it is asked again by itself.
const (
	DefaultProviderTimeout = 10 * time.Second
	MostProviderTimeout    = 5 * time.Minute
	LeastProviderRefresh   = 5 * time.Minute
)

// DefaultProviderRefs is what an app may name of a provider when nobody says otherwise.
const DefaultProviderRefs = "secret/{app}/*"

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
	// Providers are programs of the host that know values, by name.
	Providers map[string]SecretProvider `yaml:"providers"`
}

// Used reports whether any value can come from a commit's files or from a provider.
func (s *SecretsConfig) Used() bool { return len(s.Keys)+len(s.Providers) > 0 }

// SecretProvider is a program of the host that prints a value for a reference.
type SecretProvider struct {
	// Exec is the program and its arguments, without a shell: {ref}, {app} and {host} in an
	// argument are replaced.
	Exec []string `yaml:"exec"`
	// EnvFile has lines NAME=value for the program's environment, beside PATH and HOME.
	EnvFile string `yaml:"env_file"`
	// Refs are patterns of what an app may name; {app} is its name, and * is part of one word.
	Refs []string `yaml:"refs"`
	// Timeout is how long one call may take.
	Timeout Duration `yaml:"timeout"`
	// Refresh is how often it is asked again; 0 is never by itself.
	Refresh Duration `yaml:"refresh"`
	// Keep is sealed or none.
	Keep string `yaml:"keep"`
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
	for _, name := range slices.Sorted(maps.Keys(s.Providers)) {
		p := s.Providers[name]
		k.provider("secrets.providers."+name, name, &p)
		s.Providers[name] = p
	}
}

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
	refPattern   = regexp.MustCompile(`^[A-Za-z0-9._/@:+*{}-]+$`)
	placeholder  = regexp.MustCompile(`\{[^}]*\}`)
)

// provider checks one program that knows values, and completes it.
func (k *checker) provider(at, name string, p *SecretProvider) {
	if !providerName.MatchString(name) {
		k.wrong(at, "call it vault, say: small letters, digits, - and _", "secrets.providers: %q is no name of a provider", name)
	}
	if len(p.Exec) == 0 || !path.IsAbs(p.Exec[0]) {
		k.wrong(at+".exec", `exec: [/usr/local/bin/vault, kv, get, -field=value, "{ref}"]`, "%s: exec has to begin with the absolute path of a program", at)
	}
	if !slices.ContainsFunc(p.Exec[min(1, len(p.Exec)):], func(arg string) bool { return strings.Contains(arg, "{ref}") }) {
		k.wrong(at+".exec", `put "{ref}" where the program takes what it shall print`, "%s: no argument of exec has {ref}", at)
	}
	for i, arg := range p.Exec {
		for _, of := range placeholder.FindAllString(arg, -1) {
			if of != "{ref}" && of != "{app}" && of != "{host}" || i == 0 {
				k.wrong(fmt.Sprintf("%s.exec[%d]", at, i), "{ref}, {app} and {host} are replaced, in arguments", "%s: exec has %s, which is not replaced", at, of)
			}
		}
	}
	k.path(at+".env_file", &p.EnvFile)
	if len(p.Refs) == 0 {
		p.Refs = []string{DefaultProviderRefs}
	}
	for i, ref := range p.Refs {
		if _, err := path.Match(ref, ""); err != nil || !refPattern.MatchString(ref) || strings.Contains(strings.ReplaceAll(ref, "{app}", ""), "{") {
			k.wrong(fmt.Sprintf("%s.refs[%d]", at, i), "write "+DefaultProviderRefs, "%s: %q is no pattern of what an app may name", at, ref)
		}
	}
	if p.Timeout == 0 {
		p.Timeout = Duration(DefaultProviderTimeout)
	}
	if t := time.Duration(p.Timeout); t < 0 || t > MostProviderTimeout {
		k.wrong(at+".timeout", "10s, say", "%s: timeout %s is not between 0 and %s", at, t, MostProviderTimeout)
	}
	if r := time.Duration(p.Refresh); r != 0 && r < LeastProviderRefresh {
		k.wrong(at+".refresh", "5m or longer, or 0 for never by itself", "%s: refresh %s is less than %s", at, r, LeastProviderRefresh)
	}
	if p.Keep == "" {
		p.Keep = KeepSealed
	}
	if p.Keep != KeepSealed && p.Keep != KeepNone {
		k.wrong(at+".keep", "sealed or none", "%s: keep: %q is not known", at, p.Keep)
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
