#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What libprofil keeps loaded in a process after profiling is turned off, and for how long.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

# loads HOW N: sets $loads to the number of BPF programs that the process loads, and $late to how often it may have
# kept none of them, because it had no CPU for a second.
loads() {
	rm -f "$work/tmp/trace"
	with bpf env -u LD_PRELOAD strace -f -qq -e trace=bpf -o "$work/tmp/trace" \
		-E LD_PRELOAD="$lib" "$tree/progs/profil_keep" "$@" >"$work/kept" || return
	loads=$(grep -c 'bpf(BPF_PROG_LOAD' "$work/tmp/trace")
	late=$(sed -n 's/^late //p' "$work/kept")
	echo "$*: $loads programs loaded, late $late"
}

loads_once() {
	local one

	loads pairs 1 || return
	one=$loads
	loads pairs 50 && [ "$one" -gt 0 ] && [ "$loads" -ge "$one" ] && [ "$loads" -le $((one * (1 + late))) ]
}

# libbpf's probes of the kernel are programs, too, and are made once.
loads_after_second_off() {
	local one

	loads twice 1 || return
	one=$loads
	loads twice 3 && [ "$loads" -gt "$one" ]
}

check "50 times on and off load what one time loads" loads_once
check "what is kept is released by a second call that turns profiling off" loads_after_second_off
check "the thread ends when it keeps nothing any more" holds bpf profil_keep ends
check "a clock that is not used any more is closed" holds bpf profil_keep clocks
check "so it is in a forked child, which opens no events for the others" holds bpf profil_keep inherit
check "a thread without privileges cannot use what is kept" holds bpf profil_keep privileges
check "parent and child count after a fork" holds bpf profil_keep fork
finish
