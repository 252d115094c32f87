#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The processes of profild --continuous that read users' files: they have no rights, and when they are killed or
# stopped, recording goes on, and names come again. Other recorders have one, for call frame information.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

profild=$build/profild
archive=$work/archive
burns=burns$$
gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -fno-omit-frame-pointer -pthread "$(own_build_id)" \
	"$top/tests/progs/shares.c" -o "$work/$burns"

# Of the template that is profild's child.
parsers() {
	local template

	for template in $(pgrep -P "$recorder" -x profil-template); do
		pgrep -P "$template" -x profil-parser
	done
}
has_parsers() {
	[ "$(parsers | wc -l)" = "$1" ]
}
windows() {
	find "$archive" -name '*.pb.gz' | wc -l
}
has_windows() {
	[ "$(windows)" -ge "$1" ]
}
# Every file that is written from now on.
next_windows() {
	touch "$work/mark"
	wait_for has_windows $(($(windows) + 3))
}
# names_are_in: a window after the mark names the program's functions.
names_are_in() {
	find "$archive" -name '*.pb.gz' -newer "$work/mark" -exec "$profiltool" report --json {} ';' |
		grep -q '"burn_\(sixty\|thirty\|ten\)"'
}

if ! "$profiltool" check >/dev/null 2>&1 && [ "$(id -u)" != 0 ]; then
	skip "profild records" "it needs root"
	finish
fi
start "$work/$burns"
start "$profild" --continuous --verbose --directory "$archive" --window 1
recorder=$pid
wait_for grep -q 'records ' "$work/start.out"

check "there are two processes that read files" has_parsers 2
rights() {
	local parser

	for parser in $(parsers); do
		grep -q '^CapEff:.0000000000000000$' "/proc/$parser/status" && grep -q '^Seccomp:.2$' "/proc/$parser/status" &&
			grep -q '^NoNewPrivs:.1$' "/proc/$parser/status" || return
	done
}
check "they have no capabilities, and a filter of system calls" rights
empty_root() {
	local parser

	for parser in $(parsers); do
		[ -z "$(ls "/proc/$parser/root/" 2>/dev/null)" ] || return
	done
}
check "they have an empty root directory" empty_root
no_shared_memory() {
	local parser

	for parser in $(parsers); do
		! grep -q '^[^ ]* ...s' "/proc/$parser/maps" || return
	done
}
check "they share no memory with the recorder" no_shared_memory

next_windows
check "functions have names" wait_for names_are_in
# shellcheck disable=SC2046 # numbers
kill -KILL $(parsers)
next_windows
check "names come again after they were killed" wait_for names_are_in
# shellcheck disable=SC2046
kill -STOP $(parsers)
check "one that does not answer is replaced" \
	wait_for grep -q 'could not be parsed: it was waited for too long' "$work/start.out"
check "windows are written all the same" wait_for has_windows $(($(windows) + 3))
kill "$recorder"
check "the recorder ends" wait "$recorder"

check "call frame information of what record records is read there, too" record_begin one record -g -a
check "by one process" has_parsers 1
check "without rights" rights
check "and shared memory" no_shared_memory
check "which ends with the recording" record_end
finish
