#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# profild --continuous while the disk of its archive hangs: it records, says so, ends when it is asked to, and writes
# what waited when the disk answers. And the limit of disk, which is one for all that it writes.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; "$" is for the inner shell
. "$(dirname "$0")/../lib.sh"

host=$(uname -n)
disk=$work/disk
directory=$disk/archive
# None waits for a disk that hangs: fsfreeze(8) stops all who write to it, and no signal ends them.
if [ "$(id -u)" -eq 0 ]; then
	mkdir "$disk"
	truncate -s 64M "$work/image"
	mkfs.ext4 -q "$work/image" 2>/dev/null && mount -o loop "$work/image" "$disk" 2>/dev/null
fi
if ! mountpoint -q "$disk" || ! fsfreeze -f "$disk"; then
	skip "a disk that hangs" "no file system can be frozen here"
	umount -l "$disk" 2>/dev/null
	finish
fi
fsfreeze -u "$disk"
thaw() {
	fsfreeze -u "$disk" 2>/dev/null
	umount -l "$disk"
}
trap '[ "$BASHPID" = $$ ] && { thaw; cleanup; }' EXIT

# begin_daemon: $daemon records windows of a second there.
begin_daemon() {
	: >"$work/daemon.err"
	"${pdeathsig[@]}" "$build/profild" --continuous --verbose --window 1 --keep-free 0 --watch=0 \
		--directory "$directory" --metrics "$work/metrics.prom" 2>>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q "records cpu-clock into" "$work/daemon.err"
}
logged() {
	grep -q -- "$1" "$work/daemon.err"
}
# status EXPRESSION: whether it is true of what --status --json prints, which asks no disk.
status() {
	"$build/profild" --status --json --directory "$directory" >"$work/status"
	json "$1" "$work/status"
}
# metric NAME LEAST: its value is this or more.
metric() {
	awk -v name="profil_$1" -v least="$2" '$1 == name && $2 >= least { found = 1 } END { exit !found }' \
		"$work/metrics.prom"
}
windows() {
	find "$directory/$host" -name '*.pb.gz' ! -name '*.sum*' ! -name '.*' | wc -l
}
has_windows() {
	[ "$(windows)" -ge "$1" ]
}
has_ended() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

# --- A disk that hangs ---

begin_daemon
wait_for has_windows 2
check "--status: it records" exits 0 "$build/profild" --status --directory "$directory"
fsfreeze -f "$disk"
check "a disk that hangs: windows wait in memory" wait_for status "j['windows_waiting'] >= 1"
waiting=$(sed -n 's/.*"windows_waiting": \([0-9]*\).*/\1/p' "$work/status")
check "a disk that hangs: the recording goes on" wait_for status "j['windows_waiting'] > $waiting"
check "a disk that hangs: it is noticed" wait_for logged "the process that keeps the files has not answered"
check "a disk that hangs: --status exits 4" wait_for exits 4 "$build/profild" --status --directory "$directory"
check "a disk that hangs: --status says what does not answer, and what waits" sh -c \
	'grep -q "^profild  *writes nothing (PID .*): the process that keeps the files has not answered for" "$1" &&
	 grep -q "[0-9]* wait in memory" "$1"' - "$work/out"
check "a disk that hangs: metrics have it" wait_for metric keeper_away_seconds 30
check "a disk that hangs: metrics go on" wait_for metric windows_waiting $((waiting + 1))
fsfreeze -u "$disk"
nothing_waits() {
	status "j['windows_waiting'] == 0 and j['keeper_away_seconds'] == 0"
}
check "a disk that answers again: what waited is written" wait_for nothing_waits
check "a disk that answers again: nothing was lost" status "j['windows_lost_total'] == j['windows_failed_total'] == 0"
check "a disk that answers again: --status exits 0" exits 0 "$build/profild" --status --directory "$directory"
kill -TERM "$daemon"
wait "$daemon"
check "it ends in order" test $? -eq 0
no_gap() {
	find "$directory/$host" -name '*.pb.gz' ! -name '*.sum*' | sort | while read -r file; do
		"$profiltool" dump --json "$file" | tr -d '\n'
		echo
	done | python3 -c '
import json, sys
w = [json.loads(line) for line in sys.stdin]
sys.exit(not all(abs(a["time_ns"] + a["duration_ns"] - b["time_ns"]) < 1e6 for a, b in zip(w, w[1:])))'
}
check "no window is missing" no_gap

# A keeper that is stopped is ended at once, and another one writes.
begin_daemon
kill -STOP "$(pgrep -P "$daemon" -x profild-keeper)"
check "a keeper that stands still: another one takes its place" wait_for status \
	"j['keeper_stuck_total'] == 1 and j['keeper_starts_total'] == 2 and j['keeper_away_seconds'] == 0"
kill -TERM "$daemon"
wait "$daemon"

# --- The end ---

begin_daemon
keeper=$(pgrep -P "$daemon" -x profild-keeper)
wait_for has_windows "$(($(windows) + 1))"
fsfreeze -f "$disk"
wait_for grep -q '^State:.D' "/proc/$keeper/status"
kill -TERM "$daemon"
check "SIGTERM ends it while the disk hangs" wait_for has_ended "$daemon"
wait "$daemon"
check "SIGTERM ends it in order" test $? -eq 0
check "what was lost by that is said" logged "windows are lost: the process that keeps the files did not write them"
fsfreeze -u "$disk"
check "no process is left" wait_for has_ended "$keeper"

finish
