#!/usr/bin/env bash
# again.sh go test ARGS… PACKAGES: runs the tests; those that failed run once more, each
# package alone, where at most three tests failed. Only .ci/run asks for it: machines there
# are shared, and a change must not be lost to one late answer. What passes only then is
# named, for whoever sees it to mend.
#
# Never tried again: a race, a panic, a test or build that did not come to its end, and more
# than three failures.
set -euo pipefail

LIMIT=3

# failures reads the output of go test, and prints "package test" for each test that
# failed, and "package -" for a package that failed without one.
failures() {
	awk '
		/^--- FAIL: / { n++; test[n] = $3 }
		/^FAIL\t/ {
			if (n == 0) print $2, "-"
			for (i = 1; i <= n; i++) print $2, test[i]
			n = 0
		}
		/^ok  \t/ { n = 0 }
	' "$1"
}

# hopeless says whether the output tells of what another run would only hide.
hopeless() { grep -Eq '^(panic:|fatal error:|WARNING: DATA RACE|FAIL\t.*\[(build|setup) failed\])' "$1"; }

main() {
	local out rc=0 failed packages p pattern options=()
	out=$(mktemp)
	# shellcheck disable=SC2064 # its value now
	trap "rm -f '$out'" EXIT
	"$@" 2>&1 | tee "$out" || rc=$?
	if [ "$rc" -eq 0 ]; then
		return
	fi
	failed=$(failures "$out")
	if hopeless "$out" || [ -z "$failed" ] || grep -q ' -$' <<<"$failed" || [ "$(wc -l <<<"$failed")" -gt "$LIMIT" ]; then
		return "$rc"
	fi
	while [ $# -gt 0 ] && [[ $1 != ./* ]]; do # what stands before the packages
		case $1 in
		-run) shift ;; # and its pattern, which the one below replaces
		*) options+=("$1") ;;
		esac
		shift
	done
	packages=$(cut -d' ' -f1 <<<"$failed" | sort -u)
	for p in $packages; do
		pattern=$(awk -v p="$p" '$1 == p { print $2 }' <<<"$failed" | sort -u | paste -sd'|')
		echo "==> once more, alone: $p $pattern"
		"${options[@]}" -run "^($pattern)\$" "$p"
	done
	echo "==> these failed first and passed alone, so each is worth a look:"
	echo "$failed"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	main "$@"
fi
