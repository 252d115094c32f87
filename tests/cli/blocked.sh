#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --wall: for what threads wait, and where. The program measures how long it was blocked, by the kernel's own
# switches and wake-ups.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../control_group.sh
. "$top/tests/control_group.sh"

# record NAME MICROSECONDS SECONDS OPTION...
record() {
	local name=$1 us=$2 seconds=$3
	shift 3
	begin "$name" "$progs/blocked" "$us" "$seconds"
	record_begin "$name" record --wall --max-overhead 0 --json -q -o "$work/$name.pb.gz" -p "$pid" "$@"
	send_line "$name" go
	wait "$pid"
	wait "$recorder"
}

# agrees NAME: whether for each kind the waits for that reason in its function are as long as the program says, within 2 %
# and 5 us for each. The kernel may lose the event of a switch: the wait, which is not followed then, is among those in
# the account whose reason is unknown.
agrees() {
	grep -qE '^signal [0-9]' "$work/$1.out" || return
	"$profiltool" dump --json "$work/$1.pb.gz" >"$work/dumped" || return
	python3 -c '
import json, sys
j = json.load(open(sys.argv[2]))
wall = [v["type"] for v in j["values"]].index("wall")
told, fits, missing = {}, True, 0
for s in j["stacks"]:
	names = [n for f in s.get("functions", []) for n in f]
	state = next((n for n in names if n.startswith("[")), "")
	for n in names:
		if n.startswith("wait_") and state.endswith(": " + n[5:] + "]"):
			told[n[5:]] = told.get(n[5:], 0) + s["values"][wall]
for line in open(sys.argv[1]):
	kind, *rest = line.split()
	if len(rest) != 3:
		continue
	least, most, times = map(int, rest)
	seen = told.get(kind, 0)
	print("%s: %.6f to %.6f s told by the program, %.6f s recorded, %d times" % (kind, least / 1e9, most / 1e9, seen / 1e9, times))
	fits &= seen <= 1.02 * most + 5000 * times
	# The kernel may have counted a part as a wait for a CPU, before the wake-up.
	missing += max(0, .98 * min(least, most) - 5000 * times - seen)
unknown = json.load(open(sys.argv[3]))["wall"]["blocked_by"].get("unknown", 0)
print("missing: %.6f s, for an unknown reason: %.6f s" % (missing / 1e9, unknown / 1e9))
sys.exit(not fits or not told or missing > unknown)' "$work/$1.out" "$work/dumped" "$work/$1.json"
}

# exits_0_and_prints PATTERN COMMAND...: its output is in $work/printed.
exits_0_and_prints() {
	local pattern=$1
	shift
	"$@" >"$work/printed" 2>"$work/err" && grep -q -- "$pattern" "$work/printed" && return
	cat "$work/printed" "$work/err"
	return 1
}

# lacks TEXT FILE
lacks() {
	! grep -F -- "$1" "$2"
}

for us in 20 1000 50000; do
	check "waits of $us us: recorded" record "us$us" $us 3
	check "waits of $us us: for each reason, and where, as long as the program says" agrees "us$us"
done

# Nothing is spared here; the first wait of a thread may lack a stack.
check "stacks of waits reach the program's start" json "(lambda w: w['waits_complete_ns'] >=
	0.99 * w['waits_user_ns'] > 0)(j['wall'])" "$work/us1000.json"

# --- A thread that waits all the time ---

# Its wait begins before the recording, and goes on after it.
begin late "$progs/blocked" 1000 1
record_begin late record --wall --json -q -o "$work/late.pb.gz" -p "$pid" -d 1
check "a wait that is under way at both ends: recorded" wait "$recorder"
# all_blocked NAME: it has one thread, which was blocked all the time. What lies between the begins of the account and of
# the waits has no reason.
all_blocked() {
	json "(lambda w: w['threads'] == 1 and w['wall_ns'] >= 1e9 and w['on_cpu_ns'] == 0 and
		w['blocked_ns'] == w['wall_ns'] and
		w['blocked_by']['pipe'] + w['blocked_by'].get('unknown', 0) >= w['blocked_ns'] and
		w['blocked_by']['pipe'] > 0.5 * w['blocked_ns'])(j['wall'])" "$work/$1.json"
}
check "a wait that is under way at both ends: its whole time, by its reason" all_blocked late
check "its stack is whole" exits_0_and_prints "_IO_file_underflow" "$profiltool" report -q --value wall --tree "$work/late.pb.gz"
check "its time is in seconds" exits_0_and_prints "^self s  *self%  *total s  *total%  " "$profiltool" report -q --value wall "$work/late.pb.gz"
check "the image of what did not run is that" exits_0_and_prints "\[blocked: pipe\] *\[off CPU\]$" "$profiltool" report -q \
	--value wall "$work/late.pb.gz"
check "what may be idle, or stuck, is blocked" exits_0_and_prints "\[blocked: pipe\]" "$profiltool" report -q --value wall "$work/late.pb.gz"

if make_control_group; then
	echo "$pid" >"$group/cgroup.procs"
	check "--cgroup" exits 0 "$profiltool" record --wall --json -q -o "$work/group.pb.gz" --cgroup "$group" -d 1
	cp "$work/out" "$work/group.json"
	check "--cgroup: no thread outside of it" all_blocked group
else
	skip "--cgroup" "no control group can be made here"
fi

# --- Where the reason does not say what the kernel waits for ---

# through FUNCTION NAME: whether all waits in FUNCTION that no signal ends have the kernel's functions above it, without
# those of the switch to another thread.
through() {
	"$profiltool" dump --json "$work/$2.pb.gz" >"$work/dumped" || return
	python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
wall = [v["type"] for v in j["values"]].index("wall")
stacks = [[n for f in s.get("functions", []) for n in f] for s in j["stacks"] if s["values"][wall]]
stacks = [s for s in stacks if sys.argv[2] in s and s[0] == "[blocked: child]"]
print(*stacks, sep="\n")
sys.exit(not stacks or not all("kernel_clone" in s[1:s.index(sys.argv[2])] and
	"__schedule" not in s for s in stacks))' "$work/dumped" "$1"
}

check "waits in vfork(): recorded" exits 0 "$profiltool" record --wall --json -q -o "$work/vfork.pb.gz" -- \
	sh -c "echo | $progs/woken 20000 1"
check "waits in vfork(): have the kernel's functions" through wait_vfork vfork
begin stuck "$progs/woken" stuck
record_begin stuck record --wall --json -q -o "$work/stuck.pb.gz" -p "$pid" -d 1
check "a wait in vfork() that is under way at both ends: recorded" wait "$recorder"
check "a wait in vfork() that is under way at both ends: has the kernel's functions" through wait_stuck stuck
send_line stuck go

# --- Two processes that switch all the time ---

cat >"$work/switch.py" <<'EOF'
import os, select, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
there, back = os.pipe(), os.pipe()
print("ready", flush=True)
select.select([0], [], [])
if os.fork() == 0:
	while os.read(there[0], 1) == b"x":
		os.write(back[1], b"x")
	os._exit(0)
end = time.monotonic() + 1.5
while time.monotonic() < end:
	os.write(there[1], b"x")
	os.read(back[0], 1)
os.write(there[1], b"e")
os.wait()
EOF
switch() {
	begin switch python3 -S "$work/switch.py"
	record_begin switch record --wall --max-overhead 1 --json -q -o "$work/switch.pb.gz" -p "$pid"
	send_line switch go
	wait "$pid"
	wait "$recorder"
}
check "what costs too much" switch
# Without their stacks, the waits have their reason, and the account is as exact. On a busy machine they may switch too
# rarely for that. They wait for other than a pipe before they begin and when they end.
check "what costs too much: stacks are left out, and nothing else" json "(lambda w, ns:
	(w['waits_spared'] > 0 or w['waits_cost_ns'] <= 10e6 + 0.01 * w['wall_ns']) and
	w['waits_lost'] == 0 and ns('pipe') >
	0.9 * (w['blocked_ns'] + w['idle_ns'] - ns('child') - ns('poll') - ns('start')) > 0 and
	w['wall_ns'] == w['on_cpu_ns'] + w['runnable_ns'] + w['blocked_ns'] + w['idle_ns'] + w['unknown_ns'])(
	j['wall'], lambda reason: sum(j['wall'][of].get(reason, 0) for of in ('blocked_by', 'idle_by')))" "$work/switch.json"
check "what costs too much: it is said" exits 0 "$profiltool" report "$work/switch.pb.gz"
is_said() {
	json "j['wall']['waits_spared'] == 0" "$work/switch.json" || says "have a reason, but no stack"
}
check "what costs too much: it is said" is_said

# --- Threads that end ---

cat >"$work/ends.py" <<'EOF'
import os
for _ in range(5):
	children = [os.fork() or os._exit(0) for _ in range(200)]
	for child in children:
		os.waitpid(child, 0)
EOF
check "processes that end" exits 0 "$profiltool" record --wall --max-overhead 0 --json -q -- python3 -S "$work/ends.py"
check "processes that end: what has a reason is no longer than the account says" json "(lambda w:
	sum(w['blocked_by'].values()) <= 1.001 * w['blocked_ns'])(j['wall'])" "$work/out"

# --- More stacks than there is room for ---

check "too many different stacks of waits" exits 0 "$profiltool" record --wall --max-overhead 0 --json \
	-o "$work/places.pb.gz" -- "$progs/places"
check "too many different stacks of waits: it is said how many have none" \
	says "of the waits have a reason, but no stack: there was no room"
cp "$work/out" "$work/places.json"
check "too many different stacks of waits: their reason is right, and so is the account" json "(lambda w:
	0 < w['waits_no_room'] < w['waits'] and w['blocked_by'].get('sleep', 0) + w['idle_by'].get('sleep', 0) >
	0.9 * (w['blocked_ns'] + w['idle_ns']) and
	w['wall_ns'] == w['on_cpu_ns'] + w['runnable_ns'] + w['blocked_ns'] + w['idle_ns'] + w['unknown_ns'])(j['wall'])" "$work/places.json"
check "too many different stacks of waits: the file keeps the number" test \
	"$(grep -o '"waits_no_room": *[0-9]*' <("$profiltool" report --json "$work/places.pb.gz" 2>/dev/null))" = \
	"$(grep -o '"waits_no_room": *[0-9]*' "$work/places.json")"

# --- Threads that come and go ---

check "new threads: recorded" exits 0 "$profiltool" record --wall --json -o "$work/new.pb.gz" -- timeout 1 "$progs/churn" 4 1
mv "$work/out" "$work/new.json"
# What interrupts and a host take of a thread that has waited is no wait either: from 1 % on that is said, and only then.
check "new threads: all time asleep has a reason, or it is said" json "(lambda w, reasons: reasons[0]['start'] > 0 and
	(w['blocked_ns'] + w['idle_ns'] - sum(ns for of in reasons for name, ns in of.items() if name != 'unknown') >
		(w['blocked_ns'] + w['idle_ns']) // 100) == $(grep -c 'of the time asleep has no reason' "$work/err"))(
	j['wall'], [j['wall']['blocked_by'], j['wall']['idle_by']])" "$work/new.json"

# --- Asked ---

state=$work/us1000.pb.gz
check "--reason: waits for this alone" exits_0_and_prints "wait_lock" "$profiltool" report -q --reason lock "$state"
check "--reason: no others" lacks "wait_pipe" "$work/printed"
check "--state on-cpu: no waits" exits_0_and_prints "blocked" "$profiltool" report -q --state on-cpu "$state"
check "--state on-cpu: no waits" lacks ": pipe]" "$work/printed"
check "--state with --idle=hide" exits_0_and_prints "\[blocked: pipe\]" "$profiltool" report -q --state blocked \
	--idle=hide "$work/late.pb.gz"
check "--idle=hide chooses no other states" exits 4 "$profiltool" report -q --state idle --idle=hide "$work/late.pb.gz"
check "what is kept is a share of the wall time" says "--state idle --idle=hide keeps 0.00 % of the wall time"
check "and if that is none, the states and reasons there are" says "; waits are for: "
check_rows <<EOF
NAME --state: what it takes
RUN $profiltool report --state asleep $state
STATUS 2
EXPECT --state takes one of on-cpu, runnable, blocked, idle, not "asleep"

NAME --reason: an unknown one is refused, not without waits
RUN $profiltool report --reason lokc $state
STATUS 2
EXPECT --reason takes one of other, lock, condition, join, sleep, child, socket, accept, pipe, terminal, file, event, disk, fault, poll, signal, ipc, stopped, kernel, start, not "lokc"

NAME --idle: what it takes
RUN $profiltool report --idle=no $state
STATUS 2
EXPECT --idle takes show or hide, not "no"

NAME --max-overhead: what it takes
RUN $profiltool record --wall --max-overhead 101 -p 1
STATUS 2
EXPECT --max-overhead takes a percentage from 0 to 100, not "101"

NAME a recording without waits
RUN $profiltool report --state blocked $top/tests/data/gperftools/basic.prof
STATUS 2
EXPECT the profile has no waits of threads
EXPECT profiltool record --wall records them
EOF
finish
