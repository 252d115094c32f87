#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Folded stacks: written and read back, through files and pipes; files of other writers; and large files
# with few different stacks, in little memory.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# stacks FILE: prints all lines of a folded file, with equal stacks added up, sorted.
stacks() {
	python3 -c '
import collections, sys
sums = collections.Counter()
for line in open(sys.argv[1], "rb").read().split(b"\n")[:-1]:
	stack, count = line.rsplit(b" ", 1)
	sums[stack] += int(count)
for stack, count in sorted(sums.items()):
	sys.stdout.buffer.write(stack + b" " + str(count).encode() + b"\n")' "$1"
}

# folded FILE: what convert writes of it.
folded() {
	"$profiltool" convert -f folded "$1" - 2>"$work/err"
}

# --- There and back ---

check_recorded "recorded" exits 0 "$profiltool" record -F 999 -o "$work/a.pb.gz" -- "$progs/shares" 1 0.5 stay
check_recorded "written" exits 0 "$profiltool" convert "$work/a.pb.gz" "$work/a.folded"
check_recorded "what it does not hold is reported" says "the folded format does not hold"
check_recorded "each line is a stack and its count" grep -qE '^burn_sixty [0-9]+$' "$work/a.folded"

# functions FILE: "SAMPLES NAME" as report has it, whatever the image.
functions() {
	"$profiltool" report --json "$1" 2>/dev/null | python3 -c '
import collections, json, sys
sums = collections.Counter()
for f in json.load(sys.stdin)["functions"]:
	sums[f["name"]] += f["self"]
for name, count in sorted(sums.items()):
	print(count, name)'
}
functions "$work/a.pb.gz" >"$work/a.functions"
check_recorded "busy functions" grep -q burn_sixty "$work/a.functions"
check "the same functions, those without a name too" diff "$work/a.functions" \
	<(functions "$work/a.folded")
check_recorded "folded stacks become pprof" \
	exits 0 "$profiltool" convert "$work/a.folded" "$work/back.pb.gz"
check "still the same" diff "$work/a.functions" <(functions "$work/back.pb.gz")
check "written twice: the same" diff <(stacks "$work/a.folded") <(stacks <(folded "$work/back.pb.gz"))

# --- What others write ---

# bcc's profile.py -f, perf through stackcollapse-perf.pl, async-profiler, py-spy, Austin
cat >"$work/others.folded" <<'END'
# austin: 3.0.0
# mode: wall

mysqld;[unknown];start_thread;handle_connection;-;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k] 12
perf script;[libc-2.31.so];__GI___libc_write 3
java;Ljava/lang/Thread:::run;com/x/Main:::work_[j];vtable stub_[i] 41
process 4711:python app.py;MainThread;<module> (app.py:12);run (app.py:7) 9
swapper;native_safe_halt_[k] 0
a;operator delete(void*, unsigned long);std::map<int, char const*>::~map() const 7
END
tail -n +4 "$work/others.folded" | grep -v ' 0$' >"$work/others.want"
check "other writers' files are read" exits 0 "$profiltool" dump --strict "$work/others.folded"
check "other writers' files are read: written as they were" \
	diff "$work/others.want" <(folded "$work/others.folded")
check "through a pipe" diff "$work/others.want" \
	<(tail -n +1 "$work/others.folded" | "$profiltool" convert -f folded - - 2>/dev/null)
check "packed" diff "$work/others.want" <(gzip -c "$work/others.folded" | folded -)
check "from Windows" diff "$work/others.want" <(sed 's/$/\r/' "$work/others.folded" | folded -)
check "72 samples" json "j['samples'] == 72" <("$profiltool" dump --json "$work/others.folded")

printf 'a;b 101.5\na;b 12.0\n' >"$work/float.folded"
check "fractions are rounded" diff <(echo "a;b 114") <(folded "$work/float.folded")
check "fractions are rounded: reported" says "fractions of counts were rounded"
check "fractions are rounded: refused with --strict" \
	exits 1 "$profiltool" dump --strict "$work/float.folded"

for i in {1..1000}; do echo "main;f$((i % 3)) 0.4"; done >"$work/fractions.folded"
check "fractions are added before they are rounded" json "j['samples'] == 400" \
	<("$profiltool" dump --json "$work/fractions.folded" 2>/dev/null)
printf 'main;a 0.25\nmain;b 1e-3\nmain;b 5.5e-1\n' >"$work/seconds.folded"
cat >"$work/seconds.table" <<'END'
self   self%  total  total%  function  image
 551   68.79    551   68.79  b         [unknown]
 250   31.21    250   31.21  a         [unknown]
   0    0.00    801  100.00  main      [unknown]
END
check "stacks in seconds are shown in a smaller unit" diff -b "$work/seconds.table" \
	<("$profiltool" report "$work/seconds.folded" 2>"$work/err")
check "stacks in seconds are shown in a smaller unit: reported" says "1 is shown as 1000"
check "stacks in seconds are shown in a smaller unit: its name" says "value: samples/1000"
check "two units are not added up" json "j['samples'] == 2" \
	<(printf 'main;a 2\n' | "$profiltool" merge -o - - "$work/seconds.folded" 2>/dev/null |
		"$profiltool" dump --json - 2>/dev/null)

printf '\xef\xbb\xbfmain;a 10\r\nmain;b 5\r\n' >"$work/mark.folded"
check "a byte order mark is not a part of the first name" diff <(printf 'main;a 10\nmain;b 5\n') \
	<(folded "$work/mark.folded")

printf 'java;GC Thread 3 17\njava;GC Thread 4 20\n' >"$work/threads.folded"
check "names of threads that end with a number are names" json \
	"{f['name']: f['self'] for f in j['functions'] if f['self']} == {'GC Thread 3': 17, 'GC Thread 4': 20}" \
	<("$profiltool" report --json "$work/threads.folded" 2>/dev/null)
printf 'a;b 10 20\na;c 5 0\n' >"$work/difference.folded"
check "two counts: what is written is the second" diff <(echo "a;b 20") \
	<(folded "$work/difference.folded")

# --- Names ---

# A profile whose names hold what means something in the format.
python3 - "$work/names.folded" <<'END'
import sys
names = ["Ljava/lang/String;.x", "two\nlines", "thread 3", " blanks ", "# x", "App\\x3b", "App\\Foo",
	 "\x1b[1m", "x" * 1000000, "\u51fd\u6570"]
def escape(name):
	name = name.replace("\\x3b", "\\x5cx3b").replace(";", "\\x3b").replace("\n", "\\x0a")
	name = name.replace("\x1b", "\\x1b") # would act on a terminal
	if name[0] in " #":
		name = "\\x%02x" % ord(name[0]) + name[1:]
	if name[-1] == " ":
		name = name[:-1] + "\\x20"
	return name.replace("thread 3", "thread\\x203")
with open(sys.argv[1], "w") as out:
	for i, name in enumerate(names):
		print("main;%s;%s %d" % (escape(name), escape(name), i + 1), file=out)
END
check "hostile names: read and written as they are" cmp "$work/names.folded" \
	<(folded "$work/names.folded")
check "hostile names: through pprof" exits 0 "$profiltool" convert "$work/names.folded" \
	"$work/names.pb.gz"
check "hostile names: and back" cmp "$work/names.folded" <(folded "$work/names.pb.gz")
check "hostile names: they are what they were" json \
	"{'Ljava/lang/String;.x', 'two\nlines', 'thread 3', ' blanks ', '# x', 'App\\\\x3b'} \
		<= {f['name'] for f in j['functions']}" \
	<("$profiltool" report --json "$work/names.folded" 2>/dev/null)

# --- What is broken ---

for _ in {1..20}; do echo "a;b 1"; done >"$work/good.folded"
{ cat "$work/good.folded"; echo "a;b"; echo "a;c 4"; } >"$work/broken.folded"
check "a line without a count is skipped" exits 0 "$profiltool" dump "$work/broken.folded"
check "a line without a count is skipped: reported" \
	says "1 line(s) were not read, the first is line 21: the line does not end with a count"
check "a line without a count is skipped: the others are read" json "j['samples'] == 24" \
	<("$profiltool" dump --json "$work/broken.folded" 2>/dev/null)
check "a line without a count is refused with --strict" \
	exits 1 "$profiltool" dump --strict "$work/broken.folded"
{ cat "$work/good.folded"; for _ in {1..21}; do echo "note"; done; } >"$work/broken.folded"
check "a file of other lines is refused" exits 1 "$profiltool" dump "$work/broken.folded"
check "a file of other lines is refused: the first" \
	says "$work/broken.folded:21: the line does not end with a count"
check "a file of other lines is refused: how many" says "21 of 41 lines are bad"
{ cat "$work/good.folded"; printf 'a;b 9223372036854775808\na;c 4\n'; } >"$work/broken.folded"
check "a count that is too large" exits 1 "$profiltool" dump "$work/broken.folded"
check "a count that is too large: reported" says "broken.folded:21: the count has more than 63 bits"
check "a count that is too large: what can be salvaged is reported" says "--salvage reads the other lines"
check "a count that is too large: the lines behind it are salvaged" json "j['samples'] == 24" \
	<("$profiltool" dump --json --salvage "$work/broken.folded" 2>/dev/null)
check "a count that is too large: a report of the others is incomplete" \
	exits 3 "$profiltool" report --salvage "$work/broken.folded"
for other in "$top/user/format/folded/folded.c" "$top/README.md" "$top/Makefile" /etc/passwd; do
	check "${other##*/} is not taken for folded stacks" exits 1 "$profiltool" dump "$other"
	check "${other##*/}: which is said" says "is a text file that is no profile"
done

# --- Nothing to count ---

echo 'main;work 0' >"$work/zero.folded"
check "a profile without samples is written" exits 0 "$profiltool" convert -f folded \
	"$work/zero.folded" "$work/none.folded"
check "a profile without samples is written: read" exits 0 "$profiltool" dump "$work/none.folded"
check "a file of comments is one of none, by its name" exits 0 "$profiltool" dump --json \
	"$work/none.folded"
check "without samples, from a pipe" json "j['format'] == 'folded' and j['samples'] == 0" \
	<(folded "$work/zero.folded" | "$profiltool" dump --json -)
printf '# no sample\n' >"$work/comment"
check "another comment is no profile" exits 1 "$profiltool" dump "$work/comment"

# --- Stacks that differ in addresses alone ---

check "a program runs" start_ready "$progs/shares" 2
check_recorded "recorded with stacks" exits 0 until_used "$pid" 400 "$profiltool" -p "$pid" -F 4999 -g -q -o "$work/g.pb.gz"
stop "$pid"
check_recorded "written" exits 0 "$profiltool" convert "$work/g.pb.gz" "$work/g.folded"
has_no_stack_twice() {
	[ -z "$(sed 's/ [0-9]*$//' "$work/g.folded" | sort | uniq -d)" ]
}
has_all_samples() {
	[ "$(dumped samples "$work/g.pb.gz")" = "$(awk '{ sum += $NF } END { print sum }' "$work/g.folded")" ]
}
check_recorded "has no stack twice" has_no_stack_twice
check_recorded "all samples are written" has_all_samples

# --- Values below 0: differences of profiles, memory that was freed ---

printf 'main;alloc 60\nmain;free -25\nmain;keep 10\nmain;both;up 5\nmain;both;down -5\n' >"$work/signed.folded"
cat >"$work/signed.table" <<'END'
self   self%  total  total%  function  image
  60   57.14     60   57.14  alloc     [unknown]
 -25  -23.81    -25  -23.81  free      [unknown]
  10    9.52     10    9.52  keep      [unknown]
  -5   -4.76     -5   -4.76  down      [unknown]
   5    4.76      5    4.76  up        [unknown]
   0    0.00     45   42.86  main      [unknown]
   0    0.00      0    0.00  both      [unknown]
END
check "values below 0 count, in percent of the sum of magnitudes" \
	diff "$work/signed.table" <("$profiltool" report "$work/signed.folded" 2>/dev/null)
for format in pb.gz callgrind folded; do
	check "$format keeps values below 0" exits 0 "$profiltool" convert "$work/signed.folded" "$work/signed.$format"
	check "$format keeps values below 0: the same table" diff \
		<(awk '/alloc|free|keep|down|up|main/ {print $1, $3, $5}' "$work/signed.table" | sort) \
		<("$profiltool" report "$work/signed.$format" 2>/dev/null |
			awk '/alloc|free|keep|down|up|main/ {print $1, $3, $5}' | sort)
done
check "the tree has parents before their children, by magnitude" grep -qE '^  0\.00 .* both' \
	<("$profiltool" report --tree --percent 0 "$work/signed.folded" 2>/dev/null)
check "callees of a function whose samples cancel out" grep -qE '^ +-5 +-4.76 +-50.00 +-4.76' \
	<("$profiltool" report --callees both "$work/signed.folded" 2>/dev/null)
check "json has negative numbers" json "[(f['self'], f['self_percent']) for f in j['functions'] if f['name'] == 'free'] == [(-25, -23.81)]" \
	<("$profiltool" report --json "$work/signed.folded" 2>/dev/null)
check "merge adds them" grep -qxF 'main;alloc 60' \
	<(printf 'main;free -5\n' | "$profiltool" merge -f folded -o - "$work/signed.folded" - 2>/dev/null)
check "merge adds them: -25 and -5" grep -qxF 'main;free -30' \
	<(printf 'main;free -5\n' | "$profiltool" merge -f folded -o - "$work/signed.folded" - 2>/dev/null)
check "a filter keeps percentages" grep -qE '^ -25  -23.81 .* free' \
	<("$profiltool" report --focus free "$work/signed.folded" 2>/dev/null)
check "nothing but negative values is a profile" exits 0 "$profiltool" report - <<<'a;b -3'
check "a flame graph is as wide as magnitudes" exits 0 "$profiltool" flamegraph "$work/signed.folded" -o "$work/signed.svg"
check "a flame graph is as wide as magnitudes: two colours" test \
	"$(grep -c 'fill="hsl(215' "$work/signed.svg")" -ge 1 -a "$(grep -c 'fill="hsl(12,' "$work/signed.svg")" -ge 2
check "a flame graph is as wide as magnitudes: 25 of 105" grep -qE 'width="280(\.[0-9]+)?".*free' "$work/signed.svg"
printf 'main;alloc 60\nmain;free 25\n' >"$work/unsigned.folded"
check "diff compares them" grep -qE '^ *25 +29.41 +-25 +-23.81 +-53.22 .*free' \
	<("$profiltool" diff "$work/unsigned.folded" "$work/signed.folded" 2>/dev/null)
printf 'events: t\nfn=f\n1 7\nfn=g\n1 -3\n' >"$work/signed.out"
check "callgrind has them" grep -qE '^-3 +-30.00 .* g ' <("$profiltool" report "$work/signed.out" 2>/dev/null)
python3 - "$work/at.prof" <<'END'
import struct, sys
open(sys.argv[1], "wb").write(struct.pack("<13Q", 0, 3, 0, 10000, 0, 7, 1, 0x402100, 3, 1, 0x402110, 0, 1) +
	struct.pack("<Q", 0) + b"00400000-00500000 r-xp 00000000 00:00 0 /usr/bin/env\n")
END
"$profiltool" convert "$work/at.prof" "$work/at.pb.gz" 2>/dev/null
python3 - "$work/at.pb.gz" "$work/below.pb" <<'END'
import gzip, sys
data = gzip.open(sys.argv[1]).read()
# The packed values of a sample of 3, which are 3 and 30000000 ns, become -3 in ten bytes each.
below = (2 ** 64 - 3)
varint = bytes([below >> 7 * i & 127 | (128 if i < 9 else 0) for i in range(10)])
ns = b"\x80\x87\xa7\x0e"
old = b"\x12" + bytes([1 + len(ns)]) + b"\x03" + ns
at = data.index(old)
start = data.rindex(b"\x12", 0, at)
size = data[start + 1]
new = b"\x12\x14" + varint * 2
open(sys.argv[2], "wb").write(data[:start + 1] + bytes([size + len(new) - len(old)]) +
	data[start + 2:at] + new + data[at + len(old):])
END
check "the negative sample is read" grep -qE -- '-30.00' <("$profiltool" report "$work/below.pb" 2>/dev/null)
mkdir "$work/below.dcpi" "$work/below.gmon"
for format in gperftools dcpi gmon; do
	check "$format cannot hold values below 0" exits 3 "$profiltool" convert -q -f "$format" "$work/below.pb" "$work/below.$format"
	check "$format cannot hold values below 0: says so" says "values below 0 are lost, 3 in all: the $format format"
done

# --- Large files ---

# lines COUNT: so many lines of a few stacks, about 100 bytes each.
lines() {
	python3 - "$1" <<'END'
import sys
frames = ["function_number_%02d" % i for i in range(10)]
block = "".join(";".join(frames[j % 5:j % 5 + 5]) + " %d\n" % (j % 7) for j in range(1000)).encode()
for _ in range(int(sys.argv[1]) // 1000):
	sys.stdout.buffer.write(block)
END
}

# peak COMMAND...: runs it, and prints its largest size in memory in KiB.
peak() {
	python3 - "$@" <<'END'
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if code == 0 else "failed")
END
}

lines 1100000 >"$work/large.folded"
check "a file of 100 MB" test "$(stat -c %s "$work/large.folded")" -gt 100000000
kib=$(peak "$profiltool" dump "$work/large.folded")
check "a file of 100 MB: is read in less than 50 MB of memory: $kib KiB" test "$kib" -lt 50000
check "all of it" json "j['samples'] == 1100 * sum(i % 7 for i in range(1000)) and len(j['stacks']) == 5" \
	<("$profiltool" dump --json "$work/large.folded")

printf 'events: x;main 5\nfn=evil;b 7\n' >"$work/events.folded"
check "a file's name decides what its text is" exits 0 "$profiltool" report "$work/events.folded"
check "a first frame as in Callgrind files is a frame" grep -q "  5 .* events: x " "$work/out"
printf 'lookup[abi:cxx11](int);lookup 5\nother 1\n' >"$work/abi.folded"
check "a name is found without its ABI tag" exits 0 "$profiltool" report --callees lookup "$work/abi.folded"

finish
