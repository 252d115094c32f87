#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 3600 s
# The tarball of `make dist` builds, the result is the same in whatever directory and environment, and
# passes `make check`. Too long for `make test`: two whole builds.

# shellcheck disable=SC2317 # functions are called by check

# For `make check`, which runs programs as other users: the directory of this test is closed to them.
directory=${TMPDIR:-/tmp}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

release=profil-$(sed -n 's/^VERSION := //p' "$top/Makefile")
jobs=-j${JOBS:-$(nproc)}
unset MAKEFLAGS MAKELEVEL BUILD PROFIL_BUILD PROFIL_TEST_STRICT JOBS
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

unpack() {
	make -s -C "$top" BUILD="$work/dist" dist &&
		mkdir -p "$work/one" "$work/another/and/longer" &&
		tar -xzf "$work/dist/$release.tar.gz" -C "$work/one" &&
		tar -xzf "$work/dist/$release.tar.gz" -C "$work/another/and/longer"
}
check "the tarball is packed and unpacked" unpack
one=$work/one/$release
check "the packaging of Debian is not in it" test ! -e "$one/debian"
ln -s "$work/another/and/longer/$release" "$work/link"
another=$work/elsewhere/build

check "it builds" make -s -C "$one" "$jobs" WERROR=-Werror all lib32
# In a directory that is a symbolic link, with the result elsewhere, one job and other settings.
build_elsewhere() {
	cd "$work/link" && umask 077 && env -u LC_ALL TZ=Asia/Tokyo LANG=C.UTF-8 HOME=/nonexistent USER=nobody \
		make -s -j1 BUILD="$another" WERROR=-Werror all lib32
}
check "it builds in another directory and environment" build_elsewhere

results() {
	(cd "$1" && find . -path './bpf/*.o' -o -path './user/*.o' -o -path './32/*.o' -o -path './lib*/*' -type f \
		-o -path './prof*' -type f | sort)
}
same_results() {
	results "$one/build" >"$work/results"
	grep -qx ./profiltool "$work/results" && grep -qx ./profild "$work/results" &&
		grep -qx ./lib/libprofil.so.1 "$work/results" && grep -qx ./lib32/libprofil.a "$work/results" &&
		grep -qE '^\./lib/profil/libprofil-bpf\.so' "$work/results" || return
	results "$another" | diff "$work/results" - || return
	while read -r file; do
		cmp "$one/build/$file" "$another/$file" || echo "$file" >>"$work/differ"
	done <"$work/results"
	[ ! -e "$work/differ" ]
}
check "all programs, libraries and objects are the same, bit by bit" same_results
for result in "$one/build" "$another"; do
	(cd "$result" && sha256sum profiltool profild lib/libprofil.so.1 lib/profil/*) | sed 's/^/# /'
done

passes() {
	TMPDIR=$directory make -C "$one" "$jobs" check >"$work/make.out" 2>&1 && return
	grep -v ' \.* ok' "$work/make.out" | tail -n 40
	return 1
}
check "what is built passes make check" passes

finish
