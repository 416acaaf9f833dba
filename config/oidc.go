package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gitring/gitring/api"
)

const defaultGroupsClaim = "groups"

// What the table of roles may name. Each row is one group or one person.
var (
	roleEmail = regexp.MustCompile("^[A-Za-z0-9.!#$%&'+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,189}$")
	oidcWord  = regexp.MustCompile(`^[!-~]{1,255}$`)
	oidcScope = regexp.MustCompile(`^[!#-\[\]-~]{1,128}$`)
)

// roleName is how long the name of a group or a person is at most, in characters.
const roleName = 255

// isRoleOf reports whether a row is of one group or one subject: without an asterisk, a space in
// front or a character that nobody sees. As a pattern it would take 5 MiB of every process.
func isRoleOf(row string) bool {
	kind, name, ok := strings.Cut(row, ":")
	if !ok || kind != "group" && kind != "sub" || name == "" || utf8.RuneCountInString(name) > roleName || strings.Contains(name, "*") {
		return false
	}
	for i, r := range name {
		if i == 0 && strings.ContainsRune("\t\n\f\r ", r) || i > 0 && unicode.Is(unicode.C, r) {
			return false
		}
	}
	return true
}

// oidc judges an issuer that people sign in with, and its table of roles.
func (k *checker) oidc(o *OIDCConfig, l *ListenAPI) {
	if o == nil {
		return
	}
	const at = "api.oidc"
	if l == nil {
		k.wrong(at, "listen: {api: {address: 127.0.0.1:9481}}", "api.oidc: nobody could sign in, because listen.api is missing")
	}
	k.oidcIssuer(at+".issuer", o)
	if !oidcWord.MatchString(o.ClientID) {
		k.wrong(at, "client_id: what the issuer calls this client", "api.oidc.client_id is missing, or more than one word")
	}
	k.path(at+".client_secret_file", &o.ClientSecretFile)
	if o.Scopes == nil {
		o.Scopes = []string{"email"}
	}
	for _, s := range o.Scopes {
		if !oidcScope.MatchString(s) {
			k.wrong(at+".scopes", "such as [email, groups]; openid is always asked for", "api.oidc.scopes: %q is no scope of an issuer", s)
		}
	}
	o.Scopes = slices.DeleteFunc(slices.Clone(o.Scopes), func(s string) bool { return s == "openid" })
	k.oidcRoles(at+".roles", o)
}

// oidcIssuer holds the issuer to https: who is between could be anybody otherwise.
func (k *checker) oidcIssuer(at string, o *OIDCConfig) {
	u, err := url.Parse(o.Issuer)
	switch {
	case o.Issuer == "":
		k.wrong("api.oidc", "issuer: https://id.example.org, as its tokens have it", "api.oidc.issuer is missing")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		k.wrong(at, "such as https://id.example.org, without a query", "api.oidc.issuer: %q is no address of an issuer", withoutUser(o.Issuer))
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		k.wrong(at, "write https://; plain HTTP is for an issuer on this machine", "api.oidc.issuer: %q could be anybody between", o.Issuer)
	}
}

// oidcRoles makes sure that each row names somebody and a scope. Nobody may anything without a row.
func (k *checker) oidcRoles(at string, o *OIDCConfig) {
	if len(o.Roles) == 0 {
		k.wrong("api.oidc", `roles: {"group:ops": [read, operate], "alice@example.org": [admin]}`, "api.oidc.roles is missing: nobody could do anything")
	}
	groups, roles := false, map[string][]string{}
	for _, row := range slices.Sorted(maps.Keys(o.Roles)) {
		name := row
		switch {
		case isRoleOf(row):
			groups = groups || strings.HasPrefix(row, api.RowOfGroup)
		case roleEmail.MatchString(row):
			name = strings.ToLower(row)
		default:
			k.wrong(at+"."+row, "a row is an e-mail, group:<name> or sub:<subject>, and none stands for many names", "api.oidc.roles: %q is nobody", row)
			continue
		}
		if _, twice := roles[name]; twice {
			k.wrong(at+"."+row, "case tells no two people apart; take one of them out", "api.oidc.roles: %q is there twice", name)
		}
		scopes, err := api.ParseScopes(strings.Join(o.Roles[row], ","))
		if err != nil || scopes.Reports() != "" {
			k.wrong(at+"."+row, "one or more of "+strings.Join(api.ScopeNames, ", "), "api.oidc.roles: %s: %q is no list of scopes", row, o.Roles[row])
		}
		roles[name] = o.Roles[row]
	}
	o.Roles = roles
	switch {
	case o.GroupsClaim != "" && !oidcWord.MatchString(o.GroupsClaim):
		k.wrong("api.oidc.groups_claim", "groups", "api.oidc.groups_claim: %q is no name of a claim", o.GroupsClaim)
	case o.GroupsClaim != "" && !groups:
		k.wrong("api.oidc.groups_claim", "take it out", "api.oidc.groups_claim: no row of api.oidc.roles is a group")
	case o.GroupsClaim == "" && groups:
		o.GroupsClaim = defaultGroupsClaim
	}
}
