#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# report: rows by each field, compared with sums over the output of `dump`, readelf and nm; several files,
# several events, one image, and names that could act on a terminal.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread)

# --- Recordings: two builds whose addresses differ from the offsets in their files ---

gcc "${flags[@]}" -fPIE -pie "$source" -o "$work/pie"
gcc "${flags[@]}" -no-pie "$source" -o "$work/fixed"
for name in pie fixed; do
	# Without inlined functions: a tick in one would give every table the columns of stacks.
	check "$name: recorded" exits 0 "$profiltool" record --no-inline -F 999 \
		-o "$work/$name.pb.gz" -- "$work/$name" 2 0.6 stay
done

report() {
	"$profiltool" report "$@" 2>"$work/err"
}

printf 'events: e\nfn=f\n1 0\n' >"$work/none.cg"
none() {
	exits 4 "$profiltool" "$@" && says "profiltool: $work/none.cg has no samples" &&
		test ! -s "$work/out"
}
check "report of a profile without samples has the status 4" exits 4 "$profiltool" report "$work/none.cg"
check "report of a profile without samples prints a header alone" \
	test "$(cat "$work/out")" = "e  %  cum%  function  image"
check "report warns that a profile has no samples" says "profiltool: $work/none.cg has no samples"
check "report of standard input without samples has the status 4" \
	exits 4 "$profiltool" report - <"$work/none.cg"
check "report of standard input without samples prints a header alone" \
	test "$(cat "$work/out")" = "e  %  cum%  function  image"
check "report names standard input in its warning" \
	says "profiltool: standard input has no samples"
check "report --tree prints nothing of a profile without samples" none report --tree "$work/none.cg"
check "annotate prints nothing of a profile without samples" none annotate "$work/none.cg"
check "annotate prints no function of a profile without samples" none annotate f "$work/none.cg"
check "report --json of a profile without samples has the status 4" \
	exits 4 "$profiltool" report --json "$work/none.cg"
check "report --json has no functions without samples" json "j['functions'] == []" "$work/out"
check "report --json --tree of a profile without samples has the status 4" \
	exits 4 "$profiltool" report --json --tree "$work/none.cg"
check "report --json --tree has no root without samples" \
	json "j == {'value': 'e', 'samples': 0, 'tree': []}" "$work/out"
check "report of two profiles without samples has the status 4" \
	exits 4 "$profiltool" report "$work/none.cg" "$work/none.cg"
check "report counts the profiles without samples" says "the 2 profiles have no samples"

# What python's checks have in common: rows are {key: samples}, with keys of the fields named.
cat >"$work/views.py" <<'EOF_PYTHON'
import collections, json, re, subprocess, sys

def run(*command):
	return subprocess.run(command, check=True, stdout=subprocess.PIPE,
			      stderr=subprocess.DEVNULL, text=True).stdout

profiltool = sys.argv[1]

def report(*arguments):
	return json.loads(run(profiltool, "report", "--json", *arguments))["rows"]

def rows(by, keys, *files):
	table = collections.Counter()
	for row in report("--by", by, *files):
		table[tuple(row.get(key) for key in keys)] += row["self"]
	return table

# The executable segments: (offset, address, size)
def segments(path):
	found = []
	for line in run("readelf", "-lW", path).splitlines():
		word = line.split()
		if word and word[0] == "LOAD":
			found.append((int(word[1], 16), int(word[2], 16), int(word[4], 16)))
	return found

# {(path, address in the image's own numbering): samples}, from what the file holds.
def leaves(file):
	dump = json.loads(run(profiltool, "dump", "--json", file))
	table, known = collections.Counter(), {}
	for stack in dump["stacks"]:
		pc, path, address = int(stack["pcs"][0], 16), "[unknown]", None
		for m in dump["mappings"]:
			start = int(m["start"], 16)
			if start <= pc < int(m["limit"], 16):
				path, offset = m["path"], pc - start + int(m["offset"], 16)
		if path.startswith("/"):
			if path not in known:
				known[path] = segments(path)
			for begin, where, size in known[path]:
				if begin <= offset < begin + size:
					address = "0x%x" % (offset - begin + where)
		table[path, address] += stack["count"]
	return table

def same(a, b):
	if a != b:
		print("here:", sorted((a - b).items(), key=str), "there:", sorted((b - a).items(), key=str))
	assert a == b and a
EOF_PYTHON

views() {
	python3 - "$profiltool" "$@" < <(cat "$work/views.py" -)
}

by_image() {
	views "$1" <<'EOF_PYTHON'
images = collections.Counter()
for (path, address), count in leaves(sys.argv[2]).items():
	images[path,] += count
same(rows("image", ["image"], sys.argv[2]), images)
EOF_PYTHON
}

by_address() {
	views "$1" <<'EOF_PYTHON'
there = collections.Counter({key: n for key, n in leaves(sys.argv[2]).items() if key[1]})
here = rows("address", ["image", "address"], sys.argv[2])
same(collections.Counter({key: n for key, n in here.items() if key[0].startswith("/")}), there)
EOF_PYTHON
}

# "burn_sixty+0x14" is where nm has burn_sixty, and 0x14.
offsets() {
	views "$1" "$2" <<'EOF_PYTHON'
symbols = {}
for line in run("nm", sys.argv[3]).splitlines():
	word = line.split()
	if len(word) == 3:
		symbols[word[2]] = int(word[0], 16)
seen = 0
for row in report("--by", "address", "-d", sys.argv[3], sys.argv[2]):
	name, offset = row["function"].rsplit("+", 1)
	if name in symbols:
		assert symbols[name] + int(offset, 16) == int(row["address"], 16), row
		seen += row["self"]
assert seen > 100
EOF_PYTHON
}

by_labels() {
	views "$1" <<'EOF_PYTHON'
threads, processes = collections.Counter(), collections.Counter()
for line in run(profiltool, "dump", sys.argv[2]).splitlines():
	found = re.match(r"(\d+) 0x\S+ \[(\d+)/(\d+) (\S+)", line)
	if found:
		count, pid, tid = (int(text) for text in found.groups()[:3])
		threads[pid, tid, found.group(4).rstrip("]")] += count
		processes[pid,] += count
assert len(threads) > 1
same(rows("thread", ["pid", "tid", "comm"], sys.argv[2]), threads)
same(rows("process", ["pid"], sys.argv[2]), processes)
EOF_PYTHON
}

for name in pie fixed; do
	check "$name: by image, as dump sums up" by_image "$work/$name.pb.gz"
	check "$name: by address, as dump and readelf say" by_address "$work/$name.pb.gz"
	check "$name: functions and offsets, as nm says" offsets "$work/$name.pb.gz" "$work/$name"
	check "$name: by thread and process, as dump sums up" by_labels "$work/$name.pb.gz"
done

# --- Options ---

labels_from="of PostgreSQL, PHP, Go and OpenTelemetry, and by --label query=VARIABLE of any program"
check "--by of a label that no sample has is an error" exits 1 "$profiltool" report --by query "$work/pie.pb.gz"
check "--by of a label that no sample has: what has it is said" says "$labels_from"
check "--query of such a label finds nothing" exits 4 "$profiltool" report --query x "$work/pie.pb.gz"
check "--query of such a label: what has it is said" says "$labels_from"
check "--by-image is --by image" diff <(report --by-image "$work/pie.pb.gz") <(report --by image "$work/pie.pb.gz")
check "functions are the default" diff <(report --by function "$work/pie.pb.gz") \
	<(report "$work/pie.pb.gz")
check "a line for each row, the header, and what is left out" \
	test "$(report --by address -E 2 "$work/pie.pb.gz" | wc -l)" -eq 4
check "as many as -E says, the rest is reported" \
	grep -qE '^\.\.\. [0-9]+ more (image|addresse)s?, [0-9.]+ %$' \
	<(report --by address -E 2 "$work/pie.pb.gz")

# Of one image: its rows alone, with their part of all samples.
of_one_image() {
	views "$@" <<'EOF_PYTHON'
whole = json.loads(run(profiltool, "report", "--json", sys.argv[2]))["functions"]
part = json.loads(run(profiltool, "report", "--json", "-d", sys.argv[3], sys.argv[2]))["functions"]
assert part and part == [row for row in whole if row["image"].endswith("/" + sys.argv[4])]
EOF_PYTHON
}
check "of one image, by its path" of_one_image "$work/pie.pb.gz" "$work/pie" pie
check "of one image, by its base name" of_one_image "$work/pie.pb.gz" pie pie
check "of an image that does not exist" exits 1 "$profiltool" report -d nowhere "$work/pie.pb.gz"
check "of an image that does not exist: reported" says 'there is no image "nowhere"'

check "a value by its type" grep -qE '^cpu/nanoseconds +% +cum% +samples +% +function +image$' \
	<("$profiltool" report --value cpu "$work/pie.pb.gz" 2>/dev/null)
check "a value that does not exist" exits 2 "$profiltool" report --value cycles "$work/pie.pb.gz"
check "says which are" says "its values are: samples, cpu"

# Xdebug's events have their unit in the name, as cachegrind.out.PID files write it.
cat >"$work/xdebug.cg" <<-'END'
	version: 1
	creator: xdebug 3.2.0 (PHP 8.2.36)
	events: Time_(10ns) Memory_(bytes) Memory_peak_(bytes)
	fl=/a.php
	fn={main}
	1 50 1000 7
END
# by_value NAME: the number of the only function, by that value.
by_value() {
	"$profiltool" report --json --value "$1" "$work/xdebug.cg" 2>"$work/err" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["functions"][0]["self"])'
}
for name in "Time_(10ns)" "Time_/10ns" Time_ Time T; do
	check "a value of Xdebug: $name" test "$(by_value "$name")" = 50
done
check "a value of Xdebug: one that others begin with" test "$(by_value Memory_)" = 1000
check "a value of Xdebug: of two that begin alike, one with its unit" test "$(by_value "Memory_(bytes)")" = 1000
check "a value of Xdebug: the other" test "$(by_value Memory_p)" = 7
check "the beginning of several values is refused" exits 2 "$profiltool" report --value Mem "$work/xdebug.cg"
check "it says so" says 'several values of the profile begin with "Mem"'
for name in "Time_(ns)" "Time_(10ns" "Time_(10ns))" Time_/10 "" Timer; do
	check "a value of Xdebug: no \"$name\"" exits 2 "$profiltool" report --value "$name" "$work/xdebug.cg"
done
check "annotate, too, takes the name that Xdebug writes" exits 1 "$profiltool" annotate --value "Time_(10ns)" \
	"$work/xdebug.cg" nothing
check "annotate: it looks for the function then" says nothing
check "convert, too" exits 0 "$profiltool" convert --value "Memory_(bytes)" "$work/xdebug.cg" "$work/xdebug.folded"
check "convert writes that value" grep -qx '{main} 1000' "$work/xdebug.folded"
check "a field that does not exist" exits 2 "$profiltool" report --by colour "$work/pie.pb.gz"
check "says which are there" says "function, image, address, source, line, thread, process"
check "no file" exits 2 "$profiltool" report

# --- Several files ---

samples() {
	report --by-image --json "$@" | python3 -c '
import json, sys
print(sum(row["self"] for row in json.load(sys.stdin)["rows"]))'
}
mkdir "$work/both"
ln "$work/pie.pb.gz" "$work/fixed.pb.gz" "$work/both"
sum=$(($(samples "$work/pie.pb.gz") + $(samples "$work/fixed.pb.gz")))
check "two files add up" test "$(samples "$work/pie.pb.gz" "$work/fixed.pb.gz")" -eq $sum
check "the same as a directory" test "$(samples "$work/both")" -eq $sum
check "both images are there" test "$(report --by-image "$work/both" | grep -c "/pie$\|/fixed$")" -eq 2

# --- Several events, source lines: a file made by hand ---

cat >"$work/events.cg" <<'EOF_CALLGRIND'
events: cycles imiss
ob=/bin/busy
fl=busy.c
fn=hot
12 3000 30
13 1000 0
fn=warm(int, char)
40 900 50
fi=inline.h
7 100 20
EOF_CALLGRIND

events_table() {
	diff - <(report "$work/events.cg") <<'EOF_TABLE'
cycles      %    cum%  imiss      %  function         image
  4000  80.00   80.00     30  30.00  hot              busy
  1000  20.00  100.00     70  70.00  warm(int, char)  busy
EOF_TABLE
}
check "each event has its column" events_table
check "their sums are reported" says "events: cycles 5000, imiss 100"

lines_table() {
	diff - <(report --by line --value imiss "$work/events.cg") <<'EOF_TABLE'
imiss      %    cum%  cycles      %  source    line  function         image
   50  50.00   50.00     900  18.00  busy.c      40  warm(int, char)  busy
   30  30.00   80.00    3000  60.00  busy.c      12  hot              busy
   20  20.00  100.00     100   2.00  inline.h     7  warm(int, char)  busy
EOF_TABLE
}
check "by line, and by another event" lines_table
check "by source" diff - <(report --by source "$work/events.cg" | sed 's/ \+/ /g') <<'EOF_TABLE'
cycles % cum% imiss % source image
 4900 98.00 98.00 80 80.00 busy.c busy
 100 2.00 100.00 20 20.00 inline.h busy
EOF_TABLE
check "JSON has each event's count" json "j['functions'][0]['values'] == {'cycles': 4000, 'imiss': 30} \
	and j['functions'][0]['self'] == 4000" <(report --json "$work/events.cg")
check "JSON reports what rows are" json "j['by'] == 'line' and j['rows'][0]['source'] == 'busy.c' \
	and j['rows'][0]['line'] == 12" <(report --json --by line "$work/events.cg")
check "JSON of functions has the keys of one clock" \
	json "set(j['functions'][0]) == {'name', 'image', 'self', 'self_percent', 'total', 'cpu_s', 'cpu_percent', 'delay_ns'}" \
	<(report --json "$work/pie.pb.gz")

# --- On a terminal ---

fits() {
	terminal "$1" "$profiltool" report --by "$2" "$3" | sed 's/\x1b\[[0-9]*m//g' |
		awk -v most="$1" 'length($0) > most { print; bad = 1 } END { exit bad || !NR }'
}
for by in function image address source line thread; do
	check "by $by fits a narrow terminal" fits 72 "$by" "$work/pie.pb.gz"
done
check "events that do not fit are left out" fits 50 function "$work/events.cg"
check "events that do not fit are left out: not the first" \
	grep -q cycles <(terminal 50 "$profiltool" report "$work/events.cg")
# screen_of SIZE ARGUMENT...: what report prints on a terminal, in $work/screen; succeeds if three lines at most follow the
# table, and all fits with the prompt.
screen_of() {
	NO_COLOR=1 terminal "$1" "$profiltool" report "${@:2}" >"$work/screen"
	[ "$(fold -w "${1%x*}" "$work/screen" | wc -l)" -lt "${1#*x}" ] &&
		[ "$(sed '1,/ function /d' "$work/screen" | grep -cvE '^ *[0-9]+ +[0-9]+\.[0-9][0-9] |^\.\.\. ')" -le 3 ]
}
# starts_with PATTERN...: succeeds if the first lines on the screen match.
starts_with() {
	local number=0 pattern

	for pattern; do
		number=$((number + 1))
		sed -n "${number}p" "$work/screen" | grep -qxE -- "$pattern" && continue
		echo "line $number is not $pattern"
		cat "$work/screen"
		return 1
	done
}
{
	printf 'events: e\nob=/x/big\n'
	for number in {1..60}; do
		printf 'fn=f%d\n%d 10\n' "$number" "$number"
	done
	printf 'ob=/x/small\nfn=g\n1 70\n'
} >"$work/sixty.cg"
if has_terminals "the summary on a terminal"; then
	check "80x24: summary and table fit" screen_of 80x24 "$work/sixty.cg"
	check "80x24: where the samples are" starts_with '90 % of e in big, spread over 60 functions; 10 % in small'
	check "80x24: how to see the rest" grep -qxE '\.\.\. [0-9]+ more functions, [0-9.]+ %; -E 0 prints all' "$work/screen"
	check "40x10: summary and table fit" screen_of 40x10 "$work/sixty.cg"
	check "few functions are named" screen_of 80x24 "$work/few.cg" <<<"$(printf \
		'events: e\nob=/x/a\nfn=most\n1 8\nob=[kernel.kallsyms]\nfn=k\n1 2\n' >"$work/few.cg")"
	check "few functions are named: one" starts_with '80 % of e in a, mostly most; 20 % in the kernel'
	check "two files have one name" screen_of 80x24 "$work/twice.cg" <<<"$(printf \
		'events: e\nob=/x/nginx\nfn=most\n1 6\nob=/y/nginx\nfn=other\n1 3\nob=/x/b\nfn=k\n1 1\n' >"$work/twice.cg")"
	check "two files have one name: their paths" starts_with '60 % of e in /x/nginx, mostly most; 30 % in /y/nginx'
	check "a recording on 80x24 fits" screen_of 80x24 "$work/pie.pb.gz"
	check "a recording: the states of its thread, and the table" \
		grep -qE '^(.*/)?pie.pb.gz, [0-9]+ threads?, [0-9.]+ s: +on CPU [0-9.]+ [s%].* (samples|self) .* image' \
		<(head -n 3 "$work/screen" | tr '\n' ' ')
	check "a recording: the account and the cost below" \
		grep -qxE '[0-9]+ samples at 999 Hz.*, (none )?lost.*; cost [0-9.]+ % of .*' "$work/screen"
	terminal 80x24 "$profiltool" report -v "$work/pie.pb.gz" >"$work/screen"
	check "-v has all of the account on a terminal" \
		grep -qE ' = counted [0-9]+ \+ out_of_range 0 \+ excluded 0 \+ lost [0-9]+' "$work/screen"
	check "-v has what is no terminal's: the cost" grep -q '^profiltool: cost: ' "$work/screen"
fi
check "what is no terminal has all" grep -q 'out_of_range 0 + excluded 0' \
	<("$profiltool" report "$work/pie.pb.gz" 2>&1 >/dev/null)

# without_symbols PROFILE FILE...: a gperftools profile with 100 samples in the code of each file.
without_symbols() {
	python3 -S -c '
import struct, sys
slots, maps = [0, 3, 0, 10000, 0], ""
for number, path in enumerate(sys.argv[2:]):
    data = open(path, "rb").read()
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(table, table + size * count, size):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1 and flags & 1:
            break
    start = (number + 1) << 32
    slots += [100, 1, start + length // 2]
    maps += "%x-%x r-xp %08x 08:01 %d %s\n" % (start, start + length, offset, number + 1, path)
slots += [0, 1, 0]
open(sys.argv[1], "wb").write(struct.pack("<%dQ" % len(slots), *slots) + maps.encode())' "$@"
}
if [ -x /usr/bin/dpkg-query ] && [ -x /usr/bin/apt ]; then
	without_symbols "$work/stripped.prof" "$(realpath /bin/gzip)" "$(realpath /bin/tar)"
	screen_of 80x24 "$work/stripped.prof"
	check "images without symbols are one cause, with the packages that have them" grep -qE \
		'^2 images without symbols: [0-9]+ %: apt install (gzip-dbgsym tar|tar-dbgsym gzip)-dbgsym$' "$work/screen"
	cp "$(realpath /bin/gzip)" "$work/gzip"
	without_symbols "$work/stripped.prof" "$work/gzip"
	screen_of 80x24 "$work/stripped.prof"
	check "a file that no package owns: what would help" grep -qE \
		'^gzip without symbols: [0-9]+ %: debug packages or --debuginfod have them$' "$work/screen"
else
	skip "packages of missing symbols" "this machine has no dpkg-query"
fi
check "hot rows are red" grep -q $'\x1b\[31m' <(terminal 100 "$profiltool" report --by-image "$work/pie.pb.gz")
check "not with NO_COLOR" test -z "$(NO_COLOR=1 terminal 100 "$profiltool" report --by-image \
	"$work/pie.pb.gz" | grep $'\x1b')"

# --- Names from an attacker's hand ---

printf 'events: e\nob=/x/\033[31mob\nfl=\033]0;fl\nfn=\033[2Jfn\n1 5\n' >"$work/hostile.cg"
harmless() {
	report --by "$1" "$work/hostile.cg" | grep -q 'x1b' &&
		! report --by "$1" "$work/hostile.cg" | grep -q $'\x1b'
}
for by in function image address source line; do
	check "by $by: nothing reaches the terminal" harmless "$by"
	check "by $by: JSON is whole" json "j['rows' if '$by' != 'function' else 'functions'][0]['self'] == 5" \
		<(report --json --by "$by" "$work/hostile.cg")
done
check "nor in a message" exits 1 "$profiltool" report -d $'\x1b[31m' "$work/hostile.cg"
check "nor in a message: made visible" says 'x1b[31m'

# --- A program that was built again since ---

cp /bin/true "$work/built"
printf 'events: e\nob=%s\nfl=x\nfn=f\n1 5\n' "$work/built" >"$work/built.cg"
touch -d tomorrow "$work/built"
check "an image younger than the profile" exits 0 "$profiltool" report "$work/built.cg"
check "an image younger than the profile: reported" \
	says "$work/built has changed since $work/built.cg was written"
touch -d yesterday "$work/built"
check "an older one" exits 0 "$profiltool" report "$work/built.cg"
check "an image older than the profile: nothing is reported" test -z "$(grep changed "$work/err")"

# --- The summary names the value, also a lone one ---

printf 'desc: Unit: wall milliseconds\nevents: wall\nfn=f\n1 5\ncfn=g\ncalls=1 1\n1 7\nfn=g\n1 7\n' \
	>"$work/wall.cg"
check "a lone value" exits 0 "$profiltool" report "$work/wall.cg"
check "a lone value is named, without others to take" grep -qx 'profiltool: value: wall/milliseconds' "$work/err"
printf 'main;f 5\n' >"$work/samples.folded"
check "samples" exits 0 "$profiltool" report "$work/samples.folded"
check "samples need no name" exits 1 grep -q 'value:' "$work/err"

# --- Events are no ticks of a clock ---

{
	printf 'creator: profil 0.1.0\ndesc: Event: page-faults\ndesc: Period: 1 samples\n'
	printf 'desc: %s\n' 'Duration: 1000000000 ns' 'Ticks: 9000' 'Counted: 9000' 'CPU time: 500000000 ns' \
		'BPF time per tick: 300 ns' 'Interrupt time: 9000 ns'
	printf 'events: samples page-faults\nfn=f\n1 9000 9000\n'
} >"$work/faults.cg"
check "page faults" exits 0 "$profiltool" report -v "$work/faults.cg"
check "page faults: no rate" grep -q ': 1.00 s, 0.50 s of CPU; page-faults$' "$work/err"
check "page faults: an account of events" says 'profiltool: events 9000 = counted 9000 + '
check "page faults: without the cost of a clock's interrupts" \
	grep -qx "profiltool: cost: 300 ns BPF per event, 0.54 % of the target's CPU" "$work/err"
check "page faults: in short" exits 0 "$profiltool" report "$work/faults.cg"
check "page faults: in short, no rate" exits 1 grep -qw Hz "$work/err"

# --- What has no name, of a value that is no count ---

strip -o "$work/bare" "$progs/shares"
check "a program without names" start_ready "$work/bare" 2
check "recorded" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -q -o "$work/bare.pb.gz"
stop "$pid"
check "reported" exits 0 "$profiltool" report "$work/bare.pb.gz"
unnamed=$(sed -nE 's/.*bare: ([0-9]+) samples? .*without symbols.*/\1/p' "$work/err")
check "samples without a name are reported" test "$unnamed" -gt 0
check "reported by CPU time" exits 0 "$profiltool" report --value cpu "$work/bare.pb.gz"
check "it is seconds, not samples" says "bare: $(awk "BEGIN { printf \"%.3f\", $unnamed * 0.001001001 }") s of cpu ("

finish
