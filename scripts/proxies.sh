#!/usr/bin/env bash
# Builds Caddy and Traefik as bin/proxies/caddy and bin/proxies/traefik, for the tests that
# put them before a front. gitring links neither. Caddy takes 3 minutes, Traefik 20 on a busy
# machine, and 3 GiB of cache.
#
# Traefik links libraries of a hundred DNS hosts, of which the module proxy does not give
# some. So the package that names them is written anew here, as one that knows none. A module
# of Traefik's own tree, which no proxy has, is two empty types. And of the library of
# passwords an older release is taken. None of the three carries a request.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

caddy=v2.11.9
traefik=v3.7.13
passwords=github.com/containous/go-http-auth@v0.4.1-0.20200324110947-a37a7636d23e
bin=$PWD/bin/proxies

# module copies a module of the proxy into a folder, where it may be changed.
module() {
	cp -R "$(cd "$work" && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')" "$2"
	chmod -R u+w "$2"
}

build_traefik() {
	local lego
	module "github.com/traefik/traefik/v3@$traefik" "$work/traefik"
	lego=$(sed -n 's/^\t*\(github.com\/go-acme\/lego\/v[0-9]*\) \(v[^ ]*\).*$/\1@\2/p' "$work/traefik/go.mod")
	module "$lego" "$work/lego"
	rm -r "$work/lego/providers/dns"
	mkdir -p "$work/lego/providers/dns" "$work/traefik/pkg/config/dynamic/ext"
	cat >"$work/lego/providers/dns/none.go" <<-END
		package dns

		import (
			"errors"

			"${lego%@*}/challenge"
		)

		func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
			return nil, errors.New("this traefik knows no provider of DNS: " + name)
		}
	END
	cat >"$work/traefik/pkg/config/dynamic/ext/go.mod" <<-END
		module github.com/traefik/traefik/dynamic/ext
	END
	cat >"$work/traefik/pkg/config/dynamic/ext/ext.go" <<-END
		package ext

		type (
			HTTP   struct{}
			Router struct{}
		)
	END
	cd "$work/traefik"
	go mod edit -replace "${lego%@*}=$work/lego" -replace "github.com/abbot/go-http-auth=$passwords"
	go build -mod=mod -ldflags '-s -w' -o "$bin/traefik" ./cmd/traefik
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOWORK=off
mkdir -p "$bin"
printf 'module proxies\n' >"$work/go.mod"
if [ ! -x "$bin/caddy" ]; then
	say "building Caddy for the tests that put it before a front"
	GOBIN=$bin go install -ldflags '-s -w' "github.com/caddyserver/caddy/v2/cmd/caddy@$caddy"
fi
if [ ! -x "$bin/traefik" ]; then
	say "building Traefik for the tests that put it before a front"
	build_traefik
fi
