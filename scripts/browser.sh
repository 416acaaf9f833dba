#!/usr/bin/env bash
# browser.sh COMMAND…: runs what needs a browser, where there is one. It is large, so only CI
# installs it; elsewhere its tests are left out, and that is said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

if ! has chromium && [ "${CI:-}" = true ]; then
	scripts/needs.sh chromium
fi
if ! has chromium; then
	say "no chromium here: what needs a browser is left out (in Debian: apt-get install chromium)"
	exit
fi
GITRING_BROWSER_TESTS=1 "$@"
