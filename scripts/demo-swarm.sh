#!/usr/bin/env bash
# The demo of a swarm: three engines in namespaces of their own, one signed push, a node that ends,
# and the app whole again. All of it is in a temporary folder, and nothing is left behind.
#
#   scripts/demo-swarm.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh
. scripts/demo-parts.sh

bin=$PWD/bin/gitring
registry=10.199.77.254:5000
image=$registry/web:1

gitring() { timeout 90 "$bin" "$@"; }

# manager asks a manager that was not ended.
manager() { docker -H "${GITRING_SWARM}" "$@"; }

show() {
	say "\$ gitring status"
	gitring status || true
	say
}

# serving is how many tasks of the app run, as gitring says.
serving() { gitring status -o json 2>/dev/null | tr -d ' \n' | grep -o '"ready":[0-9]*' | head -1 | cut -d: -f2; }

whole() { [ "$(serving)" = 3 ]; }

live() { whole && gitring status -o json | tr -d ' \n' | grep -q "\"sync\":\"Synced\"" && gitring status -o json | grep -q "\"commit\": *\"$(repo rev-parse HEAD)\""; }

down() { gitring status -o json | tr -d ' \n' | grep -q '"name":"node-3","manager":true,"state":"down"'; }

show_trouble() {
	gitring status >&2 || true
	manager service ps hello_web --no-trunc >&2 || true
	tail -n 20 "$demo/gitring.log" >&2 || true
	fail "$1" "what the daemon and the swarm say is above"
}

# serve_image has a registry that every node reaches, with the demo's app in it.
serve_image() {
	mkdir -p "$demo/registry"
	printf 'version: 0.1\nlog: {level: error}\nhttp: {addr: "%s"}\nstorage: {filesystem: {rootdirectory: %s}}\n' "$registry" "$demo/registry" >"$demo/registry.yml"
	docker-registry serve "$demo/registry.yml" >"$demo/registry.log" 2>&1 &
	DOCKER_HOST=$GITRING_SWARM make_image
	await 20 manager push -q "$image" >/dev/null 2>&1 || fail "cannot push $image" "$(tail -3 "$demo/registry.log")"
}

configure() {
	(umask 077 && head -c 32 /dev/urandom >"$demo/keys/cluster-key")
	cat >"$demo/config.yaml" <<-YAML
		host: node-1
		state: $demo/state
		data_root: $demo/data
		engine: {kind: swarm, url: "$GITRING_SWARM", cluster: demo, key_file: $demo/keys/cluster-key}
		listen: {socket: $GITRING_SOCKET, http: ""}
		poll: 1s
		sources:
		  - name: demo
		    url: file://$demo/remote.git
		    trust: {allowed_signers: $demo/allowed_signers}
	YAML
	chmod 0600 "$demo/config.yaml"
}

# end_node ends an engine, and what its control group holds.
end_node() {
	local at=${GITRING_SWARM#unix://} p
	at=$(basename "$(dirname "$(dirname "$at")")")
	kill -KILL "$(cut -d' ' -f"$1" <<<"$GITRING_SWARM_PIDS")"
	grep -ls ":/$at/$1/" /proc/[0-9]*/cgroup | cut -d/ -f3 | while read -r p; do kill -KILL "$p" 2>/dev/null || true; done
}

# inside runs beside the engines, in their process namespace.
inside() {
	demo=$(mktemp -d /tmp/gitring-demo-swarm.XXXXXX)
	trap 'rm -rf -- "$demo"' EXIT
	export GITRING_SOCKET=$demo/s
	mkdir -p "$demo/keys"
	chmod 0700 "$demo/keys"
	step "three managers: node-1, node-2 and node-3, each an engine in namespaces of its own"
	serve_image
	make_keys
	configure
	make_clone deploy-examples/demo/swarm/repo
	first_commit
	step "commit $(short) is signed and pushed; gitring on node-1 follows it"
	"$bin" serve --config "$demo/config.yaml" 2>"$demo/gitring.log" &
	local daemon=$!
	await 90 live || show_trouble "the app is not whole after 90s"
	say "The app runs three times, and Swarm chose the nodes:"
	show
	step "node-3 ends, with all that it runs, as by a power cut"
	end_node 3
	say "Two of three managers are a quorum. They take the node for dead after some seconds of silence."
	await 120 down || show_trouble "node-3 is not seen as down after 120s"
	await 120 whole || show_trouble "the app is not whole again after 120s"
	step "the node is down, Swarm started its task anew elsewhere, and the app is whole:"
	show
	say "gitring changed nothing for that: it decides versions, and Swarm keeps them running."
	kill "$daemon" && wait "$daemon" || true
}

main() {
	if [ "${1:-}" = --inside ]; then
		inside
		return
	fi
	is_root || fail "only root may run engines with networks of their own" "run this as root"
	check_tools
	scripts/needs.sh docker-registry
	exec scripts/swarm.sh 3 scripts/demo-swarm.sh --inside
}

main "$@"
