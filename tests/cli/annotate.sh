#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# annotate prints the instructions of objdump with the samples of the profile, and refuses what it cannot
# print, with the reason.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

chmod 755 "$work" # root reads only what all may read
source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -fno-inline -pthread)

if ! command -v objdump >/dev/null; then
	skip "annotate" "objdump is not installed"
	finish
fi

record() {
	"$profiltool" record --no-inline -q -F 999 -o "$1" -- "${@:2}" >/dev/null
}

gcc "${flags[@]}" -g -fPIE -pie "$source" -o "$work/pie"
gcc "${flags[@]}" -no-pie "$source" -o "$work/fixed"
gcc "${flags[@]}" -no-pie -fno-asynchronous-unwind-tables -s "$source" -o "$work/stripped"
for name in pie fixed stripped; do
	check "$name: recorded" record "$work/$name.pb.gz" "$work/$name" 1 0.6 stay
done

annotate() {
	"$profiltool" annotate "$@" 2>"$work/err"
}

# same_code FUNCTION BINARY FILE: the addresses and instructions are objdump's, all of them; the
# samples are those of report, by address and in sum; ":" is where a jump in the function goes.
same_code() {
	"$profiltool" report --json --by address "$3" >"$work/rows.json" 2>/dev/null
	objdump -d -C --no-show-raw-insn --disassemble="$1" "$2" >"$work/objdump"
	annotate --json "$1" "$3" >"$work/code.json" || return
	python3 - "$work/rows.json" "$work/objdump" "$work/code.json" "$1" <<'EOF_PYTHON'
import json, re, sys
rows, code = json.load(open(sys.argv[1]))["rows"], json.load(open(sys.argv[3]))
there = re.findall(r"^ +([0-9a-f]+):\t(.*?) *$", open(sys.argv[2]).read(), re.M)
here = code["instructions"]
assert [(i["address"], i["instruction"]) for i in here] == \
	[("0x" + address, re.sub(r"\t", " ", text)) for address, text in there] and here
by_address = {row["address"]: row["self"] for row in rows if row["image"] == code["image"]}
assert all(i["self"] == by_address.get(i["address"], 0) for i in here)
assert sum(i["self"] for i in here) == code["self"] == sum(
	row["self"] for row in rows if row["function"].split("+")[0] == sys.argv[4]) > 50
jumps = {"0x" + target for _, text in there
	for target in re.findall(r"^j\S+ +([0-9a-f]+) <", text)}
assert jumps and {i["address"] for i in here if i["target"]} == jumps
EOF_PYTHON
}
for function in burn_sixty burn_thirty; do
	for name in pie fixed; do
		check "$name: $function is as objdump and report say" \
			same_code $function "$work/$name" "$work/$name.pb.gz"
	done
done

# --- The listing ---

# The table without source lines is what JSON has, when all is shown.
all_rows() {
	diff <(annotate -a --no-source burn_sixty "$work/pie.pb.gz" | awk 'NR > 1 { print $1, $3 }') \
		<(annotate --json burn_sixty "$work/pie.pb.gz" | python3 -c '
import json, sys
for i in json.load(sys.stdin)["instructions"]:
	print(i["self"], i["address"])')
}
check "-a shows all instructions" all_rows
check "the function's share" exits 0 "$profiltool" annotate --no-source burn_sixty "$work/pie.pb.gz"
check "the function's share: is reported" says "burn_sixty"
check "-q: not the share" exits 0 "$profiltool" annotate -q --no-source burn_sixty "$work/pie.pb.gz"
check "-q: not the share: says nothing" test ! -s "$work/err"
check "the columns" grep -qxE 'samples +% +address +B +instruction' \
	<(annotate burn_sixty "$work/fixed.pb.gz")
check "in short, the busy ones and no sample less" \
	test "$(annotate --no-source burn_sixty "$work/pie.pb.gz" | awk '/^ *[0-9]/ { n += $1 } END { print n }')" = \
	"$(annotate --json burn_sixty "$work/pie.pb.gz" | python3 -c 'import json, sys; print(json.load(sys.stdin)["self"])')"
# A profile with one busy instruction, lest a tick or two hit all the others.
"$profiltool" dump "$work/fixed.pb.gz" | python3 -c '
import re, struct, sys
text = sys.stdin.read()
low, high = re.search(r"(\w+)-(\w+) \w+ \S*/fixed ", text).groups()
count, pc = max((int(count), int(pc, 16)) for count, pc in
	re.findall(r"^(\d+) (0x\w+) .*# burn_sixty", text, re.M))
sys.stdout.buffer.write(struct.pack("<11Q", 0, 3, 0, 1000, 0, 100, 1, pc, 0, 1, 0) +
	f"{int(low, 16):x}-{int(high, 16):x} r-xp 00001000 00:00 0 {sys.argv[1]}\n".encode())' "$work/fixed" >"$work/one.prof"
check "the rest is reported" grep -qE '^ +\.\.\. [0-9]+ instructions$' <(annotate burn_sixty "$work/one.prof")
check "the rest is reported: no more of it" \
	test "$(annotate burn_sixty "$work/one.prof" | wc -l)" -lt \
	"$(annotate -a burn_sixty "$work/one.prof" | wc -l)"
line=$(grep -n '^BURNER(burn_sixty)' "$source" | cut -d : -f 1)
check "source lines" grep -qF "shares.c:$line  BURNER(burn_sixty)" \
	<(annotate burn_sixty "$work/pie.pb.gz")
check "source lines: none when they are not wanted" test -z \
	"$(annotate --no-source burn_sixty "$work/pie.pb.gz" | grep shares.c)"
check "none in a program without them" test -z "$(annotate -a burn_sixty "$work/fixed.pb.gz" | grep shares.c)"
check "a hint says how to get them" says "no source lines: $work/fixed has no debug information for it; install its -dbgsym package, or build it with -g"
check "its name is printed" says "burn_sixty in $work/fixed: "

check "several files add up" json "j['self'] == $(annotate --json burn_sixty "$work/pie.pb.gz" |
	python3 -c 'import json, sys; print(2 * json.load(sys.stdin)["self"])')" \
	<(annotate --json burn_sixty "$work/pie.pb.gz" "$work/pie.pb.gz")
check "another value" grep -qE '^cpu/nanoseconds +%  samples  address +B' \
	<(annotate --value cpu burn_sixty "$work/pie.pb.gz")

check "hot instructions are red on a terminal" grep -q $'\x1b\[31m' \
	<(terminal 100 "$profiltool" annotate burn_sixty "$work/pie.pb.gz")
check "not with NO_COLOR" test -z \
	"$(NO_COLOR=1 terminal 100 "$profiltool" annotate burn_sixty "$work/pie.pb.gz" | grep $'\x1b')"
check "it fits a terminal" test -z \
	"$(NO_COLOR=1 terminal 60 "$profiltool" annotate -a burn_sixty "$work/pie.pb.gz" | grep -E '.{61}')"

# --- Source lines ---

# Those that hold samples and instructions are what addr2line says.
same_lines() {
	annotate --json "$1" "$2" >"$work/code.json" || return
	python3 - "$work/code.json" <<'EOF_PYTHON'
import collections, json, os, subprocess, sys
code = json.load(open(sys.argv[1]))
here = code["instructions"]
there = subprocess.run(["addr2line", "-e", code["image"]], check=True, text=True,
	stdout=subprocess.PIPE, input="\n".join(i["address"] for i in here)).stdout.split("\n")
counts = collections.Counter()
for instruction, place in zip(here, there):
	file, line = place.split(" ")[0].rsplit(":", 1)
	assert os.path.realpath(instruction["file"]) == os.path.realpath(file)
	assert instruction["line"] == int(line), (instruction, place)
	counts[int(line)] += instruction["self"]
assert {l["line"]: l["self"] for l in code["lines"]} == {l: n for l, n in counts.items() if n}
text = open(code["lines"][0]["file"]).read().split("\n")
assert all(l["source"] == text[l["line"] - 1] for l in code["lines"])
EOF_PYTHON
}
if command -v addr2line >/dev/null; then
	check "lines are what addr2line says" same_lines burn_sixty "$work/pie.pb.gz"
fi

# source_sum: of the samples of lines, less those of what is inlined there.
source_sum() {
	annotate --source-only "$@" | awk '/^ *[0-9]/ && !/  > / && $2 ~ /\./ { n += $1 } END { print n }'
}
sum=$(annotate --json burn_sixty "$work/pie.pb.gz" |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["self"])')
check "--source-only: the columns" grep -qxE 'samples +%  line  source' \
	<(annotate --source-only burn_sixty "$work/pie.pb.gz")
check "no sample less" test "$(source_sum burn_sixty "$work/pie.pb.gz")" = "$sum"
check "none with --all either" test "$(source_sum -a burn_sixty "$work/pie.pb.gz")" = "$sum"
check "the file is reported" grep -qxE " +$source" <(annotate --source-only burn_sixty "$work/pie.pb.gz")
check "a program without lines" exits 1 "$profiltool" annotate --source-only burn_sixty "$work/fixed.pb.gz"
check "a program without lines: reported" \
	says "there are no source lines of burn_sixty: $work/fixed has no debug information"
check "source and none" exits 2 "$profiltool" annotate --source-only --no-source burn_sixty "$work/pie.pb.gz"

mkdir -p "$work/build/src" "$work/elsewhere/src"
cat >"$work/build/src/inlined.c" <<'EOF_C'
#include <time.h>

static volatile unsigned int sink;

__attribute__((always_inline)) static inline unsigned int mix(unsigned int value)
{
	return value % (value / 3 + 7) + 1;
}

__attribute__((noinline)) void work(unsigned long turns)
{
	while (turns--)
		sink = mix(sink);
}

/* It is passed over, as work(), which calls nothing, has no frame pointer. */
__attribute__((noinline)) void twice(unsigned long turns)
{
	work(turns);
	work(turns);
}

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 2)
		twice(10000);
}
EOF_C
gcc -O1 -g -fno-omit-frame-pointer "$work/build/src/inlined.c" -o "$work/inlined"
check "inlined: recorded" exits 0 "$profiltool" record -q -g -F 999 -o "$work/inlined.pb.gz" -- "$work/inlined"
check "without a function, the busiest" json "j['function'] == 'work' and j['self'] > 50" \
	<(annotate --json "$work/inlined.pb.gz")
check "without a function, from an image without samples" exits 1 \
	"$profiltool" annotate -d nothing "$work/inlined.pb.gz"
check "what is inlined stands below its line" grep -qE '^ +[0-9]+ +[0-9]+ +[0-9.]+ +> mix at inlined.c:7  return value % \(value / 3 \+ 7\) \+ 1;$' \
	<(annotate --source-only work "$work/inlined.pb.gz")
check "what is inlined stands below its line: before its instructions" \
	grep -qE '^ +inlined.c:7 \(inlined mix\)  return value' \
	<(annotate work "$work/inlined.pb.gz")
check "a loop" grep -qE ' : ?/ .*  0x|0x[0-9a-f]+ +: / ' <(annotate -a work "$work/inlined.pb.gz")
check "JSON reports what is inlined" json "any(l.get('inlined') == 'mix' and l['inlined_line'] == 7 and
	l['line'] == 13 and l['self'] > 0 for l in j['lines'])" <(annotate --json work "$work/inlined.pb.gz")
check "a caller has what it calls" json "(j['self'] < 10 and j['total'] > 50 and
	max(i['total'] for i in j['instructions'] if i['instruction'].startswith('call')) > 50)" \
	<(annotate --json main "$work/inlined.pb.gz")
check "percent are of that" grep -qE '^ +[0-9]+ +[0-9]+ +(9[0-9]|100)\.[0-9]+ +0x[0-9a-f]+ .*call ' \
	<(annotate main "$work/inlined.pb.gz")

touch "$work/build/src/inlined.c"
touch -d '1 hour ago' "$work/inlined"
check "a source that has changed" exits 0 "$profiltool" annotate --source-only work "$work/inlined.pb.gz"
check "a source that has changed: reported" says "changed since the program was built: $work/build/src/inlined.c; line numbers may be wrong"
mv "$work/build/src/inlined.c" "$work/elsewhere/src/inlined.c"
check "a source that is gone" exits 0 "$profiltool" annotate --source-only work "$work/inlined.pb.gz"
check "a source that is gone: is reported, and what to do" says "source file not found: $work/build/src/inlined.c; --source-path"
check "its lines have numbers all the same" grep -qE '^ +[0-9]+ +[0-9]+ +[0-9.]+ +13 +$' "$work/out"
check "where to look: a directory that does not exist" \
	exits 2 "$profiltool" annotate --source-path "$work/no" work "$work/inlined.pb.gz"
check "where to look: it is named" says "--source-path: $work/no: No such file or directory"
check "a source elsewhere" grep -q 'sink = mix(sink)' \
	<(annotate --source-only --source-path "$work/elsewhere" work "$work/inlined.pb.gz")
check "nothing is missed" test -z "$(grep "not here" "$work/err")"
mkfifo "$work/build/src/inlined.c"
check "what is no file is not waited for" exits 0 timeout 60 \
	"$profiltool" annotate --source-only work "$work/inlined.pb.gz"

# --- Without the program: lines are in the file ---

cat >"$work/lib.c" <<'EOF_C'
int twice(int x)
{
	int y = 0;

	/* far */
	/* away */
	/* from */
	/* here */
	y += add(x, x);
	return y;
}
EOF_C
cat >"$work/lines.cg" <<EOF_CALLGRIND
events: Ir
ob=/nowhere/lib.so
fl=$work/lib.c
fn=twice
2 10
9 20
cfn=add
calls=5 30
9 60
10 10
fn=add
30 60
EOF_CALLGRIND
check "the source alone" diff - <(cd "$work" && NO_COLOR=1 terminal 80 "$profiltool" annotate twice lines.cg |
	sed "s|$work|WORK|") <<'EOF_TABLE'
self  total      %  line  source
                          WORK/lib.c
  10     10  10.00     2  {
                       3          int y = 0;
                       4  
                          ... 2 lines
                       7          /* from */
                       8          /* here */
  20     80  80.00     9          y += add(x, x);
  10     10  10.00    10          return y;
EOF_TABLE

# --- Which function ---

address=$(nm "$work/fixed" | sed -n 's/^0*\([0-9a-f]*\) T burn_ten$/\1/p')
check "by an address in it" diff <(annotate burn_ten "$work/fixed.pb.gz") \
	<(annotate "0x$(printf %x $((0x$address + 1)))" "$work/fixed.pb.gz")
check "a function without samples" exits 1 "$profiltool" annotate main "$work/fixed.pb.gz"
check "a function without samples: reported" says "no sample is in main"
check "a function of another image" exits 1 "$profiltool" annotate -d libc.so.6 burn_ten "$work/fixed.pb.gz"
check "of this image" exits 0 "$profiltool" annotate -d fixed burn_ten "$work/fixed.pb.gz"
check "no profile" exits 2 "$profiltool" annotate burn_ten
check "nothing at all" exits 2 "$profiltool" annotate

# In a stripped program that has no call frame information either, the function of the busiest address, as its code says.
busiest=$("$profiltool" report --json --by address -d stripped "$work/stripped.pb.gz" 2>/dev/null |
	python3 -c 'import json, sys; row = json.load(sys.stdin)["rows"][0]; print(row["address"], row["self"])')
check "stripped: a name that does not exist" exits 1 "$profiltool" annotate burn_sixty "$work/stripped.pb.gz"
check "stripped: by address, which is in it" grep -qE "^ +${busiest#* } +[0-9.]+ +${busiest% *} " \
	<(annotate --no-source "${busiest% *}" "$work/stripped.pb.gz")
check "stripped: by the name that report gives it" diff \
	<(annotate "${busiest% *}" "$work/stripped.pb.gz") \
	<(annotate "stripped+${busiest% *}" "$work/stripped.pb.gz")

# Two static functions of one name.
for part in 1 2; do
	cat >"$work/part$part.c" <<EOF_C
static volatile unsigned int sink;
__attribute__((noinline)) static void twin(unsigned long turns)
{
	while (turns--)
		sink = sink * $part + 1013904223;
}
void part$part(unsigned long turns) { twin(turns); }
EOF_C
done
cat >"$work/twins.c" <<'EOF_C'
#include <time.h>
void part1(unsigned long turns);
void part2(unsigned long turns);
int main(void)
{
	while (clock() < CLOCKS_PER_SEC * 6 / 10) {
		part1(10000);
		part2(10000);
	}
}
EOF_C
gcc -O1 "$work"/{twins,part1,part2}.c -o "$work/twins"
check "two functions of one name: recorded" record "$work/twins.pb.gz" "$work/twins"
check "two functions of one name" exits 1 "$profiltool" annotate twin "$work/twins.pb.gz"
check "two functions of one name: are distinguished by address" says "twin is ambiguous: 0x"
mapfile -t twins < <(nm "$work/twins" | sed -n 's/^0*\([0-9a-f]*\) t twin$/0x\1/p')
check "both are reported" says "${twins[0]} in twins, "
check "the other, too" says "${twins[1]} in twins, "
check "both are of one image: its name is no help" says "profiltool:   give one of these addresses"
# Of this image: where the program has a twin, the dynamic loader has code, too, that may have a sample.
for twin in "${twins[@]}"; do
	check "either can be shown" json "j['start'] == '$twin' and j['self'] > 10" \
		<(annotate --json -d twins "$twin" "$work/twins.pb.gz")
done

for i in {1..20}; do
	printf 'ob=lib%s.so\nfl=%s.c\nfn=twin\n0x%s00 5\n' "$i" "$i" "$i"
done | { printf 'positions: instr\nevents: e\n' && cat; } >"$work/twenty.cg"
check "many of one name" exits 1 "$profiltool" annotate twin "$work/twenty.cg"
check "more than are listed" says " in lib16.so, 5 samples; and more"
check "of several images: the name is a help" says "name the image with --image, or give one of"

cat >"$work/cxx.cc" <<'EOF_C'
#include <ctime>
static volatile unsigned int sink;
namespace work {
template <class T> __attribute__((noinline)) void burn(T turns)
{
	while (turns--)
		sink = sink * 3 + 1;
}
}
int main()
{
	while (clock() < CLOCKS_PER_SEC / 2)
		work::burn<unsigned long>(10000);
}
EOF_C
if g++ -O1 "$work/cxx.cc" -o "$work/cxx" 2>/dev/null; then
	check "C++: recorded" record "$work/cxx.pb.gz" "$work/cxx"
	check "C++: without the parameters" json "j['self'] > 50" \
		<(annotate --json 'void work::burn<unsigned long>' "$work/cxx.pb.gz")
	check "C++: with them" json "j['self'] > 50" \
		<(annotate --json 'void work::burn<unsigned long>(unsigned long)' "$work/cxx.pb.gz")
	check "C++: by the linker's name" json "j['self'] > 50" \
		<(annotate --json "$(nm "$work/cxx" | sed -n 's/.* [tTW] \(.*burn.*\)/\1/p')" "$work/cxx.pb.gz")
else
	skip "a C++ program" "there is no g++ here"
fi

# --- A profile that names a file that only root may read ---

mkdir "$work/private"
printf 'secret\nlines\n' >"$work/private/file.c"
chmod 600 "$work/private/file.c"
{
	echo 'events: Ir'
	printf 'fl=%s\nfn=%s\n1 5\n2 6\n' "$work/private/file.c" reader "/../private/file.c" other
} >"$work/private.cg"
is_secret() {
	! grep secret "$work/out"
}
if [ "$(id -u)" -eq 0 ]; then
	for function in reader other; do
		check "a private file, $function" exits 0 "$profiltool" annotate "$function" "$work/private.cg" \
			--source-path "$work/elsewhere"
		check "a private file, $function: is not shown" is_secret
	done
	check "a private file" exits 0 "$profiltool" annotate reader "$work/private.cg"
	check "a private file: why not" says "source file not read: $work/private/file.c: not all may read it"
	check "a private file that is meant" exits 0 "$profiltool" annotate reader "$work/private.cg" \
		--source-path "$work/private"
	check "a private file that is meant: is shown" grep -q secret "$work/out"
	# Behind a directory that others may not enter, whatever its own mode says, and however it is named.
	mkdir -m 700 "$work/behind"
	mkdir "$work/behind/below"
	printf 'secret\nlines\n' >"$work/behind/below/file.c"
	ln -s behind/below/file.c "$work/to_behind.c"
	printf 'events: Ir\nfl=%s\nfn=absolute\n1 5\nfl=%s\nfn=link\n1 5\nfl=%s\nfn=relative\n1 5\n' \
		"$work/behind/below/file.c" "$work/to_behind.c" file.c >"$work/behind.cg"
	cd "$work/behind/below" || exit 1
	for function in absolute link relative; do
		check "a file behind a private directory, $function" exits 0 "$profiltool" annotate "$function" "$work/behind.cg"
		check "a file behind a private directory, $function: is not shown" is_secret
		check "a file behind a private directory, $function: said" says "not all may read it"
	done
	cd "$top" || exit 1
	# leaked PROGRAM: whether a program that names the file shows it to root.
	leaked() {
		"$profiltool" record -q -F 999 -o "$work/leak.pb.gz" -- "$1" >"$work/out" 2>&1 || return
		"$profiltool" annotate main "$work/leak.pb.gz" >"$work/out" 2>"$work/err"
		grep -q secret "$work/out"
	}
	printf '#line 1 "%s"\nint main(void) { for (volatile long i = 0; i < 100000000; i++)\n; }\n' \
		"$work/behind/below/file.c" >"$work/leak.c"
	gcc -g -O1 -o "$work/leak" "$work/leak.c"
	cp "$work/leak" "$work/behind/leak"
	check "a program elsewhere does not show it" test "$(leaked "$work/leak"; echo $?)" -eq 1
	check "root's program behind the same directory does" leaked "$work/behind/leak"
	chown 65534 "$work/behind/leak" 2>/dev/null
	check "another user's program there does not" test "$(leaked "$work/behind/leak"; echo $?)" -eq 1
	# What is not on a disk is the kernel's answer: reading its log removes it for others.
	unread() {
		python3 -c 'import ctypes; print(ctypes.CDLL(None).klogctl(9, None, 0))'
	}
	echo "profil: a line for a test" >/dev/kmsg 2>/dev/null
	if [ "$(unread)" -gt 0 ]; then
		printf 'positions: instr\nevents: Ir\nob=/proc/kmsg\nfl=/proc/kmsg\nfn=main\n0x1000 5\n' >"$work/kmsg.cg"
		before=$(unread)
		check "a profile that names the kernel's log" exits 0 "$profiltool" report "$work/kmsg.cg"
		"$profiltool" annotate main "$work/kmsg.cg" >"$work/out" 2>&1
		check "a profile that names the kernel's log: it is not read" test "$(unread)" -ge "$before"
	else
		skip "the kernel's log" "there is none here"
	fi
else
	skip "a private file" "only root can read what not all may read"
fi

# --- A single word, which is a profile or a function ---

check "a profile that is not there" exits 1 "$profiltool" annotate brun.pb.gz
check "a profile that is not there: reported" says "cannot open brun.pb.gz: No such file"
check "a path that is not there" exits 1 "$profiltool" annotate "$work/none/brun"
check "a path that is not there: reported" says "cannot open $work/none/brun: No such file"
check "a function alone" exits 2 "$profiltool" annotate burn_sixty
check "a function alone: what is missing" says 'takes a profile, and there is no file "burn_sixty"'
check "a function alone: where a file is meant by default" exits 1 env DCPIDB="$work/none" \
	"$profiltool" annotate net/http.serve
check "a function alone: that file is read" says "cannot open $work/none:"
from_pipe() {
	"$profiltool" annotate - <"$work/fixed.pb.gz" >"$work/out" 2>"$work/err" && says burn_sixty
}
check "standard input alone" from_pipe
cp "$profiltool" "$work/profiltool"
cp "$work/fixed.pb.gz" "$work/secret.pb.gz"
chmod 755 "$work" "$work/profiltool"
chmod 600 "$work/secret.pb.gz"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool")
if "${as_nobody[@]}" --version >/dev/null 2>&1; then
	check "a profile that may not be read" exits 5 "${as_nobody[@]}" annotate "$work/secret.pb.gz"
	check "a profile that may not be read: reported" says "secret.pb.gz: Permission denied"
else
	skip "a profile that may not be read" "setpriv cannot become nobody here"
fi

# --- What cannot be shown ---

check "no objdump" exits 1 env PATH=/nowhere "$profiltool" annotate --no-source burn_sixty "$work/pie.pb.gz"
check "no objdump: names the package" says "install the package binutils"
check "the source will do" exits 0 env PATH=/nowhere "$profiltool" annotate burn_sixty "$work/pie.pb.gz"
check "no objdump: the source is printed instead, with a message" says "no instructions: cannot run objdump"
check "no objdump: the message names the package" says "install the package binutils"

cp "$work/pie" "$work/kept"
gcc "${flags[@]}" -O2 -fPIE -pie "$source" -o "$work/pie"
check "a file that was built anew" exits 1 "$profiltool" annotate burn_sixty "$work/pie.pb.gz"
check "a file that was built anew: refused" says "$work/pie: another file has its path here (build ID differs)"
check "by address, too" exits 1 "$profiltool" annotate \
	"$("$profiltool" report --json --by address "$work/pie.pb.gz" 2>/dev/null | python3 -c '
import json, sys
print(json.load(sys.stdin)["rows"][0]["address"])')" "$work/pie.pb.gz"
rm "$work/pie"
check "a file that is gone" exits 1 "$profiltool" annotate burn_sixty "$work/pie.pb.gz"
check "a file that is gone: reported" says "no such file"
mv "$work/kept" "$work/pie"
check "the right one again" exits 0 "$profiltool" annotate burn_sixty "$work/pie.pb.gz"

cat >"$work/kernel.cg" <<'EOF_CALLGRIND'
positions: instr
events: cycles
ob=[kernel.kallsyms]
fn=schedule
0xffffffff81000000 7
EOF_CALLGRIND
check "the kernel" exits 1 "$profiltool" annotate schedule "$work/kernel.cg"
check "the kernel: is in no file" says "kernel code is in no file"
check "the kernel: says what there is" says "profiltool report --by address -d '[kernel.kallsyms]'"

# --- Several events, and a name that begins with "-": a file made by hand ---

cp "$work/fixed" "$work/-fixed"
cat >"$work/dash.cg" <<EOF_CALLGRIND
positions: instr
events: cycles imiss
ob=-fixed
fn=burn_ten
0x$address 700 3
0x$(printf %x $((0x$address + 1))) 20 4
EOF_CALLGRIND
dash() {
	cd "$work" && annotate burn_ten dash.cg | sed -n 2p | grep -qE "^ +720 +100.00 +7 +0x$address "
}
check "a file whose name begins with a dash, two events" dash
check "JSON has each event" json "j['instructions'][0]['values'] == {'cycles': 720, 'imiss': 7}" \
	<(cd "$work" && annotate --json burn_ten dash.cg)

# --- Functions without a size, as assembly has them: each ends where the next begins ---

gcc -x assembler -nostdlib -no-pie -o "$work/unsized" - <<-'END'
	.globl first, second, _start
	.type first, @function
	.type second, @function
	first: nop
	nop
	second: nop
	_start: ret
END
first=$(nm "$work/unsized" | awk '$3 == "first" { print $1 }')
printf 'positions: instr\nevents: e\nob=%s\nfn=first\n0x%x 3\n0x%x 4\nfn=second\n0x%x 5\n' "$work/unsized" \
	$((0x$first)) $((0x$first + 1)) $((0x$first + 2)) >"$work/unsized.cg"
check "a function without a size: two instructions" json \
	"[i['self'] for i in j['instructions']] == [3, 4]" <(annotate --json first "$work/unsized.cg")
check "the next one: one" json "[i['self'] for i in j['instructions']] == [5]" \
	<(annotate --json second "$work/unsized.cg")

# --- Names from an attacker's hand ---

printf 'positions: instr\nevents: e\nob=/x\033[31m\nfn=f\033[2J\n0x10 5\n' >"$work/hostile.cg"
check "a hostile file is refused" exits 1 "$profiltool" annotate 0x10 "$work/hostile.cg"
check "a hostile file is refused: nothing of it reaches the terminal" \
	test -z "$(grep $'\x1b' "$work/err")"

finish
