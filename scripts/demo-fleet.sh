#!/usr/bin/env bash
# The demo of a fleet: three hosts that follow one signed repository, the canary first. They are
# three daemons of this machine on its one engine, each with a name, a socket and a state of its
# own, all of it in .demo-fleet beside this checkout. There is no forge and no other machine
# either: deploy-examples/demo has stand-ins for a forge and for ssh, and says so.
#
#   scripts/demo-fleet.sh up|status|down
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh
. scripts/demo-parts.sh

bin=$PWD/bin/gitring
image=gitring-demo-fleet:1
canary=demo-canary-1
edges=(demo-edge-1 demo-edge-2)
hosts=("$canary" "${edges[@]}")
demo=$(home "${GITRING_DEMO_FLEET_DIR:-}" .demo-fleet)

# gitring is the client, bounded: a command that hangs is a failure to show. It looks for hosts
# in the clone, as it has another home than the user, and finds the stand-in of ssh first.
gitring() {
	(cd "$demo/repo" && HOME=$demo GITRING_DEMO_FLEET=$demo GITRING_DEMO_BIN=$bin PATH=$demo/bin:$PATH timeout 90 "$bin" "$@")
}

# --- the processes ------------------------------------------------------------

# running says whether the process of a file is there. It looks at the command line too: a pid
# may have been given anew.
running() {
	local p
	p=$(cat "$demo/$1.pid" 2>/dev/null) && [ -n "$p" ] && tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -qF "$demo/"
}

# begin starts a program on its own: it must outlive this script and hold no pipe of the
# caller's.
begin() {
	local name=$1
	shift
	setsid nohup "$@" >>"$demo/$name.out" 2>>"$demo/$name.log" </dev/null &
	echo $! >"$demo/$name.pid"
	disown
}

end() {
	local p
	running "$1" || return 0
	p=$(cat "$demo/$1.pid")
	kill "$p"
	await 15 gone "$p" || kill -KILL "$p" 2>/dev/null || true
}

all_run() {
	local name
	for name in forge hub "${hosts[@]}"; do running "$name" || return 1; done
}

# show_trouble ends the script with all that helps to see why.
show_trouble() {
	local name
	gitring fleet status >&2 || true
	for name in forge hub "${hosts[@]}"; do
		say "the last lines of $demo/$name.log:" >&2
		tail -n 8 "$demo/$name.log" >&2 || true
	done
	fail "$1" "the whole logs are in $demo; make demo-fleet-down removes it all"
}

# --- what is made -------------------------------------------------------------

make_forge() {
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$demo/bin/forge" ./deploy-examples/demo/forge
	(umask 077 && od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$demo/keys/token")
	begin forge "$demo/bin/forge" "$demo/keys/token"
	await 30 test -s "$demo/forge.out" || show_trouble "the stand-in of a forge did not start"
}

# free_port is one of this machine that nobody listens on.
free_port() {
	local port
	for port in $(seq 9482 9582); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
	done
	fail "no port from 9482 to 9582 is free for the hub"
}

# hub_token makes a token of the hub, in a file of its own.
hub_token() {
	(umask 077 && "$bin" --config "$demo/hub.yaml" token new "$1" --scope "$2" --add -q >"$demo/keys/$1.hub")
}

# make_hub starts the page of all hosts. Each has a token that writes its own row.
make_hub() {
	local host
	echo "127.0.0.1:$(free_port)" >"$demo/hub.at"
	sed -e "s|@DEMO@|$demo|g" -e "s|@HUB@|$(cat "$demo/hub.at")|g" deploy-examples/demo/fleet/hub.yaml >"$demo/hub.yaml"
	mkdir -p "$demo/hub" && chmod 0700 "$demo/hub"
	(umask 077 && : >"$demo/keys/hub-tokens")
	for host in "${hosts[@]}"; do hub_token "$host" "report:$host"; done
	hub_token you read
	begin hub "$bin" hub --config "$demo/hub.yaml"
}

make_configs() {
	local host engine=${DOCKER_HOST:-unix:///var/run/docker.sock}
	for host in "${hosts[@]}"; do
		sed -e "s|@HOST@|$host|g" -e "s|@DEMO@|$demo|g" -e "s|@ENGINE@|$engine|g" -e "s|@FORGE@|$(cat "$demo/forge.out")|g" -e "s|@HUB@|$(cat "$demo/hub.at")|g" \
			deploy-examples/demo/fleet/config.yaml >"$demo/$host.yaml"
	done
}

# --- what is shown ------------------------------------------------------------

show_fleet() {
	local code=0
	say '$ gitring fleet status'
	gitring fleet status || code=$?
	say "(exit status $code)"
	say
}

# state says whether a host is in one of some states with the last commit, by what status says.
state() {
	local said
	running "$1" || show_trouble "the daemon of $1 ended"
	said=$(GITRING_SOCKET=$demo/$1.sock gitring status -o json 2>/dev/null || true)
	grep -Eq "\"sync\": *\"($2)\"" <<<"$said" && grep -Eq "\"commit\": *\"$(repo rev-parse HEAD)\"" <<<"$said"
}

# all_are waits until hosts are in a state with the last commit.
all_are() {
	local wanted=$1 host
	shift
	for host in "$@"; do
		await 90 state "$host" "$wanted" || show_trouble "$host is not $wanted after 90s"
	done
}

push() {
	repo push -q origin HEAD:main
	say "pushed $(short): $(repo log -1 --format=%s)"
}

set_env() { sed -i "s/^\( *$1: \)\".*\"$/\1\"$2\"/" "$demo/repo/hello/compose.yaml"; }

# goes_through shows the last commit on its way: the canary has it, then all have.
goes_through() {
	all_are 'Staging|Applying|Synced' "${edges[@]}"
	all_are Synced "$canary"
	say "the canary has it; the edges read its word every 15 s, and wait until then:"
	show_fleet
	all_are Synced "${hosts[@]}"
	say "all have it:"
	show_fleet
}

# hub_says is what the hub answers of all hosts.
hub_says() {
	(
		exec 3<>"/dev/tcp/${1%:*}/${1#*:}" &&
			printf 'GET /v1/fleet HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n' "$(cat "$demo/keys/you.hub")" >&3 &&
			cat <&3
	) 2>/dev/null
}

# hub_has_them says whether the hub shows the canary Degraded, and the edges held.
hub_has_them() {
	local said
	said=$(hub_says "$(cat "$demo/hub.at")")
	[ "$(grep -o '"word":"\(Degraded\|Restored\|Held\|Waiting\)"' <<<"$said" | wc -l)" = ${#hosts[@]} ]
}

show_hub() {
	say "The hub shows all of them on one page, and can act on none:"
	say "  http://$(cat "$demo/hub.at")/hosts"
	say "The token to sign in with:"
	say "  $(cat "$demo/keys/you.hub")"
}

try_next() {
	show_hub
	say
	cat <<-TEXT
		What to try next:
		  make demo-fleet-status   every host in one row
		  make demo-fleet-down     end and remove everything that the demo made

		Take the bad commit back: it waits for no canary, as it ran everywhere before:
		  git -C $demo/repo revert --no-edit HEAD
		  git -C $demo/repo push origin HEAD:main

		One host by hand:
		  GITRING_SOCKET=$demo/${edges[0]}.sock bin/gitring status
	TEXT
}

# --- the verbs ------------------------------------------------------------------

up() {
	if [ -e "$demo/.gitring-demo" ]; then
		all_run || fail "a demo of a fleet is here, and parts of it do not run" "make demo-fleet-down, then make demo-fleet"
		say "the demo of a fleet is running already"
		show_fleet
		try_next
		return
	fi
	check_tools
	make_home "$demo/bin"
	step "three hosts in $demo: ${hosts[*]}"
	say "They are daemons of this machine on one engine; a small program stands in for the forge, and another for ssh."
	make_keys
	make_forge
	make_hub
	make_configs
	cp deploy-examples/demo/fleet/ssh "$demo/bin/ssh"
	step "the image $image, built from scratch"
	make_image
	make_clone deploy-examples/demo/fleet/repo
	first_commit
	step "commit $(short) is signed and pushed: the canary first, by waves in .gitring/fleet.yaml"
	local host
	for host in "${hosts[@]}"; do begin "$host" "$bin" serve --config "$demo/$host.yaml"; done
	# On a busy machine the shells that become the daemons are not they yet.
	await 10 all_run || true
	goes_through

	step "a signed commit with version 2, which is good"
	set_env VERSION 2
	repo commit -q -a -m "Say version 2"
	push
	goes_through

	step "a signed commit with version 3, which never becomes ready"
	set_env VERSION 3
	set_env BROKEN 1
	repo commit -q -a -m "Say version 3"
	push
	all_are Degraded "$canary"
	all_are Held "${edges[@]}"
	say "the canary took it back and runs version 2; the edges hold it, and never ran it:"
	show_fleet
	await 30 hub_has_them || show_trouble "the hub does not show what the hosts say"
	try_next
}

status() {
	all_run || fail "the demo of a fleet is not running" "make demo-fleet"
	show_fleet
}

# down removes what carries the labels of the demo's hosts and apps, nothing else.
down() {
	[ -e "$demo/.gitring-demo" ] || return 0
	local name
	for name in "${hosts[@]}" hub forge; do end "$name"; done
	if has docker && timeout 10 docker version >/dev/null 2>&1; then
		for name in "${hosts[@]}"; do
			local ours=(--filter "label=gitring.host=$name" --filter "label=gitring.app=hello-${name#demo-}")
			docker ps -aq "${ours[@]}" | xargs -r docker rm -f >/dev/null
			docker network ls -q "${ours[@]}" | xargs -r docker network rm >/dev/null
			docker volume ls -q "${ours[@]}" | xargs -r docker volume rm >/dev/null
		done
		docker image rm -f "$image" >/dev/null 2>&1 || true
	else
		say "no engine answers: nothing was removed there"
	fi
	rm -rf -- "$demo"
	say "the demo of a fleet is gone: its daemons, containers, networks, image and $demo"
}

case ${1:-} in
up | status | down) "$1" ;;
*) fail "no such verb: ${1:-}" "scripts/demo-fleet.sh up|status|down" ;;
esac
