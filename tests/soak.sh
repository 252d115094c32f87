#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A day of profild --continuous in compressed form: as many windows as a day has minutes, of a second each, while
# programs come and go under changing names and the directory has less room than they need. Its memory and open files
# do not grow, it loses no window, and all that is kept can be read.
#
# SOAK_WINDOWS=60 takes fewer.
# Time limit: 7200 s

# shellcheck disable=SC2317 # functions are called by check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

windows=${SOAK_WINDOWS:-1440}
directory=$work/archive
if [ "$(id -u)" -ne 0 ]; then
	skip "a day of the archive" "recording needs root"
	finish
fi

# --- What runs meanwhile ---

# New programs all the time: each has its own build ID, as after a deploy, and lives for a tenth of a second.
churn() {
	local number=0

	while true; do
		number=$((number + 1))
		# A byte of the build ID.
		sed "s/PROFIL-SOAK-[0-9]*/PROFIL-SOAK-$((10000 + number % 50000))/" "$work/deployed" >"$work/program-$((number % 7))"
		chmod 755 "$work/program-$((number % 7))"
		"$work/program-$((number % 7))" 1 0.05 >/dev/null
		sleep 0.2
	done
}
# shares, with a text in its build ID that can be replaced.
deployed() {
	gcc -O1 -g -pthread -D_GNU_SOURCE -I"$top" -I"$top/user" -w "$top/tests/progs/shares.c" -o "$work/deployed" \
		-Wl,--build-id=0x"$(printf 'PROFIL-SOAK-00000' | od -An -tx1 | tr -d ' \n')"
}
check "a program to deploy" deployed
start churn

# --- The recorder ---

host=$(hostname)
start "$build/profild" --continuous --directory "$directory" --window 1 --retain-bytes 20M --retain-times 4M,1h
profild=$pid
# state NAME: a number of what it has done.
state() {
	"$build/profild" --status --directory "$directory" --json 2>/dev/null | sed -nE "s/^ *\"$1\": ([0-9]+),?$/\1/p"
}
# written N: whether so many windows were.
written() {
	windows_written=$(state windows_total)
	[ "${windows_written:-0}" -ge "$1" ]
}
# reaches N: waits for so many, as long as there are ever more.
reaches() {
	until written "$1"; do
		wait_for written $((${windows_written:-0} + 1)) || return
	done
}
# The programs of churn that it has open. Others may start programs meanwhile.
open_files() {
	find "/proc/$profild/fd" -mindepth 1 -lname "$work/program-*" | wc -l
}

check "a tenth of the windows are written" reaches $((windows / 10 + 2))
memory_first=$(state resident_bytes)
check "all $windows windows are written" reaches "$windows"
memory_last=$(state resident_bytes) files=$(open_files)
echo "# memory $((memory_first / 1024)) -> $((memory_last / 1024)) KiB, $files programs open"

# At a tenth it has read as many programs as it keeps: what grows from there on grows for ever.
check "memory does not grow: by no quarter and 4 MiB" [ "$memory_last" -le $((memory_first * 5 / 4 + 4194304)) ]
# Those that run, and those of the last windows; some thousands have ended.
check "programs that have ended do not stay open" [ "$files" -le 50 ]
for zero in windows_failed_total windows_damaged_total lost_processes_total; do
	check "$zero is 0" [ "$(state $zero)" = 0 ]
done
check "the process that keeps the files never ended" [ "$(state keeper_starts_total)" = 1 ]
kept_bytes() {
	find "$directory" -name '*.pb.gz' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}
# One window may be written before the oldest are removed.
check "the directory keeps its limit" [ "$(kept_bytes)" -le $((21 * 1024 * 1024)) ]
stop "$profild"

# --- Its days ---

# in_all: the samples of all that is kept.
in_all() {
	PROFIL_ARCHIVE=$directory "$profiltool" report -q --json --since -1d >"$work/all.json" &&
		sed -nE 's/^ *"counted": ([0-9]+),$/\1/p' "$work/all.json"
}
kept=$(in_all)
check "what is kept can be read: ${kept:-no} samples" [ "${kept:-0}" -gt 0 ]
files=$(find "$directory" -name '*.pb.gz' | wc -l)
# As in the hours that follow: minutes are merged into ten minutes, and these into hours.
grows_old() {
	"$build/tests/unit/archive_make" tidy "$directory" "$host" $(($(date +%s) + $1 * 3600)) 200
}
for hours in 3 8 26; do
	check "it is merged after $hours hours" grows_old $hours
	check "with the same samples" [ "$(in_all)" = "$kept" ]
done
left=$(find "$directory" -name '*.pb.gz' | wc -l)
check "into fewer files: $files -> $left" [ "$left" -lt "$files" ]

finish
