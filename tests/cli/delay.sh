#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Who makes others wait for a CPU: the delay that is charged to the code that runs meanwhile.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "delay is recorded" "recording needs root"
	finish
fi
awake=1 # else all threads of a process wait for a CPU when it goes on, those that sleep, too
cpus=$(python3 -S -c 'import os; print(*os.sched_getaffinity(0))')
cpu=${cpus##* }

# --- Of whom ---

# each_tick THREADS: where so many threads of a process want one CPU, all but one wait at each of its ticks, and perhaps
# others. Counted one by one as --victim they are no more, but for the first thread: load balancing may move some in the
# list meanwhile.
each_tick() {
	start_ready "$progs/queues" "$cpu" "$1" 0
	# Its first thread, which only waits for the others, may have to wait for that CPU until it sleeps.
	wait_for grep -q '^State:.S' "/proc/$pid/status"
	until_used "$pid" 300 "$profiltool" record -p "$pid" -F 997 -o "$work/all.pb.gz" -q
	until_used "$pid" 300 "$profiltool" record -p "$pid" -F 997 -o "$work/own.pb.gz" -q --victim "pid:$pid"
	stop "$pid"
	python3 -S - $(($1 - 1)) "$profiltool" "$work/all.pb.gz" "$work/own.pb.gz" <<'EOF_PYTHON'
import json, subprocess, sys
others, profiltool, *files = sys.argv[1:]
average = []
for file in files:
	j = json.loads(subprocess.check_output([profiltool, "dump", "--json", file]))
	ticks, delay = (sum(s["values"][i] for s in j["stacks"]) for i in (0, 2))
	average.append(delay / (ticks * j["period_ns"]))
print("threads that wait at a tick: %g, of the process %g" % tuple(average))
sys.exit(not (0.5 * int(others) < average[1] <= int(others) + 1 and int(others) <= average[0]))
EOF_PYTHON
}
for threads in 2 10 100; do
	check "$threads threads want one CPU: at each tick of one, the others wait" each_tick $threads
done

start_ready "$progs/queues" "$cpu" 3 0
victim=$pid
check "--victim comm: nobody has the name" exits 0 until_used "$victim" 300 "$profiltool" record -a --json \
	--victim comm:nobody
check "--victim comm: none waits" json "j['counted'] > 0 and j['delay_ns'] == 0" "$work/out"
check "--victim comm: threads of this name" exits 0 until_used "$victim" 300 "$profiltool" record -p "$victim" --json \
	--victim comm:queues
check "--victim comm: they wait" json "j['delay_ns'] > 0" "$work/out"
check "--victim cgroup: those in it and below it" exits 0 until_used "$victim" 300 "$profiltool" record -p "$victim" \
	--json --victim cgroup:/
check "--victim cgroup: they wait" json "j['delay_ns'] > 0" "$work/out"
check "--victim by the scheduler's tick" exits 0 until_used "$victim" 300 "$profiltool" record -p "$victim" -e tick \
	--json --victim "pid:$victim" -o "$work/victim.pb.gz"
check "--victim by the scheduler's tick: they wait" json "j['delay_ns'] > 0" "$work/out"
check "the file says who the victim is" grep -qx "comment victim=pid:$victim" <("$profiltool" dump "$work/victim.pb.gz")
stop "$victim"
check "--victim: a process that is gone" exits 1 "$profiltool" record -a -d 0.1 --victim "pid:$victim"
check "--victim: a process that is gone: said" says "there is no such process"
check_rows <<'EOF'
NAME --victim takes no PID alone
RUN "$profiltool" record -a -d 0.1 --victim 7
STATUS 2
EXPECT --victim takes pid:PID, comm:NAME (a thread's, of 15 bytes at most) or cgroup:PATH, not "7"

NAME --victim takes no name that no thread can have
RUN "$profiltool" record -a -d 0.1 --victim comm:0123456789abcdef
STATUS 2
EXPECT --victim takes pid:PID

NAME the histogram keeps no delay
RUN "$profiltool" record -p $$ -d 0.1 --scale 0x10000 --victim comm:queues
STATUS 2
EXPECT --scale keeps no delay: it excludes --victim
EOF

# --- Whose code it is ---

start_ready "$progs/queues" "$cpu" 2 4
batch=$work/batch.pb.gz
check "record a process whose threads want one CPU" exits 0 until_used "$pid" 1000 "$profiltool" record -g -F 499 -p "$pid" -o "$batch"
stop "$pid"
check "the batch job makes others wait" exits 0 "$profiltool" report --json --value delay "$batch"
check "the batch job makes others wait: it is first" json "j['functions'][0]['name'] == 'batch_job'" "$work/out"
check "samples are shown without --value" grep -qE '^ *self +self% +total +total% +function' <("$profiltool" report "$batch" 2>/dev/null)
check "dump prints the delay of a stack" grep -qE '^[0-9]+ 0x.* delay=[0-9]+ns\]' <("$profiltool" dump "$batch" 2>/dev/null)
"$profiltool" dump --json "$batch" >"$work/batch.json"
check "dump --json has all three values" json "[v['type'] for v in j['values']] == ['samples', 'cpu', 'delay']" \
	"$work/batch.json"
check "the delay is so many ticks' time" json "all(s['values'][2] % j['period_ns'] == 0 for s in j['stacks'])" \
	"$work/batch.json"

# total VALUE REPORT_OPTION...: prints the sum over all functions.
total() {
	"$profiltool" report --json --value "$@" 2>/dev/null |
		python3 -S -c 'import json, sys; print(sum(f["self"] for f in json.load(sys.stdin)["functions"]))'
}
all=$(total delay "$batch")

# Each sample's delay is divided in proportion to the ticks, less than a nanosecond is lost. In the middle of the ticks:
# beside others it may have had no CPU in half of the time.
two_halves() {
	local first second samples middle
	middle=$(python3 -S -c 'import json, sys
times = sorted(t for s in json.load(open(sys.argv[1]))["stacks"] for t in s["times_ns"])
print("+%.4fs" % (times[len(times) // 2] / 1e9))' "$work/batch.json")
	first=$(total delay --until "$middle" "$batch")
	second=$(total delay --since "$middle" "$batch")
	samples=$("$profiltool" dump "$batch" | grep -c '^[0-9]* 0x')
	echo "$first + $second, of $all"
	[ "$first" -gt 0 ] && [ "$second" -gt 0 ] && [ $((first + second)) -le "$all" ] &&
		[ $((first + second + samples)) -ge "$all" ]
}
check "two parts of the time add up" two_halves
check "merge adds the delay" exits 0 "$profiltool" merge "$batch" "$batch" -o "$work/sum.pb.gz"
check "merge adds the delay: twice as much" test "$(total delay "$work/sum.pb.gz")" -eq $((2 * all))
check "a flame graph by delay" exits 0 "$profiltool" flamegraph --value delay -o "$work/a.svg" "$batch"
check "Callgrind files keep it" exits 0 "$profiltool" convert "$batch" "$work/a.callgrind"
check "Callgrind files keep it: the sum" test "$(total delay "$work/a.callgrind")" -eq "$all"
check "folded files have one value" exits 0 "$profiltool" convert "$batch" "$work/a.folded"
check "folded files have one value: the delay is lost" says "the delay"
check "folded files have the value that is asked for" exits 0 "$profiltool" convert --value delay "$batch" "$work/b.folded"
check "folded files have the value that is asked for: the sum" \
	test "$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$work/b.folded")" -eq "$all"
check "report has columns of the delay" grep -qE '^ *self +self% +total +total% +delay s +delay% +function' \
	<("$profiltool" report --delay "$batch" 2>/dev/null)
check "a summary says for how long threads waited" grep -qE 'delay to others: they were runnable [0-9.]+ s' \
	<("$profiltool" report "$batch" 2>&1)
check "rows without a delay are left out" test -z \
	"$("$profiltool" report -q --value delay "$batch" | awk 'NR > 1 && $1 == 0 && $2 == 0 && $4 == 0 && $3 == "0.000"' | grep -v more)"
check "JSON has the delay" exits 0 "$profiltool" report --json "$batch"
check "JSON has the delay: of each row, and the sum" json \
	"j['delay_ns'] == $all == sum(f['delay_ns'] for f in j['functions'])" "$work/out"
check_rows <<'EOF'
NAME a tree has no columns of the delay
RUN "$profiltool" report --tree --delay "$batch"
STATUS 2
EXPECT --delay is not for trees
EXPECT --value delay

NAME what has no delay has no columns of it
RUN "$profiltool" report --delay "$work/a.folded"
STATUS 2
EXPECT the profile has no value "delay"
EOF

# --- Now ---

start_ready "$progs/queues" "$cpu" 2 4
check "top sorts by delay" exits 0 "$profiltool" top --sort delay --tables 1 -d 3 -F 999 -p "$pid"
check "top sorts by delay: the batch job is first" awk '/delay%/ { title = NR } title && NR == title + 1 {
	found += / batch_job / } END { exit !found }' "$work/out"
check "top's JSON has it" exits 0 "$profiltool" top --json --tables 1 -p "$pid"
check "top's JSON has it: in all and of each row" json "(j['delay_percent'] > 0 and
	all('delay_percent' in row for row in j['rows']))" "$work/out"
stop "$pid"
finish
