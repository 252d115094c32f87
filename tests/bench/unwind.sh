#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unwind.sh [MEASURE...]: the cost of call stacks by call frame information, compared with frame pointers and
# perf, as root: walk, scripts, attach, cpu; all by default. Numbers are medians, followed by the quartiles.
# Fails only if something could not be measured.
# shellcheck disable=SC2016,SC2317 # perl expands it; the measures are called by their names

[ -w /dev/shm ] && export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

rounds=${PROFIL_BENCH_ROUNDS:-5}

# in_turns NAME SECONDS METHOD...: the BPF run time of a tick by each, in turns, in NAME.METHOD.
in_turns() {
	local name=$1 seconds=$2 round method
	shift 2
	rm -f "$work/$name".*
	for ((round = 0; round < rounds; round++)); do
		for method; do
			"$profiltool" record --call-graph="$method" -p "$pid" -F 997 -d "$seconds" --json \
				-o /dev/null -f pprof >"$work/turn.json" 2>"$work/turn.err" || return
			python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["cost"]["bpf_ns_per_tick"])' "$work/turn.json" \
				>>"$work/$name.$method"
		done
	done
}

# --- walk: a tick in the kernel, by length of the stack ---

measure_walk() {
	local depth ratio
	build_helper depth || not_measured "walk" "depth.c" || return
	for depth in 16 64; do
		start "$helpers/depth" "$depth"
		in_turns walk 1 cfi fp || not_measured "walk, $depth frames" "a recording" || return
		end_target
		judge "BPF run time, $depth frames, 997 Hz" "$(median "$work/walk.cfi")" \
			"$(summary "$work/walk.cfi" 0 ns), fp $(summary "$work/walk.fp" 0 ns)" 3000 ns
		ratio=$(calculate "$(median "$work/walk.cfi") / $(median "$work/walk.fp")")
		judge "  beside fp" "$ratio" "$ratio" 2
	done
	start perl -e 'my ($i, %h) = 0;
		sub f { my $s = "abc $i def"; $h{$1 % 1000} .= "x" if $s =~ /(\d+)/; $i++ } f() while 1'
	in_turns walk 1 cfi || not_measured "walk, perl" "a recording" || return
	end_target
	judge "BPF run time, perl, 997 Hz" "$(median "$work/walk.cfi")" \
		"$(summary "$work/walk.cfi" 0 ns)" 3000 ns
}

# --- scripts: a tick in 20 functions of Python, beside as many frames of native code ---

# Interpreters: $PROFIL_BENCH_PYTHONS, or those of the distribution.
measure_scripts() {
	local python name round frames=20 outer=12 names=(native) pids=()
	build_helper depth || not_measured "scripts" "depth.c" || return
	cat >"$work/depth.py" <<-'END'
		import sys
		source = "def f1():\n    while True:\n        for _ in range(1000):\n            pass\n"
		for i in range(2, int(sys.argv[1])):
		    source += f"def f{i}():\n    return f{i - 1}()\n"
		exec(compile(source, "depth", "exec"))
		print("ready", flush=True)
		globals()[f"f{int(sys.argv[1]) - 1}"]()
	END
	# The interpreter's frames that are outside of the script's.
	start "$helpers/depth" $((frames + outer))
	pids=("$pid")
	# Each is stopped while another one is measured.
	kill -STOP "$pid"
	for python in ${PROFIL_BENCH_PYTHONS:-/usr/bin/python3.1[1-4]}; do
		[ -x "$python" ] || continue
		start_ready "$python" "$work/depth.py" "$frames"
		kill -STOP "$pid"
		pids+=("$pid")
		names+=("$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')")
	done
	rm -f "$work"/scripts.*
	for ((round = 0; round < rounds; round++)); do
		for name in "${!names[@]}"; do
			pid=${pids[name]}
			kill -CONT "$pid"
			"$profiltool" record --call-graph=cfi -p "$pid" -F 997 -d 0.5 --json \
				-o /dev/null -f pprof >"$work/turn.json" 2>"$work/turn.err" ||
				not_measured "scripts" "a recording" || return
			kill -STOP "$pid"
			json 'j["cost"]["bpf_ns_per_tick"]' "$work/turn.json" >>"$work/scripts.${names[name]}"
		done
	done
	for name in "${names[@]:1}"; do
		judge "BPF run time, Python $name, $frames functions" "$(median "$work/scripts.$name")" \
			"$(summary "$work/scripts.$name" 0 ns), native $(summary "$work/scripts.native" 0 ns)" \
			8000 ns
	done
	for pid in "${pids[@]}"; do
		end_target
	done
}

# --- attach: until the first tick, with the tables ---

# attach_to PID NAME LIMIT: the target uses the CPU all the time.
attach_to() {
	local method round

	rm -f "$work"/attach.*
	for ((round = 0; round < rounds; round++)); do
		for method in cfi fp; do
			"$profiltool" record --call-graph="$method" -v -p "$1" -F 4999 -d 0.1 \
				-o /dev/null -f pprof 2>&1 >/dev/null |
				sed -n 's/.*first tick came \([0-9.]*\) ms.*/\1/p' \
					>>"$work/attach.$method"
		done
	done
	judge "attach, $2" "$(median "$work/attach.cfi")" \
		"$(summary "$work/attach.cfi" 1 ms), fp $(summary "$work/attach.fp" 1 ms)" "$3" ms
}

attach_to_postgres() {
	local backend

	find_postgres && make_postgres || not_measured "attach, postgres" "no PostgreSQL" || return
	# Without LLVM, which only long queries load: its rows take as long as all others.
	"${postmaster[@]}" -c jit=off >"$work/postgres.err" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for "$postgres/pg_isready" -q -h "$pgdata"
	echo "SELECT count(*) FROM generate_series(1, 1e9::bigint);" >"$work/long.sql"
	pgbench -n -t 1 -f "$work/long.sql" >"$work/pgbench.out" 2>&1 &
	note_started $!
	find_backend() {
		backend=$(pgrep -P "$pid" -f 'postgres: test .*SELECT')
	}
	wait_for find_backend
	attach_to "$backend" "postgres, $(awk '$2 ~ /x/ && $6 ~ /^\// { print $6 }' "/proc/$backend/maps" |
		sort -u | wc -l) images" 60
	end_target
}

measure_attach() {
	local images program
	for images in 40 100; do
		program=$work/images$images
		seq "$images" | while read -r i; do
			echo "int f$i(int n) { return n * $i; }" | gcc -shared -fPIC -x c - -o "$work/lib$i.so"
		done
		cat >"$work/images.c" <<-'END'
			#include <dlfcn.h>
			#include <stdio.h>
			#include <stdlib.h>
			int main(int argc, char **argv)
			{
				char name[4096];
				for (int i = 1; i <= atoi(argv[2]); i++) {
					snprintf(name, sizeof(name), "%s/lib%d.so", argv[1], i);
					if (!dlopen(name, RTLD_NOW))
						return 1;
				}
				puts("ready");
				fflush(stdout);
				while (argc)
					;
			}
		END
		gcc "$work/images.c" -o "$program" || not_measured "attach" "gcc" || return
		start_ready "$program" "$work" "$images"
		attach_to "$pid" "$images small libraries" $((images == 40 ? 60 : 300))
		end_target
	done
	attach_to_postgres
}

# --- cpu: CPU time that a second of recording adds; and the file ---

# Loads programs and finds names once, however long it records: that cancels in the difference of a long and
# a short recording. What the tick takes of the target's own CPU time shows in how much work that does.
short=2
long=12

# work_done: prints what the target has done and its CPU time.
work_done() {
	echo "$(tail -n 1 "$work/done") $(awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' \
		"/proc/$pid/stat")"
}

# used METHOD SECONDS: the recorder's CPU time, the work per second of the target's, and the file's size;
# METHOD none: of no recorder; ticks: of ticks that count nothing, as they are of user mode.
used() {
	local before
	before=$(work_done)
	case $1 in
	none) sleep "$2" && echo 0 0 >"$work/used.time" && : >"$work/file" ;;
	ticks) /usr/bin/time -f '%U %S' -o "$work/used.time" "$profiltool" record --kernel \
		-p "$pid" -F 4999 -d "$2" -q -o "$work/file" >/dev/null 2>"$work/used.err" ;;
	cfi) /usr/bin/time -f '%U %S' -o "$work/used.time" "$profiltool" record --call-graph=cfi \
		-p "$pid" -F 4999 -d "$2" -q -o "$work/file" >/dev/null 2>"$work/used.err" ;;
	*) /usr/bin/time -f '%U %S' -o "$work/used.time" perf record -q -e cpu-clock -F 4999 \
		--call-graph "${1/dwarf/dwarf,16384}" -p "$pid" -o "$work/file" -- sleep "$2" \
		>/dev/null 2>"$work/used.err" ;;
	esac || return
	awk '{ print $1 + $2 }' "$work/used.time" >>"$work/used$2.$1"
	echo "$before $(work_done)" | awk '{ print ($3 - $1) / ($4 - $2) }' >>"$work/rate$2.$1"
	stat -c %s "$work/file" >>"$work/file$2.$1"
}

# added METHOD: CPU time that a second of recording adds, of the recorder and of the target.
added() {
	local recorder target
	recorder="($(median "$work/used$long.$1") - $(median "$work/used$short.$1")) / ($long - $short)"
	target="1 - $(median "$work/rate$long.$1") / $(median "$work/rate$long.none")"
	calculate "$recorder + $target"
}

measure_cpu() {
	local round method ratio
	command -v perf >/dev/null || not_measured "cpu" "no perf" || return
	start perl -e '$| = 1; open my $done, ">", shift; select $done; $| = 1;
		my ($i, %h) = 0;
		sub f { my $s = "abc $i def"; $h{$1 % 1000} = "x" x ($i % 50) if $s =~ /(\d+)/; $i++ }
		while (1) { f() for 1 .. 10000; print "$i\n" }' "$work/done"
	wait_for test -s "$work/done"
	rm -f "$work"/{used,rate,file}[0-9]*
	for ((round = 0; round < (rounds + 1) / 2; round++)); do
		for method in none ticks cfi fp dwarf; do
			used "$method" "$short" && used "$method" "$long" ||
				not_measured "cpu" "$method" || return
		done
	done
	end_target
	for method in fp dwarf; do
		# On a busy machine the work per second differs by more than a recording takes.
		calculate "($(added cfi) > 0 && $(added "$method") > 0)" | grep -q 1 ||
			not_measured "cpu, $method" "a steady machine" || return
		ratio=$(calculate "$(added cfi) / $(added "$method")")
		judge "CPU time that a second adds, beside perf, $method" "$ratio" \
			"$ratio: $(added cfi) s beside $(added "$method") s" \
			"$([ "$method" = fp ] && echo 0.9 || echo 0.1)"
		ratio=$(calculate "$(added ticks) / $(added "$method")")
		row "  the ticks alone, which no recorder can save" "$ratio: $(added ticks) s" "" ""
		ratio=$(calculate "$(median "$work/used$long.cfi") / $(median "$work/used$long.$method")")
		echo "  $long s with start and end, of the recorder alone: $ratio"
		ratio=$(calculate "$(median "$work/file$long.cfi") / $(median "$work/file$long.$method")")
		judge "file beside perf's, $method" "$ratio" "$ratio: $(median \
			"$work/file$long.cfi") beside $(median "$work/file$long.$method") bytes" 0.05
	done
}

measures=(walk scripts attach cpu)
bench "$@"
