#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Where Python keeps its frames and names: what profil takes it to be, and the headers of each version that is installed
# (Debian: libpython3-dev), or is in PROFIL_TEST_PYTHON, directories of headers.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# same_layout DIRECTORY: compares with its headers.
same_layout() {
	gcc -w -I"$top/user" -I"$top" -I"$1" -I"${1%/*}" -I"$1/internal" -o "$work/layout" "$top/tests/cli/python_layout.c" &&
		"$work/layout"
}

# The libc's other directory has what an architecture has of its own: pyconfig.h.
export C_INCLUDE_PATH
for include in /usr/include/python3.1[1-4] ${PROFIL_TEST_PYTHON:-}; do
	[ -e "$include/internal/pycore_frame.h" ] || continue
	C_INCLUDE_PATH=$(echo "${include%/*}"/*-linux-gnu | tr ' ' :)
	check "the layout of ${include##*/}" same_layout "$include"
done
[ "$count" -gt 0 ] || skip "the layout of Python" "no headers (Debian: apt-get install libpython3-dev)"
finish
