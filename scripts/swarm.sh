#!/usr/bin/env bash
# A Swarm of Docker Engines for tests, beside whatever engine this host has.
#
#   scripts/swarm.sh NODES COMMAND…   runs the command beside a swarm of that many engines, of
#                                     which the first three are managers
#
# Each engine is a dockerd of its own: its network (a veth on one bridge), its host name, its
# /run, its control group, its data in a temporary folder. All of them and the command live in
# one process namespace that ends with the command, so nothing is left behind, whatever happens.
#
#   GITRING_SWARM         the socket of the first manager, as DOCKER_HOST has it
#   GITRING_SWARM_NODES   the sockets of all engines, with a space between, the first manager first
#   GITRING_SWARM_PIDS    the processes of their dockerd, in the same order
#
# The ingress mesh needs IPVS in the kernel, and does without where there is none: ports in
# `mode: host` work, and so do overlay networks. /tmp is the same for all, but for nothing else.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/say.sh"

# The network of the engines. It is in a network namespace of its own: nobody else has it.
subnet=10.199.77

# hierarchies are the control group mounts of this machine, of whichever version.
hierarchies() { awk '$3 ~ "^cgroup2?$" && $2 ~ "^/sys/fs/cgroup" { print $2 }' /proc/mounts; }

# ask is a request to an engine, by its socket.
ask() {
	local socket=$1
	shift
	docker -H "$socket" "$@"
}

answers() { ask "$1" version >/dev/null 2>&1; }

# node runs one dockerd, in namespaces that are made already.
node() {
	local at=$1 n=$2 cgroup=$3
	hostname "node-$n"
	ip link set lo up
	mount --make-rprivate /
	mkdir "$at/sys" # of this network; that of the machine shows devices of another
	mount -t sysfs sysfs "$at/sys"
	[ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup "$at/sys/fs/cgroup"
	mount --rbind "$at/sys" /sys
	mount -t tmpfs tmpfs /run
	mkdir -p /run/docker "$at/data" "$at/exec"
	exec dockerd --host "unix://$at/docker.sock" --data-root "$at/data" --exec-root "$at/exec" --pidfile "$at/docker.pid" \
		--config-file "$at/daemon.json" --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$cgroup" --userland-proxy=false --log-level "${GITRING_SWARM_LOG:-warn}"
}

# begin starts dockerd number n and connects it to the bridge.
begin() {
	local at=$1 n=$2 cgroup=$3 pid
	mkdir -p "$at"
	printf '{"insecure-registries": ["%s.0/24"]}\n' "$subnet" >"$at/daemon.json" # of tests, on the bridge
	unshare --mount --net --uts -- "$here/swarm.sh" --wait "$at" "$n" "$cgroup" >"$at/docker.log" 2>&1 </dev/null &
	pid=$!
	disown # a test that ends it is no news
	await 10 test -e "$at/unshared" || fail "no namespaces for engine $n"
	ip link add "node-$n" type veth peer name eth0 netns "$pid"
	ip link set "node-$n" master swarm up
	nsenter --net="/proc/$pid/ns/net" sh -c "ip address add $subnet.$n/24 dev eth0 && ip link set eth0 up && ip route add default via $subnet.254"
	: >"$at/connected"
	pids="${pids:+$pids }$pid"
}

# inside runs in the process namespace: the engines first, then the command.
inside() {
	local count=$1 at=$2 cgroup=$3 n sockets='' manager worker role
	shift 3
	ip link set lo up
	ip link add swarm type bridge
	ip address add "$subnet.254/24" dev swarm
	ip link set swarm up
	mount --make-rprivate /
	mount -t proc proc /proc
	pids=''
	for n in $(seq "$count"); do
		begin "$at/$n" "$n" "$cgroup/$n"
		sockets="${sockets:+$sockets }unix://$at/$n/docker.sock"
	done
	for n in $(seq "$count"); do
		if ! await 60 answers "unix://$at/$n/docker.sock"; then
			tail -5 "$at/$n/docker.log" >&2
			fail "engine $n does not answer"
		fi
	done
	local first=${sockets%% *}
	ask "$first" swarm init --advertise-addr "$subnet.1" >/dev/null
	manager=$(ask "$first" swarm join-token -q manager)
	worker=$(ask "$first" swarm join-token -q worker)
	for n in $(seq 2 "$count"); do
		role=$worker
		[ "$n" -gt 3 ] || role=$manager
		ask "unix://$at/$n/docker.sock" swarm join --token "$role" "$subnet.1:2377" >/dev/null
	done
	GITRING_SWARM=$first GITRING_SWARM_NODES=$sockets GITRING_SWARM_PIDS=$pids "$@"
}

main() {
	case "${1:-}" in
	--inside)
		shift
		inside "$@"
		return
		;;
	--wait)
		: >"$2/unshared"
		await 10 test -e "$2/connected" || exit 1
		shift
		node "$@"
		return
		;;
	esac
	[[ "${1:-}" =~ ^[1-9]$ ]] && [ $# -ge 2 ] || fail "no count of engines and command" "scripts/swarm.sh 3 make swarm-tests"
	is_root || fail "only root may run engines with networks of their own" "run this as root"
	has dockerd docker ip unshare nsenter || fail "dockerd, docker, ip or unshare is not here" "scripts/engine.sh"
	local count=$1 at cgroup h status=0
	shift
	at=$(mktemp -d /tmp/gitring-swarm.XXXXXX)
	cgroup=/${at##*/}
	unshare --mount --net --uts --pid --fork --kill-child -- "$here/swarm.sh" --inside "$count" "$at" "$cgroup" "$@" || status=$?
	for h in $(hierarchies); do
		[ ! -d "$h$cgroup" ] || find "$h$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
	rm -rf --one-file-system "$at"
	return "$status"
}

main "$@"
