#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# merge: recordings of one program, loaded at different addresses, in different formats, add up by code; and
# profiles that cannot be added up.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

merge() {
	"$profiltool" merge "$@"
}

# record NAME FORMAT: a new process of the program, so that it is loaded anew.
shares=$progs/shares
record() {
	local code

	start_ready "$shares" 1
	until_used "$pid" 300 "$profiltool" -p "$pid" -F 4999 -q -E 1 -f "$2" -o "$work/$1"
	code=$?
	stop "$pid"
	return "$code"
}

# functions FILE...: "SAMPLES NAME" of the program's functions, added up over the files.
functions() {
	local file

	for file in "$@"; do
		"$profiltool" report --executable "$shares" --json "$file" 2>/dev/null
	done | python3 -c '
import collections, json, sys
sums = collections.Counter()
text, decoder = sys.stdin.read(), json.JSONDecoder()
while text.strip():
	j, end = decoder.raw_decode(text.lstrip())
	text = text.lstrip()[end:]
	for f in j["functions"]:
		if f["name"].startswith("burn_") and f["self"]:
			sums[f["name"]] += f["self"]
for name, count in sorted(sums.items()):
	print(count, name)'
}

# stacks FILE: how many different ones of the program's there are.
stacks() {
	"$profiltool" dump "$1" | sed '1,/^stacks:/d' | grep -c "# burn_"
}

# images FILE: how often the program is mapped.
mapped() {
	"$profiltool" dump "$1" | sed '1,/^mappings:/d; /^stacks:/,$d' | grep -c "/shares"
}

check "a recording" record a.pb.gz pprof
check "another" record b.pb.gz pprof
check "one as gperftools" record c.prof gperftools
check "one as dcpi" record d dcpi
check "one as gmon" record e gmon

adds_up() {
	diff <(functions "$work/$1") <(shift && functions "$@")
}

# The same but for a few: a function of one byte of gmon.out's two is the one before it.
nearly() {
	paste -d ' ' <(functions "$work/$1") <(shift && functions "$@") |
		awk '{ print } $1 < $3 * 0.9 - 3 || $1 > $3 * 1.1 + 3 || $2 != $4 { bad = 1 }
			END { exit bad || !NR }'
}

check "two add up" exits 0 merge "$work/a.pb.gz" "$work/b.pb.gz" -o "$work/ab.pb.gz"
check "two add up: function by function" adds_up ab.pb.gz "$work/a.pb.gz" "$work/b.pb.gz"
check "they were loaded at two places" test \
	"$("$profiltool" dump "$work/a.pb.gz" | grep -m 1 /shares | cut -d ' ' -f 1)" != \
	"$("$profiltool" dump "$work/b.pb.gz" | grep -m 1 /shares | cut -d ' ' -f 1)"
check "in the sum at one" test "$(mapped "$work/ab.pb.gz")" = "$(mapped "$work/a.pb.gz")"
check "the account adds up" test "$(dumped ticks "$work/ab.pb.gz")" -eq \
	$(($(dumped ticks "$work/a.pb.gz") + $(dumped ticks "$work/b.pb.gz")))
check "the period stays" test "$(dumped period_ns "$work/ab.pb.gz")" = "$(dumped period_ns "$work/a.pb.gz")"

# Without processes, the same pc is the same sample.
"$profiltool" convert "$work/a.pb.gz" "$work/a.prof" 2>/dev/null
check "one with itself" exits 0 merge "$work/a.prof" "$work/a.prof" -o "$work/aa.prof"
check "has no more stacks" test "$(stacks "$work/aa.prof")" -eq "$(stacks "$work/a.prof")"
check "has no more stacks: twice the samples" test "$(dumped samples "$work/aa.prof")" -eq \
	$((2 * $(dumped samples "$work/a.prof")))

all=("$work/a.pb.gz" "$work/c.prof" "$work/d" "$work/e")
check "all formats add up" exits 0 merge --executable "$shares" "${all[@]}" -o "$work/all.pb.gz"
check "all formats: function by function" adds_up all.pb.gz "${all[@]}"
check "in any order" exits 0 merge --executable "$shares" -o "$work/lla.pb.gz" \
	"$work/e" "$work/d" "$work/c.prof" "$work/a.pb.gz"
check "in any order: the same" adds_up lla.pb.gz "${all[@]}"
# Files without processes have equal leaves.
meet() {
	merge "$work/c.prof" "$work/d" -o "$work/cd.prof" 2>/dev/null
	python3 - "$work/c.prof" "$work/d" "$work/cd.prof" "$profiltool" <<-'END'
		import json, subprocess, sys
		def leaves(path):
		    out = subprocess.run([sys.argv[4], "dump", "--json", path], capture_output=True)
		    j = json.loads(out.stdout)
		    offsets = set()
		    for s in j["stacks"]:
		        pc = int(s["pcs"][0], 16)
		        for m in j["mappings"]:
		            start = int(m["start"], 16)
		            if m["path"].endswith("/shares") and start <= pc < int(m["limit"], 16):
		                offsets.add(pc - start + (start if m.get("linked") else int(m["offset"], 16)))
		    return offsets
		one, two, both = map(leaves, sys.argv[1:4])
		print(len(one), len(two), len(one & two), len(both))
		sys.exit(not (one & two) or len(both) != len(one | two))
	END
}
check "the same pc of two formats is one" meet

for format in dcpi gmon callgrind folded gperftools; do
	check "into $format" exits 0 merge -f $format "$work/a.pb.gz" "$work/b.pb.gz" -o "$work/into.$format"
	check "into $format: function by function" \
		"$([ $format = gmon ] && echo nearly || echo adds_up)" "into.$format" "$work/a.pb.gz" "$work/b.pb.gz"
	check "into $format: losses are reported once" \
		test "$(grep -c 'does not hold' "$work/err")" = 1
done

# --- Standard input and output, directories ---

merge "$work/a.pb.gz" - -o - <"$work/b.pb.gz" >"$work/stdout.pb.gz"
check "- is standard input and output" adds_up stdout.pb.gz "$work/a.pb.gz" "$work/b.pb.gz"
mkdir "$work/several"
cp "$work/a.pb.gz" "$work/b.pb.gz" "$work/several"
echo "a note" >"$work/several/NOTE"
check "a directory is all profiles in it" exits 0 merge "$work/several" -o "$work/several.pb.gz"
check "a directory: function by function" adds_up several.pb.gz "$work/a.pb.gz" "$work/b.pb.gz"
check "an input may be the output" exits 0 merge "$work/aa.prof" "$work/a.prof" -o "$work/aa.prof"
check "an input may be the output: is the sum then" test "$(dumped samples "$work/aa.prof")" -eq \
	$((3 * $(dumped samples "$work/a.prof")))

# --- What differs ---

printf 'main;work 3\nmain 1\n' >"$work/one.folded"
printf 'main;work 4\nother 2\n' >"$work/two.folded"
check "folded stacks" diff <(printf 'main 1\nmain;work 7\nother 2\n') \
	<(merge -f folded "$work/one.folded" "$work/two.folded" -o - | sort)
start_ready "$shares" 1
until_used "$pid" 300 "$profiltool" -p "$pid" -F 99 -q -E 1 -o "$work/slow.pb.gz" >/dev/null 2>&1
stop "$pid"
check "different periods" exits 0 merge "$work/a.pb.gz" "$work/slow.pb.gz" -o "$work/x.pb.gz"
check "different periods: reported" says "different periods"
check "the time is right all the same" test \
	"$("$profiltool" dump --json "$work/x.pb.gz" | python3 -c '
import json, sys
j = json.load(sys.stdin)
print([v["type"] for v in j["values"]], "period_ns" in j)')" = "['samples', 'cpu', 'delay'] False"
cat >"$work/ir.callgrind" <<END
# callgrind format
version: 1
positions: line
events: Ir Dr
summary: 30 4

fl=a.c
fn=main
1 10 4
2 20 0
totals: 30 4
END
check "different events" exits 0 merge "$work/ir.callgrind" "$work/a.pb.gz" -o "$work/x.pb.gz"
values() {
	"$profiltool" dump --json "$work/x.pb.gz" | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(*sorted(v["type"] for v in j["values"]))'
}
check "are apart" test "$(values)" = "Dr Ir cpu $(dumped event "$work/a.pb.gz") delay"

# --- Errors ---

# --- Copies of one program, as containers have: one image, whichever file comes first ---

mkdir -p "$work/copies/one" "$work/copies/another"
for copy in one/program another/program another/name; do
	cp "$shares" "$work/copies/$copy"
done
cd "$work/copies" || exit
check "a recording of two copies" exits 0 "$profiltool" record -F 4999 -q -o both.pb.gz -- \
	sh -c 'one/program 1 0.2; another/program 1 0.2'
check "a recording of one of them" exits 0 "$profiltool" record -F 4999 -q -o another.pb.gz -- another/program 1 0.2
check "added up" exits 0 merge both.pb.gz another.pb.gz -o forth.pb.gz
check "added up the other way round" exits 0 merge another.pb.gz both.pb.gz -o back.pb.gz
check "copies: the same either way" diff <("$profiltool" report -q -E 0 forth.pb.gz | sort) \
	<("$profiltool" report -q -E 0 back.pb.gz | sort)
check "copies: no function differs" grep -q ' 0 of ' <("$profiltool" diff forth.pb.gz back.pb.gz 2>&1)
images() {
	"$profiltool" report -q -E 0 --json "$1" | python3 -c '
import json, sys
print(*sorted({f["image"][f["image"].rindex("copies/"):] for f in json.load(sys.stdin)["functions"] if "burn_" in f["name"]}))'
}
check "copies: one image has all" test "$(images forth.pb.gz)" = copies/one/program
check "copies: none is lost" adds_up copies/forth.pb.gz both.pb.gz another.pb.gz
check "a recording of another program with the same build ID" \
	exits 0 "$profiltool" record -F 4999 -q -o name.pb.gz -- another/name 1 0.2
check "its merge with them" exits 0 merge name.pb.gz both.pb.gz -o named.pb.gz
check "both programs keep their names" test "$(images named.pb.gz)" = "copies/another/name copies/one/program"
cd "$work" || exit

check_rows <<'EOF'
NAME merge without an input is a mistake
RUN merge -o "$work/x"
STATUS 2

NAME merge without an output names the option
RUN merge "$work/a.pb.gz"
STATUS 2
EXPECT -o OUT

NAME merge names a file that does not exist
RUN merge "$work/a.pb.gz" "$work/none" -o "$work/none.pb.gz"
STATUS 1
EXPECT /none

NAME merge names a file that is no profile
RUN merge "$work/a.pb.gz" "$work/several/NOTE" -o "$work/none.pb.gz"
STATUS 1
EXPECT several/NOTE
EOF
check "merge writes nothing if an input cannot be read" test ! -e "$work/none.pb.gz"
# Three records of 24 bytes behind a header of 40, the trailer and the map; cut within the third.
python3 - >"$work/whole.prof" <<-'END'
	import struct, sys
	slots = [0, 3, 0, 10000, 0]
	for count, pc in (5, 0x400010), (7, 0x400020), (9, 0x400030), (0, 0):
	    slots += count, 1, pc
	sys.stdout.buffer.write(struct.pack("<17Q", *slots) +
	    b"00400000-00500000 r-xp 00001000 08:01 77          /bin/nothing\n")
END
head -c 100 "$work/whole.prof" >"$work/cut.prof"
check "one that is not cut" exits 0 merge "$work/a.pb.gz" "$work/whole.prof" -o "$work/whole.pb.gz"
check "all of it is there" test "$(dumped samples "$work/whole.pb.gz")" -eq \
	$(($(dumped samples "$work/a.pb.gz") + 5 + 7 + 9))
check "one that is cut" exits 1 merge "$work/a.pb.gz" "$work/cut.prof" -o "$work/none.pb.gz"
check "nothing is written then" test ! -e "$work/none.pb.gz"
check "one that is cut, with --salvage" exits 3 merge --salvage "$work/a.pb.gz" "$work/cut.prof" \
	-o "$work/cut.pb.gz"
check "the rest is there" test "$(dumped samples "$work/cut.pb.gz")" -eq \
	$(($(dumped samples "$work/a.pb.gz") + 5 + 7))
check "a full disk" exits 1 merge "$work/a.pb.gz" "$work/b.pb.gz" -o /dev/full

finish
