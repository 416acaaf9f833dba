# shellcheck shell=bash
# What the other scripts say, and how they wait. Sourced, never run.

# dockerd, iptables and sshd may stand outside of a user's PATH. SBIN stands in
# for the folders in tests.
PATH=$PATH:${SBIN-/usr/sbin:/usr/local/sbin:/sbin}

# say prints one calm line, broken between words where a terminal of 80 columns would
# break it. Its lines go to stdout, in order with what the commands print.
say() {
	local line=$*
	if [ "${#line}" -gt 80 ] && has fmt; then
		fmt -s -w 80 <<<"$line"
		return
	fi
	printf '%s\n' "$line"
}

# step opens a stage of a longer script.
step() {
	printf '\n'
	say "==> $*"
}

# fail ends the script with what is wrong and what to do next.
fail() {
	printf 'error: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then
		printf 'hint: %s\n' "$2" >&2
	fi
	exit 1
}

# has says whether every command named is on the PATH.
has() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null 2>&1 || return 1
	done
}

# await SECONDS COMMAND… runs the command until it succeeds; false when the
# seconds are over. Nothing in these scripts waits without a bound.
await() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.2
	done
}

# apt_family says whether this is Debian, Ubuntu or one that calls itself like
# them. OS_RELEASE stands in for the file in tests.
apt_family() {
	local file=${OS_RELEASE:-/etc/os-release}
	[ -r "$file" ] || return 1
	grep -Eq '^(ID|ID_LIKE)=.*(debian|ubuntu)' "$file"
}

# is_root is a function so that the root of a test's PATH can answer.
is_root() { [ "$(id -u)" = 0 ]; }

# apt_install installs packages and asks nothing. A mirror may be away for a moment, so
# there are three tries.
apt_install() {
	local try
	export DEBIAN_FRONTEND=noninteractive
	for try in 1 2 3; do
		if apt-get update -q </dev/null && apt-get install -y -q --no-install-recommends "$@" </dev/null; then
			return
		fi
		sleep $((try * ${APT_PAUSE:-5}))
	done
	return 1
}
