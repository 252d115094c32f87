#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which cell a tick is counted in.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
seed=${PROFIL_TEST_SEED:-$RANDOM}

# cells EXPECTED ARGUMENT...: with each back end; all cases that it is to run must have run.
cells() {
	local expected=$1 name=$2 backend
	shift 2
	for backend in $backends; do
		check "$backend: $name" all_counted "$backend" "$expected" "$@"
	done
	[ -n "$beside" ] || return
	keep glibc cells with glibc "$tree/progs/profil_cells" "$@"
	show glibc cells "$name"
}

all_counted() {
	local backend=$1 expected=$2
	shift 2
	with "$backend" "$tree/progs/profil_cells" "$@" >"$work/cells"
	local code=$?
	cat "$work/cells"
	[ "$code" -eq 0 ] && [ "$(sed -n 's/^cases //p' "$work/cells")" -ge "$expected" ]
}

cp "$data/profil/golden-cells.csv" "$tree/"
# All but those whose pc is in a page that users may not map.
cells 40 "golden cells" golden "$tree/golden-cells.csv"
cells 70 "each scale, each kind of size, each place" each
cells 4 "buffers of 16 MiB, 1 GiB and 4 GiB" large
cells 200 "random cells of seed $seed" random "$seed" 200
finish
