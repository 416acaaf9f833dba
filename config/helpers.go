package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// helperName is what a credential helper is called behind docker-credential-.
var helperName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// helpers are credential helpers by patterns of registries: registries.helpers.
func (k *checker) helpers(all map[string]string) {
	const at = "registries.helpers"
	for _, pattern := range slices.Sorted(maps.Keys(all)) {
		if host, hint := registryPattern(pattern); host == "" || strings.Contains(pattern, "/") {
			if hint == "" {
				hint = "the host of a registry alone, such as *.dkr.ecr.*.amazonaws.com"
			}
			k.wrong(at, "write "+hint, "registries.helpers: %q is no pattern of a registry's host", pattern)
		}
		if !helperName.MatchString(all[pattern]) {
			k.wrong(at, "write ecr-login for the program docker-credential-ecr-login", "registries.helpers: %q is no name of a credential helper", all[pattern])
		}
	}
}
