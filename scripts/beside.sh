#!/usr/bin/env bash
# beside.sh COMMAND… -- COMMAND…: runs the first command beside the second. What the first one
# writes is kept, and shown whole once both have ended, so neither breaks the other's lines. It
# fails if one of them failed, and says which.
set -euo pipefail

main() {
	local first=() out pid rc=0 beside=0
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		first+=("$1")
		shift
	done
	shift
	out=$(mktemp)
	"${first[@]}" >"$out" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # their values now
	trap "kill $pid 2>/dev/null || true; rm -f '$out'" EXIT
	trap 'exit 130' INT TERM
	"$@" || rc=$?
	wait "$pid" || beside=$?
	cat "$out"
	if [ "$rc" -ne 0 ]; then
		echo "==> failed with $rc: $*"
	fi
	if [ "$beside" -ne 0 ]; then
		echo "==> failed with $beside: ${first[*]}"
		rc=$beside
	fi
	exit "$rc"
}

main "$@"
