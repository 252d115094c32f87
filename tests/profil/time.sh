#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The number of ticks for the CPU time of a program, at several rates.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_time

# within HZ NAME: a row at a rate, with each back end.
within() {
	local hz=$1 name=$2 backend
	for backend in $backends; do
		check "$backend: $name, at $hz Hz" holds "$backend" profil_time "$name"
	done
	[ -n "$beside" ] || return
	keep glibc rate with glibc "$tree/progs/profil_time" "$name"
	show glibc rate "$name"
}

within 1000 "a thread: its CPU time"
within 1000 "8 threads: their CPU time"
within 100 "8 threads: their CPU time"
within 100 "short stretches"
check "100 Hz by default" with daemon env -u PROFIL_HZ "$tree/progs/profil_time" asleep
finish
