#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# delay.sh [MEASURE...]: the delay of a recording of the machine, and the kernel's own account of how long all threads
# waited for a CPU (run_delay). On a machine that does nothing else: what comes and goes between two ticks is in the
# account alone. Needs root.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

progs=$build/tests/progs
cpus=$(python3 -S -c 'import os; print(*os.sched_getaffinity(0))')

# has_lines COUNT FILE
has_lines() {
	[ "$(wc -l <"$2")" -ge "$1" ]
}

# exact BATCH SERVERS: with so many threads that want each CPU (progs/queues), the delay of a recording of the machine is
# for how long all threads have waited for one, by the kernel's own account. Prints by how many percent they differ.
#
# While the host of a virtual machine takes a CPU away, run_delay goes on and no tick comes. As no CPU is ever idle, the
# ticks say for how long it was there: how many threads waited on average is compared, per tick, and per second in which
# the CPUs were there.
exact() {
	local queues=() delays cpu
	for cpu in $cpus; do
		start_ready "$progs/queues" "$cpu" "$1" "$2"
		queues+=("$pid")
	done
	start "$progs/run_delay"
	delays=$pid
	wait_for test -s "$work/start.out"
	cp /proc/stat "$work/stat"
	exits 0 "$profiltool" record -a -F 997 -d 2 -o "$work/$1.$2.pb.gz" --json || return
	cp /proc/stat "$work/stat2"
	wait_for has_lines $(($(wc -l <"$work/start.out") + 2)) "$work/start.out" # of after the recording
	stop "$delays"
	for pid in "${queues[@]}"; do
		stop "$pid"
	done
	"$profiltool" dump --json "$work/$1.$2.pb.gz" >"$work/dumped.json"
	python3 -S - "$work/dumped.json" "$work/start.out" "$work/stat" "$work/stat2" <<'EOF_PYTHON'
import json, sys
j = json.load(open(sys.argv[1]))
account = [list(map(int, line.split())) for line in open(sys.argv[2])]
# stolen(FILE): of each CPU, in nanoseconds.
def stolen(file):
	lines = [line.split() for line in open(file)]
	return {int(words[0][3:]): int(words[8]) * 10000000 for words in lines if words[0][:3] == "cpu" != words[0]}
# delay_at(TIME): of each CPU.
def delay_at(time):
	a, b = next(pair for pair in zip(account, account[1:]) if pair[0][0] <= time < pair[1][0])
	return [x + (y - x) * (time - a[0]) / (b[0] - a[0]) for x, y in zip(a[1:], b[1:])]
times = [j["time_ns"] + time for s in j["stacks"] for time in s.get("times_ns", [])]
began, duration = min(times), max(times) - min(times)
ticks, delay = (sum(s["values"][i] for s in j["stacks"]) for i in (0, 2))
waited = delay / (ticks * j["period_ns"])
before, after = stolen(sys.argv[3]), stolen(sys.argv[4])
there = {cpu: duration - (after[cpu] - before[cpu]) for cpu in after}
begin, end = delay_at(began), delay_at(began + duration)
exact = sum((end[cpu] - begin[cpu]) / duration * there[cpu] for cpu in there) / sum(there.values())
print("%.1f %.3f at %d ticks, %.3f by run_delay" % (abs(waited / exact - 1) * 100, waited, ticks, exact))
EOF_PYTHON
}
measures=(two ten fifty sleepers)

# compare NAME THREADS SLEEPERS
compare() {
	local found

	found=$(exact "$2" "$3") && [ -n "$found" ] || not_measured "$1" "no recording" || return
	judge "$1" "${found%% *}" "${found#* }" 5 %
}

measure_two() {
	compare "2 threads want each CPU" 2 0
}

measure_ten() {
	compare "10 threads want each CPU" 10 0
}

measure_fifty() {
	compare "50 threads want each CPU" 50 0
}

measure_sleepers() {
	compare "3, and 8 that also sleep" 3 8
}

bench "$@"
