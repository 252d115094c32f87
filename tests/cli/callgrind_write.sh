#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Callgrind files of profiltool in other readers: callgrind_annotate has the same exclusive and inclusive
# costs as our report; a file of valgrind, read and written by profiltool, has unchanged costs; KCachegrind
# shows it in a window without a complaint.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

cd "$work" || exit # callgrind_annotate cuts the directory that it is called in off some file names

# --- Profiles with stacks ---

# A gperftools profile of functions that are in a real program: random stacks, with recursion.
cat >make_profile.py <<'END'
import random, struct, subprocess, sys

program, path, depth = sys.argv[1], sys.argv[2], int(sys.argv[3])
symbols = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True)
functions = [int(f[0], 16) for f in map(str.split, symbols.stdout.splitlines())
	if len(f) == 4 and f[2] in "tT" and int(f[1], 16) > 16]
segments = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True)
offset, address, size = [[int(n, 16) for n in (f[1], f[2], f[5])]
	for f in map(str.split, segments.stdout.splitlines())
	if f[:1] == ["LOAD"] and "E" in f[6:-1]][0]
base = 0x555555554000

def slots(*numbers):
	return struct.pack("<%dQ" % len(numbers), *numbers)

random.seed(depth)
chosen = random.sample(functions, min(len(functions), 9)) + [address + size + 0x100000]
out = slots(0, 3, 0, 4000, 0)
for _ in range(400):
	pcs = [base + random.choice(chosen) + random.choice((5, 9))
		for _ in range(random.randint(1, depth))]
	out += slots(random.randint(1, 20), len(pcs), *pcs)
out += slots(0, 1, 0)
out += b"%x-%x r-xp %08x 00:00 0 %s\n" % (base + address, base + address + size + 0x200000,
	offset, program.encode())
open(path, "wb").write(out)
END

# Compares "COST FILE:FUNCTION [OBJECT]" of callgrind_annotate with the functions of our report.
cat >agree.py <<'END'
import collections, json, re, sys

def annotated(path):
	rows, begun = collections.Counter(), False
	for line in open(path, errors="surrogateescape"):
		begun |= line.rstrip().endswith("file:function")
		row = re.match(r"\s*([\d,]+)\s+([^:]*):(.*?)(?: \[[^][]*\]|\s\[\[.*\]\])?$", line)
		if begun and row and row[3] != "[root]":
			rows[row[3]] += int(row[1].replace(",", ""))
	return +rows

def reported(key):
	rows = collections.Counter()
	for f in json.load(open(sys.argv[1]))["functions"]:
		if f["name"] != "[root]":
			rows[f["name"]] += f[key]
	return +rows

bad = 0
for path, key in (sys.argv[2], "self"), (sys.argv[3], "total"):
	ours, theirs = reported(key), annotated(path)
	bad |= not ours
	for name in ours.keys() | theirs.keys():
		if ours[name] != theirs[name]:
			print(key, name, "report:", ours[name], "callgrind_annotate:", theirs[name])
			bad = 1
sys.exit(bad)
END

# annotate FILE yes|no: what callgrind_annotate says of it, inclusive or not, and no word besides.
annotate() {
	callgrind_annotate --auto=no --threshold=100 --show-percs=no --inclusive="$2" "$1" \
		2>"$work/annotate.err" && [ ! -s "$work/annotate.err" ] && return
	cat "$work/annotate.err" >&2
	return 1
}

# agrees PROFILE [OPTION...]: converted, callgrind_annotate has the numbers of our report on it.
agrees() {
	local profile=$1
	shift
	"$profiltool" convert "$@" -f callgrind "$profile" a.callgrind &&
		"$profiltool" report --json "$profile" >a.json &&
		annotate a.callgrind no >a.self && annotate a.callgrind yes >a.total &&
		python3 agree.py a.json a.self a.total
}

# report_agrees PROFILE: our own report on the converted file is that on the profile.
report_agrees() {
	"$profiltool" convert -f callgrind "$1" a.callgrind &&
		"$profiltool" report --json "$1" >a.json &&
		"$profiltool" report --json a.callgrind >b.json &&
		python3 -c '
import collections, json, sys
def rows(path):
	rows = collections.Counter()
	for f in json.load(open(path))["functions"]:
		for key in "self", "total":
			rows[f["name"], key] += f[key] if f["name"] != "[root]" else 0
	return +rows
a, b = rows("a.json"), rows("b.json")
print(a - b, b - a)
sys.exit(not a or a != b)'
}

profiles=()
for depth in 1 2 8; do
	python3 make_profile.py "$progs/shares" "made.$depth.prof" $depth
	profiles+=("made.$depth.prof")
done
for file in basic dup-leaf repeated-caller build-libs kernel-map be64; do
	profiles+=("$data/gperftools/$file.prof")
done
profiler=$(ldconfig -p | sed -n 's/.*libprofiler\.so.* => //p' | head -n 1)
if [ -n "$profiler" ]; then
	CPUPROFILE=$work/gperftools.prof CPUPROFILE_FREQUENCY=250 LD_PRELOAD=$profiler \
		"$progs/shares" 1 0.7 stay >/dev/null 2>&1
	profiles+=(gperftools.prof)
else
	skip "a file of gperftools' own" "libprofiler is not installed"
fi

check "the functions of a program are in it" grep -q '"name":"burn' \
	<("$profiltool" report --json made.8.prof 2>/dev/null | tr -d ' ')
for profile in "${profiles[@]}"; do
	name=${profile##*/}
	check "$name: our report says the same of what we wrote" report_agrees "$profile"
	if command -v callgrind_annotate >/dev/null; then
		check "$name: callgrind_annotate agrees with our report" agrees "$profile"
		check "$name: with addresses, too" agrees "$profile" --positions instr
	else
		skip "$name: callgrind_annotate" "it is not installed"
	fi
done

"$profiltool" convert -f callgrind --positions instr made.8.prof made.callgrind 2>/dev/null
check "no tab, no empty name, no call without a count, no blank at the end" \
	exits 1 grep -n "$(printf '\t')\\|=\$\\|^calls=0\\| \$" made.callgrind
check "the header's lines are in the order that readers need" diff - \
	<(sed -n 's/^\(# [^:]*\|[a-z]*:\).*/\1/p' made.callgrind | uniq) <<'END'
# callgrind format
version:
creator:
part:
desc:
positions:
events:
summary:
totals:
END

# first_addresses FILE: "NAME ADDRESS" of the first address in each function that has a name.
first_addresses() {
	python3 -c '
import re, sys
names, current = {}, ""
for line in open(sys.argv[1]):
	function = re.match(r"(c?)fn=\((\d+)\) ?(.*)", line)
	if function:
		names.setdefault(function[2], function[3])
		current = current if function[1] else names[function[2]]
	address = re.match(r"(0x[0-9a-f]+) ", line)
	if address and re.match(r"\w+$", current):
		print(current, address[1])
		current = ""' "$1"
}

# The functions are found again at their addresses in the program.
found_again() {
	local name address
	[ "$(first_addresses "$1" | wc -l)" -gt 5 ] || return
	while read -r name address; do
		echo "$name $address"
		[ "$(addr2line -f -e "$progs/shares" "$address" | head -n 1)" = "$name" ] || return
	done < <(first_addresses "$1")
}
check "addresses are those that addr2line takes" found_again made.callgrind

# --- What valgrind wrote ---

cat >calls.c <<'END'
#include <stdlib.h>
#include <string.h>
#include "calls.h"
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int odd(int n);
int even(int n) { return n ? odd(n - 1) : 1; }
int odd(int n) { return n ? even(n - 1) : 0; }
int main(int argc, char **argv)
{
	char *text = calloc(1, 4000);
	memset(text, argc, 3000);
	return fib(9) + even(21) + sum(argv, argc * 50) + (int)strlen(text) == -1;
}
END
cat >calls.h <<'END'
static inline __attribute__((always_inline)) int sum(void *p, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += i * n ^ (int)(long)p;
	return s;
}
END

# rows: what callgrind_annotate prints of the functions, with 0 for a cost that was left out. Not of
# all the program: valgrind's own summary is not always the sum of its costs. Functions without a name
# that have the same address in two images are one to it, in either of them.
rows() {
	sed '1,/file:function$/d; s/\(???:0x[0-9a-f]*\) \[.*\]/\1/; s/ \.\( \|$\)/ 0\1/g; s/ \.\( \|$\)/ 0\1/g; s/  */ /g' "$1" | sort
}

# says_the_same A B: callgrind_annotate on both.
says_the_same() {
	local inclusive
	for inclusive in no yes; do
		annotate "$1" "$inclusive" >one || return
		annotate "$2" "$inclusive" >two || return
		[ "$(rows one | wc -l)" -gt 100 ] && diff <(rows one) <(rows two) || return
	done
}

# through_us POSITIONS FILE: the same again when it was converted, and when that was converted, too.
through_us() {
	"$profiltool" convert --positions "$1" -f callgrind "$2" once &&
		"$profiltool" convert --positions "$1" -f callgrind once twice &&
		says_the_same "$2" once && says_the_same once twice
}

# counts KIND FILE: the sums of what lines of this kind count: one may stand for several.
counts() {
	sed -n "s/^$1=\([0-9/]*\) .*/\1/p" "$2" |
		awk -F / '{ first += $1; second += $2 } END { print first + 0, second + 0 }'
}

counts_as() {
	local expected
	expected=$(counts "$1" "$2")
	echo "$expected, not $(counts "$1" "$3")"
	[ "${expected%% *}" -gt 0 ] && [ "$expected" = "$(counts "$1" "$3")" ]
}

if command -v valgrind >/dev/null && ${CC:-cc} -g -O1 -o calls calls.c; then
	valgrind --tool=callgrind --callgrind-out-file=plain.out ./calls >valgrind.err 2>&1
	valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes --cache-sim=yes \
		--branch-sim=yes --callgrind-out-file=full.out ./calls >>valgrind.err 2>&1
	check "valgrind ran" test -s plain.out -a -s full.out
	check "valgrind's file comes out as it went in" through_us line plain.out
	check "with addresses, jumps and all events, too" through_us instr full.out
	check "all events are there" diff <(grep ^events: full.out) <(grep ^events: once)
	for kind in calls jump jcnd; do
		check "every $kind= is there" counts_as $kind full.out once
	done
	check "what valgrind described is there" diff <(grep '^desc: T' full.out) \
		<(grep '^desc: T' once)
	check "the process is there" diff <(grep ^pid: full.out) <(grep ^pid: once)
else
	skip "valgrind's own file" "valgrind or a compiler is not installed"
fi

# --- What gcc -pg wrote: calls that were counted, without what was spent in them ---

# Each part takes a time, not a number of rounds: a fast CPU would end before gprof has ticks.
cat >counted.c <<'END'
#include <time.h>
static volatile unsigned long sink;
#define SPEND_MS(ms) for (clock_t end = clock() + (ms) * (CLOCKS_PER_SEC / 1000); clock() < end;) \
	for (int n = 0; n < 100000; n++) sink += n
void burn(void) { SPEND_MS(10); }
void rare(void) { burn(); }
void often(void) { for (int i = 0; i < 3; i++) burn(); }
void self(void) { SPEND_MS(20); }
int main(void) { for (int i = 0; i < 9; i++) { rare(); often(); self(); } return 0; }
END

# as_gprof FILE: callgrind_annotate's inclusive times are self and children of gprof.
as_gprof() {
	annotate "$1" yes >gmon.total && gprof -b -q ./counted gmon.out >gmon.gprof && python3 -c '
import re
ours = {row[2]: int(row[1].replace(",", "")) / 1e9
	for row in re.finditer(r"^ *[\d,]+ +([\d,]+) +[^:\n]*:(\w+)", open("gmon.total").read(), re.M)}
theirs = {row[3]: float(row[1]) + float(row[2]) for row in re.finditer(
	r"^\[\d+\] +[\d.]+ +([\d.]+) +([\d.]+) .*?(\w+) \[\d+\]$", open("gmon.gprof").read(), re.M)}
print(ours, theirs)
names = ("main", "rare", "often", "burn", "self")  # clock() is called through the PLT, which gprof lists, too
assert theirs["main"] > 0.1 and all(abs(ours[name] - theirs[name]) < 0.021 for name in names)'
}

if command -v gprof >/dev/null && command -v callgrind_annotate >/dev/null &&
	${CC:-cc} -pg -O1 -fno-inline -o counted counted.c && ./counted; then
	check "a gmon.out is converted" \
		exits 0 "$profiltool" convert --executable ./counted -f callgrind gmon.out counted.callgrind
	check "its calls are there" grep -q ^calls=27 counted.callgrind
	check "callgrind_annotate: what gprof says was spent in calls" as_gprof counted.callgrind
else
	skip "a gmon.out" "gprof, callgrind_annotate or a compiler for -pg is not installed"
fi

# --- KCachegrind, in a window ---

# show FILE: opens it, and waits until a function is selected. What it says is in kcachegrind.err.
show() {
	env HOME="$work/home" XDG_RUNTIME_DIR="$work/home" QT_QPA_PLATFORM=xcb LC_ALL=C.UTF-8 \
		kcachegrind "$1" >kcachegrind.err 2>&1 &
	viewer=$!
	note_started "$viewer"
	wait_for grep -q Selected kcachegrind.err
}

# has_window TITLE
has_window() {
	xdotool search --pid "$viewer" --name "$1"
}

complains() {
	grep -q '^Loading .* : ' kcachegrind.err
}

# shows FILE: in a window with its name, with the functions that it holds, and without a complaint.
shows() {
	local result
	show "$1" && wait_for has_window "/$1 .*KCachegrind" && ! complains
	result=$?
	stop "$viewer"
	[ "$result" -eq 0 ] || cat kcachegrind.err
	return "$result"
}

# breaks FILE: whether KCachegrind says so of a file that is broken.
breaks() {
	show "$1"
	stop "$viewer"
	complains
}

desktop() {
	local program
	for program in Xvfb dbus-daemon kcachegrind xdotool; do
		command -v $program >/dev/null || return
	done
}

if desktop; then
	mkdir -p home/.config
	chmod 700 home
	printf '[TipOfDay]\nRunOnStart=false\n' >home/.config/kcachegrindrc
	# The server would begin anew, and refuse connections meanwhile, when its last client leaves.
	start Xvfb -noreset -displayfd 1 -screen 0 1200x800x24
	wait_for grep -q '^[0-9]' start.out
	DISPLAY=:$(grep -m 1 '^[0-9]' start.out)
	start dbus-daemon --session --nofork --print-address --address="unix:path=$work/bus"
	wait_for grep -q '^unix:' start.out
	DBUS_SESSION_BUS_ADDRESS=$(grep -m 1 '^unix:' start.out)
	export DISPLAY DBUS_SESSION_BUS_ADDRESS

	"$profiltool" convert -f callgrind made.8.prof lines.callgrind 2>/dev/null
	"$profiltool" convert -f callgrind made.1.prof flat.callgrind 2>/dev/null
	sed 's/^events:.*/&\nevents/; s/^fn=(3).*/nonsense/' made.callgrind >broken.callgrind
	check "KCachegrind complains when there is a reason" breaks broken.callgrind
	check "KCachegrind shows stacks" shows lines.callgrind
	check "KCachegrind shows stacks with addresses" shows made.callgrind
	check "KCachegrind shows a profile without stacks" shows flat.callgrind
	[ ! -s full.out ] || check "KCachegrind shows what valgrind wrote and we did again" shows once
else
	skip "KCachegrind" "it, Xvfb, dbus-daemon or xdotool is not installed"
fi

# --- The object of every call ---

# gprof2dot keeps the last cob= where a call has none.
printf 'events: e\nob=/x/a\nfl=a\nfn=f\ncob=/x/b\ncfn=g\ncalls=7 1\n1 5\ncfn=h\ncalls=2 1\n3 4\n' \
	>own.callgrind
check "a call of another object, and one of the own" \
	exits 0 "$profiltool" convert own.callgrind own2.callgrind
check "each call says its object" test "$(grep -c ^cob= own2.callgrind)" -eq \
	"$(grep -c ^calls= own2.callgrind)"
check "the own one, too" grep -qx 'cob=(1)' own2.callgrind

# --- The event that comes first: callgrind_annotate sorts by it, and KCachegrind shows it ---

printf 'events: Ir Dr Dw\n\nfn=few\n1 90 1 2\nfn=many\n2 10 7 3\n' >three.callgrind

# events FILE: its events, and the costs of function "many".
events() {
	grep '^events:' "$1" && sed -n '/^fn=.* many$/,+1s/^2 //p' "$1"
}
check "three events" exits 0 "$profiltool" convert three.callgrind same.callgrind
check "three events: their order stays" diff <(printf 'events: Ir Dr Dw\n10 7 3\n') <(events same.callgrind)
check "--value" exits 0 "$profiltool" convert --value Dr three.callgrind dr.callgrind
check "--value: comes first, with its costs" diff <(printf 'events: Dr Ir Dw\n7 10 3\n') <(events dr.callgrind)
check "--value: report shows it" json "j['value'] == 'Dr'" <("$profiltool" report --json dr.callgrind)
check "one value: is named" exits 0 "$profiltool" convert --value Dr three.callgrind dr.folded
check "one value: is named by --value" says "more than one value (Dr is written)"
check "one value: is named by default" exits 0 "$profiltool" convert three.callgrind ir.folded
check "one value: is named, the file's first" says "more than one value (Ir is written)"

finish
