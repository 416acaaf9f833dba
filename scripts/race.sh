#!/usr/bin/env bash
# Runs the loop, with all its goroutines, under the race detector. That needs cgo
# and a C compiler; where there is none it is left out, and said. make race runs everything.
# All that is linked is compiled for it once more. So the tag loop leaves out the engine's
# client, which those tests do not use, and the others what net and os/user have in C.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

if ! has "$(go env CC)"; then
	say "no C compiler is here: the loop was not run under the race detector"
	exit 0
fi
# shellcheck disable=SC2086 # empty is nothing
CGO_ENABLED=1 ${AGAIN:-} go test -race -tags loop,netgo,osusergo -vet=off -count=1 -run '^TestLoop' ./reconcile
