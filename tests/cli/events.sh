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

before = switches()
for i in range(1000):
    os.getppid()
for i in range(50):
    time.sleep(0.001)
print(switches() - before)
EOF_PYTHON

# counts EVENT EXPRESSION: what was recorded of it, beside `switches`.
counts() {
	"$profiltool" record --json -e "$1" -o "$work/event.pb.gz" -- "$python" "$work/does.py" >"$work/event.json" 2>"$work/event.err"
	json "(lambda switches: j['event'] == '$1' and j['ticks'] == j['counted'] and ($2))($(grep -x '[0-9]*' "$work/event.err"))" \
		"$work/event.json"
}

check "switches of threads" counts context-switches "50 <= switches <= j['counted'] < switches + 1000"
check "a tracepoint" counts syscalls:sys_enter_getppid "j['counted'] == 1000"
check "with functions of scripts" json "[f['total'] for f in j['functions'] if f['name'] == '<module>'] == [1000]" "$work/event.json"
check "an event of which there is none" counts syscalls:sys_enter_reboot "j['counted'] == 0"
check "which is said" grep -qF "no samples: no syscalls:sys_enter_reboot of $python in " "$work/event.err"
# A program at a function may be preempted, by another one.
cat >"$work/calls.py" <<'EOF_PYTHON'
import os, threading

def call():
    for i in range(5000):
        os.getppid()

threads = [threading.Thread(target=call) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
EOF_PYTHON
libc=$(ldd "$python" | sed -n 's/.* => \(.*libc\.so.*\) .*/\1/p')
check "calls of a function" exits 0 "$profiltool" record -q -e "uprobe:$libc:getppid" -o "$work/calls.pb.gz" -- "$python" "$work/calls.py"
"$profiltool" report --json "$work/calls.pb.gz" >"$work/calls.json" 2>"$work/err"
check "each is counted, by who calls" json "(j['ticks'] == j['counted'] == 20000 and
	{(f['name'], f['self'], f['total']) for f in j['functions']} >= {('getppid', 20000, 20000), ('call', 0, 20000)})" "$work/calls.json"
check "a function that is not there" exits 1 "$profiltool" record -e "uprobe:$libc:no_such" -- true
check "which is said" says 'has no function "no_such"'
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
