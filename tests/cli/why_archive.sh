#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous --chains: profiltool why of a time in the past, through the ends of windows.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
export TZ=UTC
cd "$work" || exit
host=$(uname -n)

# now: the time, for --since
now() {
	date +@%s.%N
}

# begin_profild OPTION...: records into the directory archive. $daemon is its process.
begin_profild() {
	rm -rf archive
	: >profild.err # the one before recorded, too
	"${pdeathsig[@]}" "$build/profild" --continuous --window 3600 --directory archive --keep-free 0 "$@" \
		2>profild.err &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q records profild.err
}

# has_windows N
has_windows() {
	local windows=(archive/"$host"/*/*.pb.gz)
	[ -e "${windows[0]}" ] && [ ${#windows[@]} -ge "$1" ]
}

# cut N: writes a window, of which there are N then.
cut_window() {
	kill -USR1 "$daemon"
	wait_for has_windows "$1"
}

begin_profild --chains
since=$(now)
begin services "$progs/services"
check "a window ends while a program waits" cut_window 1
# The recorder has taken up again what waits when it waits for events.
wait_for grep -q poll "/proc/$daemon/wchan"
send_line services go
wait "$pid"
until=$(now)
check "and another one when it has ended" cut_window 2

why() {
	exits 0 "$profiltool" why -q "$@" --since "$since" --until "$until" archive
}
check "why takes the archive" why -t back
check "all blocked time as a profile" why -t back -f folded -o -
# What chains and sums consist of, test_why replays: other tests may have threads of these names on the machine, too.
# That a wait through the end of a window is one, it does as well; test_sample_program, that who ends it then is known.
turns() {
	PROFIL_ARCHIVE=archive exits 0 "$profiltool" why -q -t back --since "$since"
}
check "the archive is found by itself" turns
kill "$daemon"
wait "$daemon"

begin_profild --chains --retain-times 0
begin services "$progs/services"
send_line services go
wait "$pid"
check "without times" cut_window 1
check "there are no chains" exits 1 "$profiltool" why -q -t back archive
check "which says what keeps them" grep -q -- "--retain-times" err
sums() {
	"$profiltool" report -q --since -10m --state blocked --reason lock --by process archive | grep -qE ' back$'
}
check "but the sums of waits" sums
no_threads() {
	"$profiltool" dump --json archive/"$host"/*/*.pb.gz | python3 -S -c '
import json, sys
labels = [s["labels"] for s in json.load(sys.stdin)["stacks"] if "labels" in s] # a wait without room has none
assert labels and not [l for l in labels if l.get("tid") or "waker_tid" in l.get("tags", {})]'
}
check "which are not of threads" no_threads
kill "$daemon"
wait "$daemon"

finish
