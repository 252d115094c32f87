#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous while a user runs code of files that take gigabytes of memory, or minutes, to read: windows are
# written in time, and say what they lack.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" != 0 ]; then
	skip "hostile files" "recording needs root"
	finish
fi
chmod 755 "$work"
cp "$build/profild" "$progs/hostile_files" "$work"
chmod 755 "$work/profild" "$work/hostile_files"
mkdir -m 777 "$work/made"
host=$(uname -n)
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# record NAME: starts profild in $work/NAME; $daemon is its process.
record() {
	directory=$work/$1
	"${pdeathsig[@]}" "$work/profild" --continuous --verbose --window 2 --directory "$directory" \
		--metrics "$work/$1.prom" 2>"$directory.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -qE "records (cpu-clock|tick) into" "$directory.err"
}

has_windows() {
	[ "$(find "$directory/$host" -name '*.pb.gz' ! -name '.*' | wc -l)" -ge "$1" ]
}

# peak_below MIB: the daemon lives, and its memory was never more.
peak_below() {
	sed -n 's/^VmHWM:[[:blank:]]*/peak: /p' "/proc/$daemon/status"
	[ "$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$daemon/status")" -lt $(($1 * 1024)) ]
}

# read_below MIB: so much it has read since it began.
read_below() {
	grep rchar "/proc/$daemon/io"
	[ "$(sed -n 's/^rchar: //p' "/proc/$daemon/io")" -lt $(($1 << 20)) ]
}

end_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
}

check "40 libraries with a symbol table of 1,000 MiB" start_ready "${nobody[@]}" "$work/hostile_files" "$work/made" 40 1000
hostile=$pid
check "profild records" record sparse
check "sparse tables: windows are written" wait_for has_windows 4
# 40 GiB are there to be read; in each window a user's files have 256 MiB, and all programs of a machine take less.
check "sparse tables: little of them is read" read_below 2000
check "sparse tables: with little memory" peak_below 250
check "sparse tables: -v says what is not read" \
	grep -q "/made/hostile[0-9]*.so: not read: its symbols take more than" "$directory.err"
check "sparse tables: ... and for whom the others wait" \
	grep -q "/made/hostile[0-9]*.so: not read in this window: files of " "$directory.err"
check "sparse tables: --status says it" sh -c '"$1" --status --directory "$2" | grep -q "^symbols unread *[1-9]"' - \
	"$work/profild" "$directory"
check "sparse tables: so do the metrics" grep -q '^profil_symbol_files_unread_total [1-9]' "$work/sparse.prom"
check "sparse tables: the recording ends in order" end_daemon
stop "$hostile"
rm -rf "$work/made"/*

check "a library whose header changes" start_ready "${nobody[@]}" "$work/hostile_files" "$work/made" 1 1 flip
hostile=$pid
check "profild records it" record flip
check "a header that changes: windows are written" wait_for has_windows 8
check "a header that changes: with little memory" peak_below 150
check "a header that changes: the recording ends in order" end_daemon
stop "$hostile"

finish
