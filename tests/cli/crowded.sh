#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A recording without an end: a process maps more code than is kept of it, and then a library that it runs. See
# tests/progs/crowded.c.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "a recording without an end" "recording needs root"
	finish
fi

gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fPIC -shared -pthread "$(own_build_id)" "$top/tests/progs/shares.c" \
	-o "$work/libshares.so" || exit
# 1 MiB of mappings with their paths is kept: 350 with one of 3 kB.
printf -v name '%0250d' 0
directory=$work
for _ in {1..12}; do
	directory+=/$name
done
mkdir -p "$directory"
cp "$progs/crowded" "$directory/crowded$$"

# named: whether the archive has a window in which the library's functions have names.
named() {
	"$profiltool" report -q --comm "crowded$$" "$work/archive" | grep -q 'burn_sixty.*libshares.so'
}

share_buffers # nobody else's records displace these
"${pdeathsig[@]}" "$build/profild" --continuous --verbose --directory "$work/archive" --window 1 \
	2>"$work/daemon.err" &
daemon=$!
note_started "$daemon"
check "a daemon records" wait_for grep -q "records .* into" "$work/daemon.err"
begin crowded "$directory/crowded$$" "$work/libshares.so"
target=$pid
check "too many mappings, one after the other: it is logged" \
	wait_for grep -q "process $target has more mappings of code than are kept" "$work/daemon.err"
free_buffers
send_line crowded go
check "what it maps then has names, from a later window on" wait_for named
kill "$target"
kill -TERM "$daemon"
wait "$daemon"
check "the daemon ends" [ $? -eq 0 ]
check "its status counts such windows" grep -qE '^ +mappings of processes with too many, in [0-9]+ windows$' \
	<("$build/profild" --status --directory "$work/archive")
finish
