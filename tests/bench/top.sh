#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# top.sh [MEASURE...]: the cost of `profiltool top` of the whole machine while all CPUs are busy; all
# measures by default.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WARM_UP=10
SECONDS_EACH=30
RUNS=3

# cpu_ms PID: user and system time so far.
cpu_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / hz }' \
		"/proc/$1/stat"
}

# share COMMAND...: of one CPU in percent, once it runs steadily.
share() {
	local before process

	"$@" >/dev/null 2>"$work/top.err" &
	process=$!
	note_started "$process"
	sleep "$WARM_UP"
	before=$(cpu_ms "$process") || return
	sleep "$SECONDS_EACH"
	calculate "($(cpu_ms "$process") - $before) / ($SECONDS_EACH * 10)" || return
	stop "$process"
	return 0
}

keep_busy() {
	local i

	for ((i = 0; i < $(nproc); i++)); do
		start "$progs/shares" 1 0
	done
}

measure_cpu() {
	local i

	keep_busy
	: >"$work/shares"
	for ((i = 0; i < RUNS; i++)); do
		share "$profiltool" top -a --plain >>"$work/shares" || break
	done
	[ "$(wc -l <"$work/shares")" -eq "$RUNS" ] ||
		{ not_measured "top -a, share of one CPU" "$(cat "$work/top.err")"; return; }
	judge "top -a, share of one CPU" "$(median "$work/shares")" \
		"$(summary "$work/shares" 2 %)" 1 %
}

measures=(cpu)
bench "$@"
