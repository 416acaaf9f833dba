#!/usr/bin/env bash
# Builds the program of fronts for GOOS and GOARCH, and puts it where package frontprogram
# embeds it. The same source and the same release of Go give the same bytes, in any folder.
# Where it is already that of this source, nothing is written. Fronts run on Linux alone.
#
#   GOARCH=arm64 scripts/front.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

GOOS=${GOOS:-$(go env GOOS)}
arch=${GOARCH:-$(go env GOARCH)}
case $GOOS/$arch in
linux/amd64 | linux/arm64) ;;
*) exit 0 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-mod=readonly GOWORK=off GOEXPERIMENT= GOFIPS140=off \
	go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$work/front" ./cmd/front
gzip -9n "$work/front"
chmod 644 "$work/front.gz"
if ! cmp -s "$work/front.gz" "frontprogram/$arch/front.gz"; then
	mv -f "$work/front.gz" "frontprogram/$arch/front.gz"
fi
