#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --wall: who ended the waits of threads, and where.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

file=$work/woken.pb.gz

# wakers EXPRESSION FILE: whether it holds, with these names:
#   blocked(FUNCTION, WAKER...)  the blocked time below a function that these ended; without WAKER: all. Or of two
#                                functions: "OUTER;KERNEL"
#   ended_by(FUNCTION, WAKER...)  of that, half at least, and nobody else ended any: who did may be unknown
#   woke(FUNCTION)               the time of waits that ended by a stack with this function
#   others                       names that a new thread or process may have, where a busy machine had records of names lost
#   labelled, told               all the time of waits with a known waker, and by its stacks
wakers() {
	"$profiltool" dump --json "$2" >"$work/dumped" || return
	python3 -S -c '
import json, sys
j = json.load(open(sys.argv[2]))
types = [v["type"] for v in j["values"]]
wall, woke_type = types.index("wall"), types.index("woke")
samples = []
for s in j["stacks"]:
	names = [n for f in s.get("functions", []) for n in f]
	samples.append((names, s["labels"].get("tags", {}).get("waker", ""), s["values"][wall], s["values"][woke_type]))
def blocked(function, *wakers):
	return sum(w for n, l, w, _ in samples if set(function.split(";")) <= set(n) and ": " in n[0] and (not wakers or l in wakers))
def ended_by(function, *wakers):
	return 0 < .5 * blocked(function) <= blocked(function, *wakers) == blocked(function) - blocked(function, "")
def woke(function):
	return sum(v for n, _, _, v in samples if function in n)
others = ("profiltool", "sh", "woken", "sleeper", "waker") if j.get("mapping_records_lost") else ()
labelled = sum(w for _, l, w, _ in samples if l)
told = sum(v for _, _, _, v in samples)
for kind in "lock", "pipe", "socket", "inet", "sleep", "poll", "vfork", "start":
	by = {}
	for n, l, w, _ in samples:
		if ("wait_" + kind in n or kind == "start" and "[blocked: start]" in n) and ": " in n[0]:
			by[l] = by.get(l, 0) + w
	print(kind, by, woke("wake_" + kind))
print(labelled, told)
sys.exit(not eval(sys.argv[1]))' "$1" "$work/dumped"
}

# Each kind is waited for a dozen times. Most waits take 50 ms; where the machine is busy some are shorter than 1 ms, for
# which no stack is taken. A kernel may not report an interrupt's wake-ups while others run (user/doc/wall.md).
share_buffers
check "a program whose waits end by known threads and interrupts: recorded" exits 0 "$profiltool" record --wall \
	--max-overhead 0 --json -q -o "$file" -- sh -c "echo | $progs/woken 50000 4"
free_buffers
check "there was room for all wakers, and memory for all waits" json \
	"j['wall']['wakers_lost'] == 0 and j['wall']['waits_lost'] == 0" "$work/out"
for kind in lock pipe socket; do
	check "$kind: a thread ends the waits" wakers "ended_by('wait_$kind', 'waker')" "$file"
	check "$kind: its stack has what they took" wakers \
		"blocked('wait_$kind', 'waker') - 15e6 <= woke('wake_$kind') <= blocked('wait_$kind', 'waker')" "$file"
done
# Data to the own machine: the thread that sends also receives, in a softirq, if no other one is late with that.
check "a connection to the own machine: the thread that sends ends the waits, or the network" wakers \
	"0 < .5 * blocked('wait_inet') <= blocked('wait_inet', 'waker', 'interrupt: network')" "$file"
check "a connection to the own machine: its stack has what they took" wakers \
	"blocked('wait_inet', 'waker') - 15e6 <= woke('wake_inet') <= blocked('wait_inet', 'waker')" "$file"
for kind in sleep poll; do
	check "$kind: the timer's interrupt ends it" wakers \
		"0 < .5 * blocked('wait_$kind') <= blocked('wait_$kind', 'interrupt: timer')" "$file"
done
# To make a process may take a lock of the kernel, which others release; and a shell does it, too.
check "vfork: the child ends it" wakers "ended_by('wait_vfork;wait_for_completion_state', 'sleeper', *others)" "$file"
check "start: a new thread waits for its creator" wakers \
	"0 < blocked('[blocked: start]') == blocked('[blocked: start]', 'sh', 'woken', *others)" "$file"
check "the timer's stack has what these took" wakers \
	"blocked('wait_sleep', 'interrupt: timer') + blocked('wait_poll', 'interrupt: timer') <= woke('[interrupt: timer]')" \
	"$file"
check "waits and stacks have the same sum" wakers "0 < labelled == told" "$file"

# --- Asked ---

check "--by waker" exits 0 "$profiltool" report -q --json --by waker "$file"
check "--by waker: time of threads" json "(j['value'] == 'wall/nanoseconds' and
	{'waker', 'sleeper', 'interrupt: timer'} <= {r.get('waker') for r in j['rows']})" "$work/out"
check "--waker" exits 0 "$profiltool" report -q --json --waker 'interrupt: *' "$file"
check "--waker: waits that it ended" json "(lambda n: 'wait_sleep' in n and 'wait_poll' in n and 'wait_lock' not in n)(
	{r['name'] for r in j['functions']})" "$work/out"
check "--value woke" exits 0 "$profiltool" report -q --json --value woke --waker waker "$file"
check "--value woke: the functions of the waker" json "(lambda n: n['wake_pipe'] > 0 and n['wake_lock'] > 0 and
	'wait_lock' not in n)({r['name']: r['total'] for r in j['functions']})" "$work/out"
check "--value woke: as a flame graph" exits 0 "$profiltool" flamegraph -q --value woke -o "$work/woke.svg" "$file"
check "--value woke: as a flame graph, with the interrupt" grep -q "interrupt: timer" "$work/woke.svg"
check_rows <<ROWS
NAME --by waker: a profile without wakers
RUN $profiltool report --by waker $top/tests/data/gperftools/basic.prof
STATUS 1
EXPECT no sample has a waker
EXPECT profiltool record --wall records who ended waits
ROWS

# --- By a thread that is not recorded ---

begin other "$progs/woken" 1000 1
record_begin other record --wall --json -q -o "$work/other.pb.gz" -p "$pid"
send_line other go
check "a thread that is not recorded: ends a wait" wait "$recorder"
check "a thread that is not recorded: is named, without a stack" wakers \
	"blocked('getchar', '$(cat "/proc/$$/comm")') > 0 and woke('[no stack]') > 0" "$work/other.pb.gz"
finish
