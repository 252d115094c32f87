#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# clock.sh [MEASURE...]: measures the cost of the clock for the target and for all others, compared with
# perf record if installed, as root: pipe, threads, pgbench, attach, profild, herd; all by default. Each is
# a ratio to the same work alone, in PROFIL_BENCH_ROUNDS (5) interleaved runs. Numbers are medians, followed
# by the quartiles. Ratios of CPU time are also valid on a busy machine. PROFIL_BENCH_THREADS (10000) is the
# number of threads to attach to; PGBINDIR the directory of initdb, postgres and pgbench, if they are not
# found. Fails only if something could not be measured.
# shellcheck disable=SC2317 # the measures are called by their names

# Temporary files are perf's output too: in memory, so that no disk is measured.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/bench/preload.sh
. "$(dirname "${BASH_SOURCE[0]}")/preload.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

cpus=$(getconf _NPROCESSORS_ONLN)
perf=(perf record -q -N -o "$work/perf.data" -e task-clock)
# The nanoseconds that spends wrote to a file.
spent() { sed 's/.* //' "$1"; }
have_perf() { command -v perf >/dev/null; }

# ratios NAME-RATE [.wall]: makes NAME-RATE.ratio of those runs and the ones alone, pair by pair.
ratios() {
	paste "$work/$1${2:-}" "$work/alone-${1#*-}${2:-}" | awk '{ print $1 / $2 }' \
		>"$work/$1${2:-}.ratio"
}

beside() { # NAME-RATE WHO
	[ -s "$work/$1" ] || return
	ratios "$1"
	row "  $2" "$(summary "$work/$1.ratio" 3)$(wall "$1")" "" ""
}

# wall NAME-RATE: the ratio of the time that passed.
wall() {
	ratios "$1" .wall
	printf '; of time %.2f' "$(median "$work/$1.wall.ratio")"
}

# alone WHAT DIGITS: a row about the work alone.
alone() {
	cat "$work"/alone-*[0-9] >"$work/alone"
	cat "$work"/alone-*.wall >"$work/alone.wall"
	row "$1, alone" "$(summary "$work/alone" "$2"); of time $(
		printf "%.$2f" "$(median "$work/alone.wall")")" "" ""
}

counts_perf_events() {
	! kill -0 "$1" || [ -n "$(find "/proc/$1/fd" -lname 'anon_inode:\[perf_event\]' -print -quit)" ]
}

# while_profiled WORK NAME PROFILER...: runs the function WORK with NAME while that profiles.
while_profiled() {
	local work_function=$1 name=$2 profiler status
	shift 2
	"${pdeathsig[@]}" "$@" >"$work/profiler.out" 2>"$work/profiler.err" </dev/null &
	profiler=$!
	note_started "$profiler"
	if [ "$1" = perf ]; then
		wait_for counts_perf_events "$profiler" && wait_for records "$profiler"
	else
		wait_for records "$profiler"
	fi && kill -0 "$profiler" && "$work_function" "$name"
	status=$?
	kill -INT "$profiler"
	wait "$profiler"
	return "$status"
}

# --- pipe: two processes that switch all the time, on one CPU ---

# pipe_us NAME [PROFILER...]: adds the microseconds of an operation to NAME: of the CPU time of all
# that takes part, and to NAME.wall of time.
pipe_us() {
	local name=$1 command=("$helpers/pingpong" processes "$operations")
	shift
	! have_perf ||
		command=(taskset -c "$((cpus - 1))" perf bench sched pipe -l "$operations")
	"$@" "$progs/spends" "$work/pipe.cpu" "${command[@]}" >"$work/pipe.out" 2>"$work/pipe.err" \
		</dev/null &&
		sed -nE 's,^ *([0-9.]+) usecs/op,\1,p; s/^wall_us=//p' "$work/pipe.out" | grep . \
			>>"$work/$name.wall" &&
		calculate "$(spent "$work/pipe.cpu") / $operations / 1000" >>"$work/$name"
}

pipe_round() {
	local rate

	for rate in 99 999 4999; do
		pipe_us "alone-$rate" &&
			pipe_us "ours-$rate" "$profiltool" record -q -F "$rate" -- &&
			while_profiled pipe_us "all-$rate" "$profiltool" record -q -a -F "$rate" || return
		! have_perf || pipe_us "perf-$rate" "${perf[@]}" -F "$rate" -- || return
	done
}

measure_pipe() {
	local round rate operations=60000 goals=([99]=1.04 [999]=1.06 [4999]=1.18)

	rm -f "$work"/{alone,ours,all,perf}*-*
	for ((round = 0; round < rounds; round++)); do
		pipe_round || not_measured "a pipe" "round $round" || return
	done
	alone "pipe of processes, CPU us" 2
	for rate in 99 999 4999; do
		ratios "ours-$rate"
		judge "a pipe, $rate Hz: times the CPU time" "$(median "$work/ours-$rate.ratio")" \
			"$(summary "$work/ours-$rate.ratio" 3)$(wall "ours-$rate")" "${goals[rate]}"
		beside "all-$rate" "profiltool -a"
		beside "perf-$rate" "perf record"
	done
}

# --- threads: the same in a program with profil() on ---

# threads_us NAME BACKEND HZ: adds the microseconds of a round to NAME and NAME.wall.
threads_us() {
	if [ "$2" = none ]; then
		"$helpers/pingpong" threads 60000 >"$work/program"
	else
		run_program "$2" "$3" pingpong threads 60000
	fi && told us | grep . >>"$work/$1" && told wall_us >>"$work/$1.wall"
}

threads_round() {
	local backend rate

	for rate in 100 1000; do
		threads_us "alone-$rate" none || return
		for backend in bpf daemon; do
			threads_us "$backend-$rate" "$backend" "$rate" || return
		done
	done
}

measure_threads() {
	local round backend rate goals=([100]=1.04 [1000]=1.06)

	rm -f "$work"/{alone,bpf,daemon}-*
	start_profild || not_measured "threads over a pipe" "profild" || return
	for ((round = 0; round < rounds; round++)); do
		threads_round || not_measured "threads over a pipe" "round $round" || return
	done
	stop "$profild"
	alone "pipe of threads, CPU us" 2
	for backend in bpf daemon; do
		for rate in 100 1000; do
			ratios "$backend-$rate"
			judge "  profil(), $backend, $rate Hz: times" \
				"$(median "$work/$backend-$rate.ratio")" \
				"$(summary "$work/$backend-$rate.ratio" 3)$(
					wall "$backend-$rate")" "${goals[rate]}"
		done
	done
}

# --- pgbench: a server of processes that switch often, and many of them ---

# The CPU time of the server in ms, without that of processes which still run besides its first.
server_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{
		sub(/.*\) /, "")
		print ($12 + $13 + $14 + $15) * 1000 / hz
	}' "/proc/$server/stat"
}

has_children() { [ "$(pgrep -c -P "$server")" -le "$1" ]; }

# transactions NAME: adds those for each second of CPU time, of server and client, to NAME, and for
# each second to NAME.wall.
transactions() {
	local before children

	children=$(pgrep -c -P "$server")
	before=$(server_ms)
	"$progs/spends" "$work/pgbench.cpu" "$postgres/pgbench" -h "$pgdata" -U test -S -n -c 4 -j 1 \
		-T "$seconds" postgres >"$work/pgbench.out" 2>"$work/pgbench.err" &&
		wait_for has_children "$children" || return
	sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/pgbench.out" | grep . >>"$work/$1.wall" &&
		awk -v server=$(($(server_ms) - before)) -v client="$(spent "$work/pgbench.cpu")" '
			/^number of transactions actually processed: / {
				print $6 / (server / 1e3 + client / 1e9)
			}' "$work/pgbench.out" >>"$work/$1"
}

pgbench_round() {
	local rate

	for rate in 99 999 4999; do
		transactions "alone-$rate" &&
			while_profiled transactions "ours-$rate" "$profiltool" record -q -p "$server" -F "$rate" &&
			while_profiled transactions "all-$rate" "$profiltool" record -q -a -F "$rate" || return
		! have_perf ||
			while_profiled transactions "perf-$rate" "${perf[@]}" -F "$rate" -p "$server" || return
	done
}

measure_pgbench() {
	local round rate postgres postmaster server seconds=${PROFIL_BENCH_SECONDS:-3}
	local goals=([99]=0.99 [999]=0.92 [4999]=0.84)

	rm -f "$work"/{alone,ours,all,perf}*-*
	if ! find_postgres; then
		row "pgbench, throughput kept" "left out: no PostgreSQL here, nor in PGBINDIR" "" ""
		return
	fi
	make_postgres || not_measured "pgbench" "the server's files" || return
	start "${postmaster[@]}"
	server=$pid
	wait_for pgbench -i -q -s 5 || not_measured "pgbench" "the server's start" || return
	for ((round = 0; round < rounds; round++)); do
		pgbench_round || not_measured "pgbench" "round $round" || return
	done
	kill -INT "$server"
	wait "$server"
	alone "pgbench, in a second of CPU" 0
	for rate in 99 999 4999; do
		ratios "ours-$rate"
		judge_least "pgbench, $rate Hz: throughput kept" \
			"$(median "$work/ours-$rate.ratio")" \
			"$(summary "$work/ours-$rate.ratio" 3)$(wall "ours-$rate")" "${goals[rate]}"
		beside "all-$rate" "profiltool -a"
		beside "perf-$rate" "perf record -p"
	done
}

# --- attach: to many threads ---

# attach_once THREADS: appends the milliseconds from profiltool's exec to the first tick, and how
# many descriptors it has while it records.
attach_once() {
	start_ready "$helpers/sleepers" "$1" && kill -0 "$pid" || return
	session -b -f -s 0.1 "$profiltool" -p "$pid" -F 4999 || return
	value first_ms >>"$work/first-$1"
	record_begin attach -p "$pid" -F 999
	find "/proc/$recorder/fd" -mindepth 1 | wc -l >>"$work/descriptors-$1"
	kill -INT "$recorder"
	wait "$recorder"
	end_target
}

measure_attach() {
	local round threads=${PROFIL_BENCH_THREADS:-10000}

	ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
	rm -f "$work"/{first,descriptors}-*
	for ((round = 0; round < rounds; round++)); do
		attach_once 1 && attach_once "$threads" ||
			not_measured "attaching to $threads threads" "round $round" || return
	done
	judge "attach to $threads threads: first tick" "$(median "$work/first-$threads")" \
		"$(summary "$work/first-$threads" 1 ms); to 2: $(summary "$work/first-1" 1 ms)" 50 ms
	judge "  descriptors of profiltool then" "$(median "$work/descriptors-$threads")" \
		"$(median "$work/descriptors-$threads")" "$(median "$work/descriptors-1")" "as of 2"
}

# --- profild: with many clients on, beside a process that is none ---

# Run time and runs of profild's programs so far, while the kernel times them.
profild_programs() {
	awk 'FNR == 1 { id = "" }
		$1 == "prog_id:" { id = $2 }
		$1 == "run_time_ns:" && !(id in ns) { ns[id] = $2 }
		$1 == "run_cnt:" && !(id in runs) { runs[id] = $2 }
		END {
			for (id in runs) {
				all_ns += ns[id]
				all_runs += runs[id]
			}
			print all_ns + 0, all_runs + 0
		}' "/proc/$profild/fdinfo/"* 2>/dev/null
}

# While a program of nobody's, on an event that ticks, has the kernel time programs.
measure_strangers_tick() {
	local before after stranger

	start "$helpers/session" -w 1000000000
	stranger=$pid
	before=$(profild_programs)
	session -b -f -s "$seconds" "$helpers/empty" "$stranger" 10000000 || return
	after=$(profild_programs)
	stop "$stranger"
	awk -v before="$before" -v after="$after" -v empty="$(value bpf_ns)" -v seconds="$seconds" 'BEGIN {
		split(before, b)
		split(after, a)
		runs = a[2] - b[2]
		print runs / seconds, runs ? (a[1] - b[1]) / runs - empty : 0, (a[1] - b[1]) / seconds / 1e7
	}' >>"$work/stranger"
}

# Whether profild has finished its clients' beginnings: what the kernel lets wait is left to threads.
is_single_threaded() {
	[ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" -eq 1 ]
}

profild_round() {
	local begin used

	begin=$(now_ns)
	used=$(profild_ns)
	sleep "$seconds"
	awk -v used=$(($(profild_ns) - used)) -v time=$(($(now_ns) - begin)) \
		'BEGIN { print 100 * used / time }' >>"$work/share"
	measure_strangers_tick
}

measure_profild() {
	local round crowd seconds=5

	rm -f "$work"/{share,stranger}
	start_profild && start_program daemon 100 crowd 1000 0 ||
		not_measured "profild" "1000 clients" || return
	crowd=$pid
	wait_for is_single_threaded "$profild"
	for ((round = 0; round < rounds; round++)); do
		profild_round || not_measured "profild" "round $round" || return
	done
	stop "$crowd"
	stop "$profild"
	judge "profild, 1000 clients on: its CPU" "$(median "$work/share")" \
		"$(summary "$work/share" 4 %) of a core" 0.1 %
	awk '{ print $2 }' "$work/stranger" >"$work/stranger.ns"
	awk '{ print $1 }' "$work/stranger" >"$work/stranger.runs"
	judge "  a stranger's tick: BPF above empty" "$(median "$work/stranger.ns")" \
		"$(summary "$work/stranger.ns" 0 ns), $(summary "$work/stranger.runs" 0 /s)" 60 ns
}

# --- herd: many processes with profil() on ---

herd() { # BACKEND
	set_command "$1" 100 herd 200 "$rounds" 2000
	timeout -s KILL $((60 + rounds * 30)) "${command[@]}" >"$work/program" 2>"$work/herd.err" \
		</dev/null
}

measure_herd() {
	local backend name

	start_profild || not_measured "200 processes" "profild" || return
	for backend in bpf daemon; do
		name="200 processes, $backend, 100 Hz"
		herd "$backend" || not_measured "$name" "the program" || continue
		told kept >"$work/kept"
		told least >"$work/least"
		told off >"$work/off"
		told on >"$work/on"
		paste "$work/on" "$work/off" | awk '{ print $1 - $2 }' >"$work/more"
		judge_least "$name: speed kept" "$(median "$work/kept")" \
			"$(summary "$work/kept" 4); slowest tenth $(printf %.3f "$(median "$work/least")")" \
			0.99
		judge "  timer interrupts more" "$(median "$work/more")" \
			"$(summary "$work/more" 0 /s) than $(printf %.0f "$(median "$work/off")")" \
			$((100 * cpus)) /s
	done
	stop "$profild"
}

# --- ---

rounds=${PROFIL_BENCH_ROUNDS:-5}
plant session empty pingpong sleepers crowd herd || exit 1
measures=(pipe threads pgbench attach profild herd)
bench "$@"
