#!/usr/bin/env bash
# Builds SOPS as bin/sops, for the tests that hold gitring's reader of encrypted files to
# it. gitring does not link it. It takes about a minute the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

if [ -x bin/sops ]; then
	exit 0
fi
say "building SOPS for the tests that run it"
go build -modfile=tools/sops.mod -o bin/sops github.com/getsops/sops/v3/cmd/sops
