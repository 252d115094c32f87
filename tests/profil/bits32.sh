#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# 32-bit programs: through profild, and with the C library's profil().

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

runs_32_bit "32-bit programs" || finish

cp -r "$build/lib32" "$tree/"
lib=$tree/lib32/libprofil.so.1
backends=user
beside=""

compile() {
	gcc -m32 -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O1 -g -fno-inline -Wall -Wextra \
		-I"$top/user" "$top/tests/progs/$1.c" -pthread -ldl \
		-lm -o "$tree/progs/$1"
}

check "profild" start_profild
for program in profil_calls profil_regions profil_family; do
	check "$program as a 32-bit program" compile $program
	rows $program
done

compile profil_backends
# There is no eBPF in a 32-bit process: without a word on it, root's gets profild too.
check "nothing forced: daemon" grep -q "^0 0 daemon [1-9]" <(
	LD_PRELOAD=$lib PROFIL_SOCKET=$sock "$tree/progs/profil_backends" which)
check "forced: bpf does not exist" grep -q "^-1 ENOTSUP - 0 # ." <(
	LD_PRELOAD=$lib PROFIL_SOCKET=$sock PROFIL_BACKEND=bpf "$tree/progs/profil_backends" which)
finish
