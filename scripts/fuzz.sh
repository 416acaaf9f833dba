#!/usr/bin/env bash
# Runs every fuzz test of the tree for a while, one after the other: go test
# takes one at a time. Then the differential tests, each with MUTATIONS changed
# commits and landings (100,000), which print their verdicts by code and how many of the
# refused commits git would have taken; SEED begins elsewhere, and a failure names its own.
# Then 10,000 changed texts of role images. Last, 20,000 changed encrypted files against sops.
#
#   scripts/fuzz.sh [30s]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

each=${1:-30s}
grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort -u | while IFS=: read -r file name; do
	name=${name#func }
	step "$name in $(dirname "$file") for $each"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$each" "$(dirname "$file")" </dev/null
done

mutations=${MUTATIONS:-100000}
step "$mutations mutated commits and landings against git"
GITRING_MUTATIONS=$mutations GITRING_LANDINGS=$mutations GITRING_SEED=${SEED:-1} \
	go test -v -count=1 -timeout 0 -run '^(TestNothingIsAcceptedThatGitRefuses|TestNoMutatedLandingIsAcceptedThatHoldsUnsignedContent)$' ./gitsync

step "10000 changed Compose files and .env of role images"
GITRING_IMAGE_MUTATIONS=10000 \
	go test -v -count=1 -timeout 0 -run '^(TestNothingPassesThatIsMoreThanAMove|TestNothingInEnvPassesThatIsMoreThanATag)$' ./gitsync

scripts/sops.sh
step "20000 changed encrypted files against sops"
GITRING_SECRET_MUTATIONS=20000 GITRING_SEED=${SEED:-1} \
	go test -v -count=1 -timeout 0 -run '^TestNothingIsOpenedThatSOPSRefuses$' ./secrets
