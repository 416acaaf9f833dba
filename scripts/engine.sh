#!/usr/bin/env bash
# Makes sure of a Docker Engine and of the docker command that talks to it.
#
#   one answers (DOCKER_HOST, else the local socket)   use it
#   Debian or Ubuntu, as root                          install docker.io, start it
#   anywhere else                                      say what is missing, exit 1
#
# May be run again at any time, needs no terminal, and stops nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

log=${GITRING_ENGINE_LOG:-/var/log/gitring-dockerd.log}
patience=${GITRING_ENGINE_PATIENCE:-60} # seconds until a started engine must answer

answers() { has docker && timeout 10 docker version >/dev/null 2>&1; }

# systemd_runs: the folder exists exactly where systemd is process 1.
systemd_runs() { [ -d "${SYSTEMD_DIR:-/run/systemd/system}" ]; }

# missing ends the script where installing is not ours to do.
missing() {
	local socket=${ENGINE_SOCKET:-/var/run/docker.sock}
	if [ -S "$socket" ] && [ ! -w "$socket" ]; then
		fail "a Docker Engine is here, but $(id -un) may not open $socket" \
			"run this as root, or add the user to the docker group and log in again: sudo usermod -aG docker $(id -un)"
	fi
	if has dockerd; then
		fail "a Docker Engine is installed here, but does not answer on $socket" \
			"start it (sudo systemctl start docker), or set DOCKER_HOST to the one to use"
	fi
	if apt_family; then
		fail "no Docker Engine is here, and only root may install one" \
			"sudo scripts/engine.sh, or install one by hand: sudo apt-get install docker.io iptables"
	fi
	fail "no Docker Engine answers here, and this script installs one on Debian and Ubuntu only" \
		"install Docker Engine 20.10 or later and the docker command (https://docs.docker.com/engine/install/), or set DOCKER_HOST to one that runs"
}

install_engine() {
	local wanted=()
	has dockerd || wanted+=(docker.io iptables)
	if [ ${#wanted[@]} -gt 0 ]; then
		say "installing ${wanted[*]}"
		apt_install "${wanted[@]}"
	fi
	# From Debian 13 on the docker command is a package of its own.
	if ! has docker; then
		say "installing docker-cli"
		apt_install docker-cli
	fi
}

# start_dockerd starts the daemon on its own: it must outlive this script and
# hold none of its files open.
start_dockerd() {
	say "starting dockerd, its log is $log"
	setsid nohup dockerd >>"$log" 2>&1 </dev/null &
	mkdir -p .cache && echo $! >.cache/engine.pid
	disown
}

start_engine() {
	# The package's own init script may have started it a moment ago.
	if await 3 answers; then
		return
	fi
	if systemd_runs; then
		systemctl start docker
	else
		start_dockerd
	fi
	if ! await "$patience" answers; then
		if [ -r "$log" ]; then
			tail -n 15 "$log" >&2
		fi
		fail "the Docker Engine was started and does not answer within ${patience}s" \
			"what it says is above; the whole log is $log (with systemd: journalctl -u docker)"
	fi
}

main() {
	if answers; then
		return
	fi
	if [ -n "${DOCKER_HOST:-}" ] && has docker; then
		fail "no Docker Engine answers at DOCKER_HOST=$DOCKER_HOST" \
			"start that one, or unset DOCKER_HOST to use the one of this machine"
	fi
	if ! apt_family || ! is_root || ! has apt-get; then
		missing
	fi
	install_engine
	start_engine
	say "a Docker Engine answers: $(docker version --format '{{.Server.Version}}')"
}

# Sourced, as tests do, this file defines its functions and does nothing.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	main "$@"
fi
