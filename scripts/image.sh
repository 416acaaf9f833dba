#!/usr/bin/env bash
# Builds a container image of gitring from the binary of this checkout. Nothing
# is pulled: the image is the static binary and the certificates of this host.
#
#   scripts/image.sh [gitring:dev]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

name=${1:-gitring:dev}
arch=$(docker version --format '{{.Server.Arch}}') # the engine may be elsewhere
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
[ -r "$certificates" ] || fail "no CA certificates at $certificates" \
	"install ca-certificates, or set SSL_CERT_FILE to a bundle in PEM form"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context/bin"
GOOS=linux GOARCH=$arch make -s build OUT="$context/bin/gitring"
cp "$certificates" "$context/bin/ca-certificates.crt"
DOCKER_BUILDKIT=0 docker build -q --target prebuilt -t "$name" -f Dockerfile "$context"
say "built $name (linux/$arch)"
