#!/usr/bin/env bash
# Builds cosign as bin/cosign2 and bin/cosign3, and notation, for the tests that hold gitring's
# judge of signatures to them. gitring links none. It takes many minutes the first time.
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

if [ ! -x bin/notation ]; then
	say "building notation for the test that runs it"
	nice go build -modfile=tools/notation.mod -o bin/notation github.com/notaryproject/notation/cmd/notation
fi
