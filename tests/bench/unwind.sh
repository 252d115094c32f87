#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# unwind.sh [MEASURE...]: the cost of call stacks by call frame information, compared with frame pointers and
# perf, as root: walk, attach, cpu, file; all by default. Numbers are medians, followed by the quartiles.
# Fails only if something could not be measured.
# shellcheck disable=SC2016,SC2317 # perl expands it; the measures are called by their names

[ -w /dev/shm ] && export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

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

# --- attach: until the first tick, with the tables ---

measure_attach() {
	local images program method round
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
		rm -f "$work"/attach.*
		for ((round = 0; round < rounds; round++)); do
			for method in cfi fp; do
				"$profiltool" record --call-graph="$method" -v -p "$pid" -F 4999 -d 0.1 \
					-o /dev/null -f pprof 2>&1 >/dev/null |
					sed -n 's/.*first tick came \([0-9.]*\) ms.*/\1/p' \
						>>"$work/attach.$method"
			done
		done
		end_target
		judge "attach, $images small libraries" "$(median "$work/attach.cfi")" \
			"$(summary "$work/attach.cfi" 1 ms), fp $(summary "$work/attach.fp" 1 ms)" \
			$((images == 40 ? 60 : 300)) ms
	done
}

# --- cpu: CPU time that recording adds, in all; and the file ---

# used METHOD: the CPU time of the recorder, and the size of its file, over 5 s at 4999 Hz.
used() {
	case $1 in
	cfi) /usr/bin/time -f '%U %S' -o "$work/used.time" "$profiltool" record --call-graph=cfi \
		-p "$pid" -F 4999 -d 5 -q -o "$work/file" >/dev/null 2>"$work/used.err" ;;
	*) /usr/bin/time -f '%U %S' -o "$work/used.time" perf record -q -e cpu-clock -F 4999 \
		--call-graph "${1/dwarf/dwarf,16384}" -p "$pid" -o "$work/file" -- sleep 5 \
		>/dev/null 2>"$work/used.err" ;;
	esac || return
	awk '{ print $1 + $2 }' "$work/used.time" >>"$work/used.$1"
	stat -c %s "$work/file" >>"$work/file.$1"
}

measure_cpu() {
	local round method ratio
	command -v perf >/dev/null || not_measured "cpu" "no perf" || return
	start perl -e 'my ($i, %h) = 0;
		sub f { my $s = "abc $i def"; $h{$1 % 1000} .= "x" if $s =~ /(\d+)/; $i++ } f() while 1'
	rm -f "$work"/{used,file}.*
	for ((round = 0; round < (rounds + 1) / 2; round++)); do
		for method in cfi fp dwarf; do
			used "$method" || not_measured "cpu" "$method" || return
		done
	done
	end_target
	for method in fp dwarf; do
		ratio=$(calculate "$(median "$work/used.cfi") / $(median "$work/used.$method")")
		judge "recorder's CPU time beside perf, $method" "$ratio" \
			"$ratio: $(median "$work/used.cfi") s beside $(median "$work/used.$method") s" \
			"$([ "$method" = fp ] && echo 0.9 || echo 0.1)"
		ratio=$(calculate "$(median "$work/file.cfi") / $(median "$work/file.$method")")
		judge "file beside perf's, $method" "$ratio" \
			"$ratio: $(median "$work/file.cfi") beside $(median "$work/file.$method") bytes" 0.05
	done
}

measures=(walk attach cpu)
bench "$@"
