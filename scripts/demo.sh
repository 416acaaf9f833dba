#!/usr/bin/env bash
# The demo: a host named "demo" that follows a signed repository, all of it in
# .demo beside this checkout. `make demo` brings it up, the other verbs show
# what gitring does with a good push, a bad one, and a way back.
#
#   scripts/demo.sh up|ui|status|push|secret|canary|unsigned|broken|revert|down
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh
. scripts/demo-parts.sh

bin=$PWD/bin/gitring
image=gitring-demo:1
ours=(--filter label=gitring.host=demo --filter label=gitring.app=hello)

demo=$(home "${GITRING_DEMO_DIR:-}" .demo)
age_key=$demo/keys/age.key
export GITRING_SOCKET=$demo/gitring.sock

# gitring is the client, bounded: a command that hangs is a failure to show.
gitring() { timeout 90 "$bin" "$@"; }

pid() { cat "$demo/pid" 2>/dev/null; }

# running looks at the command line too: a pid may have been given anew.
running() {
	local p
	p=$(pid) && [ -n "$p" ] && tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -qF "$demo/config.yaml"
}

# dashboard is the process of the dashboard, where one runs.
dashboard() {
	local p
	p=$(cat "$demo/ui.pid" 2>/dev/null) && [ -n "$p" ] && tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -qF "$bin ui " && echo "$p"
}

# show_trouble ends the script with all that helps to see why.
show_trouble() {
	gitring status >&2 || true
	say "the last lines of $demo/gitring.log:" >&2
	tail -n 20 "$demo/gitring.log" >&2 || true
	fail "$1" "the whole log is $demo/gitring.log; make demo-down removes the demo"
}

need_up() {
	running || fail "the demo is not running" "make demo"
}

# --- what is made -----------------------------------------------------------

make_repository() {
	[ ! -d "$demo/repo" ] || return 0
	make_clone deploy-examples/demo/repo
	sed -i "s|127.0.0.1:18080:|127.0.0.1:${GITRING_DEMO_PORT:-18080}:|" "$demo/repo/hello/compose.yaml"
	printf 'creation_rules:\n  - age: %s\n' "$(gitring secret keys --age-file "$age_key")" >"$demo/repo/.sops.yaml"
	make_secret
	first_commit
}

# make_host_key makes the host's own key, for which the repository's secret is encrypted.
make_host_key() {
	[ -e "$age_key" ] || gitring secret keys -q --create --age-file "$age_key" >/dev/null
}

# make_secret writes another secret into the clone, encrypted. In the clear it is on no disk
# before the host opens it, and in no command line.
make_secret() {
	od -An -N24 -tx1 /dev/urandom | tr -d ' \n' |
		gitring secret encrypt - --as token.enc --form binary --rules "$demo/repo/.sops.yaml" >"$demo/token.enc"
	mv "$demo/token.enc" "$demo/repo/hello/token.enc"
}

make_config() {
	local engine=${DOCKER_HOST:-unix:///var/run/docker.sock}
	sed -e "s|@DEMO@|$demo|g" -e "s|@ENGINE@|$engine|g" deploy-examples/demo/config.yaml >"$demo/config.yaml"
}

start_daemon() {
	# On its own: it must outlive this script and hold no pipe of the caller's.
	setsid nohup "$bin" serve --config "$demo/config.yaml" >>"$demo/gitring.log" 2>&1 </dev/null &
	echo $! >"$demo/pid"
	disown
	# On a busy machine the shell that becomes the daemon is not it yet.
	await 10 became || true
}

became() { running || gone "$(pid)"; }

synced() {
	running || show_trouble "the daemon ended"
	gitring status -o json 2>/dev/null | grep -Eq '"sync": *"Synced"'
}

# --- what is shown ----------------------------------------------------------

# containers are the instances of a service, web where none is named.
containers() { docker ps -q --no-trunc "${ours[@]}" --filter "label=gitring.service=${1:-web}" | sort; }

cut_ids() { for id in $1; do printf '%.12s ' "$id"; done | sed 's/ $//'; }

# at is where the app's front is reached on this host, as the Compose file says.
at() { sed -n 's/^ *- "\(127\.0\.0\.1:[0-9]*\):8080"$/\1/p' "$demo/repo/hello/compose.yaml"; }

# answer asks the app with nothing but bash.
answer() {
	# shellcheck disable=SC2016 # $1 and $2 are the inner shell's
	timeout 5 bash -c 'exec 3<>"/dev/tcp/$1/$2"; printf "GET / HTTP/1.0\r\n\r\n" >&3; sed "1,/^\r*$/d" <&3' answer "${1%:*}" "${1#*:}"
}

show_app() {
	say "http://$(at)/  $(answer "$(at)" || echo "does not answer")"
}

# fingerprint is what the app tells of its secret, which it never tells itself.
fingerprint() { answer "$(at)" | sed -n "s/.*, secret's fingerprint //p"; }

# asking asks the app again and again, until the file of that name is gone, and then says
# how many requests there were, and how many were not answered.
asking() {
	local to all=0 lost=0
	to=$(at)
	while [ -e "$1" ]; do
		all=$((all + 1))
		[[ $(answer "$to" 2>/dev/null || true) == *"from version"* ]] || lost=$((lost + 1))
	done
	say "$all requests while it was replaced, $lost lost"
}

# asking_both asks as asking does, and says what each of two versions made of it.
asking_both() {
	local to told old=0 new=0 failed=0 lost=0
	to=$(at)
	while [ -e "$1" ]; do
		told=$(answer "$to" 2>/dev/null || true)
		case $told in
		*"from version $2" | *"from version $2,"*) old=$((old + 1)) ;;
		*"from version $3" | *"from version $3,"*) new=$((new + 1)) ;;
		"version $3 fails"*) new=$((new + 1)) failed=$((failed + 1)) ;;
		*) lost=$((lost + 1)) ;;
		esac
	done
	say "$((old + new + lost)) requests: $old to version $2, $new to version $3, which failed $failed; $lost lost"
}

# shared reports whether the front says what came of some requests of a canary.
shared() {
	running || show_trouble "the daemon ended"
	gitring traffic 2>/dev/null | awk '$1 == "canary" && $2 ~ /^[0-9]+$/ && $2 >= 10 { n = 1 } END { exit !n }'
}

# show_dashboard starts it anew, because its address works once, and says that address.
show_dashboard() {
	stop_dashboard
	: >"$demo/ui.address"
	setsid nohup "$bin" ui --quiet --listen 127.0.0.1:0 >"$demo/ui.address" 2>>"$demo/ui.log" </dev/null &
	echo $! >"$demo/ui.pid"
	disown
	if await 30 test -s "$demo/ui.address"; then
		say "the dashboard, at an address that works once (make demo-ui says a new one):"
		say "  $(cat "$demo/ui.address")"
		return
	fi
	cat "$demo/ui.log" >&2
	fail "the dashboard did not start" "what it said is above"
}

stop_dashboard() {
	local p
	p=$(dashboard) || return 0
	kill "$p"
	await 10 gone "$p" || kill -KILL "$p" 2>/dev/null || true
}

show_status() {
	local code=0
	say '$ gitring status'
	gitring status || code=$?
	say "(exit status $code)"
}

# sync_to pushes what is committed, follows it, and expects an outcome.
sync_to() {
	push_commit
	follow_to "$1"
}

# sync_under_requests does the same while the app is asked.
sync_under_requests() {
	: >"$demo/asking"
	asking "$demo/asking" &
	local asks=$!
	sync_to "$1"
	rm -f "$demo/asking"
	wait "$asks"
}

push_commit() {
	repo push -q origin HEAD:main
	say "pushed $(short): $(repo log -1 --format=%s)"
}

follow_to() {
	local wanted=$1 code=0
	say '$ gitring sync --wait'
	gitring sync --wait || code=$?
	say "(exit status $code)"
	[ "$code" = "$wanted" ] || show_trouble "sync --wait ended with $code, and $wanted was expected"
}

try_next() {
	cat <<-TEXT

		What to try next, each takes a few seconds:
		  make demo-push       a signed commit: a rolling update, under requests
		  make demo-secret     a secret changes by a signed commit, encrypted
		  make demo-unsigned   a commit that nobody signed: refused; the old one runs on
		  make demo-broken     a signed version that never becomes ready: restored
		  make demo-revert     take that commit back with git revert
		  make demo-canary     a signed version whose answers fail: taken back; then
		                       make demo-revert once more
		  make demo-ui         the dashboard, by a new address
		  make demo-status     how things are
		  make demo-down       remove everything that the demo made

		Commits made in this clone are signed, and this is how to look by hand:
		  cd $demo/repo
		  export GITRING_SOCKET=$GITRING_SOCKET
		  $bin status --watch
	TEXT
}

# --- the verbs --------------------------------------------------------------

up() {
	if running; then
		say "the demo is running already"
		show_status
		show_app
		show_dashboard
		try_next
		return
	fi
	check_tools
	make_home "$demo/state" "$demo/data"
	step "keys, a signed repository and the daemon's configuration in $demo"
	make_keys
	make_host_key
	make_repository
	make_config
	step "the image $image, built from scratch"
	make_image
	step "gitring serve --config $demo/config.yaml (its log is gitring.log beside it)"
	start_daemon
	await 60 synced || show_trouble "the first commit is not live after 60s"
	step "commit $(short) is live"
	show_status
	say
	show_app
	show_dashboard
	try_next
}

ui() {
	need_up
	show_dashboard
}

# env_of reads and set_env writes one variable of the demo's Compose file.
env_of() { sed -n "s/^ *$1: \"\(.*\)\"$/\1/p" "$demo/repo/hello/compose.yaml"; }
set_env() { sed -i "s/^\( *$1: \)\".*\"$/\1\"$2\"/" "$demo/repo/hello/compose.yaml"; }

# bad reports whether the last commit is one that the demo made to fail.
bad() { [ "$(env_of BROKEN)" = 1 ] || [ -n "$(env_of ERRORS)" ]; }

# need_good: what stands on a bad commit would be judged for what that one did.
need_good() {
	! bad || fail "the last commit is bad, and the version before it serves" "make demo-revert takes it back; do that first"
}

push() {
	need_up
	need_good
	local next=$(($(env_of VERSION) + 1))
	step "a signed commit with version $next"
	set_env VERSION "$next"
	repo commit -q -a -m "Say version $next"
	sync_under_requests 0
	say
	show_status
	show_app
}

secret() {
	need_up
	need_good
	[ -e "$demo/repo/hello/token.enc" ] || fail "this demo was made before it had a secret" "make demo-down, then make demo"
	local told="" was before others
	await 20 tells_another "" || show_trouble "the app tells no fingerprint of its secret"
	was=$told
	before=$(containers)
	others=$(containers other)
	step "a signed commit with another secret, encrypted for this host's key"
	make_secret
	repo commit -q -a -m "Change the secret"
	say '$ git show --stat'
	repo --no-pager show --stat --format=
	sync_under_requests 0
	say
	show_status
	show_app
	await 20 tells_another "$was" || show_trouble "the app still runs with the secret of before"
	say "it runs with the new secret: the fingerprint was $was"
	await 40 none_of "$before" || show_trouble "instances with the secret of before still run"
	say "hello/web has new instances:"
	say "  $(cut_ids "$(containers)")"
	[ "$(containers other)" = "$others" ] || show_trouble "hello/other was replaced, which has no secret"
	say "hello/other has no secret, and runs on in the same container as before:"
	say "  $(cut_ids "$others")"
}

# tells_another reports whether the app tells another fingerprint than $1, and keeps it in told.
tells_another() { told=$(fingerprint) && [ -n "$told" ] && [ "$told" != "$1" ]; }

# none_of reports whether none of these instances runs any more.
none_of() { [ -z "$(comm -12 <(echo "$1") <(containers))" ]; }

canary() {
	need_up
	need_good
	local before was next
	before=$(containers)
	was=$(env_of VERSION)
	next=$((was + 1))
	step "a signed commit with version $next, a canary: 20 % of the requests go to it first, and it fails two of five"
	set_env VERSION "$next"
	sed -i -e 's/^\( *\)BROKEN: .*/&\n\1ERRORS: "40"/' \
		-e 's/^\( *\)failure_threshold: .*/&\n\1strategy: canary\n\1steps: [{weight: 20, for: 1m}, {weight: 50, for: 1m}]\n\1judge: {interval: 3s, min_requests: 20}/' \
		"$demo/repo/hello/compose.yaml"
	repo commit -q -a -m "Try version $next on some requests"
	: >"$demo/asking"
	asking_both "$demo/asking" "$was" "$next" &
	local asks=$!
	push_commit
	await 60 shared || show_trouble "the canary got no requests within 60s"
	say '$ gitring traffic'
	gitring traffic
	say
	follow_to 6
	rm -f "$demo/asking"
	wait "$asks"
	say
	show_status
	show_app
	same_containers "$before" "version $was serves, as it did all the time"
	say "what to do next: make demo-revert takes the commit back"
}

unsigned() {
	need_up
	need_good
	local trusted
	trusted=$(repo rev-parse HEAD)
	step "a commit that nobody signed"
	set_env VERSION "$(($(env_of VERSION) + 1))"
	repo -c commit.gpgSign=false commit -q -a -m "Say something unsigned"
	sync_to 7
	say
	show_status
	show_app
	step "the branch goes back to $(short "$trusted"), the last commit that was trusted"
	say "(in a repository of your own: sign the commit and push it again, see docs/how-to/sign-commits.md)"
	repo reset -q --hard "$trusted"
	repo push -q --force origin HEAD:main
	gitring sync -q || true
	await 30 unrefused || show_trouble "the refusal still stands"
	say "the refusal is gone: the branch is at $(short) again"
}

unrefused() {
	running || show_trouble "the daemon ended"
	local now
	now=$(gitring status -o json 2>/dev/null || true)
	[ -n "$now" ] && ! grep -q '"refusal"' <<<"$now"
}

broken() {
	need_up
	if [ "$(env_of BROKEN)" = 1 ]; then
		say "the last commit is broken already; make demo-revert takes it back"
		return
	fi
	need_good
	local before
	before=$(containers)
	step "a signed commit whose version never becomes ready"
	set_env BROKEN 1
	repo commit -q -a -m "Break it"
	sync_to 6
	say
	show_status
	show_app
	same_containers "$before" "the old instances were not touched"
	say "make demo-revert takes the commit back"
}

revert() {
	need_up
	case $(repo log -1 --format=%s) in
	"Say hello" | Revert*)
		say "there is nothing to take back; make demo-push, make demo-canary or make demo-broken first"
		return
		;;
	esac
	local before was=good
	before=$(containers)
	! bad || was=bad
	step "git revert $(short)"
	repo revert --no-edit HEAD >/dev/null
	sync_to 0
	say
	show_status
	show_app
	if [ "$was" = bad ]; then
		same_containers "$before" "the revert asks for what already runs: nothing was created or restarted"
	fi
}

# same_containers holds the running containers against those of before. A version that was
# taken back is stopped after its outcome is known.
same_containers() {
	await 40 only "$1" || show_trouble "other containers run than before"
	say "$2, same containers as before:"
	say "  $(cut_ids "$1")"
}

only() { [ "$(containers)" = "$1" ]; }

status() {
	need_up
	show_status
	show_app
}

down() {
	stop_dashboard
	stop_daemon
	if has docker && timeout 10 docker version >/dev/null 2>&1; then
		remove_from_engine
	else
		say "no engine answers: nothing was removed there"
	fi
	if [ -e "$demo/.gitring-demo" ]; then
		rm -rf -- "$demo"
	fi
	say "the demo is gone: its daemon, containers, network, image and $demo"
	if [ -s .cache/engine.pid ] && kill -0 "$(cat .cache/engine.pid)" 2>/dev/null; then
		say "the Docker Engine that was started for it still runs; to stop it: kill $(cat .cache/engine.pid)"
	fi
}

stop_daemon() {
	local p
	running || return 0
	p=$(pid)
	kill "$p"
	await 15 gone "$p" || kill -KILL "$p" 2>/dev/null || true
}

# remove_from_engine removes what carries the demo's labels, nothing else. The
# demo's app has no volume; were one added by hand, gitring would keep it, and
# the demo, which made the app, removes it.
remove_from_engine() {
	docker ps -aq "${ours[@]}" | xargs -r docker rm -f >/dev/null
	docker network ls -q "${ours[@]}" | xargs -r docker network rm >/dev/null
	docker volume ls -q "${ours[@]}" | xargs -r docker volume rm >/dev/null
	docker image rm -f "$image" >/dev/null 2>&1 || true
}

case ${1:-} in
up | ui | status | push | secret | canary | unsigned | broken | revert | down) "$1" ;;
*) fail "no such verb: ${1:-}" "scripts/demo.sh up|ui|status|push|secret|canary|unsigned|broken|revert|down" ;;
esac
