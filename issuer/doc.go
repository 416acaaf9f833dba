// Package issuer asks an OpenID Connect issuer who somebody is: the code flow with PKCE, a state and a
// nonce. Who may do what is not its matter, and no token of the issuer outlives one call.
//
//	issuer  the flow's two steps, and what is found out of the issuer
//	person  who it is, of claims that were verified
//	road    how it is asked: bounds, no redirects, and errors that repeat no token
package issuer
