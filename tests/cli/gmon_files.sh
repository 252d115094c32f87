#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# gmon.out: gprof agrees with our report on the files that we write, and our report with gprof on those of
# the C library.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

if ! gprof --version >/dev/null 2>&1; then
	skip "gmon.out" "gprof is not installed"
	finish
fi
unset GMON_OUT_PREFIX
source=$top/tests/progs/shares.c

# --- Programs ---

# build NAME OPTION...: compiles tests/progs/shares.c into a new directory, $work/NAME/NAME. Functions
# begin at multiples of 16, for libc's runtime takes callers to be there. Calls go through no PLT,
# whose entries gprof counts for the function before it.
build() {
	local name=$1
	shift
	mkdir -p "$work/$name"
	"${CC:-gcc}" -g -O1 -fno-inline -fno-plt -falign-functions=16 -D_GNU_SOURCE -w "$@" \
		"$source" -o "$work/$name/$name" -pthread
}

kinds="pie fixed"
build pie -fPIE -pie || exit
build fixed -no-pie || exit
if runs_32_bit "a program of 32 bits"; then
	build narrow -m32 -fPIE -pie || exit
	kinds="$kinds narrow"
fi

# A library that burns, and a program that calls it.
build libburn.so -shared -fPIC || exit
mkdir "$work/caller"
cat >"$work/caller/caller.c" <<'END'
void burn_cpu(double seconds);
int main(void)
{
	burn_cpu(1);
	return 0;
}
END
"${CC:-gcc}" -O1 "$work/caller/caller.c" "$work/libburn.so/libburn.so" -o "$work/caller/caller" || exit

# --- What both see ---

# ours IMAGE FILE...: "SAMPLES FUNCTION" of the functions in the image, sorted.
ours() {
	local image=$1
	shift
	"$profiltool" report --json "$@" 2>/dev/null | python3 -c '
import json, sys
for f in json.load(sys.stdin)["functions"]:
	if f["self"] and f["image"].endswith("/" + sys.argv[1]):
		print(f["self"], f["name"])' "$image" | sort
}

# flat PROGRAM FILE...: the same by gprof, whose seconds of 100 Hz are hundredths.
flat() {
	gprof -b -p "$@" | python3 -c '
import re, sys
unit = None
for line in sys.stdin:
	if line.startswith("Each sample counts as"):
		unit = float(line.split()[4])
	f = line.split()
	if len(f) >= 4 and re.match(r"[\d.]+$", f[0]) and float(f[2]) > 0:
		print(round(float(f[2]) / unit), f[-1])' | sort
}

# same A B: whether two such lists are one, and not empty; but for the compiler's thunks, which are not aligned:
# where one ends and the next begins at an odd address, both are in one cell.
same() {
	[ -s "$1" ] && diff <(grep -v get_pc_thunk "$1") <(grep -v get_pc_thunk "$2")
}

# --- Recorded and converted: functions as we see them ---

for kind in $kinds libburn.so; do
	program=$work/$kind/$kind
	command=("$program" 1 1 stay)
	[ "$kind" = libburn.so ] && command=("$work/caller/caller")
	check "$kind: recorded" exits 0 "$profiltool" record -F 100 -o "$work/$kind/a.pb.gz" -- \
		"${command[@]}"
	check "$kind: to gmon.out" exits 0 "$profiltool" convert -f gmon "$work/$kind/a.pb.gz" \
		"$work/$kind/out"
	ours "$kind" "$work/$kind/a.pb.gz" >"$work/$kind/ours"
	flat "$program" "$work/$kind/out/$kind.gmon" >"$work/$kind/flat"
	check "$kind: burns are seen" grep -q burn_sixty "$work/$kind/ours"
	check "$kind: gprof sees the same functions and samples" same "$work/$kind/ours" \
		"$work/$kind/flat"
	ours "$kind" --executable "$program" "$work/$kind/out/$kind.gmon" >"$work/$kind/back"
	check "$kind: so do we when it is read back" same "$work/$kind/ours" "$work/$kind/back"
done
check "what has no place is reported" says "the gmon format does not hold"

check "recorded as gmon.out: succeeds" exits 0 "$profiltool" record -F 100 --json -f gmon \
	-o "$work/direct" -- sh -c "exec $work/pie/pie 1 0.5 stay >$work/direct.out"
cp "$work/out" "$work/direct.json"
flat "$work/pie/pie" "$work/direct/pie.gmon" >"$work/direct.flat"
check "recorded as gmon.out: gprof sees as many samples" recorded \
	"all(samples(line.split()[1]) == int(line.split()[0]) for line in open('$work/direct.flat')) \
		and samples('burn_sixty') > 0" "$work/direct.json"

# The kernel has no file that gprof could read, so nothing is left to write at the end.
unwritten() {
	mkdir -p "$work/elsewhere"
	exits 1 env TMPDIR="$work/elsewhere" "$profiltool" record --kernel -F 4999 -f gmon -o "$work/nothing" -- \
		dd if=/dev/zero of=/dev/null bs=1M count=5000 status=none &&
		says "no sample is in a program or library that gprof can read" || return
	saved=$(sed -n 's/.*the profile is saved in //p' "$work/err")
}
check_recorded "record fails where gmon.out cannot hold any sample" unwritten
check_recorded "what gmon.out cannot hold is saved as pprof" exits 0 "$profiltool" report "${saved:-none}"

# gprof adds up several files of a program.
twice() {
	flat "$work/pie/pie" "$work/pie/out/pie.gmon" "$work/direct/pie.gmon" >"$work/twice" &&
		diff "$work/twice" <(cat "$work/pie/flat" "$work/direct.flat" | awk '
			{ sum[$2] += $1 } END { for (name in sum) print sum[name], name }' | sort)
}
check "gprof: the sum of two files" twice

# lines PROGRAM FILE: "SAMPLES LINE" for each line of source, by gprof -l.
lines() {
	gprof -b -l -p "$@" | python3 -c '
import collections, re, sys
sums = collections.Counter()
for line in sys.stdin:
	f = line.split()
	place = re.search(r"\(\S+:(\d+) @ [0-9a-f]+\)", line)
	if place and float(f[2]) > 0:
		sums[int(place.group(1))] += round(float(f[2]) * 100)
for number, count in sorted(sums.items()):
	print(count, number)'
}

# lines_by_address PROGRAM FILE: the same by the addresses that we see in the file, and addr2line; and
# "apart N": the ticks in cells, of two bytes, whose bytes are of two lines, of which gprof gives each a part.
lines_by_address() {
	"$profiltool" dump --json "$2" 2>/dev/null | python3 -c '
import collections, json, subprocess, sys
stacks = json.load(sys.stdin)["stacks"]
sums = collections.Counter()
apart = 0
for stack in stacks:
	cell = int(stack["pcs"][0], 0)
	places = subprocess.run(["addr2line", "-e", sys.argv[1], hex(cell), hex(cell + 1)], text=True,
				stdout=subprocess.PIPE).stdout.split("\n")
	numbers = [place.split(":")[1].split()[0] for place in places[:2]]
	sums[int(numbers[0])] += stack["count"]
	apart += stack["count"] * (numbers[0] != numbers[1])
for number, count in sorted(sums.items()):
	print(count, number)
print("apart", apart)' "$1"
}

# same_lines GPROF OURS: but for ticks in cells that two lines share.
same_lines() {
	diff "$1" "$2" | awk '
		/^[<>]/ && $2 == "apart" { apart = $3 }
		/^[<>]/ && $2 != "apart" { off[$3] += $1 == "<" ? $2 : -$2 }
		{ print }
		END {
			for (line in off)
				sum += off[line] < 0 ? -off[line] : off[line]
			exit sum > 2 * apart
		}'
}
lines "$work/pie/pie" "$work/pie/out/pie.gmon" >"$work/lines"
lines_by_address "$work/pie/pie" "$work/pie/out/pie.gmon" >"$work/lines.ours"
check "gprof -l: the same lines" same_lines "$work/lines" "$work/lines.ours"

# --- Counts that a cell of 16 bits does not hold ---

# large PROGRAM NAME=COUNT...: a gperftools file with so many samples of 10 ms in these functions.
large() {
	python3 - "$@" <<'END'
import struct, subprocess, sys
symbols = {}
for line in subprocess.run(["nm", sys.argv[1]], stdout=subprocess.PIPE, text=True).stdout.splitlines():
	f = line.split()
	if len(f) == 3:
		symbols[f[2]] = int(f[0], 16)
slots = [0, 3, 0, 10000, 0]
for word in sys.argv[2:]:
	name, count = word.split("=")
	slots += [int(count), 1, 0x10000000 + symbols[name] + 4]
slots += [0, 1, 0]
sys.stdout.buffer.write(struct.pack("<%dQ" % len(slots), *slots))
print("10000000-10100000 r-xp 00000000 08:01 1  " + sys.argv[1])
END
}
large "$work/pie/pie" burn_sixty=655357 burn_thirty=65536 burn_ten=65535 main=1 \
	burn_cpu=2147483647 >"$work/large.prof"
check "large counts: written" exits 0 "$profiltool" convert -f gmon "$work/large.prof" "$work/large"
flat "$work/pie/pie" "$work/large/pie.gmon" >"$work/large.flat"
check "large counts: gprof sees them all" diff "$work/large.flat" <(sort <<'END'
1 main
2147483647 burn_cpu
65535 burn_ten
65536 burn_thirty
655357 burn_sixty
END
)
large "$work/pie/pie" burn_cpu=2147483648 >"$work/larger.prof"
check "more than gprof can count is refused" exits 1 "$profiltool" convert -f gmon \
	"$work/larger.prof" "$work/larger"
check "more than gprof can count is refused: reported" says "2147483647"
check "more than gprof can count is refused: leaves nothing" test ! -e "$work/larger"

# --- Files of libc's runtime ---

# judge PROGRAM FILE: whether what we see of a file is what gprof sees, function by function. gprof
# reckons in units of 2 bytes, into which it truncates the edges of bins: of a bin it credits
# whole / width, or splits it where a function begins inside. So much, and the half of the last digit
# that it prints, may they differ.
judge() {
	"$profiltool" report --json --executable "$1" "$2" >"$work/judge.json" 2>/dev/null &&
		gprof -b -p "$1" "$2" >"$work/judge.flat" &&
		python3 - "$1" "$2" "$work/judge.json" "$work/judge.flat" <<'END'
import collections, json, re, struct, subprocess, sys
program, path, report, flat = sys.argv[1:]
data = open(path, "rb").read()
size = 4 if open(program, "rb").read(5)[4] == 1 else 8
low, high, bins, rate = struct.unpack_from("<IIII" if size == 4 else "<QQII", data, 21)
counts = struct.unpack_from("<%dH" % bins, data, 21 + 2 * size + 24)
starts = []
for line in subprocess.run(["nm", "-n", program], stdout=subprocess.PIPE, text=True).stdout.splitlines():
	f = line.split()
	if len(f) == 3 and f[1] in "tTwWiI":
		starts.append((int(f[0], 16), f[2]))
width = (high - low) // 2 / bins  # in units
bound = collections.Counter()
for i, count in enumerate(counts):
	if not count:
		continue
	first, end = low // 2 + int(width * i), low // 2 + int(width * (i + 1))
	# Where the bin really is, and where gprof takes it to be
	at = min(2 * first, int(low + i * (high - low) / bins))
	limit = max(2 * end, int(low + (i + 1) * (high - low) / bins) + 1)
	touched = {name for j, (start, name) in enumerate(starts) if start < limit and
		   (j + 1 == len(starts) or starts[j + 1][0] > at)}
	for name in touched:
		bound[name] += abs((end - first) / width - 1) * count if len(touched) == 1 else 2 * count
ours = collections.Counter()
for f in json.load(open(report))["functions"]:
	ours[f["name"]] += f["self"]
theirs = collections.Counter()
for line in open(flat):
	f = line.split()
	if len(f) >= 4 and re.match(r"[\d.]+$", f[0]):
		theirs[f[-1]] += float(f[2]) * rate
# A pc that no symbol covers, as in the PLT, is the function's before it to gprof.
known = {name for _, name in starts}
stray = sum(count for name, count in ours.items() if name not in known)
bad = [name for name in known & (set(ours) | set(theirs))
       if abs(ours[name] - theirs[name]) > bound[name] + stray + 0.005 * rate + 1e-6]
print("ours", dict(ours), "gprof", dict(theirs), "bound", dict(bound))
print("total", sum(ours.values()), sum(counts), "bad", bad)
sys.exit(bool(bad) or stray > 3 or sum(ours.values()) != sum(counts) or ours["burn_sixty"] == 0)
END
}

# graph PROGRAM FILE: the call graph as gprof has it, but for how wide bins are, and for percentages: gprof adds up
# parts of bins, and 7 of 112 ticks may be 6.2 % or 6.3 %.
graph() {
	gprof -b -q "$@" | grep -v '^granularity:' | sed -E 's/^(\[[0-9]+\]) +[0-9.]+/\1/'
}

for kind in $kinds; do
	case $kind in
	pie) options=(-fPIE -pie) ;;
	fixed) options=(-no-pie) ;;
	narrow) options=(-m32 -fPIE -pie) ;;
	esac
	program=$work/$kind-pg/$kind-pg
	build "$kind-pg" -pg "${options[@]}" || exit
	check "$kind, gcc -pg: runs" exits 0 env -C "$work/$kind-pg" "$program" 1 1 stay
	file=$work/$kind-pg/gmon.out
	check "$kind, gcc -pg: as many samples as gprof sees in each function" judge "$program" "$file"
	check "$kind, gcc -pg: strictly" exits 0 "$profiltool" dump --strict "$file"
	check "$kind, gcc -pg: written again" exits 0 "$profiltool" convert --executable "$program" \
		-f gmon "$file" "$work/$kind-pg/again"
	check "$kind, gcc -pg: the same call graph" diff <(graph "$program" "$file") \
		<(graph "$program" "$work/$kind-pg/again/$kind-pg.gmon")
	check "$kind, gcc -pg: which has calls" grep -q 'burn_cpu' <(graph "$program" "$file")
done

# --- Calls without a tick ---

mkdir "$work/calls"
cat >"$work/calls/calls.c" <<'END'
__attribute__((noinline)) static int factorial(int n) { return n > 1 ? n * factorial(n - 1) : 1; }
__attribute__((noinline)) static void leaf(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void thrice(void) { leaf(); leaf(); leaf(); __asm__ volatile(""); }
int main(void) { thrice(); thrice(); return factorial(5) != 120; }
END
"${CC:-gcc}" -pg -g -O1 -fno-optimize-sibling-calls -falign-functions=16 "$work/calls/calls.c" -o "$work/calls/calls" ||
	exit
check "calls: runs" exits 0 env -C "$work/calls" "$work/calls/calls"
file=$work/calls/gmon.out
# It is hardly ever that a tick comes, and then it is erased.
python3 - "$work/calls/calls" "$file" <<'END' || exit
import struct, sys
size = 4 if open(sys.argv[1], "rb").read(5)[4] == 1 else 8
data = bytearray(open(sys.argv[2], "rb").read())
bins, = struct.unpack_from("<I", data, 21 + 2 * size)
start = 21 + 2 * size + 24
data[start:start + 2 * bins] = bytes(2 * bins)
open(sys.argv[2], "wb").write(data)
open(sys.argv[2] + ".arcs", "wb").write(data[:20] + data[start + 2 * bins:])
END
report() {
	"$profiltool" report "$@" --executable "$work/calls/calls" "$file"
}
# "1+4" are calls by others and by itself; gprof -p has the former alone.
gprof_calls() {
	gprof -b -q "$work/calls/calls" "$file" |
		awk '/^\[/ && $5 ~ /^[0-9+]+$/ { split($5, of, "+"); print of[1] + of[2], $6 }' | sort
}
check "calls without a tick: reported" exits 0 report
check "calls without a tick: the table is of calls" \
	grep -qE '^calls +% +cum% +function +image$' "$work/out"
check "calls without a tick: it says why" says "gmon.out: no samples, only calls, which are counted instead"
awk 'NR > 1 { print $1, $4 }' "$work/out" | sort >"$work/calls/ours"
gprof_calls >"$work/calls/flat"
check "calls without a tick: as many as gprof counts" same "$work/calls/flat" "$work/calls/ours"
check "calls without a tick: which are these" same "$work/calls/ours" <(printf '2 thrice\n5 factorial\n6 leaf\n')
check "calls without a tick: JSON" exits 0 report --json
cp "$work/out" "$work/calls.json"
check "calls without a tick: JSON names what is counted" json 'j["value"] == "calls" and [
	(f["name"], f["self"], f["total"]) for f in j["functions"]] == [
	("leaf", 6, 6), ("factorial", 5, 5), ("thrice", 2, 2)]' "$work/calls.json"
check "calls without a tick: of images" exits 0 report --by image
check "calls without a tick: of images: in all" grep -qE '^ +13 +100.00 ' "$work/out"
check "calls without a tick: no sample, if samples are asked for" exits 4 report --value samples
check "calls without a tick: or some of them" exits 4 report --focus leaf
check "a file without a histogram: reported" exits 0 "$profiltool" report --executable "$work/calls/calls" "$file.arcs"
awk 'NR > 1 { print $1, $4 }' "$work/out" | sort >"$work/calls/ours"
check "a file without a histogram: the same calls" same "$work/calls/flat" "$work/calls/ours"
printf 'events: e\nfn=f\n1 0\ncfn=g\ncalls=3 5\n1 0\ncfn=f\ncalls=2 1\n1 0\n' >"$work/calls/nothing.cg"
check "a Callgrind file of calls without a cost: reported" exits 0 "$profiltool" report "$work/calls/nothing.cg"
check "a Callgrind file of calls without a cost: they are listed" \
	test "$(awk 'NR > 1 { print $1, $4 }' "$work/out" | paste -sd ,)" = "3 g,2 f"

# Files of several images, as one recording writes them: the name identifies the image.
mkdir "$work/several"
cp "$work/pie-pg/gmon.out" "$work/several/pie-pg.gmon"
cp "$work/pie-pg/gmon.out" "$work/several/other.gmon"
check "a directory: the program is one image of it" exits 0 "$profiltool" report --json \
	--executable "$work/pie-pg/pie-pg" "$work/several"
cp "$work/out" "$work/several.json"
check "half of the samples are the program's" json '(
	sum(f["self"] for f in j["functions"] if f["image"].endswith("/pie-pg")) * 2 ==
	sum(f["self"] for f in j["functions"]) > 0)' "$work/several.json"
check "half of the samples are the program's: the other half the other image's" json \
	'{f["image"].split("/")[-1] for f in j["functions"] if f["self"]} == {"pie-pg", "other"}' \
	"$work/several.json"

file=$work/pie-pg/gmon.out
check "the program must be named" exits 0 "$profiltool" report "$file"
check "how, is said" says "--executable FILE"
head -c 100 "$file" >"$work/cut.out"
check "a truncated one is refused" exits 1 "$profiltool" dump "$work/cut.out"
check "a truncated one is refused: with the place" says "at byte 20: the histogram is longer"

# --- Nothing that gprof could read ---

echo "main;work 5" >"$work/names.folded"
check "names without addresses are refused" exits 1 "$profiltool" convert -f gmon \
	"$work/names.folded" "$work/nothing"
check "the reason is said" says "no sample is in a program or library"
check "no directory is left" test ! -e "$work/nothing"
check "a recording with samples in the kernel" exits 0 "$profiltool" record --user --kernel -F 100 \
	-q -o "$work/kernel.pb.gz" -- sh -c \
	"dd if=/dev/zero of=/dev/null bs=1M count=20000; $work/pie/pie 1 1"
check "what is left out is reported" exits 0 "$profiltool" convert -q -f gmon "$work/kernel.pb.gz" \
	"$work/kernel"
check "with its number" grep -qE "[0-9]+ of [0-9]+ samples are lost: the gmon format cannot hold" \
	"$work/err"
check "a file in the place of the directory" exits 2 "$profiltool" convert -f gmon \
	"$work/pie/a.pb.gz" "$work/names.folded"

# --- Calls that gprof has no place for ---

printf 'events: e\npositions: instr line\nob=/x/a\nfl=a\nfn=f\ncob=/x/b\ncfn=g\ncalls=7 0x800 1\n0x10 1 5\n' \
	>"$work/across.cg"
printf '0x20 1 5\ncfn=h\ncalls=2 0x40 1\n0x20 1 5\n' >>"$work/across.cg"
check "a call into another image" exits 0 "$profiltool" convert -f gmon "$work/across.cg" "$work/across"
check "a call into another image: is left out, and reported" \
	says "1 call(s) are lost: the gmon format cannot hold"

finish
