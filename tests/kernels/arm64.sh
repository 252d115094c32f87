# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # shared variables: of lib.sh, and for scripts that source this
# What is different for arm64: packages, the compiler, the machine. Source it after debian.sh; what boots
# kernels sources machine.sh before. Nothing is installed, and the system's own apt knows nothing of it.

sysroot=$kernels/arm64.root # what programs are linked with, and run with in the machine
arm64_lists=$kernels/arm64.apt
arm64_packages="libc6-dev libgcc-s1 libbpf-dev libelf-dev libdw-dev liblzma-dev zlib1g-dev libprotobuf-c-dev
	libjson-c-dev libiberty-dev libcap-dev libncurses-dev libcurl4-gnutls-dev busybox-static util-linux"
# Debian's package of the compiler has the version in the names of its programs, unless it is the default one,
# which cannot be installed beside gcc-multilib.
cross_gcc=$(compgen -c aarch64-linux-gnu-gcc | grep -xE 'aarch64-linux-gnu-gcc(-[0-9]+)?' | sort -V | tail -n 1)

# for_arm64 COMMAND...: with apt's programs for arm64 alone.
for_arm64() {
	APT_CONFIG=$arm64_lists/apt.conf "$@"
}

prepare_apt() {
	local lists=$arm64_lists

	[ -e "$lists/complete" ] && [ -z "$(find "$lists/complete" -mtime +0)" ] && return
	mkdir -p "$lists"/{lists,archives}/partial && : >"$lists/status" || return
	printf '%s;\n' 'APT::Architecture "arm64"' 'APT::Architectures { "arm64"; }' \
		"Dir::State \"$lists\"" "Dir::State::status \"$lists/status\"" "Dir::Cache \"$lists\"" \
		'APT::Sandbox::User "root"' >"$lists/apt.conf"
	if for_arm64 apt-get -qq update >"$work/fetch.out" 2>&1; then
		touch "$lists/complete"
	fi
	[ -e "$lists/complete" ]
}

find_sysroot() {
	local part=$sysroot.part package

	why="apt offers no packages of arm64"
	prepare_apt || return
	[ "$(cat "$sysroot/packages" 2>/dev/null)" = "$arm64_packages" ] && return
	# shellcheck disable=SC2086 # a list of words
	for_arm64 apt-get -qq install -y --download-only --no-install-recommends $arm64_packages \
		>"$work/fetch.out" 2>&1 || { why=$(tail -n 1 "$work/fetch.out"); return 1; }
	rm -rf "$part" && mkdir "$part" || return
	for package in "$arm64_lists"/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$part" || return
	done
	echo "$arm64_packages" >"$part/packages"
	rm -rf "$sysroot"
	rm "$arm64_lists"/archives/*.deb && mv "$part" "$sysroot"
}

# get_sysroot: fetches and unpacks it; $why, when it cannot.
get_sysroot() {
	why="there is no cross compiler (Debian: apt install gcc-12-aarch64-linux-gnu, with gcc's version)"
	[ -n "$cross_gcc" ] && taking_turns find_sysroot
}

# cross_make TARGET...: make for arm64, in $build/arm64.
cross_make() {
	env -u MAKEFLAGS -u MAKELEVEL \
		PKG_CONFIG_SYSROOT_DIR="$sysroot" \
		PKG_CONFIG_LIBDIR="$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig" \
		make -s -j2 -C "$top" BUILD="$build/arm64" CROSS_COMPILE=aarch64-linux-gnu- \
		CC="$cross_gcc --sysroot=$sysroot" "$@"
}

# --- The machine: the functions of machine.sh that differ ---

arm64_libraries() {
	local directory=$sysroot/usr/lib/aarch64-linux-gnu file names name
	local -A seen=()

	mkdir -p "$root/lib/aarch64-linux-gnu" && cp "$sysroot/lib/ld-linux-aarch64.so.1" "$root/lib" || return
	while [ $# -gt 0 ]; do
		names=$(readelf -d "$@" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
		set --
		for name in $names; do
			[ -z "${seen[$name]:-}" ] || continue
			seen[$name]=yes
			for file in "$sysroot"/{,usr/}lib/aarch64-linux-gnu/"$name"; do
				[ -e "$file" ] || continue
				cp -L "$file" "$root/lib/aarch64-linux-gnu" && set -- "$@" "$file" || return
			done
		done
	done
}

# use_arm64: what machine.sh does from here on is for arm64, and what it finds is built for it.
use_arm64() {
	built=$build/arm64
	root=$work/root.arm64
	initramfs=$work/initramfs.arm64
	compiler="$cross_gcc --sysroot=$sysroot"
	busybox=$sysroot/bin/busybox
	setpriv=$sysroot/usr/bin/setpriv
	libgcc=$sysroot/lib/aarch64-linux-gnu/libgcc_s.so.1
	gprof=aarch64-linux-gnu-gprof
	system_call=__arm64_sys_
	append="all_seconds=2 $append"
	# With its own cipher for the signatures of return addresses, the machine would take twice the time.
	arm64_cpu=max,pauth-impdef=on
	qemu=(qemu-system-aarch64 -machine virt -cpu "$arm64_cpu,pmu=off")
	console=ttyAMA0
	port=ttyS0
	ports=(-chardev "file,id=results,path=RESULTS/tar.gz" -device "pci-serial,chardev=results")
	copy_libraries() { arm64_libraries "$@"; }
	copy_gcl() { make_signed_program; }
}

# As distributions build their programs: without frame pointers, and with signed return addresses.
make_signed_program() {
	# shellcheck disable=SC2086 # a list of words
	mkdir -p "$root.pg" && $compiler -O1 -g -fno-inline -mbranch-protection=standard -pthread -D_GNU_SOURCE -w \
		-DWITHOUT_FRAME_POINTERS -fomit-frame-pointer "$top/tests/progs/chains.c" \
		-o "$root.pg/chains-signed" && copy_program "$root.pg/chains-signed" "$built"/tests/progs/frame{s,less}
}
