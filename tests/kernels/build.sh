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

# Debian's configuration is for gcc: what of it clang 14 to 19 do not know.
for_clang=(CC=clang CONFIG_CC_IS_GCC= CONFIG_CC_IS_CLANG=y CONFIG_GCC_VERSION=0
	CONFIG_CLANG_VERSION=140000 CONFIG_CC_IMPLICIT_FALLTHROUGH=-Wimplicit-fallthrough
	CONFIG_{,MITIGATION_}{RETHUNK,SLS}"=" CONFIG_FTRACE_MCOUNT_USE_CC= CONFIG_INIT_STACK_ALL_ZERO=
	CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=
	KCFLAGS=-Wno-duplicate-decl-specifier)

declare -A headers_of=()
for series in 6.1 6.12; do
	if get_kernel "$series"; then
		headers_of[$series]=$headers
	else
		skip "the headers of Linux $series" "$why"
	fi
done

# --- By make kmod; kernels.sh does so by gcc, and sparse reads it there ---

# `make test` has clang, and dkms, on the newest kernel alone; `make test-kernels` on all.
few=$(printf '%s\n' "${!headers_of[@]}" | sort -V | tail -n 1)
[ -z "${PROFIL_TEST_KERNELS:-}" ] || few=${!headers_of[*]}
for series in $few; do
	check "$series: clang at W=1 has no warning" \
		build_without_warning "${headers_of[$series]}" "$work/$series-clang" "${for_clang[@]}"
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
		grep "^vermagic: *$release " "$work/modinfo" && grep -x "version: *$version" "$work/modinfo"
}

version=$(sed -n 's/^VERSION := //p' "$top/Makefile")
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
