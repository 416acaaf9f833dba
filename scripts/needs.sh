#!/usr/bin/env bash
# Makes sure of the programs that only the tests need: git (to make the remotes
# that gitring follows), gpg and ssh-keygen (to sign), sshd (an ssh remote), ip (a
# bridge for an engine of a test's own), a registry and strace (to kill within a call). gitring itself needs none of
# them. Arguments are the programs where a target needs others, as dist-check does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

# package_of names Debian's package of a program.
package_of() {
	case $1 in
	git) echo git ;;
	gpg) echo gnupg ;;
	ssh-keygen) echo openssh-client ;;
	sshd) echo openssh-server ;;
	ip) echo iproute2 ;;
	docker-registry) echo docker-registry ;;
	strace) echo strace ;;
	rpm) echo rpm ;;
	debootstrap) echo debootstrap ;;
	chromium) echo chromium ;;
	esac
}

# absent are those of the programs that are not here.
absent() {
	local c
	for c in "$@"; do
		has "$c" || echo "$c"
	done
}

# install_quietly installs packages without starting their services: a test's
# sshd and registry are its own. policy-rc.d is how Debian is told so.
install_quietly() {
	local policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
	if [ ! -e "$policy" ]; then
		# shellcheck disable=SC2064 # its value now: the local is gone at the exit
		trap "rm -f '$policy'" EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 0755 "$policy"
	fi
	apt_install "$@"
}

main() {
	local programs packages=() c
	if [ $# -eq 0 ]; then
		set -- git gpg ssh-keygen sshd ip docker-registry strace
	fi
	programs=$(absent "$@")
	if [ -z "$programs" ]; then
		return
	fi
	for c in $programs; do
		packages+=("$(package_of "$c")")
	done
	if ! apt_family || ! has apt-get; then
		fail "the tests need programs that are not here: ${programs//$'\n'/ }" \
			"install them with this system's package manager (in Debian they are ${packages[*]})"
	fi
	if ! is_root; then
		fail "the tests need programs that are not here: ${programs//$'\n'/ }" \
			"sudo apt-get install ${packages[*]}"
	fi
	say "installing what the tests need: ${packages[*]}"
	install_quietly "${packages[@]}"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	main "$@"
fi
