#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Events that are no ticks of a clock: each is a sample, and no line of a summary takes them for CPU time.
# What is right: a program touches 20000 pages of shared memory, which has no huge pages here, one by one.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

touch_pages='import mmap
memory = mmap.mmap(-1, 20000 * 4096)
for i in range(20000):
    memory[i * 4096] = 1'
file=$work/faults.pb.gz
python=$(python3 -c 'import sys; print(sys.executable)') # python3 may be a script that starts others
mounted=$(grep -c tracefs /proc/mounts)

check "page faults" exits 0 "$profiltool" record -e page-faults -g -v -o "$file" -- python3 -c "$touch_pages"
check "the summary counts events" grep -qE '^profiltool: events [0-9]+ = counted [0-9]+ ' "$work/err"
check "it has no rate, and no time that others waited" \
	test -z "$(grep -E ' Hz|clock|interrupt|per tick|for a CPU' "$work/err")"
"$profiltool" report --json "$file" >"$work/faults.json" 2>"$work/err"
check "each is a sample of the function that touches" json \
	"[f['self'] for f in j['functions'] if f['name'] == 'mmap_ass_subscript' or f['self'] >= 20000] == [20000]" \
	"$work/faults.json"
check "they are no CPU time" json "j['event'] == 'page-faults' and 'cpu_s' not in j and 'period_ns' not in j and 'due' not in j" \
	"$work/faults.json"
"$profiltool" report --by time "$file" >"$work/times" 2>"$work/err"
check "over time: how many, without CPUs" grep -qx 'samples  time' "$work/times"
# Each is seen: the program says how often it was switched from, as the kernel counts.
cat >"$work/does.py" <<'EOF_PYTHON'
import os, time

def switches():
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

print("ready", flush=True)
input()
before = switches()
for i in range(1000):
    os.getppid()
for i in range(50):
    time.sleep(0.001)
print(switches() - before)
EOF_PYTHON

# counts NAME EVENT PROGRAM EXPRESSION: what was recorded of it from "ready" on, beside `said`, the number that it prints.
counts() {
	begin_recorded "$1" "-e $2" "$python" "$work/$3" || return
	send_line "$1" go
	wait "$recorder"
	wait "$pid"
	json "(lambda said: j['event'] == '$2' and j['ticks'] == j['counted'] and ($4))($(sed -n '$s/^[0-9]*$/&/p' "$work/$1.out" | grep . || echo 0))" \
		"$work/$1.json"
}

check "switches of threads" counts switches context-switches does.py "50 <= said <= j['counted'] < said + 1000"
check "a tracepoint, with functions of scripts" counts calls syscalls:sys_enter_getppid does.py "j['counted'] == 1000 and
	[f['total'] for f in j['functions'] if f['name'] == '<module>'] == [1000]"
check "an event of which there is none" counts none syscalls:sys_enter_reboot does.py "j['counted'] == 0"
check "which is said" grep -q "no samples: no syscalls:sys_enter_reboot of python.* (PID $pid) in " "$work/none.err"
# A program at a function may be preempted, by another one.
cat >"$work/calls.py" <<'EOF_PYTHON'
import os, threading

print("ready", flush=True)
input()

def call():
    for i in range(5000):
        os.getppid()

threads = [threading.Thread(target=call) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
EOF_PYTHON
check "calls of a function, by who calls" counts function uprobe:libc:getppid calls.py "j['counted'] == 20000 and
	{(f['name'], f['self'], f['total']) for f in j['functions']} >= {('getppid', 20000, 20000), ('call', 0, 20000)}"
check "a function that is not there" exits 1 "$profiltool" record -e uprobe:no_such -- "$progs/services"
check "which is said" says 'services has no function "no_such"'
check "what there is" exits 0 "$profiltool" record -e list
check "software events and tracepoints" [ "$(grep -cxE 'context-switches|syscalls:sys_enter_getppid' "$work/out")" -eq 2 ]
for name in no:such ../events:id : a: syscalls:sys_enter_getppid/../sys_enter_getpid; do
	check "no tracepoint $name" exits 1 "$profiltool" record -e "$name" -- true
	check "$name: which is said" says "this kernel has no tracepoint \"$name\""
done
check "tracefs is mounted for nobody else" [ "$(grep -c tracefs /proc/mounts)" -eq "$mounted" ]
for option in "-F 99" --wall; do
	# shellcheck disable=SC2086 # an option and its value
	check "$option is refused" exits 2 "$profiltool" record -e page-faults $option -- true
	check "$option: as events measure no time" says "is not for events, which measure no time"
done
check "top is refused" exits 2 "$profiltool" top -e page-faults -a
check "top: as it shows CPU time" says "top shows CPU time"

finish
