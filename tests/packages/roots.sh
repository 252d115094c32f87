# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh sets some, and some is for those who source it
# Roots of Debian's releases. Source it after lib.sh, and set $suite.
#
# PROFIL_TEST_ROOTS is the directory where they stay for the next run, 2 GB each; PROFIL_TEST_MIRROR where they
# come from.

roots=${PROFIL_TEST_ROOTS:-$build/roots}
mirror=${PROFIL_TEST_MIRROR:-http://deb.debian.org/debian}
version=$(sed -n 's/^VERSION := //p' "$top/Makefile")

# enter ROOT COMMAND...: runs it in there, with mounts that end with it.
enter() {
	# shellcheck disable=SC2016 # the inner shell's
	"${pdeathsig[@]}" unshare --mount --propagation private sh -euc '
		root=$1
		shift
		for directory in proc sys dev; do
			mount --rbind /$directory "$root/$directory"
		done
		mount -t tmpfs tmpfs "$root/run"
		mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
		cp /etc/resolv.conf "$root/run/resolv.conf"
		exec chroot "$root" env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' - "$@"
}

# make_root DIRECTORY: from the archive of debootstrap's, which is made first if it is not there.
make_root() {
	if ! [ -e "$roots/$suite.tar" ]; then
		debootstrap --variant=minbase "$suite" "$work/$suite" "$mirror" &&
			tar -C "$work/$suite" --numeric-owner -cf "$roots/$suite.tar.part" . &&
			mv "$roots/$suite.tar.part" "$roots/$suite.tar" && rm -rf "${work:?}/$suite" || return
	fi
	rm -rf "$1" && mkdir -p "$1" && tar -C "$1" --numeric-owner -xpf "$roots/$suite.tar" || return
	ln -sf ../run/resolv.conf "$1/etc/resolv.conf"
	# A mirror may be a snapshot.
	cat >"$1/etc/apt/apt.conf.d/90profil" <<-'END'
		Acquire::Check-Valid-Until "false";
		APT::Install-Recommends "false";
	END
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d" && chmod 755 "$1/usr/sbin/policy-rc.d"
}

# needs_roots NAME: ends the test with a skipped row where no root can be made.
needs_roots() {
	if [ "$(id -u)" -ne 0 ]; then
		skip "$1" "roots need root"
		finish
	fi
	if ! command -v debootstrap >/dev/null; then
		skip "$1" "debootstrap is not installed (Debian: apt-get install debootstrap)"
		finish
	fi
	mkdir -p "$roots"
}
