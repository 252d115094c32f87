#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# bench.sh [MEASURE...]: measures speed and cost, and compares them with their goals, as root: bpf, cpu,
# start, stop, overhead, spread, stacks; all by default. Numbers are medians, followed by the quartiles.
# Fails only if something could not be measured: a timing is not a test.
# shellcheck disable=SC2317 # the measures are called by their names

# Temporary files are perf's output too: in memory, so that no disk is measured.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# --- bpf: run time of the program on the tick, above that of an empty one ---

measure_bpf() {
	local rate round name
	start "$helpers/session" -w 1000000000
	for rate in 999 4999; do
		name="BPF run time above empty, $rate Hz"
		rm -f "$work"/{ours,empty,above}
		for round in 1 2 3 4 5 6 7; do
			session -b -f -s 1 "$profiltool" -p "$pid" -e task-clock -F "$rate" ||
				not_measured "$name" "round $round" || return
			value bpf_ns >>"$work/ours"
			session -b -f -s 1 "$helpers/empty" "$pid" $((1000000000 / rate)) ||
				not_measured "$name" "round $round, empty" || return
			value bpf_ns >>"$work/empty"
		done
		paste "$work/ours" "$work/empty" | awk '{ print $1 - $2 }' >"$work/above"
		judge "$name" "$(median "$work/above")" "$(summary "$work/above" 0 ns): $(
			printf '%.0f beside %.0f' "$(median "$work/ours")" "$(median "$work/empty")")" \
			100 ns
	done
	end_target
}

# --- cpu: what profiltool itself uses while it records 64 busy threads ---

measure_cpu() {
	local round
	start_ready "$progs/shares" 64 0
	rm -f "$work"/{percent,hwm,anonymous}
	for round in 1 2 3; do
		session -s 9 "$profiltool" -p "$pid" -F 999 ||
			not_measured "64 busy threads" "round $round" || return
		value cpu_percent >>"$work/percent"
		calculate "$(value hwm_kib) / 1024" >>"$work/hwm"
		calculate "$(value anonymous_kib) / 1024" >>"$work/anonymous"
	done
	end_target
	judge "own CPU, 64 busy threads, 999 Hz" "$(median "$work/percent")" \
		"$(summary "$work/percent" 3 %) of one core" 0.5 %
	judge "own memory then, at most" "$(median "$work/hwm")" \
		"$(summary "$work/hwm" 1 MiB), $(printf %.1f "$(median "$work/anonymous")") anonymous" \
		30 MiB
}

# --- start: from exec to the first tick ---

measure_start() {
	local round
	start_ready "$progs/shares" 1 0
	rm -f "$work"/{outside,inside}
	for round in 1 2 3 4 5 6 7 8 9 10; do
		session -b -f -s 0.1 "$profiltool" -v -p "$pid" ||
			not_measured "start to first tick" "round $round" || return
		value first_ms >>"$work/outside"
		sed -n 's/.*first tick came \([0-9.]*\) ms.*/\1/p' "$work/profiler.err" >>"$work/inside"
	done
	end_target
	judge "start: exec to first tick, 99 Hz" "$(median "$work/outside")" \
		"$(summary "$work/outside" 1 ms)" 100 ms
	judge "start: by profiltool -v" "$(median "$work/inside")" "$(summary "$work/inside" 1 ms)" \
		100 ms
}

# --- stop: from Ctrl-C to the exit, with a million symbols to look through ---

# symbols FIRST COUNT: an object file's source, of functions with names like those of clang's.
symbols() {
	awk -v first="$1" -v count="$2" 'BEGIN {
		print "\t.text"
		for (i = first; i < first + count; i++) {
			name = "_ZN4llvm12InstCombiner9visitInstILi" i \
				"EEEvPNS_11InstructionERKNS_9StringRefEj"
			printf "\t.type %s, %%function\n%s:\n\t.skip 16\n", name, name
			printf "\t.size %s, 16\n", name
		}
		print "\t.section .note.GNU-stack, \"\", %progbits"
	}'
}

build_symbols() {
	local part objects=()
	[ "$helpers/symbols" -nt "$here/hot.c" ] && [ "$helpers/symbols" -nt "$here/bench.sh" ] && return
	for part in 0 1 2 3 4; do
		${CC:-gcc} -O2 -DHOT="$part" -c "$here/hot.c" -o "$work/hot$part.o" || return
		symbols $((part * 200000)) 200000 |
			${CC:-gcc} -x assembler -c - -o "$work/symbols$part.o" || return
		objects+=("$work/hot$part.o" "$work/symbols$part.o")
	done
	${CC:-gcc} "${objects[@]}" -o "$work/symbols" &&
		mv "$work/symbols" "$helpers/symbols"
	rm -f "${objects[@]}"
	[ -x "$helpers/symbols" ]
}

measure_stop() {
	local round
	build_symbols || not_measured "stop" "the program with a million symbols" || return
	start "$helpers/symbols"
	rm -f "$work"/{stop,own,memory}
	for round in 1 2 3 4 5; do
		session -s 1 "$profiltool" -p "$pid" -F 999 ||
			not_measured "stop" "round $round" || return
		value stop_ms >>"$work/stop"
		calculate "$(value max_kib) / 1024" >>"$work/memory"
	done
	end_target
	judge "stop: Ctrl-C to exit, 10^6 symbols" "$(median "$work/stop")" \
		"$(summary "$work/stop" 0 ms)" 300 ms
	row "  memory then, file pages included" "$(summary "$work/memory" 0 MiB)" "" ""
}

# --- overhead: CPU time that profiling adds to a fixed amount of work, beside perf record ---

# work_with NAME [PROFILER...]: appends the CPU time of the work and of the profiler to NAME.work
# and NAME.own, in ms.
work_with() {
	local name=$work/$1
	shift
	session -w "$amount" "$@" || return
	value work_ms >>"$name.work"
	{ value profiler_cpu_ms; echo 0; } | head -n 1 >>"$name.own"
}

ours() { # RATE
	work_with "ours-$1" "$profiltool" -p SELF -e task-clock -F "$1" -o "$work/profile.pb.gz" &&
		sed -n 's/^profiltool: ticks \([0-9]*\).*/\1/p' "$work/profiler.err" >>"$work/ours-$1.ticks"
}

# A fixed period, as ours: perf's -F would make it hunt for the rate. As it comes otherwise, but
# that its cache of build IDs is not the user's, and filled once.
perfs() { # RATE
	work_with "perf-$1" "${perf[@]}" -c $((1000000000 / $1)) &&
		sed -n 's/.*(\([0-9]*\) samples).*/\1/p' "$work/profiler.err" >>"$work/perf-$1.ticks"
}

# What both take to start and to end, for some twenty ticks.
fixed() {
	local amount=20
	work_with ours-0 "$profiltool" -p SELF -e task-clock -F 999 -o "$work/profile.pb.gz" &&
		work_with perf-0 "${perf[@]}" -c 1001001
}

# added NAME: makes NAME.added, from the work, the profiler's own time and the round's two bases;
# NAME.meanwhile, less what it takes to start and to end; and that per tick.
added() {
	paste "$work/$1.work" "$work/$1.own" "$work/base-1.work" "$work/base-2.work" |
		awk '{ print $1 + $2 - ($3 + $4) / 2 }' >"$work/$1.added"
	awk -v fixed="$(median "$work/${1%-*}-0.own")" '{ print $1 - fixed }' "$work/$1.added" \
		>"$work/$1.meanwhile"
	paste "$work/$1.meanwhile" "$work/$1.ticks" |
		awk '{ print $1 * 1000 / $2 }' >"$work/$1.per-tick"
}

# ratio_of WHAT RATE: ours to perf's.
ratio_of() { calculate "$(median "$work/ours-$2.$1") / $(median "$work/perf-$2.$1")"; }

show_added() { # NAME WHO
	row "  added by $2" "$(summary "$work/$1.added" 1 ms), $(
		printf '%.1f of it its own' "$(median "$work/$1.own")")" "" ""
	row "    per tick while recording" "$(summary "$work/$1.per-tick" 2 us) of $(
		printf %.0f "$(median "$work/$1.ticks")")" "" ""
}

compare() { # RATE
	local name="CPU added at $1 Hz, beside perf's" ratio above noise
	added "ours-$1"
	added "perf-$1"
	paste "$work/ours-$1.added" "$work/perf-$1.added" | awk '{ print $1 / $2 }' >"$work/ratio"
	ratio=$(ratio_of added "$1")
	if [ "$1" -gt 999 ]; then
		judge "$name" "$ratio" "$(printf '%.3f (%.3f..%.3f)' "$ratio" \
			"$(quantile 0.25 "$work/ratio")" "$(quantile 0.75 "$work/ratio")")" 0.95
	else
		# Too few ticks for a ratio: not more than perf by more than the bases differ.
		above=$(calculate "$(median "$work/ours-$1.added") - $(median "$work/perf-$1.added")")
		noise=$(calculate "$(quantile 0.75 "$work/noise") - $(quantile 0.25 "$work/noise")")
		judge "CPU added at $1 Hz, above perf's" "$above" \
			"$(printf '%+.1f ms (ratio %.3f)' "$above" "$ratio")" \
			"$(printf %.1f "$noise")" ms
	fi
	show_added "ours-$1" profiltool
	show_added "perf-$1" "perf record"
	row "  ratio, start and end left out" "$(printf %.3f "$(ratio_of meanwhile "$1")")" "" ""
}

measure_overhead() {
	local amount=500 rates=(4999 19999 999) rate round
	local perf=(perf --buildid-dir "$work/buildid" record -e task-clock -p SELF
		-o "$work/perf.data")
	if ! command -v perf >/dev/null; then
		row "CPU added, beside perf's" "left out: there is no perf here" "" ""
		return
	fi
	session -w "$amount" || not_measured overhead "the work alone" || return
	amount=$(awk -v n="$amount" -v ms="$(value work_ms)" 'BEGIN { print int(n * 1000 / ms) }')
	for ((round = 0; round < rounds; round++)); do
		work_with base-1 || not_measured overhead "the work alone" || return
		for rate in "${rates[@]}"; do
			if ((round % 2)); then
				ours "$rate" && perfs "$rate"
			else
				perfs "$rate" && ours "$rate"
			fi || not_measured overhead "round $round at $rate Hz" || return
		done
		fixed || not_measured overhead "start and end" || return
		work_with base-2 || not_measured overhead "the work alone" || return
	done
	paste "$work/base-1.work" "$work/base-2.work" | awk '{ print $2 - $1 }' >"$work/noise"
	cat "$work"/base-[12].work >"$work/base"
	for rate in "${rates[@]}"; do
		compare "$rate"
	done
	row "  start and end of profiltool" "$(summary "$work/ours-0.own" 1 ms)" "" ""
	row "  start and end of perf record" "$(summary "$work/perf-0.own" 1 ms)" "" ""
	row "  the work alone, in $((2 * rounds)) runs" "$(summary "$work/base" 1 ms)" "" ""
	row "  noise: a round's last run - its first" "$(summary "$work/noise" 1 ms)" "" ""
}

# --- spread: 10 kHz over 100000 different pcs ---

measure_spread() {
	local name="10 kHz on 100000 pcs" account ticks lost rest
	start_ready "$progs/spread" 100000 1 0 || not_measured "$name" "no such program" || return
	session -s 12 "$profiltool" -p "$pid" -F 10000 --json -o "$work/spread.pb.gz" ||
		not_measured "$name" "the recording" || return
	end_target
	account=$(python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
lost = sum(j["lost"].values())
rest = j["ticks"] - j["counted"] - j["out_of_range"] - j["excluded"] - lost
print(j["ticks"], lost, abs(rest))' "$work/profiler.out") || not_measured "$name" "no account" ||
		return
	read -r ticks lost rest <<<"$account"
	judge "$name: ticks lost" "$lost" "$lost of $ticks" 0
	judge "  ticks that no cause explains" "$rest" "$rest" 0
	row "  different pcs" "$("$profiltool" dump --json "$work/spread.pb.gz" |
		python3 -c 'import json, sys; print(len(json.load(sys.stdin)["stacks"]))')" "" ""
	row "  own CPU while recording" "$(value cpu_percent) % of one core" "" ""
	row "  own memory while recording" "$(printf '%.1f MiB, %.1f anonymous' \
		"$(calculate "$(value hwm_kib) / 1024")" \
		"$(calculate "$(value anonymous_kib) / 1024")")" "" ""
	row "  stop: Ctrl-C to exit" "$(printf '%.0f ms' "$(value stop_ms)")" "" ""
}

# --- stacks: run time of the program with call stacks, beside what bcc's profile does ---

# Its program, which build_helper does not make.
build_stackid() {
	build_helper stackid -lbpf && build_helper depth &&
		${CLANG:-clang} -g -O2 -mcpu=v3 -target bpf -I"/usr/include/$(gcc -print-multiarch)" \
			-c "$here/stackid.bpf.c" -o "$helpers/stackid.bpf.o"
}

# Both at once on one target, so that both meet the same caches and neighbours.
run_both() { # RATE
	local ours status
	"$helpers/session" -b -f -s 2 -o "$work/ours" "$profiltool" record -g -p "$pid" \
		-e task-clock -F "$1" >"$work/session.ours" &
	ours=$!
	"$helpers/session" -b -f -s 2 -o "$work/theirs" "$helpers/stackid" "$helpers/stackid.bpf.o" \
		"$pid" $((1000000000 / $1)) >"$work/session.theirs"
	status=$?
	wait "$ours" && [ "$status" -eq 0 ]
}

measure_stacks() {
	local depth round name ratio
	build_stackid || not_measured "call stacks" "bcc's program could not be built" || return
	for depth in 16 2 100; do
		name="BPF run time, stacks of $depth frames"
		rm -f "$work"/{ours,theirs}.ns "$work/ratio"
		start "$helpers/depth" "$depth"
		for ((round = 0; round < rounds; round++)); do
			run_both 997 || not_measured "$name" "round $round" || return
			sed -n 's/^bpf_ns=//p' "$work/session.ours" >>"$work/ours.ns"
			sed -n 's/^bpf_ns=//p' "$work/session.theirs" >>"$work/theirs.ns"
		done
		end_target
		paste "$work/ours.ns" "$work/theirs.ns" | awk '{ print $1 / $2 }' >"$work/ratio"
		ratio=$(median "$work/ratio")
		judge "$name" "$ratio" "$(summary "$work/ratio" 3) of bcc's profile" 1.3
		row "  ours" "$(summary "$work/ours.ns" 0 ns)" "" ""
		row "  bcc's" "$(summary "$work/theirs.ns" 0 ns)" "" ""
	done
}

# --- ---

rounds=${PROFIL_BENCH_ROUNDS:-9}
build_helper session && build_helper empty || exit 1
measures=(bpf cpu start stop overhead spread stacks)
bench "$@"
