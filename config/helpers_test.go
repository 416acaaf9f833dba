package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelpersAreNamedByTheHostsOfRegistries(t *testing.T) {
	const sources = "\nsources:\n  - {name: prod, url: https://git.example.org/a.git, trust: {mode: disabled}}\n"
	read := func(helpers string) error {
		_, err := Parse("/etc/gitring/config.yaml", []byte("host: edge-1\nregistries:\n  helpers: "+helpers+sources), func(string) string { return "" })
		return err
	}
	require.NoError(t, read(`{"*.dkr.ecr.*.amazonaws.com": ecr-login, docker.io: pass, "localhost:5000": x}`))
	for _, helpers := range []string{
		`{ghcr.io/acme: pass}`, `{"": pass}`, `{acme: pass}`, `{docker.io: ""}`, `{docker.io: ../pass}`, `{docker.io: "pass get"}`, `{docker.io: /bin/pass}`, `{docker.io: -x}`,
	} {
		require.ErrorContains(t, read(helpers), "registries.helpers: ", helpers)
	}
}
