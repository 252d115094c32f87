#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Code made at run time: names from perf-PID.map and jitdump, of a real JavaScript engine and of a small
# test program; untrusted and corrupt files.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

maps=()

# The files that this test creates in /tmp, where profiltool reads such files.
cleanup_maps() {
	[ ${#maps[@]} = 0 ] || rm -rf "${maps[@]}"
}
trap '[ "$BASHPID" = $$ ] && { cleanup; cleanup_maps; }' EXIT

# jitter OPTION...: starts it; $pid is its process, $one and $two are its functions' addresses.
jitter() {
	start_ready "${mapless[@]}" "$progs/jitter" "$@"
	read -r _ one two <"$work/start.out"
	map=/tmp/perf-$pid.map
	maps+=("$map")
}

# record NAME OPTION...: records $pid for a moment. The table is in NAME.json.
record() {
	local name=$1
	shift
	until_used "$pid" 300 "$profiltool" record -p "$pid" -F 4999 --json "$@" >"$work/$name.json" \
		2>"$work/err"
	local code=$?
	[ "$code" = 0 ] || cat "$work/err"
	return "$code"
}

if ! [ -x "$progs/jitter" ]; then
	skip "code that a program makes" "no tests/progs/jitter"
	finish
fi

# --- perf-PID.map ---

jitter anon 60
first=$pid
check "no map: recorded" record none
check "no map: the memory has no name" recorded 'images("[anon]*") == {"[anon]"}' "$work/none.json"
check "no map: reported" says "no /tmp/perf-PID.map has its names"

printf '%s 40 one\n%s 40 a \e[31mtwo <&>\n' "$one" "$two" >"$map"
check "a map: recorded" record map
check "a map: names, with blanks and escapes as they are" recorded \
	'ran("one", "a \x1b[31mtwo <&>")' "$work/map.json"
check "a map: the process is the image" recorded \
	"images('one') == {'[jit $pid]'}" "$work/map.json"
check "a map: a table is printed" exits 0 until_used "$pid" 300 "$profiltool" -p "$pid" -F 999
check "a map: escapes do not reach a terminal" grep -qF 'a \x1b[31mtwo <&>' "$work/out"

printf 'rubbish\n\n%s\nzz 10 x\n%s 40 old\n%s 40 one again\n%s 40 half' \
	"$one" "$one" "$one" "$one" >"$map"
check "overlapping, broken and half written lines: recorded" record broken
check "the last whole line counts" recorded \
	'ran("one again") and not samples("half") and not samples("old")' \
	"$work/broken.json"
check "what the map lacks: reported" says "has none for it"

chmod 666 "$map"
check "a map that all can write: recorded" record shared
check "a map that all can write: refused" says "$map may be written by every user: refused"
check "a map that all can write: not used" recorded 'not samples("one again")' "$work/shared.json"
chmod 644 "$map"

chown 1001 "$map"
check "another user's map: recorded" record foreign
check "another user's map: refused" says \
	"$map belongs to uid 1001, not to the process's user: refused"
chown "$(id -u)" "$map"
touch -d '1 hour ago' "$map"
check "a map of an earlier process: recorded" record old
check "a map of an earlier process: refused" says "$map is older than the process: refused"
rm -f "$map"
ln -s "$work/elsewhere" "$map"
check "a link in place of a map: recorded" record link
check "a link in place of a map: refused" says "$map is a symbolic link: refused"
rm -f "$map"
mkfifo "$map"
kill -CONT "$pid"
check "a pipe in place of a map: recorded, without waiting for it" \
	timeout 100 "$profiltool" record -q -p "$pid" -F 4999 -d 1
rm -f "$map"

# Two processes with code at the same addresses, by turns.
printf '%s 40 of_the_first\n' "$one" >"$map"
stop "$first"
setarch -R "$progs/jitter" anon 60 >"$work/a.out" &
a=$!
setarch -R "$progs/jitter" anon 60 >"$work/b.out" &
b=$!
note_started "$a" "$b"
maps+=("/tmp/perf-$a.map" "/tmp/perf-$b.map")
wait_for grep -q ready "$work/a.out"
wait_for grep -q ready "$work/b.out"
echo "$(cut -d' ' -f2 "$work/a.out") 40 of_a" >"/tmp/perf-$a.map"
echo "$(cut -d' ' -f2 "$work/b.out") 40 of_b" >"/tmp/perf-$b.map"
record_begin two record -F 999 -p "$a,$b" --json -o "$work/two.pb.gz"
for target in "$a" "$b"; do
	wait_for_use "$target" 300
done
check "two processes, code at one place: recorded" record_end
check "two processes: each has its own names" recorded \
	"images('of_a') == {'[jit $a]'} and images('of_b') == {'[jit $b]'}" "$work/two.json"
check "two processes: in the file, too" bash -c \
	"'$profiltool' report --json '$work/two.pb.gz' >'$work/read.json'"
check "two processes: read again" recorded 'samples("of_a") > 0 and samples("of_b") > 0' \
	"$work/read.json"
check "the code itself is in no file" exits 1 "$profiltool" annotate of_a "$work/two.pb.gz"
check "the code itself is in no file: reported" says "[jit $a]"
stop "$a"
stop "$b"

# A map that is written when the program ends, as Java does.
begin late "$progs/jitter" anon 0.5 late
map=/tmp/perf-$pid.map
maps+=("$map")
record_begin late record -p "$pid" -F 999 --json
send_line late go
wait_for grep -q "ready " "$work/late.out"
read -r _ one two < <(grep "ready " "$work/late.out")
printf '%s 40 late_one\n%s 40 late_two\n' "$one" "$two" >"$map"
send_line late end
wait "$recorder"
check "a program that has ended: names" recorded 'ran("late_one")' "$work/late.json"

jitter memfd 60
printf '%s 40 in_memfd\n' "$one" >"$map"
check "shared memory without a program: recorded" record memfd
check "shared memory: names" recorded 'ran("in_memfd")' "$work/memfd.json"
stop "$pid"

# 100 MB of lines
jitter anon 60
python3 -c '
import sys
for i in range(600000):
	sys.stdout.write("%x 10 %d %s\n" % (0x10000000 + 16 * i, i, "long " * 32))
print(sys.argv[1], "40 at_the_end")' "$one" >"$map"
check "a map of 100 MB: recorded" record large
check "a map of 100 MB: names" recorded 'ran("at_the_end")' "$work/large.json"
# Files that would take long: the end is read.
printf '%s 40 at_the_front\n' "$one" >"$map"
truncate -s 2G "$map"
printf '\n%s 40 at_the_end\n' "$one" >>"$map"
check "a sparse map of 2 GiB: recorded" record sparse
check "a sparse map: says what was not read" says \
	"[jit $pid]: its file of names has 2048 MiB, of which the last 256 were read"
check "a sparse map: the names at its end" recorded 'ran("at_the_end")' "$work/sparse.json"
{
	printf '%s 40 at_the_front\n' "$one"
	yes '0 1 x' | head -n 4500000
	printf '%s 40 at_the_end\n' "$one"
} >"$map"
check "a map of millions of lines: recorded" record crowded
check "millions of lines: says what was not read" says \
	"[jit $pid]: its file of names has 25 MiB, of which the last 2"
check "millions of lines: the names at their end" recorded \
	'ran("at_the_end") and not samples("at_the_front")' "$work/crowded.json"
rm -f "$map"
stop "$pid"

# --- A JavaScript engine ---

cat >"$work/hot.js" <<'EOF_JS'
function multiply(n) { let s = 1; for (let i = 1; i < n; i++) s = (s * i) % 1000003; return s; }
function collect(n) { const a = []; for (let i = 0; i < n; i++) a.push(i ^ 7); return a.length; }
const spent = () => process.cpuUsage().user / 1000;
const end = spent() + Number(process.argv[2]);
let sum = 0;
while (spent() < end) { sum += multiply(100000); sum += collect(10000); }
console.log(sum);
EOF_JS

# Whether all code made at run time has its name.
all_named() {
	recorded 'not [f for f in j["functions"] if f["image"].startswith("[jit") and "+0x" in f["name"]]' "$1"
}

javascript() {
	(cd "$work" && "$profiltool" record -F 999 --json -- node "$@" hot.js 800) \
		>"$work/js.out" 2>"$work/err"
	grep -v '^[0-9]*$' "$work/js.out" >"$work/js.json"
}

# Its engine puts "JS:*" or "LazyCompile:*" before names of code that it has optimised.
multiply='any("*multiply " in f["name"] and f["image"].startswith("[jit") for f in j["functions"])'

if command -v node >/dev/null; then
	check "JavaScript, a map: recorded" javascript --perf-basic-prof
	check "a map names the hot function of JavaScript" recorded "$multiply" "$work/js.json"
	check "a map names all code that JavaScript made" all_named "$work/js.json"
	maps+=("/tmp/perf-$(sed -n 's/.*\[jit \([0-9]*\)\].*/\1/p' "$work/js.json" | head -n 1).map")
	check "JavaScript, jitdump: recorded" javascript --perf-prof
	check "jitdump names the hot function of JavaScript" recorded "$multiply" "$work/js.json"
	check "jitdump names all code that JavaScript made" all_named "$work/js.json"
else
	skip "JavaScript" "no node"
fi

finish
