#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# How many ticks there are for which CPU time, at several rates.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_time

# The rate is 100 Hz when nobody asks for another.
for hz in 1000 100; do
	for backend in $backends; do
		check "$backend: 8 threads at $hz Hz" with "$backend" "$tree/progs/profil_time" \
			"8 threads within 1 % of their CPU time"
	done
done
check "100 Hz by default" with daemon env -u PROFIL_HZ "$tree/progs/profil_time" asleep
finish
