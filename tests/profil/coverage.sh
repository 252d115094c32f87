#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Ticks times their period are the CPU time that the kernel accounts, also of short-lived threads and
# processes. tests/cli/coverage.sh tests the same for profiltool.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

# covered "HZ..." NAME: a row of profil_coverage at each rate, by each back end. Few ticks show whether threads
# that are shorter than a period are counted, many how exactly they are.
covered() {
	local backend

	for hz in $1; do
		for backend in bpf daemon; do
			check "$backend: $2, at $hz Hz" holds "$backend" profil_coverage "$2"
		done
	done
}

check "profild" start_profild
covered "99" "150 threads of 5 ms"
covered "4999" "2,000 threads of 0.5 ms"
covered "99 4999" "8 threads: 0.8 s"
covered "997" "300 children of 1 ms"
finish
