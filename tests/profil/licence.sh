#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What libprofil is linked of, and the headers that these files include, may be used as LICENSE says of the library.
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

# The commands that link the libraries, were one object of each newer. The build's own list, not another one here.
link_commands() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -n --no-print-directory -C "$top" BUILD="$build" \
		-W "$build/user/util/error.o" -W "$build/user/lib/gmon.o" library | sed -z 's/\\\n/ /g'
}
link_commands >"$work/commands"

# objects FILE: what FILE is linked of, below $build; what an object is linked of in turn (ld -r) instead of it.
objects() {
	local object

	grep -E -e "(-o |rcs )$build/$1( |\$)" "$work/commands" | tr ' ' '\n' | grep -E "^$build/.*\.o\$" |
		sed "s|^$build/||" | sort -u | while read -r object; do
		if [ "$object" = packed.o ] && [ "$1" != packed.o ]; then
			objects packed.o
		elif [ "$object" != "$1" ]; then
			echo "$object"
		fi
	done
}

# sources: of the objects on standard input, and all files of ours that they include: what the compiler has written down.
sources() {
	local object

	while read -r object; do
		if [ -e "$build/${object%.o}.d" ]; then
			sed -z 's/\\\n/ /g; s/^[^:]*: *//; s/\n.*/\n/' "$build/${object%.o}.d" | tr -s ' ' '\n'
		else
			ls "$top/${object%.o}".[cS]
		fi
	done | sed "s|^$top/||" | grep -v '^/usr/' | sort -u
}

# allows LICENCE: reads files, and prints those that offer none of these licences.
allows() {
	local file own
	cd "$top" || return
	while read -r file; do
		own=$(sed -nE '1s,.*SPDX-License-Identi[f]ier: *(.*[^ */])[ */]*$,\1,p' "$file")
		grep -qxE "$1" <<<"${own// OR /$'\n'}" || echo "$file: $own"
	done
}

# is_all FILE LICENCE: succeeds if everything that FILE is linked of offers such a licence.
is_all() {
	local bad number

	objects "$1" | sources >"$work/sources"
	number=$(wc -l <"$work/sources")
	echo "$1: $number files"
	[ "$number" -gt 5 ] || return
	bad=$(allows "$2" <"$work/sources")
	echo "$bad"
	[ -z "$bad" ]
}

# Who takes the library as LGPL-2.1-only may combine it with BSD-2-Clause, but not the other way round.
for file in lib/libprofil.so.1 lib/libprofil.a lib/libprofil-gmon.so; do
	check "$file is linked of what can be had under BSD-2-Clause" is_all $file BSD-2-Clause
done
check "the eBPF module is linked of what can be had under GPL-2.0-only" is_all lib/profil/libprofil-bpf.so.1 \
	'GPL-2\.0-only|BSD-2-Clause|\(LGPL-2\.1'

# The rows would notice.
contains() {
	objects "$1" | sources | grep -qx "$2"
}
check "libprofil.so.1 is linked of user/util/memory.c" contains lib/libprofil.so.1 user/util/memory.c
check "libprofil.a is linked of that, too, and of its own parts" contains lib/libprofil.a user/util/memory.c
check "libprofil.a is linked of libprofil-gmon's assembler" contains lib/libprofil.a user/lib/mcount.S
check "headers are among the files" contains lib/libprofil.so.1 kmod/device.h
noticed() {
	[ "$(echo user/capture/capture.c | allows BSD-2-Clause)" = "user/capture/capture.c: GPL-2.0-only" ]
}
check "a file that is GPL-2.0-only alone is noticed" noticed

finish
