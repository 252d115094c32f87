#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --scale, the histogram of profil(2) for another process: shares and account, cells, addresses outside
# them, fork and exec, every format, and bad input.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread)

# run NAME OPTIONS COMMAND...: records a program that was begun, from before it burns to its end.
run() {
	begin_recorded "$@" && send_line "$1" go
	pids[$1]=$pid
}
declare -A pids

# same_cells TEXT SCALE EXACT FILE: whether the pcs of FILE are those of EXACT, each where its cell begins.
# What has a share of 5 % in one must be in the other, too.
same_cells() {
	"$profiltool" dump --json "$3" "$4" | python3 -c '
import collections, json, sys
text, scale = int(sys.argv[1], 16), int(sys.argv[2], 16)
def start(pc):
	cell = (pc - text) * scale >> 17
	return text - (-(cell << 17) // scale)
def counts(j, place):
	found = collections.Counter()
	for stack in j["stacks"]:
		found[place(int(stack["pcs"][0], 16))] += stack["count"]
	return found
def missing(a, b):
	return [hex(pc) for pc in a if pc not in b and a[pc] > sum(a.values()) / 20]
decoder, dumps = json.JSONDecoder(), sys.stdin.read()
j, end = decoder.raw_decode(dumps)
exact = counts(j, start)
shown = counts(decoder.raw_decode(dumps[end:].lstrip())[0], lambda pc: pc)
print("not shown:", missing(exact, shown), "only shown:", missing(shown, exact))
sys.exit(missing(exact, shown) + missing(shown, exact) != [])' "$1" "$2"
}

# --- Shares, account and rate, at scales that separate the functions ---

gcc "${flags[@]}" -no-pie "$source" -o "$work/fixed" || exit
run pie "-F 2999 --scale 0x10000" "$progs/shares" 2 0.3 wait
run fixed "-F 2999 --scale 65536" "$work/fixed" 2 0.3 wait stay
run fine "-F 2999 --scale 0x20000" "$progs/shares" 2 0.3 wait
names=(pie fixed fine)
if runs_32_bit "a 32-bit program"; then
	gcc "${flags[@]}" -m32 "$source" -o "$work/bits32" && run bits32 "-F 2999 --scale 0x8000" "$work/bits32" 2 0.3 wait
	names+=(bits32)
fi
recordings_end "${names[@]}"
for name in "${names[@]}"; do
	file=$work/$name.json
	check "$name: a histogram has the program's functions, and its account adds up" recorded "whole and \
		ran('burn_sixty', 'burn_thirty', 'burn_ten') and len(images('burn_sixty')) == 1" "$file"
	check "$name: most ticks are in the program, the others, of libraries, are out of range" recorded \
		"mostly(j['counted'], of=j['ticks']) and not any(j['lost'].values())" "$file"
	check "$name: the file has the account" test "$(dumped out_of_range "$work/$name.pb.gz")" = \
		"$(json "j['out_of_range']" "$file")"
	check "$name: all is of the process, and of no thread that is known" test \
		"$("$profiltool" dump "$work/$name.pb.gz" | sed -n 's/.* \[\([0-9]*\/[0-9]*\) .*/\1/p' |
			sort -u)" = "${pids[$name]}/0"
done
if [ -e "$work/bits32.pb.gz" ]; then
	check "a 32-bit program is reported as one" test "$(dumped bits "$work/bits32.pb.gz")" = 32
fi

# --- Cells ---

start_ready "$work/fixed" 1 0 stay
target=$pid
text=$(sed -n 's/^0*\([0-9a-f]*\)-.* r-xp .*\/fixed$/0x\1/p' "/proc/$target/maps")

# counts STATUS OPTION...: exits so after recording the target for 0.3 s of its CPU time, which are more on a busy
# machine.
counts() {
	local ended

	record_begin counts record -p "$target" -F 2999 --json "${@:2}"
	wait_for_use "$target" 300
	kill -INT "$recorder"
	wait "$recorder"
	ended=$?
	mv "$work/counts.json" "$work/out"
	mv "$work/counts.err" "$work/err"
	cat "$work/err"
	[ "$ended" -eq "$1" ]
}

check "exact pcs, to compare with" counts 0 -o "$work/exact.pb.gz"
for scale in 0x40000 0x20000 0x10000 0x5555 0x2000 2; do
	check "scale $scale: succeeds" counts 0 --scale $scale -o "$work/cells.pb.gz"
	check "scale $scale: each pc where its cell begins" \
		same_cells "$text" $scale "$work/exact.pb.gz" "$work/cells.pb.gz"
done
# one_pc FILE PC: whether all samples are there.
one_pc() {
	json "len(j['stacks']) == 1 and j['stacks'][0]['pcs'] == ['$2']" \
		<("$profiltool" dump --json "$1")
}
check "scale 2: that is one cell, at the beginning of the text" one_pc "$work/cells.pb.gz" "$text"

# address NAME: of a function of the target.
address() {
	nm "$work/fixed" | sed -n "s/^0*\([0-9a-f]*\) T $1\$/0x\1/p"
}

# The three lie in this order.
sixty=$(address burn_sixty)
ten=$(address burn_ten)
half=(--scale 0x10000 --offset "$sixty" --bufsiz $((ten - sixty)))
check "--offset and --bufsiz: succeeds" counts 0 "${half[@]}"
check "--offset and --bufsiz: only what they cover, the rest is out of range" recorded "whole and \
	{f['name'] for f in j['functions']} == {'burn_sixty', 'burn_thirty'} and \
	ran('burn_sixty') and 0 < j['out_of_range'] < j['counted']" "$work/out"
pc=$("$profiltool" dump "$work/exact.pb.gz" | sed '1,/^stacks:/d' | sort -nr |
	awk 'NR == 1 { print $2 }')
check "an odd --bufsiz: succeeds" counts 0 --scale 0x20000 --offset "$pc" --bufsiz 3 \
	-o "$work/pc.pb.gz"
check "an odd --bufsiz: no cell for the byte that is left" one_pc "$work/pc.pb.gz" "$pc"
check "--verbose: succeeds" counts 0 --scale 0x10000 -v
check "--verbose: reports the clock" says "period 333444 ns"

# nowhere TEXT OPTION...: a histogram in which no tick falls.
nowhere() {
	counts 4 "$@" && says "at an address that the histogram has" &&
		recorded "whole and j['counted'] == 0 and 0 < j['ticks'] == j['out_of_range']" "$work/out"
}
check "the lowest address" nowhere --scale 2 --offset 0 --bufsiz 2
check "the highest address" nowhere --scale 2 --offset 0xffffffffffffffff --bufsiz 2
check "beyond the highest address" nowhere --scale 0x10000 --offset 0xfffffffffffff000 --bufsiz 0x1000000
check "the largest scale" nowhere --scale 0xffffffff --offset 0xffffffffffffffff --bufsiz 0x10001
stop "$target"

# Ticks in the kernel are reported, and counted at the pc that entered it.
start_ready "$progs/halves" 0
libc=$(sed -n 's/^\([0-9a-f]*\)-\([0-9a-f]*\) r-xp .*\/libc\.so\.6$/0x\1 0x\2/p' "/proc/$pid/maps")
check "ticks in the kernel: succeeds" exits 0 until_used "$pid" 500 "$profiltool" record -p "$pid" -F 1999 --json \
	--scale 0x10000 --offset "${libc% *}" --bufsiz $((${libc#* } - ${libc% *}))
check "ticks in the kernel: at the pc that entered it" recorded "whole and \
	0 < j['kernel'] < j['ticks'] and 0 < j['counted'] < j['ticks'] and \
	all('libc' in f['image'] for f in j['functions'])" "$work/out"
stop "$pid"

# --- fork and exec ---

run family "-F 999 --scale 0x10000" "$progs/family" fork 0.5
run alone "-F 999 --scale 0x10000 --no-inherit" "$progs/family" fork 0.5
run exec "-F 999 --scale 0x10000" "$progs/family" exec 0.4 "$progs/shares" 1
# bash, whose child becomes another program.
# shellcheck disable=SC2016 # the inner shell expands it
run child "-F 999 --scale 0x10000" bash -c 'echo ready; read -r; "$1" 1 0.5 >"$2"
	for ((i = 0; i < 50000; i++)); do :; done; times >"$3"' bash "$progs/shares" "$work/child.cpu" "$work/child.times"
recordings_end family alone exec child
check "a new thread and a forked child are counted" recorded "whole and \
	ran('burn_parent', 'burn_thread', 'burn_child')" "$work/family.json"
check "--no-inherit: the thread is counted, the child is not" recorded "whole and \
	samples('burn_child') == 0 and ran('burn_parent', 'burn_thread')" "$work/alone.json"
check "exec: what came before is counted" recorded \
	"whole and ran('burn_before')" "$work/exec.json"
check "exec: nothing of the other program is there" test \
	"$("$profiltool" dump "$work/exec.pb.gz" | grep -c shares)" -eq 0
check "exec: the other program lives" kill -0 "${pids[exec]}"
stop "${pids[exec]}"
# The CPU time of bash alone is in the first line, as 0m0.120s 0m0.004s; that of the other program is 0.5 s.
check "a child that becomes another program is not counted from then on" recorded "whole and j['counted'] > 0 and \
	ticked <= 1.75 * sum(60 * float(m) + float(s) for m, s in (t.rstrip('s').split('m') for t in \
	open('$work/child.times').readline().split())) * 1e9 + 3 * j['period_ns']" "$work/child.json"

run limited "-F 999 --scale 0x10000 -d 60" "$progs/family" exec 0.3 "$progs/shares" 1
wait "${recorder_of[limited]}"
check "exec before -d: written but incomplete" test $? -eq 3
check "exec before -d: reported" \
	grep -qE 'incomplete: family \(PID [0-9]+\) ended or became another program' "$work/limited.err"
stop "${pids[limited]}"

# --- Formats ---

# ours FILE: "SAMPLES FUNCTION" for each.
ours() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	print(f["self"], f["name"])' | sort
}

# stacks FILE: every pc with its count.
stacks() {
	"$profiltool" dump --json "$1" | python3 -c '
import json, sys
for stack in json.load(sys.stdin)["stacks"]:
	print(stack["pcs"], stack["count"])' | sort
}

check "pprof to gperftools: succeeds" \
	exits 0 "$profiltool" convert "$work/pie.pb.gz" "$work/pie.prof"
check "pprof to gperftools: the same cells" \
	diff <(stacks "$work/pie.pb.gz") <(stacks "$work/pie.prof")
start_ready "$progs/shares" 1
check "gperftools: succeeds" exits 0 until_used "$pid" 500 "$profiltool" record -p "$pid" -F 1999 --scale 0x10000 --json \
	-o "$work/direct.prof"
stop "$pid"
check "gperftools: the same functions are read back" diff <(ours "$work/direct.prof") \
	<(json "'\n'.join('%d %s' % (f['self'], f['name']) for f in j['functions'])" "$work/out" | sort)
check "gperftools to pprof: succeeds" exits 0 "$profiltool" convert "$work/direct.prof" "$work/direct.pb.gz"
check "gperftools to pprof: the same cells" \
	diff <(stacks "$work/direct.prof") <(stacks "$work/direct.pb.gz")
if command -v google-pprof >/dev/null; then
	check "google-pprof: the same functions" diff <(ours "$work/direct.prof") \
		<(google-pprof --text "$progs/shares" "$work/direct.prof" 2>/dev/null |
			awk '/^Total:/ { next } $1 > 0 { print $1, $6 }' | sort)
else
	skip "google-pprof" "it is not installed"
fi
if command -v go >/dev/null; then
	check "go tool pprof: the same functions" diff <(ours "$work/pie.pb.gz") \
		<(HOME=$work go tool pprof -sample_index=samples -top -nodecount=1000 -nodefraction=0 \
			"$work/pie.pb.gz" 2>/dev/null |
			awk 'table && $1 > 0 { print $1, $6 } / flat% / { table = 1 }' | sort)
else
	skip "go tool pprof" "it is not installed"
fi

# --- Bad input ---

# refuses CODE TEXT OPTION...: exits so, at once, says TEXT, and prints nothing on standard output.
refuses() {
	local code=$1 text=$2
	shift 2
	exits "$code" timeout 60 "$profiltool" record "$@" && says "$text" && test ! -s "$work/out"
}

# usage TEXT OPTION...: the same for what cannot be meant, with a hint to the help.
usage() {
	refuses 2 "$@" && says "see profiltool record --help"
}

start sleep 1000
sleeper=$pid
wait_for grep -q nanosleep "/proc/$sleeper/wchan"

for value in 0 1 -1 0x 0x1g abc "" 0x100000000 1.5; do
	check "--scale \"$value\"" usage "--scale takes a number from 2 to 0xffffffff" -p "$sleeper" \
		--scale "$value"
done
for value in -1 0x abc "" 0x10000000000000000; do
	check "--offset \"$value\"" usage "--offset takes an address" -p "$sleeper" --scale 2 \
		--offset "$value" --bufsiz 2
done
for value in 0 1 -1 4k "" 0x10000000000000000; do
	check "--bufsiz \"$value\"" usage "--bufsiz takes a number of bytes" -p "$sleeper" --scale 2 \
		--offset 0 --bufsiz "$value"
done
check "--offset and --bufsiz without --scale" usage "need --scale" -p "$sleeper" --offset 0 --bufsiz 2
check "--offset without --bufsiz" usage "need each other" -p "$sleeper" --scale 2 --offset 0
check "--bufsiz without --offset" usage "need each other" -p "$sleeper" --scale 2 --bufsiz 2
for target in "-t $sleeper" -a "-p $sleeper,$$" "-- true"; do
	# shellcheck disable=SC2086 # several words
	check "--scale with $target" usage "of one process, with -p" --scale 2 $target
done
for side in --user --kernel; do
	check "--scale with $side" usage "excludes --user and --kernel" -p "$sleeper" --scale 2 $side
done
check "--scale without a target" usage "nothing to profile is named" --scale 2

check "a --bufsiz that is too large" refuses 2 \
	"of 134217729 cells is too large: the limit is 134217728" -p "$sleeper" --scale 2 --offset 0 \
	--bufsiz 0x10000002
check "what helps" says "use a smaller --bufsiz"
check "the largest --bufsiz of all" refuses 2 "of 9223372036854775807 cells is too large" \
	-p "$sleeper" --scale 2 --offset 0 --bufsiz 0xffffffffffffffff
check "a --scale that is too large for the text" refuses 2 "cells is too large" -p "$$" \
	--scale 0xffffffff
check "what helps then" says "use a smaller --scale"

true &
gone=$!
wait "$gone"
check "a process that does not exist" \
	refuses 1 "process $gone: there is no such process" -p "$gone" \
	--scale 0x10000
check "a process that sleeps: no samples" exits 4 "$profiltool" record -p "$sleeper" --scale 0x10000 \
	-d 0.2
check "a process that sleeps: the account is there" says "ticks 0 = counted 0"

# Ends at once: whenever it does so, there is an answer.
codes=""
for delay in 0 0.01 0.03 0.05 0.1; do
	sleep "$delay" &
	codes+=$(status timeout 60 "$profiltool" record -p $! --scale 0x10000)
done
check "it ends while profiltool attaches: no samples or not there" test "${codes//[14]/}" = ""

finish
