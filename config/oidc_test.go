package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnIssuerAndItsRolesAreJudged(t *testing.T) {
	const door = "listen: {api: {address: '127.0.0.1:9481'}}\n"
	with := func(listen, oidc string) (*Config, error) {
		return Parse("/etc/gitring/c.yaml", []byte(listen+"api: {tokens: tokens, oidc: {"+oidc+"}}\n"+smallConfig), env())
	}
	const base, roles = "issuer: 'https://id.example.org', client_id: gitring, ", `roles: {"group:ops": [operate], "Alice@example.org": [admin, read], "sub:a|1": [logs]}`
	c, err := with(door, base+"client_secret_file: s, "+roles)
	require.NoError(t, err)
	require.Equal(t, &OIDCConfig{
		Issuer: "https://id.example.org", ClientID: "gitring", ClientSecretFile: "/etc/gitring/s", Scopes: []string{"email"}, GroupsClaim: "groups",
		Roles: map[string][]string{"group:ops": {"operate"}, "alice@example.org": {"admin", "read"}, "sub:a|1": {"logs"}},
	}, c.API.OIDC)
	for _, ok := range []string{
		"issuer: 'http://127.0.0.1:9998/', client_id: gitring, " + roles, "issuer: 'http://localhost:9998', client_id: g, " + roles,
		"issuer: 'https://id.example.org/realms/prod', client_id: g, scopes: [openid, email, groups], groups_claim: 'https://x/groups', " + roles,
		base + `scopes: [], roles: {"sub:1": [metrics]}`,
	} {
		c, err := with(door, ok)
		require.NoError(t, err, ok)
		require.NotContains(t, c.API.OIDC.Scopes, "openid")
	}
	for oidc, says := range map[string]string{
		"client_id: g, " + roles:                                              "api.oidc.issuer is missing",
		"issuer: 'http://id.example.org', client_id: g, " + roles:             `"http://id.example.org" could be anybody between`,
		"issuer: 'id.example.org', client_id: g, " + roles:                    "is no address of an issuer",
		"issuer: 'https://me:hunter2@id.example.org', client_id: g, " + roles: "is no address of an issuer",
		"issuer: 'https://id.example.org?x=1', client_id: g, " + roles:        "is no address of an issuer",
		"issuer: 'https://id.example.org', " + roles:                          "api.oidc.client_id is missing",
		base + "scopes: ['a b'], " + roles:                                    `"a b" is no scope of an issuer`,
		base + "roles: {}":                                                    "api.oidc.roles is missing: nobody could do anything",
		base + `roles: {"*": [read]}`:                                         `api.oidc.roles: "*" is nobody`,
		base + `roles: {"*@example.org": [read]}`:                             `"*@example.org" is nobody`,
		base + `roles: {"group:*": [read]}`:                                   `"group:*" is nobody`,
		base + `roles: {"group:": [read]}`:                                    `"group:" is nobody`,
		base + `roles: {ops: [read]}`:                                         `"ops" is nobody`,
		base + `roles: {"аlice@example.org": [read]}`:                         "is nobody",
		base + `roles: {"a@example.org": [root]}`:                             `a@example.org: ["root"] is no list of scopes`,
		base + `roles: {"a@example.org": []}`:                                 "is no list of scopes",
		base + `roles: {"a@example.org": ["report:edge-1"]}`:                  "is no list of scopes",
		base + `roles: {"a@example.org": [read], "A@example.org": [admin]}`:   `"a@example.org" is there twice`,
		base + `groups_claim: roles, roles: {"a@example.org": [read]}`:        "no row of api.oidc.roles is a group",
		base + `groups_claim: 'two words', ` + roles:                          "is no name of a claim",
		base + `secret: hunter2, ` + roles:                                    `unknown key "secret"`,
	} {
		_, err := with(door, oidc)
		require.ErrorContains(t, err, says, oidc)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err = Parse("c.yaml", []byte("api: {oidc: {"+base+roles+"}}\n"+smallConfig), env())
	require.EqualError(t, err, "c.yaml:1: api.oidc: nobody could sign in, because listen.api is missing")
	h, mistakes := parseHub("/etc/gitring/hub.yaml", []byte(door+"api: {tokens: tokens, oidc: {"+base+roles+"}}\n"))
	require.Empty(t, mistakes)
	require.Equal(t, []string{"operate"}, h.API.OIDC.Roles["group:ops"])
}
