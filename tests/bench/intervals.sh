#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# intervals.sh [MEASURE...]: the time to ask a file of 10 million ticks for 200 ms: around, against, slots; all by default.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

file=$work/large.pb.gz

# 500 s of 200 threads, each at 100 Hz with an irregular clock, in 20 stacks.
make_file() {
	[ -s "$file" ] && return
	python3 -c '
for thread in range(1, 201):
	for stack in range(20):
		print(f"{25000 * stack} 10~ 2500 {thread // 10 + 1} {thread} worker main;serve;f{stack};g{thread % 17}")' |
		"$build/tests/unit/times_make" "$file" 1795000000000000000 500000 one
}

# ask NAME LIMIT OPTION...: the time of a report, of seven.
ask() {
	local name=$1 limit=$2
	shift 2
	make_file || not_measured "$name" "no file" || return
	: >"$work/seconds"
	for _ in 1 2 3 4 5 6 7; do
		python3 - "$profiltool" report -q "$@" "$file" >>"$work/seconds" <<-'END' || not_measured "$name" profiltool || return
			import resource, subprocess, sys, time
			begin = time.monotonic()
			with open("/dev/null", "w") as null:
			    if subprocess.run(sys.argv[1:], stdout=null).returncode:
			        sys.exit(1)
			print("%.3f" % (time.monotonic() - begin))
		END
	done
	judge "$name" "$(median "$work/seconds")" "$(summary "$work/seconds" 2 s)" "$limit" s
}

measures=(around against slots)
measure_around() { ask "--around, --for 200ms" 0.5 --around +250s --for 200ms; }
measure_against() { ask "--around, --against before" 0.5 --around +250s --for 200ms --against before; }
measure_slots() { ask "--by time:1s, all ticks" 3 --by time:1s; }
bench "$@"
