#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs that change under the recorder: each tick is named by what was true when it came. The program tells
# which function, or under which name, it ran from when to when, and each tick that has its time there must be
# of that one: there is no chance about it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

library() {
	cat <<-END
		#define _GNU_SOURCE
		#include <time.h>
		volatile unsigned long sink;
		void $1(unsigned long until)
		{
			struct timespec now;
			do {
				for (int i = 0; i < 100000; i++)
					sink += i;
				clock_gettime(CLOCK_REALTIME, &now);
			} while (now.tv_sec * 1000000000UL + now.tv_nsec < until);
		}
	END
}
for name in one two; do
	library in_$name | gcc -O1 -fno-omit-frame-pointer -shared -fPIC -x c - -o "$work/$name.so" || exit 1
	cp "$progs/changes" "$work/$name"
done
cp "$progs/changes" "$work/three"

# judge FILE: of each tick within a phase, but for a millisecond at its ends, where the program is before or after
# its work, whether it is of that phase. Fails unless each kind of phase has some, and all ticks are.
judge() {
	"$profiltool" dump --json "$1" >"$work/dump.json" || return
	python3 -c '
import bisect, collections, json, sys
j = json.load(open(sys.argv[1]))
phases = sorted((int(a), int(b), name) for _, name, a, b in
	(line.split() for line in open(sys.argv[2]) if line.startswith("phase ")))
starts = [p[0] for p in phases]
right, wrong = collections.Counter(), collections.Counter()
for s in j["stacks"]:
	names = {name.split(" ")[0] for functions in s.get("functions", []) for name in functions}
	names.add(s.get("labels", {}).get("comm", ""))
	for ns in s.get("times_ns", []):
		at = j["time_ns"] + ns
		i = bisect.bisect(starts, at) - 1
		if i < 0 or not phases[i][0] + 1e6 < at < phases[i][1] - 1e6:
			continue
		name = phases[i][2]
		if name in names:
			right[name] += 1
		else:
			wrong[name, tuple(sorted(names))[:6]] += 1
kinds = {p[2] for p in phases}
print("right:", dict(right), "wrong:", dict(wrong), "without a tick:", kinds - set(right))
sys.exit(not kinds or bool(wrong) or set(right) != kinds)' "$work/dump.json" "$2"
}

# changes NAME OPTION... -- ARGUMENT...: records it as a command.
changes() {
	local name=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$profiltool" record -q -F 999 -g "${options[@]}" -o "$work/$name.pb.gz" -- "$work/one" "$@" >"$work/$name.out"
}

# check_changes NAME WHAT ARGUMENT...: recorded as a command, and among the whole machine.
check_changes() {
	local name=$1 what=$2

	shift 2
	check "$what" changes "$name" -- "$@"
	check "$what: each tick has its own" judge "$work/$name.pb.gz" "$work/$name.out"
}

check_changes libraries_50 "two libraries at one address, 50 ms each" libraries 50 20 "$work/one.so" "$work/two.so"
check_changes libraries_5 "two libraries at one address, 5 ms each" libraries 5 100 "$work/one.so" "$work/two.so"
check_changes replaced "a library that is replaced by another" replaced 300 4 "$work/one.so" "$work/two.so"
check_changes names "names by prctl" names 20 20
check_changes exec "exec" exec 100 1 "$work/two" "$work/three" "$work/one"
check_changes thread_exec "exec by a thread that is not the first" thread-exec 100 1 "$work/two" "$work/three"
check_changes vfork "a child of vfork, before and after its exec" vfork 50 4 "$work/two"
check_changes heat "100 threads in turn" heat 5 100
check_changes code "made code, and other code there after exec" code 200 1 "$work/two"
finish
