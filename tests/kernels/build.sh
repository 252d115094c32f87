#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profil.ko is built without a warning with the headers of Debian's kernels, by `make kmod` and dkms, and
# the checkers of the kernel's sources report nothing about ours.
# Time limit: 3600 s

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/debian.sh
. "$top/tests/kernels/debian.sh"

# Debian's configuration is for gcc: what of it clang 14 does not know.
for_clang=(CC=clang CONFIG_CC_IS_GCC= CONFIG_CC_IS_CLANG=y CONFIG_GCC_VERSION=0
	CONFIG_CLANG_VERSION=140000 CONFIG_CC_IMPLICIT_FALLTHROUGH=-Wimplicit-fallthrough
	CONFIG_{,MITIGATION_}{RETHUNK,SLS}"=" CONFIG_FTRACE_MCOUNT_USE_CC= CONFIG_INIT_STACK_ALL_ZERO=
	KCFLAGS=-Wno-duplicate-decl-specifier)

# without_warning DIRECTORY: succeeds if the build there printed no warning; its messages are beside it.
without_warning() {
	[ -s "$1/kmod/profil.ko" ] && ! grep -qE 'warning|error' "$1.out" && return
	cat "$1.out"
	return 1
}

# build_for COMPILER "SERIES..." OPTION...: each of these kernels, all at once.
build_for() {
	local compiler=$1 all=$2 release
	shift 2
	for release in $all; do
		build_module "${headers_of[$release]}" "$work/$release-$compiler" W=1 "$@" \
			>"$work/$release-$compiler.out" 2>&1 &
		builds+=($!)
	done
}

declare -A headers_of=()
builds=()
for series in 6.1 6.12; do
	if get_kernel "$series"; then
		headers_of[$series]=$headers
	else
		skip "the headers of Linux $series" "$why"
	fi
done

# --- By make kmod ---

# `make test` has the second compiler, and dkms, on the newest kernel alone; `make test-kernels` on all.
all=${!headers_of[*]}
few=$(printf '%s\n' "${!headers_of[@]}" | sort -V | tail -n 1)
[ -z "${PROFIL_TEST_KERNELS:-}" ] || few=$all
if command -v sparse >/dev/null; then
	build_for gcc "$all" CC=gcc C=2
else
	skip "sparse" "it is not installed"
	build_for gcc "$all" CC=gcc
fi
build_for clang "$few" "${for_clang[@]}"
wait "${builds[@]}"
for series in $all; do
	check "$series: gcc at W=1, and sparse, have no warning" without_warning "$work/$series-gcc"
done
for series in $few; do
	check "$series: clang at W=1 has no warning" without_warning "$work/$series-clang"
done

# generated: what the kernel's build makes, where sources are.
generated() {
	find "$top" -maxdepth 1 -name '*.ko' -o -maxdepth 1 -name '*.symvers'
	find "$top/kmod" "$top/bpf" -name '*.o' -o -name '*.mod' -o -name '*.cmd'
}

nothing_generated() {
	[ -z "$(generated)" ] || { generated; false; }
}

check "nothing is left among the sources" nothing_generated
check "without headers: fails" exits 2 build_module "$work/none" "$work/none"
check "without headers: says where they were looked for" says "No kernel headers in $work/none."
check "without headers: says what to install" says "apt-get install linux-headers-$(uname -r)"

# --- checkpatch ---

complains_of_no_style() {
	perl "$checkpatch" --no-tree --no-summary --terse --show-types --file "$top"/kmod/*.[ch]
}

if get_checkpatch; then
	check "checkpatch has nothing to say" complains_of_no_style
else
	skip "checkpatch" "$why"
fi

# --- dkms ---

# dkms_with COMMAND [OPTION...]: runs dkms for profil, with its directories in $work.
dkms_with() {
	local command=$1
	shift
	dkms "$command" -m profil -v "$version" --sourcetree "$work/dkms/usr/src" \
		--dkmstree "$work/dkms/var" --installtree "$work/dkms/lib/modules" "$@"
}

modinfo_has_version() {
	[ "$(modinfo -F version "$1")" = "$version" ]
}

# built_by_dkms SERIES: from its sources to where modules are.
built_by_dkms() {
	local headers=${headers_of[$1]}
	local release=${headers##*/linux-headers-}

	mkdir -p "$work/dkms/lib/modules/$release"
	dkms_with build -k "$release" --kernelsourcedir "$headers" || {
		cat "$work/dkms/var/profil/$version/build/make.log"
		return 1
	}
	dkms_with install -k "$release" --kernelsourcedir "$headers" --no-depmod &&
		modinfo "$work/dkms/lib/modules/$release/updates/dkms/profil.ko" >"$work/modinfo" &&
		grep "^vermagic: *$release " "$work/modinfo"
}

version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
for series in $few; do
	check "$series: modinfo shows the project's version" \
		modinfo_has_version "$work/$series-gcc/kmod/profil.ko"
done
if command -v dkms >/dev/null; then
	mkdir -p "$work"/dkms/{var,lib/modules}
	check "make install-dkms" make -C "$top" install-dkms DESTDIR="$work/dkms"
	check "dkms add" dkms_with add
	for series in $few; do
		check "$series: dkms build, and install" built_by_dkms "$series"
	done
	check "dkms remove" dkms_with remove --all
	check "make uninstall" make -C "$top" uninstall DESTDIR="$work/dkms"
	check "make uninstall leaves none of the sources" [ ! -e "$work/dkms/usr/src/profil-$version" ]
else
	skip "dkms" "it is not installed"
fi
finish
