#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Calls of profil(), buffers, regions of sprofil().

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_calls
rows profil_buffers
rows profil_regions

# One of the programs that are loaded, as often as all are.
loads_once() {
	with bpf env -u LD_PRELOAD strace -f -qq -e trace=bpf -s 64 -o "$work/tmp/trace" \
		-E LD_PRELOAD="$lib" "$tree/progs/profil_calls" "a second call replaces the first" ||
		return
	grep -c 'BPF_PROG_LOAD.*prog_name="forget"' "$work/tmp/trace" >"$work/loads"
	[ "$(cat "$work/loads")" = 1 ]
}

check "bpf: a second call loads no program" loads_once
finish
