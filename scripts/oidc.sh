#!/usr/bin/env bash
# Builds an OpenID Connect provider as bin/oidc-provider, for the tests that sign in with one that
# is not ours: the example server of zitadel/oidc, whose library is certified. gitring links none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

if [ ! -x bin/oidc-provider ]; then
	say "building an OpenID Connect provider for the tests that sign in with one"
	CGO_ENABLED=0 go build -modfile=tools/oidc.mod -o bin/oidc-provider github.com/zitadel/oidc/v3/example/server
fi
