#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# legacy.sh [MEASURE...]: measures the cost of profil(2) for programs that call it, with libprofil and
# profild, and compares it with its goals, as root: tick, onoff, live, daemon, ticks; all by default. Numbers
# are medians, followed by the quartiles. Fails only if something could not be measured: a timing is not a
# test.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# shellcheck source=tests/bench/preload.sh
. "$(dirname "${BASH_SOURCE[0]}")/preload.sh"

# --- tick: run time of the program on the tick, above that of an empty one ---

# tick_of REGIONS WORK RATE: the legacy program is what the session takes for a profiler.
tick_of() {
	set_command bpf "$3" caller -r "$1" "$2"
	session -b -f -s "$seconds" "${command[@]}" && value bpf_ns >>"$work/regions-$1"
}

tick_of_empty() { # WORK RATE
	start_program glibc 100 caller -r 0 "$1" || return
	session -b -f -s "$seconds" "$helpers/empty" "$pid" $((1000000000 / $2)) || return
	value bpf_ns >>"$work/empty"
	end_target
}

tick_round() { # WORK RATE
	tick_of 1 "$@" && tick_of 64 "$@" && tick_of_empty "$@"
}

# judge_tick REGIONS WORK RATE GOAL: spread work has none. The cell that it ticks was not touched for
# a minute, so that it is a miss of every cache.
judge_tick() {
	local name result
	name="tick, $2, $1 region$([ "$1" = 1 ] || echo s), $3 Hz"
	paste "$work/regions-$1" "$work/empty" | awk '{ print $1 - $2 }' >"$work/above"
	result="$(summary "$work/above" 0 ns): $(printf '%.0f beside %.0f' \
		"$(median "$work/regions-$1")" "$(median "$work/empty")")"
	if [ "$2" = spread ]; then
		row "$name" "$result" "" ""
	else
		judge "$name" "$(median "$work/above")" "$result" "$4" ns
	fi
}

measure_tick() {
	local kind rate round seconds
	for kind in loop memory spread; do
		for rate in 100 999 4999; do
			seconds=$([ "$rate" -gt 100 ] && echo 0.5 || echo 1)
			rm -f "$work"/{regions-1,regions-64,empty}
			for ((round = 0; round < rounds; round++)); do
				tick_round "$kind" "$rate" ||
					not_measured "tick, $kind, $rate Hz" "round $round" ||
					return
			done
			judge_tick 1 "$kind" "$rate" 60
			judge_tick 64 "$kind" "$rate" 150
		done
	done
}

# --- onoff: profil() on and off again ---

any_events() {
	[ -n "$(find /proc/[0-9]*/task/[0-9]*/fd -lname 'anon_inode:\[perf_event\]' -print -quit \
		2>/dev/null)" ]
}

# Waits until the scheduler looks for no perf events: the kernel stops that a second after the last
# one of a task, and to begin again takes it some 10 ms, for which the next one waits.
wait_until_cold() {
	local end=$((SECONDS + 30))
	while [ "$SECONDS" -lt "$end" ]; do
		if ! any_events; then
			sleep 2
			any_events || return 0
		fi
		sleep 1
	done
	return 1
}

# Someone has an event all the time.
keep_warm() {
	start sleep 1000
	sleeper=$pid
	start "$helpers/empty" "$sleeper" 1000000000
	warmer=$pid
	wait_for any_events
}

# onoff_each STATE BACKEND...: one process after the other.
onoff_each() {
	local state=$1 backend
	shift
	for backend; do
		if [ "$state" = cold ] && ! wait_until_cold; then
			others=yes
			return 0
		fi
		run_program "$backend" 100 onoff 100 ||
			not_measured "on and off" "$backend" || return
		told first >>"$work/$backend-$state"
		told again >>"$work/$backend-again"
	done
}

judge_times() { # FILE NAME GOAL
	if [ -e "$work/$1" ]; then
		judge "$2" "$(median "$work/$1")" "$(summary "$work/$1" 2 ms)" "$3" ms
	else
		row "$2" "left out: others use perf events" "" ""
	fi
}

judge_onoff() { # BACKEND NAME GOAL
	judge_times "$1-cold" "on and off, $2: first" "$3"
	judge_times "$1-warm" "  first, others have perf events" "$3"
	judge_times "$1-again" "  again" "$3"
}

measure_onoff() {
	local round sleeper warmer others=""
	start_profild || not_measured "on and off" "profild" || return
	for ((round = 0; round < rounds; round++)); do
		[ -n "$others" ] || onoff_each cold bpf daemon user || return
		keep_warm
		onoff_each warm bpf daemon user glibc || return
		stop "$warmer"
		stop "$sleeper"
	done
	stop "$profild"
	judge_onoff bpf "eBPF in process" 10
	judge_onoff daemon "profild" 2
	judge_onoff user "profild, no rights" 2
	row "on and off, glibc: first" "$(summary "$work/glibc-warm" 4 ms)" "" ""
	row "  again" "$(summary "$work/glibc-again" 4 ms)" "" ""
}

# --- live: what the thread takes that brings the counts to the buffer ---

# live_ns: the CPU time so far of that thread in $pid.
live_ns() {
	local task
	for task in /proc/"$pid"/task/*; do
		[ "$(cat "$task/comm")" = profil ] && cut -d ' ' -f 1 "$task/schedstat" && return
	done
	return 1
}

# live_share WHAT GOAL HZ ARG...: of a core, when the program is that.
live_share() {
	local name="live thread, $1" goal=$2 hz=$3 round begin used
	shift 3
	rm -f "$work/share"
	start_program bpf "$hz" caller "$@" || not_measured "$name" "the program" || return
	sleep 2 # until it knows that nothing happens, if so
	for ((round = 0; round < rounds; round++)); do
		begin=$(now_ns)
		used=$(live_ns) || not_measured "$name" "no such thread" || return
		sleep 2
		awk -v used=$(($(live_ns) - used)) -v time=$(($(now_ns) - begin)) \
			'BEGIN { print 100 * used / time }' >>"$work/share"
	done
	end_target
	judge "$name" "$(median "$work/share")" "$(summary "$work/share" 4 %) of a core" "$goal" %
}

# What any thread takes that wakes so often.
least_share() {
	local round
	rm -f "$work/share"
	for ((round = 0; round < rounds; round++)); do
		run_program glibc 100 wakes 125 2 || not_measured "a thread that wakes" "the program" || return
		told percent >>"$work/share"
	done
	row "  a thread that only wakes each 8 ms" "$(summary "$work/share" 4 %) of a core" "" ""
}

measure_live() {
	live_share "idle" 0.1 100 nothing
	live_share "busy elsewhere" 0.1 100 -e loop
	live_share "busy in one cell" 0.1 100 loop
	least_share
	live_share "one cell, 1000 Hz" 0.3 1000 loop
	live_share "all of 1 MiB, 1000 Hz" 0.3 1000 spread
}

# --- daemon: what profild takes for many clients ---

# All that the kernel counts as its memory, of maps and programs.
profild_kernel_kib() {
	cat /proc/"$profild"/fdinfo/* 2>/dev/null |
		awk '/^memlock:/ { sum += $2 } END { print sum / 1024 }'
}

profild_own_kib() { awk '/^VmRSS:/ { print $2 }' /proc/"$profild"/status; }

profild_is_free() {
	[ -z "$(find /proc/"$profild"/fd -lname 'anon_inode:\[perf_event\]' -print -quit)" ]
}

# profild_share CLIENTS BUSY: profild's share of a core beside so many clients.
profild_share() {
	local begin used round
	rm -f "$work/share"
	start_program daemon 100 crowd "$1" "$2" || return
	sleep 1
	for round in 1 2 3; do
		begin=$(now_ns)
		used=$(profild_ns)
		sleep 10
		awk -v used=$(($(profild_ns) - used)) -v time=$(($(now_ns) - begin)) \
			'BEGIN { print 100 * used / time }' >>"$work/share"
	done
	end_target
	wait_for profild_is_free
}

# profild_memory CLIENTS: $own and $kernel get its KiB with so many clients.
profild_memory() {
	start_program daemon 100 crowd "$1" 0 || return
	own[$1]=$(profild_own_kib)
	kernel[$1]=$(profild_kernel_kib)
	end_target
	wait_for profild_is_free
}

# Memory is linear if the last 900 clients take no more each than the 90 before them.
judge_memory() { # NAME KIB-OF-10 KIB-OF-100 KIB-OF-1000
	local few many
	few=$(calculate "($3 - $2) / 90")
	many=$(calculate "($4 - $3) / 900")
	judge "$1" "$many" "$(printf '%.0f, %.0f, %.0f KiB: %.1f each' "$2" "$3" "$4" "$many")" \
		"$(awk -v few="$few" 'BEGIN { printf "%.1f", few * 1.1 }')" KiB
}

measure_daemon() {
	local busy own=() kernel=() clients
	start_profild || not_measured profild "its start" || return
	for clients in 10 100 1000; do
		profild_memory "$clients" || not_measured profild "$clients clients" || return
	done
	for busy in 2 16; do
		profild_share 1000 "$busy" || not_measured profild "1000 clients" || return
		judge "profild, 1000 clients, $busy busy" "$(median "$work/share")" \
			"$(summary "$work/share" 4 %) of a core" 1 %
	done
	stop "$profild"
	judge_memory "profild, 10, 100, 1000 clients" "${own[10]}" "${own[100]}" "${own[1000]}"
	judge_memory "  the kernel's maps and programs" "${kernel[10]}" "${kernel[100]}" \
		"${kernel[1000]}"
}

# --- ticks: counted of those that are due ---

# ticks_of BACKEND HZ THREADS: the share of them in percent.
ticks_of() {
	run_program "$1" "$2" ticks "$3" 3 || return
	awk -v counted="$(told counted)" -v due="$(calculate "$(told cpu_s) * $2")" \
		'BEGIN { print 100 * counted / due }' >>"$work/$1"
}

# ticks_round HZ THREADS: both in turn, where both can.
ticks_round() {
	ticks_of bpf "$1" "$2" && { [ "$1" != 100 ] || ticks_of glibc "$1" "$2"; }
}

judge_ticks() { # NAME
	local beside="glibc cannot"
	[ -e "$work/glibc" ] && beside="glibc $(summary "$work/glibc" 1 %)"
	awk '{ print ($1 > 100 ? $1 - 100 : 100 - $1) }' "$work/bpf" >"$work/off"
	judge "$1" "$(median "$work/off")" "$(summary "$work/bpf" 1 %); $beside" 1 "% off"
}

measure_ticks() {
	local rate threads round name
	for rate in 100 1000; do
		for threads in 1 2 8; do
			name="ticks of due: busy threads $threads, $rate Hz"
			rm -f "$work"/{bpf,glibc}
			for round in 1 2 3 4 5; do
				ticks_round "$rate" "$threads" || not_measured "$name" "round $round" || return
			done
			judge_ticks "$name"
		done
	done
}

# --- ---

rounds=${PROFIL_BENCH_ROUNDS:-9}
plant session empty caller onoff wakes crowd ticks || exit 1
measures=(tick onoff live daemon ticks)
bench "$@"
