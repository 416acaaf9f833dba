package issuer

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gitring/gitring/api"
)

// What may stand for a person in a journal. An address of another alphabet could look like
// somebody else's, so it counts for nothing.
var (
	anEmail  = regexp.MustCompile("^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,189}$") // no colon: group:x@y is a row of its own
	aSubject = regexp.MustCompile(`^[!-~]{1,255}$`)
)

// claims are of an id token, or of what the issuer says besides.
type claims map[string]json.RawMessage

// person is who an id token is about. The library has verified its signature, issuer, audience and time.
func (i *Issuer) person(ctx context.Context, provider *oidc.Provider, id *oidc.IDToken, token *oauth2.Token, nonce string) (api.Person, error) {
	of := claims{}
	if err := id.Claims(&of); err != nil {
		return api.Person{}, errors.New("its id token has no claims")
	}
	if err := i.judge(id, of, token, nonce); err != nil {
		return api.Person{}, err
	}
	if i.lacks(of) && provider.UserInfoEndpoint() != "" {
		said, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return api.Person{}, err
		}
		if err := i.complete(of, id, said); err != nil {
			return api.Person{}, err
		}
	}
	return api.Person{Subject: id.Subject, Email: of.email(), Groups: of.list(i.GroupsClaim)}, nil
}

// judge is why an id token is not of this sign-in: what the library leaves to its callers.
func (i *Issuer) judge(id *oidc.IDToken, of claims, token *oauth2.Token, nonce string) error {
	if nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
		return errors.New("its id token was made for another sign-in")
	}
	// Among several audiences the one that asked is named, by the standard.
	if azp := of.text("azp"); (azp != "" || len(id.Audience) > 1) && azp != i.ClientID {
		return errors.New("its id token was made for another client")
	}
	if id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil {
		return errors.New("its id token belongs to another access token")
	}
	if !aSubject.MatchString(id.Subject) {
		return errors.New("its id token names no subject, or none that a journal can have")
	}
	return nil
}

// complete adds what the issuer says besides of the same person.
func (i *Issuer) complete(of claims, id *oidc.IDToken, said *oidc.UserInfo) error {
	if said.Subject != id.Subject {
		return errors.New("it tells of another person than its id token")
	}
	more := claims{}
	if err := said.Claims(&more); err != nil {
		return errors.New("it tells nothing of the person")
	}
	of.add(more, "email", "email_verified")
	if i.GroupsClaim != "" {
		of.add(more, i.GroupsClaim)
	}
	return nil
}

// lacks reports whether the issuer has to be asked for more.
func (i *Issuer) lacks(of claims) bool {
	return of["email"] == nil || i.GroupsClaim != "" && of[i.GroupsClaim] == nil
}

// add takes claims that are told together, where the first of them is missing.
func (c claims) add(more claims, names ...string) {
	if c[names[0]] != nil {
		return
	}
	for _, name := range names {
		delete(c, name)
		if more[name] != nil {
			c[name] = more[name]
		}
	}
}

func (c claims) text(name string) (s string) {
	_ = json.Unmarshal(c[name], &s) // what is no text is none
	return s
}

// email is the address that the issuer has verified; "" where it did not. Case tells no two people apart.
func (c claims) email() string {
	verified := string(c["email_verified"])
	at := c.text("email")
	if verified != "true" && verified != `"true"` || !anEmail.MatchString(at) {
		return ""
	}
	return strings.ToLower(at)
}

// list is a claim of one text or of several.
func (c claims) list(name string) (all []string) {
	if name == "" || c[name] == nil {
		return nil
	}
	if one := c.text(name); one != "" {
		return []string{one}
	}
	if err := json.Unmarshal(c[name], &all); err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
