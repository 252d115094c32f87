#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# packages.sh build|test|cross|debug|rpm|lint: sees to it that what is needed to build, or to test, is there.
# On Debian and its kin, as root, installs what is missing; elsewhere says what to install.

set -eu

build="gcc make pkg-config clang bpftool libbpf-dev libelf-dev libdw-dev liblzma-dev zlib1g-dev
	libprotobuf-c-dev protobuf-c-compiler libjson-c-dev libiberty-dev libcap-dev libncurses-dev
	libcurl4-gnutls-dev libcmocka-dev perl python3"
test="g++ gcc-multilib musl-tools binutils file xz-utils zstd bzip2 locales linux-perf strace procps util-linux bsdutils
	libcap2-bin gcl gdb mandoc groff-base man-db google-perftools golang-go qemu-system-x86 busybox-static cpio libclang-rt-dev valgrind
	kcachegrind xvfb xauth xdotool imagemagick libgoogle-perftools-dev libpython3-dev php-cli php-fpm php-dev tmux chromium
	debuginfod libdebuginfod-dev nodejs default-jdk-headless luajit redis-tools rustc ldc dwz lld llvm sparse dkms kmod pahole git
	python3-protobuf openssl debian-archive-keyring zsh fish"
# dwp(1) is in binutils, but not since Debian 13; sid has no version.
# shellcheck source=/dev/null # what there is on this machine
case $(. /etc/os-release 2>/dev/null && echo "$ID${VERSION_ID:-}") in
debian13 | debian) test="$test binutils-gold" ;;
esac
# What builds for arm64 (tests/kernels/arm64.sh), and runs it, besides. Debian's gcc for arm64 and gcc-multilib
# exclude each other: `cross` replaces that one, and `test` replaces this.
cross="gcc-$(gcc -dumpversion 2>/dev/null | cut -d. -f1)-aarch64-linux-gnu qemu-system-arm"
# To build the kernel of tests/kernels/debug.sh besides.
debug="flex bison bc dwarves libssl-dev"
# To build and check the rpm packages besides.
rpm="rpm rpmlint"
# What CI checks besides; the two last are for the tutorial, and start a database server on this machine.
lint="clang-format clang-tidy codespell cppcheck eslint shellcheck reuse curl postgresql"

case "${1:-}" in
build) wanted=$build ;;
test) wanted="$build $test" ;;
cross) wanted="$build ${test/gcc-multilib /} $cross" ;;
debug) wanted="$build $test $debug" ;;
rpm) wanted="$build $test $rpm" ;;
lint) wanted="$build $test $lint" ;;
*)
	echo "usage: packages.sh build|test|cross|debug|rpm|lint" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	# Nothing can be looked up by these names: trust a machine that has the tools.
	for tool in gcc clang pkg-config protoc-c; do
		command -v "$tool" >/dev/null || missing="${missing:-} $tool"
	done
	[ -z "${missing:-}" ] && exit 0
	echo "Not found:$missing. Install what your distribution calls these Debian packages:" >&2
	echo "$wanted" | tr -s "\n\t" " " >&2
	exit 1
fi

missing=""
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "Missing packages. As root: apt-get install$missing" >&2
	exit 1
fi
echo "Installing what is missing, with all that it needs:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt COMMAND...: apt-get, with its output in the log. While another process has one of its locks, as a new machine's
# upgrades have for some minutes, waits: DPkg::Lock::Timeout is not for the lock of the lists.
apt() {
	local lock waits=""

	until LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1; do
		lock=$(sed -n 's/^E: Could not get lock //p' "$log" | head -n 1)
		[ -n "$lock" ] || return
		[ -n "$waits" ] || echo "Waiting until apt's lock is free: $lock"
		waits=1
		sleep 2
	done
}

# shellcheck disable=SC2086 # a list of words
if ! { apt update && {
	apt install --assume-no --no-install-recommends $missing || true # it prints how much that is
	grep -E '^(Need to get|After this operation)' "$log" || true
} && apt install -y --no-install-recommends $missing; }; then
	cat "$log" >&2
	echo "apt-get failed; install by hand:$missing" >&2
	exit 1
fi
