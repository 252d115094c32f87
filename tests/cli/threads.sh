#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Threads: those that start during the recording, or while profiltool attaches; a single thread; many
# processes at once. And the target is not disturbed.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# --- Threads that begin and end all the time, while it attaches too ---

# The CPU time of churn between two times, from the lines that it prints; the window is the one
# in the profile (time_nanos, field 9, and duration_nanos, field 10, of profile.proto).
# Between two lines it is not known.
churn_is_ticked() {
	python3 - "$work" <<'EOF'
import bisect, glob, gzip, json, sys

work = sys.argv[1]
lines = [tuple(map(int, line.split())) for line in open(work + "/churn.out")
	 if line[0].isdigit() and line.endswith("\n")]
times = [line[0] for line in lines]

def cpu_around(time):
	i = min(max(1, bisect.bisect(times, time)), len(lines) - 1)
	return lines[i - 1][1], lines[i][1]

def varint(data, i):
	value = shift = 0
	while True:
		value |= (data[i] & 127) << shift
		shift += 7
		i += 1
		if data[i - 1] < 128:
			return value, i

def fields(data):
	i, found = 0, {}
	while i < len(data):
		key, i = varint(data, i)
		value, i = varint(data, i)
		if key & 7 == 2:
			i += value
		else:
			found[key >> 3] = value
	return found

ticked = at_least = at_most = 0
for file in sorted(glob.glob(work + "/churn-*.json")):
	j = json.load(open(file))
	f = fields(gzip.open(file[:-4] + "pb.gz").read())
	begin, end = cpu_around(f[9]), cpu_around(f[9] + f[10])
	least, most = end[0] - begin[1], end[1] - begin[0]
	ticked, at_least, at_most = ticked + j["ticks"] * j["period_ns"], at_least + least, at_most + most
	print(j["ticks"], "ticks for", least / j["period_ns"], "to", most / j["period_ns"])
sys.exit(not at_least / 4 <= ticked <= 1.75 * at_most)
EOF
}

each_is_whole() {
	local file

	for file in "$work"/churn-*.json; do
		recorded whole "$file" || return 1
	done
}

start_churn() {
	"${pdeathsig[@]}" "$progs/churn" 2 10 >"$work/churn.out" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for grep -q ready "$work/churn.out"
}

check "threads come and go" start_churn
churn=$pid
codes=""
for i in {1..20}; do
	"$profiltool" -p "$churn" -F 1999 -d 0.2 --json -o "$work/churn-$i.pb.gz" \
		>"$work/churn-$i.json" 2>"$work/churn-$i.err"
	codes+=$?
done
stop "$churn"
# 4: on a busy machine it may not run for 0.2 s. The next row holds that against its CPU time, too.
check "20 recordings of it: succeeds, or has no samples" grep -qx '[04]\{20\}' <<<"$codes"
check "in each the ticks make up its CPU time: no thread counts twice or not at all" churn_is_ticked
check "in each the account is whole" each_is_whole

# The same when attaching takes longer than a thread lives, as on a busy machine or with thousands
# of threads: each system call of the attachment is held up. One chain cannot use more CPU time
# than passes.
if strace -o /dev/null true 2>/dev/null; then
	begin slow "$progs/churn" 1 60
	for i in 1 2; do
		check "attached to slowly, $i: succeeds" exits 0 timeout 120 strace -f --seccomp-bpf -o /dev/null \
			-e trace=ioctl -e inject=ioctl:delay_enter=40000 \
			"$profiltool" -p "$pid" -F 999 -d 2 --json
		check "attached to slowly, $i: no tick counts twice" \
			recorded "whole and at_most(j['duration_s'] * 1e9)" "$work/out"
	done
	stop "$pid"
else
	skip "attached to slowly" "strace does not work here"
fi

# --- A thread alone, and several processes ---

begin shares "$progs/shares" 2 0 lazy
shares=$pid
begin other "$progs/family" exec 100 true
other=$pid
send_line other go

# burning PID: its threads as PID/TID, without the first of shares, which has ended.
burning() {
	local task

	for task in "/proc/$1/task/"*; do
		grep -q '^State:.*Z' "$task/status" || echo "$1/${task##*/}"
	done
}

# labels FILE: the PID/TID of its samples.
labels() {
	"$profiltool" dump "$1" | sed -n 's/.* \[\([0-9]*\/[0-9]*\) .*/\1/p' | sort -u
}

wait_for grep -q '^State:.*Z' "/proc/$shares/task/$shares/status"
tid=$(burning "$shares" | head -n 1)
tid=${tid#*/}
record_begin thread -t "$tid" -F 999 --json -o "$work/thread.pb.gz"
thread=$recorder
record_begin both -p "$shares,$other" -F 999 --json -o "$work/both.pb.gz"
for process in "$shares" "$other"; do
	wait_for_use "$process" 500
done
kill -INT "$thread" "$recorder"
wait "$thread"
check "-t: succeeds" test $? -eq 0
wait "$recorder"
check "-p A,B: succeeds" test $? -eq 0

check "-t: the thread alone" test "$(labels "$work/thread.pb.gz")" = "$shares/$tid"
check "-t: its CPU time alone" recorded \
	"whole and at_most(j['duration_s'] * 1e9)" "$work/thread.json"
check "-p A,B: all threads of both" test "$(labels "$work/both.pb.gz")" = \
	"$({ burning "$shares" && burning "$other"; } | sort)"
check "-p A,B: names of both" recorded "whole and images('burn_sixty') == {'shares'} and \
	images('burn_before') == {'family'}" "$work/both.json"
check "-p A,A: succeeds" exits 0 "$profiltool" -p "$other,$other" -F 999 -d 1 --json
check "-p A,A: counted once" recorded "whole and at_most(j['duration_s'] * 1e9)" "$work/out"
stop "$shares"
stop "$other"

# --- The target is not to notice ---

# watch PID: prints what of its state must not be, until it ends.
watch() {
	while kill -0 "$1" 2>/dev/null; do
		grep -hE '^(State:.*[tT] |TracerPid:.*[1-9])' /proc/"$1"/{,task/*/}status
		sleep 0.005
	done
}

begin signals "$progs/signals"
watch "$pid" >"$work/watched" 2>/dev/null &
note_started $!
watcher=$!
codes=""
for options in "-F 999" "-F 9999" "-F 99 --kernel" "-F 999 -e cpu-clock"; do
	# shellcheck disable=SC2086 # several words
	"$profiltool" -p "$pid" $options -d 0.2 >"$work/out" 2>"$work/err"
	codes+=$?
done
send_line signals go
wait "$pid"
wait "$watcher"
check "four recordings of one process, one after the other, went well" test "${codes//[04]/}" = ""
check "the target got no signal" grep -qx "signals 0" "$work/signals.out"
check "the target was never stopped or traced" test ! -s "$work/watched"

# --- Threads that make others all the time ---

check "makers of threads" start_ready "$progs/makers" 4
check "makers of threads: succeeds" exits 0 until_used "$pid" 500 "$profiltool" -p "$pid" -F 999 --json
cp "$work/out" "$work/makers.json"
stop "$pid"
# Not by the CPU time: with threads that end so soon the kernel's account of it is more than there was.
check "threads that make others all the time are ticked in their own function" recorded \
	"whole and j['ticks'] > 100 and samples('burn_maker') > 50" "$work/makers.json"

# --- CPUs that the target may not run on ---

# clocks N: whether the recorder has so many perf events, beside one on each CPU for records.
clocks() {
	[ "$(find "/proc/$recorder/fd" -lname '*perf_event*' | wc -l)" -eq $(($(nproc) + $1)) ]
}

if [ "$(nproc)" -gt 1 ]; then
	begin confined taskset -c 1 "$progs/shares" 1 0 stay
	confined=$pid
	record_begin confined -p "$confined" -F 997 --json
	check "a target on one CPU: the others have no clock" clocks 1
	taskset -a -p -c 0,1 "$confined" >/dev/null
	check "it may run on another: that gets one" wait_for clocks 2
	wait_for_use "$confined" 100
	stop "$confined"
	wait "$recorder"
	check "it may run on another: that gets one: it is ticked" \
		recorded "ran('burn_sixty')" "$work/confined.json"
else
	skip "CPUs that the target may not run on" "there is one CPU"
fi

finish
