#!/usr/bin/env bash
# Builds cosign as bin/cosign2 and bin/cosign3, for the tests that hold gitring's judge of
# signatures to it. gitring does not link it. It takes many minutes the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

for major in 2 3; do
	if [ -x "bin/cosign$major" ]; then
		continue
	fi
	say "building cosign $major for the tests that run it"
	nice go build -modfile="tools/cosign$major.mod" -o "bin/cosign$major" "github.com/sigstore/cosign/v$major/cmd/cosign"
done
