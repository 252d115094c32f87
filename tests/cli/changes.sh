#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs that change under the recorder: each tick is named by what was true when it came. The program tells
# which function, or under which name, it ran from when to when, and each tick that has its time there must be
# of that one: there is no chance about it.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

profild=$build/profild

library() {
	cat <<-END
		#define _GNU_SOURCE
		#include <time.h>
		volatile unsigned long sink;
		static unsigned long clock_ns(clockid_t clock)
		{
			struct timespec now;
			clock_gettime(clock, &now);
			return now.tv_sec * 1000000000UL + now.tv_nsec;
		}
		void $1(unsigned long until, unsigned long times[2])
		{
			times[0] = clock_ns(CLOCK_REALTIME);
			do
				for (int i = 0; i < 100000; i++)
					sink += i;
			while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until);
			times[1] = clock_ns(CLOCK_REALTIME);
		}
	END
}
# No other run of this test has these names: in_one_TAG of a library, one_TAG of a program or thread.
tag=${work##*.}
for name in one two; do
	library "in_${name}_$tag" | gcc -O1 -fno-omit-frame-pointer -shared -fPIC -x c - -o "$work/in_${name}_$tag.so" || exit 1
done
for name in one two three; do
	cp "$progs/changes" "$work/${name}_$tag"
done
one=$work/one_$tag two=$work/two_$tag three=$work/three_$tag
libraries=("$work/in_one_$tag.so" "$work/in_two_$tag.so")

# judge LOG FILE...: of each tick in these files, and within a phase, whether it is of that phase; but for a millisecond
# at the phase's ends, as the two clocks may differ. Fails unless all are, and there are some; of
# each kind, where there are few kinds, whose phases are long. One thread at a time has a phase, and a tick of another
# one is right if it does not burn: a parent whose child goes on after vfork(2) may get its CPU late.
judge() {
	local log=$1 file

	shift
	for file; do
		"$profiltool" dump --json "$file" | tr -d '\n' || return
		echo
	done >"$work/dumped"
	python3 -c '
import bisect, collections, json, sys
phases = sorted((int(a), int(b), name, int(tid)) for _, tid, name, a, b in
	(line.split() for line in open(sys.argv[2]) if line.startswith("phase ")))
starts = [p[0] for p in phases]
right, wrong = collections.Counter(), collections.Counter()
def judge(j):
	for s in j["stacks"]:
		labels = s.get("labels", {})
		names = {name.split(" ")[0] for functions in s.get("functions", []) for name in functions}
		names |= {labels.get("comm", ""), labels.get("tags", {}).get("thread", "")}
		for ns in s.get("times_ns", []):
			at = j["time_ns"] + ns
			i = bisect.bisect(starts, at) - 1
			if i < 0 or not phases[i][0] + 1e6 < at < phases[i][1] - 1e6:
				continue
			name = phases[i][2]
			if unnamed and "run_code" in names and not names & burners:
				continue
			other = not others and labels.get("tid") != phases[i][3]
			if name in names and not other:
				right[name] += 1
			elif names & (kinds if others else burners) or not others and not other:
				wrong[name, tuple(sorted(names))] += 1
kinds = {p[2] for p in phases}
burners = {"burn", "made_first", "made_last"} | {k for k in kinds if k.startswith("in_")}
others = sys.argv[3] == "others" # there are ticks of other programs
unnamed = sys.argv[4] # made code may have no name
in_doubt = 0 # where records of changes were lost, as the file says
for line in open(sys.argv[1]):
	j = json.loads(line)
	in_doubt += j.get("in_doubt", 0)
	judge(j)
print("right:", dict(right), "wrong:", dict(wrong), "in doubt:", in_doubt, "without a tick:", kinds - set(right))
sys.exit(not right or sum(wrong.values()) > in_doubt or not unnamed and len(kinds) < 10 and set(right) != kinds)' "$work/dumped" "$log" "$others" "$unnamed"
}
others=''
unnamed=''

# check_changes NAME WHAT ARGUMENT...: recorded as a command.
check_changes() {
	local name=$1 what=$2

	shift 2
	share_buffers # without a record of a change, ticks have the name before it
	check "$what: as a command" exits 0 "$profiltool" record -q -F 999 -g -o "$work/$name.pb.gz" -- \
		"$one" "$@"
	free_buffers
	grep -E '^(phase|pid) ' "$work/out" >"$work/$name.log"
	check "$what: as a command: each tick has its own" judge "$work/$name.log" "$work/$name.pb.gz"
}

check_changes libraries_50 "two libraries at one address, 50 ms each" libraries 50 20 "${libraries[@]}"
check_changes libraries_5 "two libraries at one address, 5 ms each" libraries 5 100 "${libraries[@]}"
check_changes replaced "a library that is replaced by another" replaced 300 4 "${libraries[@]}"
check_changes names "names by prctl" names 20 20 "one_$tag" "two_$tag"
check_changes exec "exec" exec 100 1 "$two" "$three" "$one"
check_changes thread_exec "exec by a thread that is not the first" thread-exec 100 1 "$two" "$three"
check_changes vfork "a child of vfork, before and after its exec" vfork 50 4 "$two"
check_changes heat "100 threads in turn" heat 5 100
# On a busy machine the recorder may not have read the names that the program made before it replaces them.
unnamed=unnamed
check_changes code "made code, and other code there after exec" code 200 1 "$two"
unnamed=''
rm -f "/tmp/perf-$(sed -n 's/^pid //p' "$work/code.log" | head -n 1).map"

# --- By PID, in a control group, among the whole machine, and in an archive ---

# waits COMMAND...: becomes the command when it gets a line.
waits() {
	begin "$run" sh -c 'echo ready; read -r line; exec "$@"' - "$@"
}

by_pid() {
	waits "$one" "$@"
	record_begin "$run" record -q -F 999 -g -p "$pid" -o "$work/$run.pb.gz"
	send_line "$run" go
	wait "$recorder"
}

in_group() {
	waits "$one" "$@"
	echo "$pid" >"$group/cgroup.procs"
	record_begin "$run" record -q -F 999 -g --cgroup "$group" -o "$work/$run.pb.gz"
	send_line "$run" go
	wait "$pid" && record_end
}

among_all() {
	record_begin "$run" record -q -F 999 -g -a -o "$work/$run.pb.gz"
	"$one" "$@" >"$work/$run.out" && record_end
}

in_archive() {
	"${pdeathsig[@]}" "$profild" --continuous --verbose --directory "$work/$run" --window 1 -F 997 2>"$work/$run.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q "records cpu-clock into" "$work/$run.err" || return
	"$one" "$@" >"$work/$run.out"
	kill -TERM "$daemon"
	wait "$daemon"
}

# check_others WAY WHAT ARGUMENT...: each of the changes, recorded so.
check_others() {
	local way=$1 what=$2 run

	shift 2
	run=$way-$1
	share_buffers
	check "$what: $1" "$way" "$@"
	free_buffers
	if [ "$way" = in_archive ]; then
		check "$what: $1: each tick has its own" judge "$work/$run.out" "$work/$run"/*/*/*.pb.gz
	else
		check "$what: $1: each tick has its own" judge "$work/$run.out" "$work/$run.pb.gz"
	fi
}

# check_all_of WAY WHAT
check_all_of() {
	check_others "$@" libraries 50 10 "${libraries[@]}"
	check_others "$@" names 20 20 "one_$tag" "two_$tag"
	check_others "$@" exec 100 1 "$two" "$three"
}
check_all_of by_pid "by PID"
others=others
if make_control_group; then
	check_all_of in_group "in a control group"
else
	skip "in a control group" "none can be made"
fi
check_all_of among_all "among the whole machine"
check_all_of in_archive "in an archive"
finish
