#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Call stacks of programs with known call chains: recorded whole, counted exactly, and the same in every
# format and in other readers.
# shellcheck disable=SC2317 # functions are called by check

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/chains.sh
. "$top/tests/chains.sh"

cd "$work" || exit

# whole NAME: the account is exact, and the table has all that was counted.
whole() {
	recorded 'whole and j["counted"] > 0' "$1.json"
}

# --- What is recorded: each stack is whole, from the program's start on, wherever the tick came. ---

record_chains set set --user
check "each stack of a program begins where the program does, and is one of its call chains" chains_are set all \
	"$from_start;set(;outer(;middle)?)?(;inner)?"
for chain in set set,outer set,outer,middle; do
	check "the call chain $chain,inner is found" chains_are set some "$from_start;${chain//,/;};inner"
done
check "the account of stacks adds up" whole set
check "main is in each stack" recorded 'rows("main")[0]["total"] == j["counted"]' set.json
check "a caller's total includes the functions that it called" recorded \
	'j["counted"] > rows("outer")[0]["total"] > rows("middle")[0]["total"]' set.json
check "the table has the columns of stacks" \
	grep -q "^ *self *self% *total *total% *function" <("$profiltool" report set.pb.gz 2>/dev/null)
check "no stack is cut off" recorded \
	'j["stacks"]["truncated"] == 0 and j["stacks"]["limit"] == 127' set.json
check "all reach the program's start" recorded \
	'(j["stacks"]["method"] == "cfi" and j["stacks"]["ends"] == [] and
	  j["stacks"]["complete"] == j["stacks"]["user"] == j["counted"])' set.json
check "all reach the program's start: only that is reported" \
	[ "$(grep -v "delay to others:" set.err | grep -e "cut off" -e "user stacks" -A 1)" = \
	"profiltool: 100.00 % of the user stacks reach the program's start" ]

record_chains deep deep
check "of a recursion 127 frames are kept" chains_are deep all "(descend;){126}(descend|inner)(;.*)?"
check "a recursive function counts once per stack" recorded \
	'rows("descend")[0]["total"] == j["counted"]' deep.json
check "each stack that is cut off is counted as such" recorded \
	'j["stacks"]["truncated"] == j["stacks"]["user"] == j["counted"]' deep.json
check "the summary reports stacks that were cut off" grep -qE "stacks \([0-9.]+ %\) were cut off at 127 frames" deep.err
"$profiltool" report --json deep.pb.gz >deep.report 2>/dev/null
check "the file has the number of stacks that were cut off" json 'j["stacks"]["truncated"] > 0' deep.report

# A process can make its stacks as expensive to walk as it likes: at 24,999 Hz the functions of a script are so, on fast
# machines, too.
start_ready python3 -c 'def down(n):
	while True:
		down(n - 1) if n else sum(range(1000))
print("ready", flush=True)
down(100)'
until_used "$pid" 3000 "$profiltool" record -g -F 24999 --json -p "$pid" >long.json 2>long.err
stop "$pid"
check "stacks that take too long to walk have one frame each, for a while" recorded \
	'"walk_too_long" in [e["cause"] for e in j["stacks"]["ends"]] and j["stacks"]["truncated"] + j["stacks"]["complete"] > 0' \
	long.json
check "the summary says that they took too long" grep -q "the walks of the process's stacks took more than a tenth" long.err

record_chains thread thread --user
# main may not wait for the thread yet.
check "a thread's stack begins where the thread does" chains_are thread all \
	"$from_thread;threaded(;inner)?|$from_start;thread(;.*)?"
check "a thread's stack is most of them" chains_are thread most "$from_thread;threaded(;inner)?"
check "a thread's stack reaches that start" recorded \
	'j["stacks"]["complete"] == j["stacks"]["user"]' thread.json
record_chains kernel kernel --kernel
check "in a system call the kernel's frames are on top of the user's" chains_are kernel most \
	"$from_start;kernel;ask;entry_SYSCALL_64_after_hwframe;do_syscall_64(;.*)?"
check "in a system call the user's frames are whole, whatever the kernel does" chains_are kernel all \
	"$from_start;kernel(;.*)?"
check "the kernel's frames name the system call" chains_are kernel most ".*getrandom.*"
check "the account of a program's system calls adds up" whole kernel
check "with --kernel all samples are the kernel's" recorded 'j["kernel"] == j["counted"]' kernel.json
record_chains user kernel --user
check "--user excludes ticks in the kernel" recorded \
	'j["kernel"] == 0 and mostly(j["excluded"], of=j["ticks"])' user.json
record_chains fault fault --kernel
check "in a page fault the user's frame is the instruction that faults" chains_are fault some \
	"$from_start;touch;fault;asm_exc_page_fault.*"
check "in a page fault the user's frame is not the caller of that instruction's function" chains_are fault none \
	".*;touch;asm_exc_page_fault.*"
# An interrupt may come in any function: asm_common_interrupt, asm_sysvec_...
check "in a page fault the user's frames are whole, whatever the kernel does" chains_are fault all \
	"$from_start;touch(;(fault|madvise|mmap|asm_[a-z0-9_]*)(;.*)?)?"

# A child, and what it executes, and its parent.
record family -d 600 "$progs/chains" child 300
check "a parent process has its own stacks" chains_are family some "$from_start;parent;inner(;.*)?"
check "a child process has the stacks of the program that it executes" chains_are family some \
	"$from_start;set;.*inner(;.*)?"
check "no stack of the executed program has the parent's function" chains_are family none ".*;parent;.*set;.*"
check "the account of parent and child adds up" whole family

# --- Frame pointers: what code without them has in their place, and stacks by them alone ---

program=$progs/frameless record_chains frameless set --user
check "without frame pointers each stack is one of the same call chains" chains_are frameless all \
	"$from_start;set(;outer(;middle)?)?(;inner)?"
check "without frame pointers all stacks reach the program's start" recorded \
	'j["stacks"]["complete"] == j["stacks"]["user"] == j["counted"]' frameless.json
record_chains random random --user
check "a frame pointer into data adds no frame" chains_are random most "returns_into_data"
check "a stack that ends at a frame pointer into data is counted with its image" recorded \
	'mostly(sum(e["count"] for e in j["stacks"]["ends"] if e["image"].endswith("/chains") and
		    e["cause"] in ("bad_frame", "mapping_unknown")), of=j["stacks"]["user"])' \
	random.json
check "the summary reports that stacks end at a frame pointer into data" \
	grep -qE "^profiltool:   [0-9.]+ %: (wrong call frame .*|return addresses outside .*) in chains" \
	random.err

# A tick in a function's first or last instructions misses its caller, and libc keeps none.
record_chains fp set --user --call-graph=fp
check "by frame pointers most stacks are known call chains" chains_are fp most \
	"(__libc_start_call_main;)?main;set;(inner|outer;inner|outer;middle;inner)"
check "by frame pointers: nobody knows which reach the start" recorded \
	'(j["stacks"]["method"] == "fp" and j["stacks"]["user"] == j["counted"] and
	  "complete" not in j["stacks"] and "ends" not in j["stacks"])' fp.json
check "by frame pointers: nothing is said of it" [ "$(grep -c "user stacks" fp.err)" = 0 ]
record_chains fpdeep deep --call-graph=fp
check "by frame pointers 127 frames are kept" chains_are fpdeep all "(descend;){126}(descend|inner)(;.*)?"
record_chains fprandom random --user --call-graph=fp
check "by frame pointers one that points into data adds no frame" chains_are fprandom most "returns_into_data"
program=$progs/frameless record_chains fpless set --user --call-graph=fp
check "by frame pointers most stacks of code without them lack callers" \
	chains_are fpless most "(?!(.*;)?main;set;.*inner).*"

# --- Return addresses ---

record_chains last last --user
check "a call that ends its function is its caller's" chains_are last all \
	"$from_start;calls_last;forever(;inner)?"
# last_frame N: the address of frame N of the commonest stack, as in the program's file.
last_frame() {
	"$profiltool" dump last.pb.gz | python3 -c '
import re, sys
text = sys.stdin.read()
start, offset = re.search(r"^(0x\w+)-0x\w+ (0x\w+) \S*/chains ", text, re.M).groups()
stacks = re.findall(r"^(\d+) (0x.*?) \[", text, re.M)
frames = max(stacks, key=lambda s: int(s[0]))[1].split()
print(hex(int(frames[int(sys.argv[1])], 16) - int(start, 16) + int(offset, 16)))' "$1"
}
# The instruction behind the call is another function's.
is_last_call() {
	local address=$1 end line
	end=$(nm -S "$progs/chains" | sed -n "s/^\(\S*\) \(\S*\) t calls_last$/0x\1 + 0x\2/p")
	line=$(grep -n "^	forever();" "$top/tests/progs/chains.c")
	echo "$address, the end $end, line $line"
	[ $((address + 1)) -eq $((end)) ] &&
		addr2line -e "$progs/chains" "$address" | grep ":${line%%:*}\b"
}
check "a call that ends its function: its address and line" is_last_call "$(last_frame 2)"

# --- Many stacks ---

seconds=1.5 record_chains tree tree -F 9999
check "many stacks: the account is exact" whole tree
check "many stacks: none is lost" recorded 'sum(j["lost"].values()) == 0' tree.json
"$profiltool" dump --json tree.pb.gz >dump.json
check "many stacks: each has its own count" json \
	'len(j["stacks"]) > 1000 and sum(s["count"] for s in j["stacks"]) == j["samples"]' dump.json
check "each of many stacks is a path through the tree" chains_are tree most \
	"($from_start;tree|$from_thread);walk;(below;){99}below(;(left|right)){0,18}(;asm_.*)?"

# --- Every format, in the readers that people have ---

# readable NAME KIND...: a recording as others are to read it: user and kernel frames in it.
record_chains both kernel
functions() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	print(f["name"], f["self"], f["total"])' | sort
}

# go_functions FILE: the same rows by Go.
go_functions() {
	HOME=$work go tool pprof -sample_index=samples -top -nodecount=10000 -nodefraction=0 "$1" \
		2>/dev/null | awk 'table { print $6, $1, $4 } / flat% / { table = 1 }' | sort
}

google_functions() {
	google-pprof --text --nodecount=10000 --nodefraction=0 "$progs/chains" "$1" 2>/dev/null |
		awk '/^Total:/ { next } { print $6, $1, $4 }' | sort
}

# by_name: rows of one name in several images are one: others know no images.
by_name() {
	awk '{ self[$1] += $2; total[$1] += $3 } END { for (n in self) print n, self[n], total[n] }' | sort
}

# annotated FILE: functions with what callgrind_annotate says they and what they called took.
annotated() {
	sed -nE 's/^ *([0-9,]+) \( *[0-9.]+%\) +.*:([^:[]+) \[.*/\1 \2/p' "$1" | tr -d , |
		awk '{ sum[$2] += $1 } END { for (name in sum) print name, sum[name] }' | sort
}

# named FILE: rows without those of code without a name, which Go puts together: timeout may have one.
named() {
	grep -v -e '^\[' -e '+0x' "$1"
}

same_rows() {
	[ -s "$1" ] && diff "$1" "$2"
}

# has_totals NAME: whether callgrind_annotate has our totals; prints what it has for the rows that differ.
has_totals() {
	same_rows "$1.totals" <(annotated "$1.annotated" | named -) >differs && return
	cat differs
	sed -n 's/^[<>] \(.*\) .*/\1/p' differs | grep -nFf - "$1.annotated" "$1.callgrind" "$1.ours"
	return 1
}

for name in both deep family set; do
	functions "$name.pb.gz" >"$name.ours"
	if command -v go >/dev/null; then
		go_functions "$name.pb.gz" >"$name.go"
		named "$name.ours" >"$name.named"
		by_name <"$name.named" >"$name.names"
		check "$name, pprof: go tool pprof -top has our numbers" \
			same_rows "$name.names" <(named "$name.go")
	else
		skip "$name, pprof: go tool pprof" "go is not installed"
	fi
	if command -v callgrind_annotate >/dev/null; then
		"$profiltool" convert "$name.pb.gz" "$name.callgrind" 2>/dev/null
		named "$name.ours" | by_name | awk '$3 { print $1, $3 }' >"$name.totals"
		callgrind_annotate --auto=no --threshold=100 --inclusive=yes "$name.callgrind" \
			>"$name.annotated" 2>&1
		check "$name, callgrind: callgrind_annotate has our totals" has_totals "$name"
	else
		skip "$name, callgrind: callgrind_annotate" "it is not installed"
	fi
done
if command -v go >/dev/null; then
	HOME=$work go tool pprof -sample_index=samples -traces set.pb.gz >traces 2>/dev/null
	check "pprof: go tool pprof -traces has the chains" \
		grep -qE " inner middle outer set main .*_start " <(awk '{ printf " " $NF }' traces | tr -s " ")
	HOME=$work go tool pprof -sample_index=samples -peek "^middle\$" set.pb.gz >peek 2>/dev/null
	check "pprof: go tool pprof -peek: who called it" grep -qE " 100% .*outer$" peek
	check "pprof: go tool pprof -peek: whom it called" grep -qE " inner$" peek
fi

# gperftools: its reader drops a frame that it takes for a signal's, unless the file provides.
"$profiltool" convert set.pb.gz set.prof 2>/dev/null
"$profiltool" convert both.pb.gz both.prof 2>/dev/null
if command -v google-pprof >/dev/null; then
	google_functions set.prof >set.google.all
	# It may name the C library's functions by .dynsym, which lacks some.
	grep -v ^__libc_ set.ours >set.without_libc
	check "gperftools: google-pprof --text has our numbers" same_rows set.without_libc \
		<(grep -v ^__libc_ set.google.all | sort)
	google-pprof --text "$progs/chains" both.prof >both.google 2>/dev/null
	check "gperftools: below the kernel's frames the caller has it all" \
		grep -qE "100\.0% (ask|kernel)$" both.google
else
	skip "gperftools: google-pprof" "it is not installed"
fi
functions set.prof >set.back
check "gperftools: read back, the same functions" same_rows set.ours set.back

"$profiltool" convert -f dcpi set.pb.gz dcpi 2>dcpi.err
check "dcpi: says that it has no stacks" grep -q "does not hold.*call stacks" dcpi.err
"$profiltool" convert -f gmon set.pb.gz gmon 2>gmon.err
check "gmon: says that it has no stacks" grep -q "does not hold.*call stacks" gmon.err

# --- Options ---

start_ready "$progs/chains" set
# walks_by METHOD OPTION: whether that option means that method.
walks_by() {
	until_used "$pid" 50 "$profiltool" record "$2" -F 999 --json -p "$pid" >walks.json
	json 'j["stacks"]["user"] > 0 and j["stacks"]["method"] == "'"$1"'"' walks.json
}
for option in -g -g=cfi --call-graph=dwarf --call-graph=auto --call-graph=cfi; do
	check "$option: by call frame information" walks_by cfi "$option"
done
check "--call-graph=fp: by frame pointers" walks_by fp --call-graph=fp
until_used "$pid" 500 "$profiltool" record -g --call-graph=none -F 999 --json -p "$pid" >out.json 2>out.err
check "--call-graph=none: no stacks" json 'j["counted"] > 0 and "stacks" not in j' out.json
check "another method is an error" exits 2 "$profiltool" record --call-graph=lbr -p "$pid"
check "it lists the methods" says \
	"auto, dwarf or cfi (call frame information), fp (frame pointers) or none"
for method in auto cfi fp none dwarf; do
	check "-g $method: a method as a word of its own is an error" \
		exits 2 "$profiltool" record -g "$method" -p "$pid"
	check "-g $method: it says how to write it" says "--call-graph=$method"
done
check "--scale excludes call stacks" exits 2 "$profiltool" record -g --scale 0x10000 -p "$pid"
check "--scale excludes call stacks: reported" says "--call-graph"
stop "$pid"

finish
