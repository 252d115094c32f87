#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Where Perl keeps its frames and names: what profil takes it to be, and the headers of the version that is installed
# (Debian: perl), and of those in PROFIL_TEST_PERL_HEADERS, directories named CORE.
# shellcheck disable=SC2317,SC2016 # functions are called by check; variables are of Perl

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# same_layout DIRECTORY: compares with its headers. Functions of Perl, which its headers call, are in no library here.
same_layout() {
	gcc -w -O1 -no-pie -Wl,--unresolved-symbols=ignore-all -D_REENTRANT -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I"$top/user" \
		-I"$top" -I"$1" -o "$work/layout" "$top/tests/cli/perl_layout.c" && "$work/layout"
}

installed=$(perl -MConfig -e 'print "$Config{archlibexp}/CORE" if $Config{useithreads} && $] >= 5.036 && $] < 5.043' 2>/dev/null)
for headers in $installed ${PROFIL_TEST_PERL_HEADERS:-}; do
	[ -e "$headers/perl.h" ] || continue
	version=${headers%/CORE}
	check "the layout of Perl ${version##*/}" same_layout "$headers"
done
[ "$count" -gt 0 ] || skip "the layout of Perl" "no headers of Perl 5.36 to 5.42 with threads (Debian: perl)"
finish
