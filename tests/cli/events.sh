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
for option in "-F 99" --wall; do
	# shellcheck disable=SC2086 # an option and its value
	check "$option is refused" exits 2 "$profiltool" record -e page-faults $option -- true
	check "$option: as events measure no time" says "is not for events, which measure no time"
done
check "top is refused" exits 2 "$profiltool" top -e page-faults -a
check "top: as it shows CPU time" says "top shows CPU time"

finish
