# shellcheck shell=bash disable=SC2154 # demo and image are set by who sources it
# What the demos share: a folder, keys, a repository and an image. Sourced, never run. Who
# sources it has $demo, the folder, and $image, the name of the image.

# What git finds in this shell (a hook's GIT_DIR, a user's signing key) must not
# reach the demo's repository, nor the demo's the user's.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
umask 022

# private says whether nobody else can write to a folder nor to any above it.
# The daemon takes no trust file from a place where somebody else could swap it;
# root's sticky /tmp counts as private.
private() {
	local at=$1 owner mode
	while :; do
		if [ -e "$at" ]; then
			read -r owner mode < <(stat -c '%u %a' "$at")
			[ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] || return 1
			if (((8#$mode & 8#022) != 0)); then
				[ "$owner" = 0 ] && (((8#$mode & 8#1000) != 0)) || return 1
			fi
		fi
		[ "$at" != / ] || return 0
		at=$(dirname "$at")
	done
}

# home picks a demo's folder, the same at every call: $1 where it is not empty, else $2 in
# this checkout. A socket's path has room for about 100 bytes.
home() {
	if [ -n "$1" ]; then
		realpath -m "$1"
		return
	fi
	local here=$PWD/$2
	if private "$here" && [ ${#here} -lt 80 ]; then
		echo "$here"
		return
	fi
	echo "/tmp/gitring${2/./-}-$(id -u)"
}

repo() { git -C "$demo/repo" "$@"; }

short() { repo rev-parse --short=7 "${1:-HEAD}"; }

gone() { ! kill -0 "$1" 2>/dev/null; }

check_tools() {
	has git ssh-keygen go || fail "the demo needs git, ssh-keygen and go" \
		"on Debian or Ubuntu: apt-get install git openssh-client; Go: https://go.dev/dl/"
	# Signing with an SSH key came with git 2.34.
	local version
	version=$(git version | sed 's/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/')
	if [ "$(printf '2.34\n%s\n' "$version" | sort -V | head -n 1)" != 2.34 ]; then
		fail "git $version cannot sign with an SSH key" "install git 2.34 or later"
	fi
	case $(docker info --format '{{.OperatingSystem}} {{.SecurityOptions}}') in
	*"Docker Desktop"* | *rootless*)
		fail "the demo's http checks reach a container by its address, which this engine (Docker Desktop or rootless) does not allow" \
			"run the demo on a Linux host with a rootful Docker Engine"
		;;
	esac
}

# make_home makes the folder of the demo, and those that are named.
make_home() {
	if [ -e "$demo" ] && [ ! -O "$demo" ]; then
		fail "$demo belongs to somebody else" "remove it, or use another checkout"
	fi
	mkdir -p "$demo/keys" "$@"
	chmod 0700 "$demo/keys"
	: >"$demo/.gitring-demo"
}

make_keys() {
	if [ ! -e "$demo/keys/signer" ]; then
		ssh-keygen -q -t ed25519 -N '' -C demo@gitring.example -f "$demo/keys/signer"
	fi
	printf 'demo@gitring.example namespaces="git" %s\n' "$(cut -d' ' -f1,2 "$demo/keys/signer.pub")" >"$demo/allowed_signers"
}

make_image() {
	local context=$demo/image
	mkdir -p "$context"
	cp deploy-examples/demo/app/Dockerfile "$context/"
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$context/hello" ./deploy-examples/demo/app
	if ! DOCKER_BUILDKIT=0 docker build -q -t "$image" "$context" >"$demo/image.log" 2>&1; then
		cat "$demo/image.log" >&2
		fail "cannot build the image $image" "what the engine said is above"
	fi
}

# make_clone makes a remote, and a clone of it that signs, with the files of a folder.
make_clone() {
	git init -q --bare -b main "$demo/remote.git"
	git init -q -b main "$demo/repo"
	repo remote add origin "$demo/remote.git"
	repo config user.name "Demo Signer"
	repo config user.email demo@gitring.example
	repo config gpg.format ssh
	repo config user.signingKey "$demo/keys/signer"
	repo config gpg.ssh.allowedSignersFile "$demo/allowed_signers"
	repo config commit.gpgSign true
	cp -R "$1/." "$demo/repo/"
}

first_commit() {
	repo add -A
	repo commit -q -m "Say hello"
	repo push -q -u origin main
}
