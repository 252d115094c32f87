#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Malicious programs of a user, while root records the machine with -g: the stacks of other programs stay
# whole, every tick is accounted for, and the recording ends in time. See tests/progs/unwinder.c.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	skip "hostile programs" "recording needs root"
	finish
fi

nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
cp "$progs/unwinder" "$work/unwinder"
chmod 755 "$work" "$work/unwinder"
mkdir -m 777 "$work/files"

# hostile ARGUMENT...: nobody's unwinder, until it is ready; $pid is its process.
hostile() {
	: >"$work/hostile.out"
	"${pdeathsig[@]}" "${nobody[@]}" "$work/unwinder" "$@" >"$work/hostile.out" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for grep -q ready "$work/hostile.out"
}

# begin_all NAME: records everything.
begin_all() {
	record_begin "$1" record -a -g -F 999 --json -o "$work/$1.pb.gz"
}

# end_all: ends that. Samples of others may be lost, on a busy machine.
end_all() {
	record_end || [ $? -eq 3 ]
}

# published: prints the keys of the processes that are in the kernel's map of the recorder.
published() {
	local info
	for info in /proc/"$recorder"/fdinfo/*; do
		grep -qx 'max_entries:[[:blank:]]*16384' "$info" 2>/dev/null || continue
		bpftool -j map dump id "$(sed -n 's/^map_id:[[:blank:]]*//p' "$info")"
	done | python3 -c '
import json, sys
for line in sys.stdin:
	for entry in json.loads(line):
		print(entry["formatted"]["key"])'
}

# is_published PID: whether a process is there. A key has the PID above 22 bits of the thread's (bpf/sample.h).
is_published() {
	published | python3 -c '
import sys
sys.exit(int(sys.argv[1]) not in [int(key) >> 22 & 0x3fffff for key in sys.stdin])' "$1"
}

# run_victim NAME: a program of root's that nobody has executed before. It begins once the recorder, which
# may wait long for a CPU, knows its mappings.
run_victim() {
	local pid
	cp "$progs/unwinder_bare" "$work/victim.$1"
	mkfifo "$work/go.$1"
	"${pdeathsig[@]}" "$work/victim.$1" burn 0.5 <>"$work/go.$1" >/dev/null &
	pid=$!
	note_started "$pid"
	wait_for is_published "$pid"
	echo >"$work/go.$1"
	wait "$pid"
}

# victim_is_whole NAME: the stacks of that program reach its start.
victim_is_whole() {
	recorded "whole and (lambda deepest, start: deepest > 20 and start >= .95 * deepest - 3)(*[
		sum(f['total'] for f in j['functions']
		    if f['name'] == name and f['image'].endswith('/victim.$1'))
		for name in ('deepest', '_start')])" "$work/$1.json" && return
	cat "$work/$1.err"
	return 1
}

# For a moment a process may be reported as ended, but still have a thread. What is
# published of it would stay, and others would have no room.
few_published() {
	[ "$(published | wc -l)" -lt $((before + 150)) ]
}
begin_all images
if type bpftool >/dev/null 2>&1; then
	before=$(published | wc -l)
	check "leaders: there were processes whose first thread ends first" hostile leaders 400
	check "leaders: nothing is left of them" wait_for few_published
else
	skip "leaders: nothing is left of them" "there is no bpftool"
fi

check "images: there are more than there is room for" hostile images "$work/files" tiny 4200
run_victim images
check "images: recorded" end_all
check "images: others' stacks are whole" victim_is_whole images
stop "$pid"
rm -f "$work/files/"*

flood_buffers
check "stacks: a storm of mappings" hostile storm 8000
begin_all stacks
"${nobody[@]}" timeout 20 "$work/unwinder" stacks "$work/files" >/dev/null
run_victim stacks
check "stacks, and a storm of mappings: recorded" end_all
stop "$pid"
free_buffers
check "stacks, and a storm of mappings: others' are whole" victim_is_whole stacks
# only_own: whether the user's frames of those are addresses of user space, as root's dump has them.
only_own() {
	"$profiltool" dump "$work/stacks.pb.gz" | grep '/unwinder\|loop+' | grep -v ' kernel[] ]' >"$work/own"
	[ -s "$work/own" ] && ! grep 0xffff "$work/own"
}
check "stacks: none comes to an address of the kernel's" only_own

check "the deepest stack: each frame in a mapping and a row of its own" hostile deepest "$work/files"
until_used "$pid" 500 "$profiltool" record -p "$pid" -g -F 999 --json >"$work/deepest.json" 2>"$work/deepest.err"
# Ticks that took more than a few milliseconds would be that much apart.
check "the deepest stack: cut off, and in time" recorded '(whole and ticked >= .5e9 / 4 and
	mostly(j["stacks"]["truncated"], of=j["stacks"]["user"]))' \
	"$work/deepest.json"

# Who waits already when a recording of waits begins has its stack read: for ever, if it were up to its user.
"${pdeathsig[@]}" "$work/unwinder" stuck 65534 >"$work/hostile.out" 2>&1 &
pid=$!
note_started "$pid"
check "a stack that cannot be read: its thread waits" wait_for grep -q ready "$work/hostile.out"
check "a stack that cannot be read: the recording ends in time" exits 0 timeout -k 1 60 \
	"$profiltool" record --wall -g -a -q -d 1 -o "$work/stuck.pb.gz"
check "a stack that cannot be read: its process is in the account" grep -q ' unwinder$' \
	<("$profiltool" report --by thread -E 0 "$work/stuck.pb.gz" 2>/dev/null)
finish
