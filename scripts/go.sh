#!/usr/bin/env bash
# Says what to do where Go is missing or too old, in place of make's own words.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

needed=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
hint="install it from https://go.dev/doc/install, and open a new shell so that go is on the PATH"
has go || fail "Go is missing: gitring is built with Go 1.$needed" "$hint"
# A Go since 1.21 fetches the release that go.mod asks for; an older one does not.
version=$(go env GOVERSION 2>/dev/null) || version=
minor=${version#go1.}
minor=${minor%%[!0-9]*}
if [ "${minor:-0}" -lt "$needed" ]; then
	fail "${version:-the Go that is here} is too old: gitring is built with Go 1.$needed" "$hint"
fi
