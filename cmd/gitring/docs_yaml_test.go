package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/config"
)

var (
	fencedYAML = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")
	hereYAML   = regexp.MustCompile(`(?ms)<<'?YAML'?\n(.*?)^YAML$`)
	aVariable  = regexp.MustCompile(`\$\{([A-Z_]+)`)
	aSecret    = regexp.MustCompile(`[a-z.]+\.enc(\.env)?\b`)
)

// Who copies a Compose file or a configuration out of the docs has one that this
// program carries out. A configuration shows only what its page is about: what every
// one needs is added.
func TestEveryYAMLOfTheDocsIsCarriedOut(t *testing.T) {
	files, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "cosign.pub") // which a policy reads, and each host has its own
	require.NoError(t, os.WriteFile(key, []byte(onePub), 0o600))
	compose, configs := 0, 0
	for _, file := range append(files, "../../README.md") {
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, text := range blocksOf(string(page)) {
			var block map[string]any
			if yaml.Unmarshal([]byte(text), &block) != nil {
				continue // a list, or a piece of a file
			}
			switch {
			case block["services"] != nil:
				compose++
				values := ""
				for _, v := range aVariable.FindAllStringSubmatch(text, -1) {
					values += v[1] + "=x\n"
				}
				tree := map[string]string{"web/compose.yaml": text, "web/.env": values}
				for _, name := range aSecret.FindAllString(text, -1) {
					tree["web/"+name] = "A=1\n" // whose content the page is not about
				}
				_, refusals := lookAt(tree)
				require.Empty(t, refusals, "%s:\n%s", file, text)
			case isConfig(block):
				configs++
				whole, err := yaml.Marshal(completed(block))
				require.NoError(t, err)
				whole = []byte(strings.ReplaceAll(string(whole), "/etc/gitring/cosign.pub", key))
				_, err = config.Parse(file, whole, variables("CREDENTIALS_DIRECTORY", "/run/credentials/gitring.service"))
				require.NoError(t, err, "%s", whole)
			}
		}
	}
	require.GreaterOrEqual(t, compose, 4, "the Compose files were not found")
	require.GreaterOrEqual(t, configs, 12, "the configurations were not found")
}

// blocksOf are the pieces of YAML on a page, those that a shell writes among them.
func blocksOf(page string) (all []string) {
	for _, m := range fencedYAML.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
	}
	for _, m := range hereYAML.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(m[1], "$HOME", "/home/me"))
	}
	return all
}

// isConfig reports whether all keys are the daemon's, and one tells it from other files.
func isConfig(block map[string]any) bool {
	known := config.KnownKeys("Config")
	for key := range maps.Keys(block) {
		if !slices.Contains(known, key) {
			return block["trust"] != nil && len(block) == 1
		}
	}
	return len(block) > 0
}

func completed(block map[string]any) map[string]any {
	if trust := block["trust"]; trust != nil { // of a source
		block = map[string]any{"sources": []any{map[string]any{"trust": trust}}}
	}
	if block["host"] == nil {
		block["host"] = "edge-1"
	}
	if block["sources"] == nil {
		block["sources"] = []any{map[string]any{}}
	}
	for _, each := range block["sources"].([]any) {
		s := each.(map[string]any)
		for key, value := range map[string]any{
			"name": "prod", "url": "https://git.example.org/acme/infra.git", "branch": "main",
			"trust": map[string]any{"mode": "strict", "allowed_signers": "/etc/gitring/allowed_signers"},
		} {
			if s[key] == nil {
				s[key] = value
			}
		}
	}
	return block
}
