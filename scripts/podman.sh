#!/usr/bin/env bash
# A Podman of Debian's for tests, beside whatever engine this host has.
#
#   scripts/podman.sh can                says why this machine cannot, and then fails
#   scripts/podman.sh RELEASE COMMAND…   runs the command beside Podman of that release of
#                                        Debian (trixie, bookworm); GITRING_PODMAN is its socket, and
#                                        GITRING_PODMAN_PID a file with the process of its service,
#                                        which is started again once it ends
#
# Podman's packages are unpacked into a folder of their own, from where this machine's apt
# gets its packages. The service runs there as root, in mount, network, UTS and process
# namespaces that end with the command. The command runs in the same network, so that it
# reaches containers, and Podman its registries. /tmp is the same for both.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/say.sh"

home=${GITRING_PODMAN_HOME:-/var/lib/gitring-podman}
packages=podman,runc,conmon,catatonit,netavark,aardvark-dns,nftables,iptables,mount,util-linux,coreutils,bash,ca-certificates,base-files

# debian is the archive that this machine's apt has Debian from; nothing where it has none.
debian() {
	apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "main" { print $3; exit }'
}

keys=/usr/share/keyrings/debian-archive-keyring.gpg

# hindrance is why this machine cannot have one; nothing where it can.
hindrance() {
	if ! is_root; then
		echo "only root may run Podman's service with its networks"
	elif [ -z "$(debian)" ] || [ ! -r "$keys" ]; then
		echo "apt has no packages of Debian on this machine"
	fi
}

# unpack makes the folder of a release, whole or not at all.
unpack() {
	local release=$1 root=$home/$1
	[ "$(cat "$root/.packages" 2>/dev/null)" != "$packages" ] || return 0
	has mmdebstrap || apt_install mmdebstrap
	say "unpacking Podman of Debian $release into $root"
	rm -rf "$root.new" "$root"
	mkdir -p "$home"
	mmdebstrap --quiet --variant=extract --mode=root --keyring="$keys" --include="$packages" \
		--aptopt='APT::Install-Recommends "false"' "$release" "$root.new" "$(debian)" </dev/null
	printf '%s\n' "$packages" >"$root.new/.packages"
	mv "$root.new" "$root"
}

# inside runs in the namespaces: the service first, then the command.
inside() {
	local root=$1 at=$2 service
	shift 2
	hostname gitring-podman
	ip link set lo up
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount --rbind /tmp "$root/tmp"
	mount -t proc proc "$root/proc"
	mount -t tmpfs tmpfs "$root/run"
	mkdir -p "$root/etc/containers" "$root/var/lib/containers" "$root/var/tmp" "$at/storage"
	mount --bind "$at/storage" "$root/var/lib/containers"
	cat >"$root/etc/containers/containers.conf" <<-CONF
		[containers]
		apparmor_profile = "unconfined"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		runtime = "runc"
	CONF
	printf '[storage]\ndriver = "overlay"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
		>"$root/etc/containers/storage.conf"
	printf '{"default":[{"type":"insecureAcceptAnything"}]}\n' >"$root/etc/containers/policy.json"
	printf 'unqualified-search-registries = ["docker.io"]\n[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n' \
		>"$root/etc/containers/registries.conf"
	printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
	: >"$root/etc/resolv.conf"
	# Not by chroot: a command that runc runs in a container would see this root instead.
	mkdir -p "$root/mnt/old"
	# shellcheck disable=SC2016 # expanded inside
	env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root unshare --mount --propagation private -- \
		bash -c 'cd "$1" && pivot_root . mnt/old && cd / && umount -l /mnt/old || exit
			while :; do # as systemd does for those who ask at the socket
				podman --log-level="$2" system service --time=0 "unix://$3/podman.sock" &
				echo $! >"$3/podman.pid"
				wait $! || true
				rm -f "$3/podman.sock"
				sleep 0.1
			done' \
		_ "$root" "${GITRING_PODMAN_LOG:-warn}" "$at" >"$at/podman.log" 2>&1 </dev/null &
	service=$!
	if ! await 30 test -S "$at/podman.sock"; then
		cat "$at/podman.log" >&2
		fail "Podman does not answer"
	fi
	GITRING_PODMAN="unix://$at/podman.sock" GITRING_PODMAN_PID="$at/podman.pid" "$@" || return
	kill "$service" 2>/dev/null || true
}

main() {
	if [ "${1:-}" = --inside ]; then
		shift
		inside "$@"
		return
	fi
	local why
	why=$(hindrance)
	if [ "${1:-}" = can ]; then
		[ -z "$why" ] || say "left out what Podman is needed for: $why"
		[ -z "$why" ]
		return
	fi
	[ $# -ge 2 ] || fail "no release and command" "scripts/podman.sh trixie make podman-suite"
	[ -z "$why" ] || fail "$why" "run this as root, on Debian"
	local release=$1 at status=0
	shift
	unpack "$release"
	at=$(mktemp -d /tmp/gitring-podman.XXXXXX)
	unshare --mount --net --uts --pid --fork --kill-child -- \
		"$here/podman.sh" --inside "$home/$release" "$at" "$@" || status=$?
	[ "$status" = 0 ] || tail -5 "$at/podman.log" >&2 || true
	rm -rf --one-file-system "$at"
	return "$status"
}

main "$@"
