#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# quick.sh [--keep]: in less than three minutes, whether something costs twice of what it did: what profiltool takes
# to what perf, an empty program or nothing takes, in turns in the same run, so that neither the machine nor its load counts
# for much. The ratios are compared with those of quick.txt, which --keep writes anew. Exit status 1: one has more than
# doubled, or could not be measured. Needs root and perf. PROFIL_BENCH_ROUNDS: 5.

[ -w /dev/shm ] && export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kept=$here/quick.txt
most=2

# note SIDE NAME VALUE: one measurement.
note() {
	echo "$3" >>"$work/$1.$2"
}

# note_session SIDE FILE: what the last session cost, and the file it wrote.
note_session() {
	note "$1" own-cpu "$(value profiler_cpu_ms)"
	note "$1" memory "$(value max_kib)"
	note "$1" file "$(stat -c %s "$2")"
}

# cpu_ms COMMAND...: the CPU time that it takes.
cpu_ms() {
	local TIMEFORMAT='%U %S'
	{ time "$@" >"$work/out" 2>"$work/err"; } 2>&1 | awk '{ print 1000 * ($1 + $2) }'
}

# elapsed_ms COMMAND...: the time that it takes.
elapsed_ms() {
	local TIMEFORMAT=%R
	{ time "$@" >"$work/out" 2>"$work/err"; } 2>&1 | awk '{ print 1000 * $1 }'
}

# one_round: each measure once, and once what it is compared with.
one_round() {
	session -s 1 "$profiltool" record -q -g -F 999 -p "$pid" -o "$work/ours.pb.gz" || return
	note_session ours "$work/ours.pb.gz"
	session -s 1 perf record -q -e cpu-clock --call-graph dwarf -F 999 -p "$pid" -o "$work/perf.data" || return
	note_session theirs "$work/perf.data"
	note ours short "$(elapsed_ms "$profiltool" record -q -F 999 -d 0.05 -p "$pid" -o "$work/short.pb.gz")"
	note theirs short "$(elapsed_ms perf record -q -e cpu-clock -F 999 -p "$pid" -o "$work/short.data" sleep 0.05)"
	note ours report "$(cpu_ms "$profiltool" report "$work/ours.pb.gz")"
	note theirs report "$(cpu_ms perf report --stdio -i "$work/perf.data")"
	session -b -f -s 1 "$profiltool" record -q -g -e task-clock -F 4999 -p "$pid" -o "$work/ours.pb.gz" || return
	note ours tick "$(value bpf_ns)"
	session -b -f -s 1 "$helpers/empty" "$pid" $((1000000000 / 4999)) || return
	note theirs tick "$(value bpf_ns)"
	"$profiltool" record -q --wall -o "$work/wall.pb.gz" -- "$helpers/pingpong" processes 50000 >"$work/out" 2>&1 || return
	note ours switch "$(sed -n 's/^wall_us=//p' "$work/out")"
	"$helpers/pingpong" processes 50000 >"$work/out" || return
	note theirs switch "$(sed -n 's/^wall_us=//p' "$work/out")"
}

declare -A title=(
	[short]="a recording of 50 ms, from start to end, to perf's"
	[own-cpu]="own CPU time, stacks at 999 Hz, to perf's"
	[memory]="most memory, to perf's"
	[file]="size of the file, to perf's"
	[report]="CPU time of report, to perf's"
	[tick]="BPF time of a tick with its stack, to an empty program's"
	[switch]="a switch with --wall, to one alone"
)
names=(short own-cpu memory file report tick switch)

for helper in session empty pingpong; do
	build_helper "$helper" || exit 1
done
start "$helpers/session" -w 1000000000
for ((round = 0; round < ${PROFIL_BENCH_ROUNDS:-5}; round++)); do
	if ! one_round; then
		echo "quick.sh: a round could not be measured:" >&2
		cat "$work"/{profiler.err,session.err,err,out} >&2
		exit 1
	fi
done
end_target

for name in "${names[@]}"; do
	calculate "$(median "$work/ours.$name") / $(median "$work/theirs.$name")" >"$work/ratio.$name"
done
if [ "${1:-}" = --keep ]; then
	{
		printf "# %s-License-Identifier: GPL-2.0-only\n" SPDX # reuse takes the whole for this file's
		for name in "${names[@]}"; do
			echo "$name $(cat "$work/ratio.$name")"
		done
	} >"$kept"
	exit
fi
printf '| ratio | now | before | |\n|---|---|---|---|\n'
for name in "${names[@]}"; do
	now=$(cat "$work/ratio.$name")
	before=$(sed -n "s/^$name //p" "$kept")
	verdict="no more than twice"
	if [ "$(calculate "$now <= $most * ${before:-0}")" != 1.0000 ]; then
		verdict="**more than twice**"
		failed=1
	fi
	echo "| ${title[$name]} | $now | ${before:-none} | $verdict |"
done
exit $failed
