#!/usr/bin/env bash
# A machine of the tests' own that systemd runs, with an engine of its own: Debian in a
# folder, with PID 1, cgroups, a network and mounts that are nobody else's. The network has
# no way out. Where it is, and from where Debian came, stands in no file of the repository.
#
#   systemd.sh root <folder>            make the folder with Debian in it, if it is not there
#   systemd.sh run <folder> <machine>   run it until it ends, its disk below <machine>
#   systemd.sh in <machine> <command>…  run a command in it
#   systemd.sh pull <machine>           end it as a power cut does
#
# A reboot from inside ends run: to start it again with the same <machine> is the boot.
# <machine>/share is /share in it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/say.sh"

suite=bookworm
packages=systemd,systemd-sysv,dbus,docker.io,docker-registry,iptables,iproute2,git,openssh-client,ca-certificates

# mirror is where this machine takes its own packages from.
mirror() {
	apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
		awk -v s="$suite" '$2 == s { print $1; exit }'
}

make_root() {
	local root=$1 from
	[ -e "$root/.whole" ] && return
	has debootstrap || fail "debootstrap is not here" "sudo apt-get install debootstrap"
	from=$(mirror)
	[ -n "$from" ] || fail "this machine takes no packages of Debian $suite" "run it on one that does"
	say "making Debian $suite in $root"
	mkdir -p "$root"
	debootstrap --variant=minbase "--include=$packages" "$suite" "$root" "$from" >"$root.log" 2>&1 ||
		fail "debootstrap failed" "its log is $root.log"
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/etc/apt/sources.list "$root"/usr/share/{doc,man,locale}/*
	# What only a machine with hardware, or with a way out, needs.
	ln -sf /dev/null "$root/etc/systemd/system/systemd-udevd.service"
	ln -sf /dev/null "$root/etc/systemd/system/docker-registry.service"
	: >"$root/etc/machine-id"
	echo machine >"$root/etc/hostname"
	: >"$root/.whole"
}

# hierarchies are the cgroup v1 mounts of this machine, without those of v2.
hierarchies() { awk '$3 == "cgroup" && $2 ~ "^/sys/fs/cgroup/" { print $2 }' /proc/mounts; }

# of is the cgroup of a machine, by its folder.
of() { printf 'gitring-%s' "$(printf '%s' "$1" | cksum | tr ' ' -)"; }

run_machine() {
	local root=$1 machine=$2 name h
	mkdir -p "$machine"/{upper,work,docker,mnt,share}
	machine=$(cd "$machine" && pwd)
	root=$(cd "$root" && pwd)
	name=$(of "$machine")
	for h in $(hierarchies); do
		mkdir -p "$h/$name"
		# A set of processors begins empty, and lets nothing in.
		if [ -e "$h/cpuset.cpus" ]; then
			cat "$h/cpuset.cpus" >"$h/$name/cpuset.cpus"
			cat "$h/cpuset.mems" >"$h/$name/cpuset.mems"
		fi
	done
	local code=0
	(
		for h in $(hierarchies); do echo "$BASHPID" >"$h/$name/cgroup.procs"; done
		exec unshare --mount --uts --ipc --net --pid --cgroup --fork --kill-child \
			"$here/systemd.sh" boot "$root" "$machine"
	) || code=$?
	for h in $(hierarchies); do find "$h/$name" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
	return "$code"
}

# boot is the first process of the machine.
boot() {
	local root=$1 machine=$2 at=$2/mnt h name line
	local held=()
	for h in $(hierarchies); do held+=("${h##*/}"); done
	declare -A called # by the kernel
	for name in "${held[@]}"; do
		case $name in systemd) called[$name]=none,name=systemd ;; *) called[$name]=$name ;; esac
	done
	mount --make-rprivate /
	mount -t overlay overlay -o "lowerdir=$root,upperdir=$machine/upper,workdir=$machine/work" "$at"
	mkdir -p "$at/var/lib/docker" "$at/old" "$at/share"
	mount --bind "$machine/docker" "$at/var/lib/docker" # an engine keeps its layers on no overlay
	mount --bind "$machine/share" "$at/share"
	mount -t proc proc "$at/proc"
	mount -t sysfs sysfs "$at/sys"
	mount -t tmpfs tmpfs "$at/dev" -o mode=755
	for name in null zero full random urandom tty; do
		: >"$at/dev/$name"
		mount --bind "/dev/$name" "$at/dev/$name"
	done
	mkdir "$at/dev/pts" "$at/dev/shm"
	mount -t devpts devpts "$at/dev/pts" -o newinstance,ptmxmode=0666,mode=620
	ln -s pts/ptmx "$at/dev/ptmx"
	ln -s /proc/self/fd "$at/dev/fd"
	mount -t tmpfs tmpfs "$at/dev/shm"
	mount -t tmpfs tmpfs "$at/run" -o mode=755
	mount -t tmpfs tmpfs "$at/sys/fs/cgroup" -o mode=755
	for name in "${held[@]}"; do
		mkdir "$at/sys/fs/cgroup/$name"
		mount -t cgroup cgroup "$at/sys/fs/cgroup/$name" -o "${called[$name]}"
	done
	ip link set lo up
	cd "$at"
	pivot_root . old
	umount -l /old
	exec env -i container=gitring PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init </dev/null
}

# enter runs a command in a machine, as its root.
enter() {
	local pid
	pid=$(init_of "$1")
	shift
	exec nsenter --target "$pid" --mount --uts --ipc --net --pid --cgroup --root --wdns=/ \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}

# init_of is the process of this machine that is the first one of the machine.
init_of() {
	local machine p
	machine=$(cd "$1" && pwd)
	for p in $(cat "/sys/fs/cgroup/systemd/$(of "$machine")"{,/init.scope}/cgroup.procs 2>/dev/null); do
		if awk '/^Name:/ { is = $2 == "systemd" } /^NSpid:/ { own = NF > 2 && $NF == 1 } END { exit !(is && own) }' "/proc/$p/status" 2>/dev/null; then
			echo "$p"
			return
		fi
	done
	fail "no machine runs in $machine"
}

case ${1-} in
root) make_root "$2" ;;
run) run_machine "$2" "$3" ;;
boot) boot "$2" "$3" ;;
in) enter "${@:2}" ;;
pull) kill -9 "$(init_of "$2")" ;;
*) fail "scripts/systemd.sh has no such verb" "root, run, in or pull" ;;
esac
