#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# DCPI databases: a recording is written by dcpiformat(4), is read back, and is added to existing files
# without a loss.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
data=$top/tests/dcpi/data

# An independent reader, written from dcpiformat(4), which accepts only what that allows. Prints for each
# file JSON with its header and its counts by address.
cat >"$work/dcpi.py" <<'END'
import json, os, re, struct, sys

REQUIRED = {
	"version": r"pdb-0\.[0-9]+", "image": r"[0-9a-fA-F]+", "epoch": r"[0-9]{10}|[0-9]{14}",
	"platform": r"[^ \t\n][^\n]*", "event": r"[^ \t\n][^\n]*", "period": r"[0-9]+",
	"tstart": r"[0-9a-fA-F]+", "tsize": r"[0-9]+", "cpuspeed": r"[0-9]+",
}

def read(path):
	data = open(path, "rb").read()
	lines, at, end = [], 0, None
	while True:
		newline = data.index(b"\n", at)
		line = data[at:newline].decode()
		at = newline + 1
		if re.fullmatch(r"samples[ \t]*", line):
			break
		assert re.fullmatch(r"[^ \t\n]+[ \t]+[^ \t\n][^\n]*", line), line
		lines.append(line)
	assert at % 4 == 0, "not aligned"
	header = {}
	for line in lines:
		word, value = re.fullmatch(r"([^ \t]+)[ \t]+(.*)", line).groups()
		if word in REQUIRED:
			assert word not in header, word
			assert re.fullmatch(REQUIRED[word], value), line
		header.setdefault(word, value)
	assert not set(REQUIRED) - set(header), header
	words = struct.unpack("<%dI" % ((len(data) - at) // 4), data[at:])
	assert (len(data) - at) % 4 == 0 and len(words) >= 2
	body, footer = words[:-2], words[-2:]
	tstart, tsize, counts, before, i = int(header["tstart"], 16), int(header["tsize"]), {}, -1, 0
	while i < len(body):
		offset, number = body[i:i + 2]
		assert number >= 1 and offset >= before and offset + number <= tsize
		for j, count in enumerate(body[i + 2:i + 2 + number]):
			if count:
				counts[tstart + offset + j] = count
		assert i + 2 + number <= len(body)
		before, i = offset + number, i + 2 + number
	assert footer == (len(counts), sum(counts.values())), footer
	return {"path": path, "lines": lines, "header": header, "counts": counts,
		"total": sum(counts.values())}

files = []
for top in sys.argv[1:]:
	if os.path.isfile(top):
		files.append(read(top))
	for directory, _, names in os.walk(top):
		files += [read(os.path.join(directory, name)) for name in sorted(names)]
json.dump(files, sys.stdout)
END

# parse PATH: the files there, as JSON in $work/parsed.json.
parse() {
	python3 "$work/dcpi.py" "$1" >"$work/parsed.json"
}

# parsed EXPRESSION PATH: evaluates it over the files there.
parsed() {
	parse "$2" && json "$1" "$work/parsed.json"
}

# sum PATH: all samples in the files there.
sum() {
	parse "$1" && python3 -c 'import json, sys
print(sum(f["total"] for f in json.load(open(sys.argv[1]))))' "$work/parsed.json"
}

# reported PATH: all samples that the report has.
reported() {
	"$profiltool" report --json "$1" 2>/dev/null |
		python3 -c 'import json, sys
print(sum(f["self"] for f in json.load(sys.stdin)["functions"]))'
}

# make FILE [LINE=VALUE...] [-- OFFSET COUNT...]: a file of one image, with other lines where given.
make_file() {
	python3 - "$@" <<'END'
import struct, sys
args = sys.argv[2:]
cut = args.index("--") if "--" in args else len(args)
lines = {"version": "pdb-0.07", "image": "1f2e3d4c5b6a79880f1e2d3c4b5a69788796a5b4",
	"epoch": "2501181015", "platform": "walnut", "event": "cpu-clock", "period": "10101010",
	"tstart": "401000", "tsize": "16777216", "cpuspeed": "0", "path": "/gone/demo"}
lines.update(arg.split("=", 1) for arg in args[:cut])
numbers = [int(n, 0) for n in args[cut + 1:]]
header = "".join("%-10s %s\n" % line for line in lines.items()) + "samples"
header += " " * (-(len(header) + 1) % 4) + "\n"
counts = list(zip(numbers[::2], numbers[1::2]))
body = b"".join(struct.pack("<3I", offset, 1, count) for offset, count in counts)
open(sys.argv[1], "wb").write(header.encode() + body + struct.pack("<2I", len(counts),
	sum(c for _, c in counts)))
END
}

to_dcpi() {
	"$profiltool" convert -f dcpi "$@"
}

only_file() {
	find "$1" -type f | head -n 1
}

count_files() {
	find "$1" -type f | wc -l
}

# --- As a user records ---

check "a program runs" start_ready "$progs/shares" 2
check_recorded "recorded" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -f dcpi -o "$work/db"
check_recorded "what the format loses is reported" says "the dcpi format does not hold"
first=$(reported "$work/db")
check_recorded "recorded once more, into the same database" \
	exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -f dcpi -o "$work/db"
check_recorded "recorded once more, into the same database: as pprof" \
	exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 999 -o "$work/a.pb.gz"
stop "$pid"

check "every file is one by dcpiformat(4)" parse "$work/db"
check "EPOCH/HOST/IMAGE.ID_EVENT" json "all(
	__import__('re').search(r'/db/[0-9]{10}/[^/]+/[^/]+[.][0-9a-f]+_[a-z-]+\$', f['path'])
	for f in j)" "$work/parsed.json"
check "the name is reported by the header" json "all(
	f['path'].split('/')[-3:] == [f['header']['epoch'], f['header']['platform'],
		'%s.%s_%s' % (f['header']['path'].split('/')[-1], f['header']['image'],
			f['header']['event'])] for f in j)" "$work/parsed.json"
check_recorded "the program is one of the images" json \
	"any(f['header']['path'] == '$progs/shares' for f in j)" "$work/parsed.json"
check "the period is in nanoseconds" json \
	"all(f['header']['period'] == '1001001' for f in j)" "$work/parsed.json"
check_recorded "the file's build ID is the image" json "any(f['header']['image'] ==
	'$(readelf -n "$progs/shares" | sed -n 's/.*Build ID: //p')' for f in j)" "$work/parsed.json"
text=$(readelf -lW "$progs/shares" | awk '$1 == "LOAD" && / R E / { print $3; exit }')
check "tstart is the first executable segment's address" json "all(
	int(f['header']['tstart'], 16) == $text for f in j
	if f['header']['path'] == '$progs/shares')" "$work/parsed.json"
check "nobody else may read it" test -z "$(find "$work/db" -perm /077)"
check "nothing else is there" test -z "$(find "$work/db" -name '.*')"

check_recorded "report says as many samples as the files have" \
	test "$(reported "$work/db")" -eq "$(sum "$work/db")"
check_recorded "the second recording is in it" test "$(reported "$work/db")" -gt "$first"
"$profiltool" report --json "$work/db" >"$work/db.json" 2>/dev/null
check_recorded "functions have names, and their shares" recorded \
	"whole and ran('burn_sixty') and images('burn_sixty') == {'shares'}" "$work/db.json"
check_recorded "event and period are known" recorded \
	"j['event'] == 'cpu-clock' and j['period_ns'] == 1001001" "$work/db.json"
epoch=$(find "$work/db" -mindepth 1 -maxdepth 1 | head -n 1)
check_recorded "one epoch of it" test "$(reported "$epoch")" -eq "$(sum "$epoch")"
file=$(find "$epoch" -name 'shares.*' | head -n 1)
check_recorded "one file of it" test "$(reported "$file")" -eq "$(sum "$file")"
check_recorded "dump" exits 0 "$profiltool" dump "$file"
check_recorded "dump reports the image" grep -q "$progs/shares" "$work/out"

check_recorded "all epochs become one" exits 0 to_dcpi "$work/db" "$work/one"
check_recorded "that is one" test "$(find "$work/one" -mindepth 1 -maxdepth 1 | wc -l)" -eq 1
check "the earliest" test "$(ls "$work/one")" = "$(find "$work/db" -mindepth 1 -maxdepth 1 \
	-printf '%f\n' | sort | head -n 1)"
check "no sample is lost by it" test "$(sum "$work/one")" -eq "$(sum "$work/db")"

check_recorded "pprof becomes DCPI" exits 0 to_dcpi "$work/a.pb.gz" "$work/a"
functions() {
	"$profiltool" report "$1" 2>/dev/null | awk '{ print $1, $4 }' | sort
}
check "with the same functions" diff <(functions "$work/a.pb.gz") <(functions "$work/a")
check_recorded "and back" exits 0 "$profiltool" convert "$work/a" "$work/b.pb.gz"
check "with the same functions, too" diff <(functions "$work/a") <(functions "$work/b.pb.gz")

# Waits have times of hours in nanoseconds, but no address: no file counts them.
sleepers=
for _ in 1 2 3 4 5 6 7 8; do
	start sleep 1000
	sleepers+=,$pid
done
start_ready "$progs/shares" 2
check_recorded "a recording of waits" exits 0 until_used "$pid" 1500 "$profiltool" record --wall -F 999 \
	-p "$pid$sleepers" -o "$work/wall.pb.gz"
stop "$pid"
check_recorded "a recording of waits becomes DCPI" exits 0 to_dcpi "$work/wall.pb.gz" "$work/wall"
check_recorded "DCPI reports that it has no wall times" says "wall times"
check_recorded "DCPI has the samples of it, and no file of waits" parsed \
	"{f['header']['event'] for f in j} == {'cpu-clock'} and sum(f['total'] for f in j) == $(
		reported "$work/wall.pb.gz")" "$work/wall"

# --- Unknown lines ---

make_file "$work/lines.dcpi" version=pdb-0.06 epoch=20250118101507 image=19970328081403c0c18b \
	cpuspeed=333 cpuamask=3 cpucount=4 "path=/gone/demo" "z=  two  words	 " \
	"label=L" "samples=xyz" "a-line=1" -- 0x10 1 0x11 2
check "a file with lines that we do not know" exits 0 to_dcpi "$work/lines.dcpi" "$work/lines"
parse "$work/lines.dcpi"
mv "$work/parsed.json" "$work/before.json"
check "has them all again, byte for byte" parsed "sorted(j[0]['lines']) == sorted(
	read('$work/before.json')[0]['lines'])" "$work/lines"
check "the unknown ones in order" parsed "[l for l in j[0]['lines'] if l[0] in 'zsa'] == [l for l in
	read('$work/before.json')[0]['lines'] if l[0] in 'zsa']" "$work/lines"
make_file "$work/other.dcpi" image=19970328081403c0c18b epoch=20250118101507 label=L "b-line=1" \
	"a-line=1" -- 0x10 1 0x12 5
check "another with other lines is added" exits 0 to_dcpi "$work/other.dcpi" "$work/lines"
check "the lines of both are there, each once" parsed \
	"[l.split()[0] for l in j[0]['lines']][-4:] == ['z', 'samples', 'a-line', 'b-line']" "$work/lines"
check "the counts are added" parsed \
	"j[0]['counts'] == {'4198416': 2, '4198417': 2, '4198418': 5}" "$work/lines"

# --- What is refused ---

make_file "$work/full.dcpi" -- 0x123 0xffffffff
check "the largest count" exits 0 to_dcpi "$work/full.dcpi" "$work/full"
cp "$(only_file "$work/full")" "$work/full.before"
make_file "$work/more.dcpi" -- 0x123 1
check "one more is refused" exits 1 to_dcpi "$work/more.dcpi" "$work/full"
check "the image is reported" says "/gone/demo: 4294967296 samples"
check "the address is reported" says "at address 0x401123"
check "the hint is printed" says "write another format"
check "what was there is as it was" cmp "$work/full.before" "$(only_file "$work/full")"
check "nothing else is there" test "$(count_files "$work/full")" -eq 1
make_file "$work/period.dcpi" period=5 -- 0x123 1
check "another period is refused" exits 1 to_dcpi "$work/period.dcpi" "$work/full"
check "the line is reported" says "its period differs"
check "a file in place of a directory" exits 2 to_dcpi "$work/full.dcpi" "$work/more.dcpi"
check "standard output in place of a directory" exits 2 to_dcpi "$work/full.dcpi" -
mkdir "$work/none"
check "an empty directory" exits 1 "$profiltool" report "$work/none"
check "an empty directory: why" says "there is no profile in this directory"
mkdir "$work/logs"
date >"$work/logs/hpcpid-walnut.log"
cp "$work/more.dcpi" "$work/logs/"
check "a log beside the profiles" exits 0 "$profiltool" report "$work/logs"
check "a log beside the profiles: is left out, and reported" \
	says "hpcpid-walnut.log is not a profile"

# --- One image must not keep the others from being written ---

# profile FILE NAME COUNT...: a pprof file of images with one build ID, one sample for each.
profile() {
	python3 - "$@" <<'END'
import sys
def varint(n):
	return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
def field(number, value):
	if isinstance(value, int):
		return varint(number << 3) + varint(value)
	return varint(number << 3 | 2) + varint(len(value)) + value
def message(*values):
	return b"".join(field(number, value) for number, value in enumerate(values, 1))
names, counts = sys.argv[2::2], sys.argv[3::2]
texts = ["", "samples", "count", "5a" * 20] + ["/gone/" + name for name in names]
out = field(1, message(1, 2))
for i, count in enumerate(counts, 1):
	start = i << 20
	out += field(2, message(i, int(count)))
	out += field(3, message(i, start, start + 4096, 0, i + 3, 3))
	out += field(4, message(i, i, start + 16))
out += b"".join(field(6, text.encode()) for text in texts)
open(sys.argv[1], "wb").write(out)
END
}

# by_path: the counts by path, of $work/parsed.json.
by_path() {
	python3 -c 'import json, sys
for f in sorted(json.load(open(sys.argv[1])), key=lambda f: f["header"]["path"]):
	print(ascii(f["header"]["path"]), f["total"])' "$work/parsed.json"
}

profile "$work/both.pb" $'a\001' 1 $'a\002' 2 ok 4
profile "$work/second.pb" $'a\002' 8
check "names that are one without control characters" exits 0 to_dcpi "$work/both.pb" "$work/clean"
check "each image has a file" test "$(count_files "$work/clean")" -eq 3
check "an image has the same file each time" exits 0 to_dcpi "$work/second.pb" "$work/clean"
parse "$work/clean"
check "its counts are added" diff <(by_path) <(printf '%s\n' \
	"'/gone/a\\x01' 1" "'/gone/a\\x02' 10" "'/gone/ok' 4")
check "no file has a control character in its name" \
	test -z "$(find "$work/clean" -name '*[[:cntrl:]]*')"
n=$(printf 'n%.0s' {1..250})
profile "$work/long.pb" "${n}1" 1 "${n}2" 2
check "names that are one when they are truncated" exits 0 to_dcpi "$work/long.pb" "$work/long"
check "each image of a long name has a file" parsed "sorted(f['total'] for f in j) == [1, 2]" "$work/long"
profile "$work/deleted.pb" demo 1 "demo (deleted)" 2
check "a file and one of its name that was deleted" \
	exits 0 to_dcpi "$work/deleted.pb" "$work/deleted"
check "they are one" parsed "[f['total'] for f in j] == [3]" "$work/deleted"
mkdir "$work/memory"
for name in a b c; do
	make_file "$work/memory/$name" "path=[anon:$name/x]" image=0 x-addresses=memory -- 0x10 3
done
check "memory whose names are one" exits 0 to_dcpi "$work/memory" "$work/memory2"
check "each has a file" parsed "sorted(f['path'].split('/')[-1] for f in j) == [
	'x]-2.0_cpu-clock', 'x]-3.0_cpu-clock', 'x].0_cpu-clock']" "$work/memory2"
check "memory whose names are one: once more" exits 0 to_dcpi "$work/memory" "$work/memory2"
check "the same files" parsed "[f['total'] for f in j] == [6, 6, 6]" "$work/memory2"

for addresses in "" file; do
	rm -rf "$work/far" "$work/far2"
	mkdir "$work/far"
	set -- path=/gone/far
	[ -z "$addresses" ] || set -- "$@" "x-addresses=$addresses"
	make_file "$work/far/1" "$@" x-ticks=1 -- 0 1
	make_file "$work/far/2" "$@" x-ticks=5 tstart=100401000 -- 0 2 1 3
	make_file "$work/far/3" image=22 path=/gone/ok x-ticks=4 -- 0 4
	title="addresses 4 GiB apart${addresses:+, of $addresses}"
	check "$title" exits 0 to_dcpi "$work/far" "$work/far2"
	check "$title: what is dropped is reported" \
		says "5 samples of /gone/far are lost: the dcpi format cannot hold addresses 4 GiB"
	parse "$work/far2"
	check "$title: the rest is written" diff <(by_path) <(printf '%s\n' "'/gone/far' 1" "'/gone/ok' 4")
	check "$title: the file counts what it lacks as lost" json "[(f['header']['x-ticks'],
		f['header']['x-lost'].split()[0]) for f in j if 'x-lost' in f['header']] == [('6', '5')]" \
		"$work/parsed.json"
	check "$title: once more" exits 0 to_dcpi "$work/far" "$work/far2"
	check "$title: added" parsed "sorted((f['total'], f['header'].get('x-lost', '').split(' ')[0])
		for f in j) == [(2, '10'), (8, '')]" "$work/far2"
done
check "addresses 4 GiB above the file that is there" exits 1 to_dcpi "$work/far/2" "$work/far2"
check "addresses 4 GiB above the file that is there: the address is reported" \
	says "/gone/far: address 0x100401000 is 4 GiB or more above the text's start at 0x401000"

# --- A database that is read and written ---

make_file "$work/new.dcpi" -- 0x100 1 0x200 2
check "a database" exits 0 to_dcpi "$work/new.dcpi" "$work/twice"
ln -s twice "$work/link"
add() { # INPUT...: to the database
	exits 2 "$profiltool" merge -f dcpi "$@" -o "$work/twice"
}
check "converted to itself" exits 2 to_dcpi "$work/twice" "$work/twice"
check "converted to itself: why" says "its samples would be doubled"
check "converted to itself: what to do" says "profiltool merge -f dcpi NEW -o $work/twice"
check "merged with itself" add "$work/twice" "$work/new.dcpi"
check "merged with itself: it is not the first" add "$work/new.dcpi" "$work/link/"
check "merged with itself: by another name" add "$work/./none/../twice"
check "merged with a file of it" add "$work/new.dcpi" "$(only_file "$work/link/")"
check "merged with a directory that it lies in" add "$work"
from_stdin() {
	"$profiltool" merge -f dcpi - -o "$work/twice" <"$(only_file "$work/twice")"
}
check "merged with a file of it: standard input" exits 2 from_stdin
check "DCPIDB for both" exits 2 env DCPIDB="$work/twice" "$profiltool" merge -f dcpi
check "nothing is doubled" test "$(sum "$work/twice")" -eq 3
check "only what is new" exits 0 "$profiltool" merge -f dcpi "$work/new.dcpi" -o "$work/link"
check "only what is new: added" test "$(sum "$work/twice")" -eq 6

# --- At once ---

make_file "$work/tick.dcpi" -- 0x100 1 0x200 1
writers=()
for ((i = 0; i < 12; i++)); do
	to_dcpi "$work/tick.dcpi" "$work/crowd" 2>"$work/crowd.$i" &
	writers+=($!)
done
failed=0
for writer in "${writers[@]}"; do
	wait "$writer" || failed=$((failed + 1))
done
check "twelve write at once" test $failed -eq 0
check "no tick is lost" test "$(sum "$work/crowd")" -eq 24
check "nothing else is left" test "$(count_files "$work/crowd")" -eq 1

# --- Killed while it writes ---

killed() {
	"$profiltool" convert -f dcpi "$work/tick.dcpi" "$work/killed" 2>/dev/null || return
	# The shell would report on standard error that it was killed.
	(strace -o /dev/null -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1 \
		"$profiltool" convert -f dcpi "$work/tick.dcpi" "$work/killed"; true) 2>/dev/null
	[ -n "$(find "$work/killed" -name '.profil-*')" ]
}
if strace -o /dev/null -e inject=renameat2:signal=KILL:when=1 true 2>/dev/null; then
	check "killed when a file was to take its name" killed
	check "the database can be read" exits 0 "$profiltool" dump "$work/killed"
	check "the database can be read: written" \
		exits 0 "$profiltool" convert -f dcpi "$work/tick.dcpi" "$work/killed"
	check "nothing is left of what was killed" test -z "$(find "$work/killed" -name '.*')"
else
	skip "killed while it writes" "strace cannot inject a signal here"
fi

# --- A full disk, and no permission ---

# shellcheck disable=SC2046 # many words
make_file "$work/large.dcpi" -- $(seq 0 3 60000 | sed 's/$/ 1/')
# shellcheck disable=SC2016 # the inner shell expands it
on_small_disk() {
	unshare -m bash -c 'cd "$1" && mkdir -p disk && mount -t tmpfs -o size=64k tmpfs disk || exit 9
		"$2" convert -f dcpi tick.dcpi disk/db 2>/dev/null || exit 8
		"$2" convert -f dcpi large.dcpi disk/db && exit 7
		"$2" convert -f dcpi other.dcpi disk/db 2>/dev/null || exit 6
		"$2" convert -f dcpi large.dcpi disk/new && exit 5
		cp -r disk/db after && ls -A disk >after.list' bash "$work" "$profiltool"
}
if unshare -m true 2>/dev/null; then
	check "a full disk" exits 0 on_small_disk
	check "a full disk: why" says "No space left on device"
	check "what was there is there, and what came later" \
		parsed "sorted(f['total'] for f in j) == [2, 6]" "$work/after"
	check "nothing else is left" test "$(cat "$work/after.list")" = db
else
	skip "a full disk" "unshare -m does not work here"
fi

# --- A profile whose period is unknown ---

echo 'main;work 5' >"$work/none.folded"
check "without a period" exits 0 "$profiltool" convert -f dcpi "$work/none.folded" "$work/none"
check "without a period: what was written is read without a warning" \
	exits 0 "$profiltool" dump --strict "$work/none"

cp "$profiltool" "$work/profiltool"
chmod 755 "$work" "$work/profiltool"
chmod 644 "$work"/*.dcpi
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$work/profiltool" "$@"
}
if as_nobody --version >/dev/null 2>&1; then
	check "as nobody: another's database is not read" exits 5 as_nobody report "$work/crowd"
	check "as nobody: why" says "Permission denied"
	mkdir -p "$work/mixed/closed"
	cp "$work/tick.dcpi" "$work/mixed/a"
	cp "$work/tick.dcpi" "$work/mixed/b"
	cp "$work/tick.dcpi" "$work/mixed/closed/c"
	chmod 755 "$work/mixed"
	chmod 0 "$work/mixed/b" "$work/mixed/closed"
	check "as nobody: what can be read of a directory is" exits 3 as_nobody report "$work/mixed"
	check "as nobody: the file that cannot be read is named" \
		says "not read: cannot open $work/mixed/b: Permission denied"
	check "as nobody: so is the subdirectory" says "not read: cannot read $work/mixed/closed: Permission denied"
	rm "$work/mixed/a"
	check "as nobody: a directory without anything that can be read" exits 5 as_nobody report "$work/mixed"
	for place in "$work/crowd" "$work/new"; do
		check "as nobody: nor written: ${place##*/}" \
			exits 5 as_nobody convert -f dcpi "$work/tick.dcpi" "$place"
		check "as nobody: why not" says "Permission denied"
	done
	mkdir -m 777 "$work/open"
	check "as nobody: an own one" exits 0 as_nobody convert -f dcpi "$work/tick.dcpi" "$work/open/db"
else
	skip "as nobody" "setpriv cannot become nobody here"
fi

# --- Many files, many addresses ---

python3 - "$work" <<'END'
import os, struct, sys
work = sys.argv[1]
def write(path, image, count):
	header = ("version    pdb-0.07\nimage      %040x\nepoch      2501181015\nplatform   walnut\n"
		"event      cpu-clock\nperiod     10101010\ntstart     0\ntsize      16777216\n"
		"cpuspeed   0\npath       /gone/%d\nlabel-%d   %d\nsamples" % (image, image, image, image))
	body = struct.pack("<3I", 0, count, 1) + b"\1\0\0\0" * (count - 1)
	with open(path, "wb") as out:
		out.write((header + " " * (-(len(header) + 1) % 4) + "\n").encode())
		out.write(body + struct.pack("<2I", count, count))
os.mkdir(work + "/many")
for i in range(1, 2001):
	write("%s/many/%d" % (work, i), i, 3)
write(work + "/million.dcpi", 7, 1000000)
END
check "two thousand files are read and written" exits 0 "$profiltool" convert -f dcpi \
	"$work/many" "$work/many2"
check "all of them" test "$(sum "$work/many2")" -eq 6000
check "a million addresses" exits 0 "$profiltool" convert -f dcpi \
	"$work/million.dcpi" "$work/million"
check "byte for byte" cmp "$work/million.dcpi" "$(only_file "$work/million")"

# --- A damaged file ---

make_file "$work/whole.dcpi" -- 0x100 3
make_file "$work/other_image.dcpi" image=22222222222222222222222222222222222222aa path=/gone/other \
	-- 0x10 4 0x20 5
mkdir -p "$work/torn/2501181015/walnut"
cp "$work/whole.dcpi" "$work/torn/2501181015/walnut/demo.1_cpu-clock"
head -c -12 "$work/other_image.dcpi" >"$work/torn/2501181015/walnut/other.2_cpu-clock"
check "a database with a damaged file is read" exits 3 "$profiltool" report --json "$work/torn"
check "the file is named" says "not read: $work/torn/2501181015/walnut/other.2_cpu-clock: at byte"
check "the rest is reported" json "sum(f['self'] for f in j['functions']) == 3" "$work/out"
check "with --strict it is refused" exits 1 "$profiltool" report --strict "$work/torn"
check "converted" exits 3 to_dcpi "$work/torn" "$work/torn2"
check "the rest is there" test "$(sum "$work/torn2")" -eq 3
rm "$work/torn/2501181015/walnut/demo.1_cpu-clock"
check "damaged files alone are none" exits 1 "$profiltool" report "$work/torn"
check "the first is named" says "other.2_cpu-clock: at byte"

# --- Files without samples ---

for addresses in "" file memory; do
	path=/gone/idle
	[ "$addresses" != memory ] || path=//anon
	set -- version=pdb-0.06 image=33333333333333333333333333333333333333bb "path=$path" cpuspeed=333 \
		cpucount=4 label=L z=y tstart=402000 tsize=8192
	[ -z "$addresses" ] || set -- "$@" "x-addresses=$addresses"
	make_file "$work/idle.dcpi" "$@"
	rm -rf "$work/idle"
	check "a file without samples${addresses:+, of $addresses}" \
		exits 0 to_dcpi "$work/idle.dcpi" "$work/idle"
	parse "$work/idle.dcpi" && mv "$work/parsed.json" "$work/before.json"
	check "has all its lines again" parsed "sorted(j[0]['lines']) == sorted(
		read('$work/before.json')[0]['lines'])" "$work/idle"
	cp "$work/whole.dcpi" "$work/idle/"
	check "beside one with samples" exits 0 to_dcpi "$work/idle" "$work/idle2"
	check "both are there" parsed "{f['header']['path'] for f in j} == {
		'/gone/demo', '$path'} and sum(f['total'] for f in j) == 3" "$work/idle2"
	rm -rf "$work/idle2"
done

# --- Labels ---

make_file "$work/label.dcpi" label=L -- 0x10 1
check "a label" exits 0 to_dcpi "$work/label.dcpi" "$work/label"
check "a label: kept" parsed "j[0]['header']['label'] == 'L'" "$work/label"
check "a label: nothing else is said" test ! -s "$work/err"
check "where it is lost" exits 0 "$profiltool" convert "$work/label.dcpi" "$work/label.folded"
check "it is said" says "the label"

# --- Several machines ---

mkdir "$work/fleet"
cp "$work/whole.dcpi" "$work/fleet/1"
make_file "$work/fleet/2" platform=oak -- 0x100 3
make_file "$work/fleet/3" platform=walnut -- 0x100 3
check "files of two machines" exits 0 "$profiltool" report "$work/fleet"
check "files of two machines: reported" \
	says "profiles of several machines, which are added up: walnut, oak"
check "named one by one: report" exits 0 "$profiltool" report "$work/fleet/1" "$work/fleet/2"
check "named one by one: report: it is reported" \
	says "the profiles are of several machines, which are added up: walnut, oak"
for out in fleet.pb.gz fleet.db; do
	check "named one by one: merge to $out" exits 0 "$profiltool" merge "$work/fleet/1" \
		"$work/fleet/2" -f "$([ $out = fleet.db ] && echo dcpi || echo pprof)" -o "$work/$out"
	check "named one by one: merge to $out: it is reported" \
		says "of several machines, which are added up: walnut, oak"
done
rm "$work/fleet/2"
check "of one, named one by one" exits 0 "$profiltool" report "$work/fleet/1" "$work/fleet/3"
check "of one, named one by one: nothing is reported" test "$(grep -c machines "$work/err")" -eq 0
check "of one" exits 0 "$profiltool" report "$work/fleet"
check "nothing is reported" test "$(grep -c machines "$work/err")" -eq 0

# --- A directory whose owner keeps it locked ---

"$profiltool" convert -f dcpi "$work/whole.dcpi" "$work/locked" 2>/dev/null
for directory in "$work"/locked/*/*; do
	start flock --exclusive --no-fork "$directory" sleep infinity
done
is_locked() {
	! flock --nonblock --exclusive "$directory" true
}
wait_for is_locked
check "a directory that stays locked: an error" exits 1 "$profiltool" convert -f dcpi "$work/other_image.dcpi" "$work/locked"
check "a directory that stays locked: which one" says "cannot write $directory: another process has locked it"
stop "$pid"
check "a directory that stays locked: written when it is free" \
	exits 0 "$profiltool" convert -f dcpi "$work/other_image.dcpi" "$work/locked"

# --- The clock of the CPU ---

# with_cpuinfo FILE: as if that were /proc/cpuinfo, and there were no cpufreq.
# shellcheck disable=SC2016 # the inner shell expands it
with_cpuinfo() {
	rm -rf "$work/speed"
	unshare -m bash -c 'mount --bind "$1" /proc/cpuinfo &&
		mount -t tmpfs none /sys/devices/system/cpu &&
		"$2" convert -f dcpi "$3" "$4"' bash "$1" "$profiltool" "$work/a.pb.gz" "$work/speed"
}
printf 'processor\t: 0\ncpu MHz\t\t: 2394.470\n\nprocessor\t: 1\ncpu MHz\t\t: 800.000\n' >"$work/x86"
printf 'processor\t: 0\nclock\t\t: 3425.000000MHz\n' >"$work/power"
printf 'processor\t: 0\nBogoMIPS\t: 100.00\n' >"$work/arm"
if unshare -m true 2>/dev/null; then
	while read -r machine speed; do
		check "written on $machine" exits 0 with_cpuinfo "$work/$machine"
		check "cpuspeed is $speed" parsed \
			"{f['header']['cpuspeed'] for f in j} == {'$speed'}" "$work/speed"
	done <<-'END'
		x86 2394
		power 3425
		arm 0
	END
	check "on this machine" exits 0 to_dcpi "$work/tick.dcpi" "$work/speed2"
	check "what another machine recorded has no speed" \
		parsed "j[0]['header']['cpuspeed'] == '0'" "$work/speed2"
else
	skip "the clock of the CPU" "unshare -m does not work here"
fi

# --- Files that keep the grammar or break it ---

for file in "$data"/ok_*.dcpi; do
	name=$(basename "$file" .dcpi)
	check "$name" exits 0 to_dcpi "$file" "$work/$name"
	parse "$file" && cp "$work/parsed.json" "$work/before.json"
	check "$name: the same samples" parsed \
		"j[0]['counts'] == read('$work/before.json')[0]['counts']" "$work/$name"
	check "$name: the same lines" parsed "sorted(j[0]['lines']) == sorted(
		read('$work/before.json')[0]['lines'])" "$work/$name"
done
while read -r name words; do
	file=$data/bad_$name.dcpi
	check "bad_$name" exits 1 "$profiltool" report "$file"
	check "bad_$name: why" says "$words"
done <<'END'
bad_tsize :8: "0x1000" is no value for tsize
chunk_number_huge at byte 260: a chunk of 4294967295 counts, where only 1
chunk_outside_text outside of the text of 4096 bytes
chunks_overlap they overlap
chunks_unsorted they are not sorted
dup_image :12: a second line "image"
empty_line :12: an empty line in the header
epoch_month13 "2513011015" is no value for epoch
footer_only_4 the file ends before its footer of 8 bytes
footer_swapped the footer has 109 addresses with samples, but there are 5
keyword_only_line no value follows "label"
major1 only major version 0 is documented
no_body the file ends before its footer
no_version the header has no line "version"
offset_wrap outside of the text
trailing_space_numeric "100 " is no value for period
trunc_4byte runs into the footer
END

# --- Several events: a file for each ---

report_db() {
	"$profiltool" report "$@" 2>"$work/err"
}
mkdir "$work/events"
for event in cycles imiss; do
	sed "s/^\(event  *\)cpu-clock/\1$event/" "$data/ok_basic.dcpi" >"$work/events/$event.dcpi"
done
check "report prints both events, as dcpiprof does" \
	diff - <(report_db --by-image "$work/events/cycles.dcpi" "$work/events/imiss.dcpi") <<'END'
cycles       %    cum%  imiss       %  image
   109  100.00  100.00    109  100.00  /usr/local/bin/demo
END
check "report prints the events' periods" says "cycles 109 (1 of 10101010)"
check "report prints the same of the directory" diff <(report_db "$work/events") \
	<(report_db "$work/events/cycles.dcpi" "$work/events/imiss.dcpi")

finish
