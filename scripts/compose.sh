#!/usr/bin/env bash
# Builds Docker Compose as bin/docker-compose, for the tests that run Compose
# itself beside gitring: Debian has no Compose v2. It takes a few minutes the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

if [ -x bin/docker-compose ]; then
	exit 0
fi
say "building Docker Compose for the tests that run it"
go build -modfile=tools/compose.mod -o bin/docker-compose github.com/docker/compose/v2/cmd
