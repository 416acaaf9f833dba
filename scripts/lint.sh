#!/usr/bin/env bash
# The linters, at the versions of tools/go.mod: apart from the main module, so
# that a linter never raises a library that gitring ships. The first run builds
# them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

tool() { go tool -modfile=tools/go.mod "$@"; }

unformatted=$(tool gofumpt -l .)
[ -z "$unformatted" ] || fail "gofumpt would change: ${unformatted//$'\n'/ }" "go tool -modfile=tools/go.mod gofumpt -w ."
go vet ./...
tool golangci-lint run ./...
if has shellcheck; then
	shellcheck -x scripts/*.sh .ci/run
fi
