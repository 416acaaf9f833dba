#!/bin/sh
# Installs a release of gitring: one program, after its signature was verified. Nothing of
# what was downloaded runs, or is put in place, before that.
#
#   sh install.sh --from URL-OR-FOLDER [--key FILE] [--version X] [--to /usr/local/bin]
#
#   --from     where the release is: https://…, file://… or a folder
#   --key      the release key as a line of allowed_signers, where this script has none
#   --version  which release; the one that this script came with where it is not given
#   --to       the folder for the program
#
# "make dist" writes the next two lines: the copy of a release has both.
release_key=''
release_version=''
principal='release@gitring'
namespace='gitring-release'

set -eu
umask 022

fail() {
	printf 'error: %s\n' "$1" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

value() { [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value"; }

# fetch copies one file of the release to a path.
fetch() {
	case $from in
	http://* | https://*)
		if has curl; then
			curl -fsL --proto '=https,http' -o "$2" "$from/$1" || fail "cannot download $from/$1"
		elif has wget; then
			wget -q -O "$2" "$from/$1" || fail "cannot download $from/$1"
		else
			fail "neither curl nor wget is installed"
		fi
		;;
	*) cp -- "${from#file://}/$1" "$2" 2>/dev/null || fail "cannot read $from/$1" ;;
	esac
}

sum_of() {
	if has sha256sum; then
		sha256sum <"$1"
	else
		shasum -a 256 <"$1"
	fi | cut -d ' ' -f 1
}

# Everything is a function that the last line calls, so that half a script does nothing.
main() {
	from='' key_file='' version=$release_version to=/usr/local/bin
	while [ $# -gt 0 ]; do
		case $1 in
		--from) value "$@" && from=${2%/} ;;
		--key) value "$@" && key_file=$2 ;;
		--version) value "$@" && version=${2#v} ;;
		--to) value "$@" && to=${2%/} ;;
		*) fail "unknown argument $1; --from, --key, --version and --to are known" ;;
		esac
		shift 2
	done
	[ -n "$from" ] || fail "--from is missing: the address or folder of the release"
	[ -n "$version" ] || fail "--version is missing: this copy of the script belongs to no release"
	case $version in *[!0-9A-Za-z.+~-]*) fail "$version is no version" ;; esac
	has ssh-keygen || fail "ssh-keygen is missing, and without it no signature can be verified: install OpenSSH 8.2 or later"
	has sha256sum || has shasum || fail "neither sha256sum nor shasum is installed"

	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no release for $(uname -s)" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no release for $(uname -m)" ;;
	esac

	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	if [ -n "$key_file" ]; then
		cp -- "$key_file" "$work/allowed_signers" 2>/dev/null || fail "cannot read the key $key_file"
	else
		[ -n "$release_key" ] || fail "no release key: this script has none, and --key names none"
		printf '%s\n' "$release_key" >"$work/allowed_signers"
	fi

	fetch SHA256SUMS "$work/SHA256SUMS"
	fetch SHA256SUMS.sig "$work/SHA256SUMS.sig"
	ssh-keygen -Y verify -f "$work/allowed_signers" -I "$principal" -n "$namespace" \
		-s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >/dev/null 2>&1 ||
		fail "the signature of $from/SHA256SUMS is not the release key's: nothing was installed"

	name=gitring_${version}_${os}_${arch}
	wanted=$(awk -v f="$name.tar.gz" '$2 == f { print $1 }' "$work/SHA256SUMS")
	[ -n "$wanted" ] || fail "the release at $from has no $name.tar.gz"
	fetch "$name.tar.gz" "$work/archive.tar.gz"
	[ "$(sum_of "$work/archive.tar.gz")" = "$wanted" ] ||
		fail "$name.tar.gz is not what the signed checksums say: nothing was installed"

	tar -xzf "$work/archive.tar.gz" -C "$work" "$name/gitring" || fail "cannot unpack $name.tar.gz"
	mkdir -p "$to" 2>/dev/null || fail "cannot make $to: run this as root, or name another folder with --to"
	# Whole or not at all: a copy beside the old program, then one rename.
	new=$to/.gitring.new.$$
	if ! cp "$work/$name/gitring" "$new" 2>/dev/null || ! chmod 0755 "$new" || ! mv -f "$new" "$to/gitring"; then
		rm -f "$new"
		fail "cannot write to $to: run this as root, or name another folder with --to"
	fi
	printf 'installed %s: ' "$to/gitring"
	"$to/gitring" version
}

main "$@"
