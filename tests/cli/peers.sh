#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Known errors of other profilers, each as a test.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

# table FILE REGEX: succeeds if the file is one header line and then rows, busiest first, and nothing else,
# and a row matches.
table() {
	python3 - "$1" "$2" <<'EOF'
import re, sys

lines = open(sys.argv[1]).read().split("\n")
assert lines.pop() == "", "the last line does not end"
assert lines[0].split() == ["samples", "%", "cum%", "function", "image"], lines[0]
rows = [re.fullmatch(r" *(\d+)  +(\d+\.\d+)  +(\d+\.\d+)  (\S.*\S)  +(\S+)", line)
	for line in lines[1:]]
assert rows and all(rows), "no row: " + repr(lines[1:][rows.index(None)] if rows else lines)
counts = [int(row[1]) for row in rows]
assert counts == sorted(counts, reverse=True), "not busiest first"
sums = 0
for row, count in zip(rows, counts):
	sums += count
	assert abs(float(row[2]) - 100 * count / sum(counts)) < 0.01, row[0]
	assert abs(float(row[3]) - 100 * sums / sum(counts)) < 0.01, row[0]
assert any(re.search(sys.argv[2], line) for line in lines[1:]), "no row matches"
assert len({(row[4], row[5]) for row in rows}) == len(rows), "a function has two rows"
EOF
}

# rows FILE REGEX: how many rows of a table match.
rows() {
	grep -cE "$2" "$1"
}

# --- 12: headers mixed with the data; 4: wrong order ---

begin shares "$progs/shares" 2 0 lazy
check "a table: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 4999
check "a table: one header, rows in order, nothing else" table "$work/out" 'burn_sixty +shares$'
check "-v: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -v -p "$pid" -F 4999
check "-v: what it says besides goes elsewhere" table "$work/out" 'burn_sixty +shares$'
# Of a C library with a debug package, a file has inlined functions, and the table a column of totals.
check "-o: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -v -p "$pid" -F 4999 --no-inline -o "$work/shares.pb.gz"
check "-o: the table is the same" table "$work/out" 'burn_sixty +shares$'
cp "$work/out" "$work/recorded"
check "report: succeeds" exits 0 "$profiltool" report "$work/shares.pb.gz"
check "report: prints the table that was printed" cmp "$work/out" "$work/recorded"
stop "$pid"

# --- 2: not more than 30 processes ---

many=()
for i in {1..40}; do
	mkfifo "$work/many.in.$i"
	"$progs/shares" 1 0.05 wait <>"$work/many.in.$i" >"$work/many.out.$i" &
	many+=($!)
	note_started $!
done
many_ready() {
	[ "$(cat "$work"/many.out.* | grep -c ready)" -eq 40 ]
}
check "40 processes" wait_for many_ready
list=$(
	IFS=,
	echo "${many[*]}"
)
record_begin many -p "$list" -F 999 --json -o "$work/many.pb.gz"
for i in {1..40}; do
	echo go >"$work/many.in.$i"
done
wait "$recorder"
check "40 processes: succeeds" test $? -eq 0
check "the account of 40 processes adds up, and nothing is lost" recorded \
	"whole and not any(j['lost'].values())" "$work/many.json"
check "each of 40 processes has samples of its own" test 40 -eq "$("$profiltool" dump "$work/many.pb.gz" |
	sed -n 's/.* \[\([0-9]*\)\/.*/\1/p' | sort -u | wc -l)"

# --- 3: a full table drops samples ---

begin spread "${mapless[@]}" "$progs/spread" 1000000 2 3
if grep -q cannot "$work/spread.out"; then
	skip "100,000 different pcs and more" "the test program does not know this machine"
else
	# A table that is half full is taken: this one is not, for so long that it is full.
	kill -STOP "$pid"
	record_begin spread record -v -p "$pid" -F 20000 --json -o "$work/spread.pb.gz"
	kill -STOP "$recorder"
	kill -CONT "$pid"
	wait_for_use "$pid" 2700
	kill -CONT "$recorder"
	wait "$recorder"
	check "more different pcs than the table in the kernel holds: succeeds" test $? -eq 0
	check "more different pcs: the table was full indeed" \
		grep -qE ' [1-9][0-9]{2,} samples came through the ring' "$work/spread.err"
	check "more different pcs: nothing is lost" recorded \
		"whole and sum(j['lost'].values()) == 0 and j['counted'] == j['ticks']" \
		"$work/spread.json"
	"$profiltool" dump --json "$work/spread.pb.gz" >"$work/spread.dump"
	check "more different pcs: all are in the file" json \
		"sum(s['count'] for s in j['stacks']) == j['samples'] == $(dumped counted "$work/spread.pb.gz") and \
		len({s['pcs'][0] for s in j['stacks']}) > j['samples'] / 2" "$work/spread.dump"
	check "anonymous executable memory is called so" recorded \
		"mostly(sum(f['self'] for f in j['functions'] if f['image'] == '[anon]')) and \
		all(f['name'].startswith('[anon]') for f in j['functions'] if f['image'] == '[anon]')" \
		"$work/spread.json"
fi

# --- 7: exit status 0 after errors: see errors.sh and output.sh. 8: processes that have ended ---

check "a program that has ended: succeeds" \
	exits 0 "$profiltool" record -F 999 -- "$progs/shares" 1 0.3
check "a program that has ended: has its names" table <(grep -v '^ready\|^cpu_ns' "$work/out") \
	'burn_sixty +shares$'

# --- 11: a process that renames its threads becomes many rows ---

begin renames "$progs/renames"
check "a thread with many names: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 4999
check "a thread with many names: is one row" test "$(rows "$work/out" 'burn_named')" -eq 1
stop "$pid"

# --- 9: files of their own: deleted, in another mount namespace, in a container ---

cp "$progs/shares" "$work/deleted"
begin deleted "$work/deleted" 1
rm "$work/deleted"
check "a deleted program: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 4999 --json
check "a deleted program: has its names, and its path without a \"(deleted)\"" recorded \
	"whole and ran('burn_sixty') and images('burn_sixty') == {'deleted'}" "$work/out"
stop "$pid"

# Another program under the old name must not lend its names.
cp "$progs/shares" "$work/replaced"
begin replaced "$work/replaced" 1
cp "$progs/renames" "$work/replaced.new"
mv "$work/replaced.new" "$work/replaced"
check "a replaced program: succeeds" exits 0 until_used "$pid" 600 "$profiltool" -p "$pid" -F 4999 --json
check "a replaced program: has the names of the one that runs" recorded \
	"whole and ran('burn_sixty') and samples('burn_named') == 0" "$work/out"
stop "$pid"

# child_of PID NAME: the process of that name below another; $found.
child_of() {
	found=$(pgrep -P "$1" -x "$2")
}

mkdir "$work/root"
cat >"$work/container" <<'EOF'
mount -t tmpfs none "$1" && cp "$2" "$1/inside" && exec chroot "$1" /inside 1
EOF
if ! unshare -mpf true 2>/dev/null; then
	skip "a container" "unshare -mpf does not work here"
elif ! gcc -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -static -pthread "$top/tests/progs/shares.c" \
	-o "$work/static" 2>/dev/null; then
	skip "a container" "there is no static C library here"
else
	begin container unshare -mpf --kill-child sh "$work/container" "$work/root" "$work/static"
	check "a container" wait_for child_of "$pid" inside
	check "a container: its files are not ours" test ! -e "$work/root/inside"
	check "a container: succeeds" exits 0 until_used "$found" 600 "$profiltool" -p "$found" -F 4999 --json
	check "a container: has its names" recorded \
		"whole and ran('burn_sixty') and images('burn_sixty') == {'inside'}" "$work/out"
	stop "$pid"
fi

# profiltool itself in a container, where processes have other numbers.
cat >"$work/inner" <<'EOF'
"$1" 2 >"$3/inner.ready" &
target=$!
wait_for grep -q ready "$3/inner.ready" || exit
echo $target >"$3/inner.pid"
"$2" -p $target -F 4999 -d 2 --json -o "$3/inner.pb.gz"
EOF
if unshare -pf --mount-proc true 2>/dev/null; then
	check "in a pid namespace: succeeds" exits 0 unshare -pf --kill-child --mount-proc \
		bash "$work/inner" "$progs/shares" "$profiltool" "$work"
	check "in a pid namespace: has names" recorded \
		"whole and ran('burn_sixty') and images('burn_sixty') == {'shares'}" "$work/out"
	check "in a pid namespace: the numbers are the inner ones" test \
		"$("$profiltool" dump "$work/inner.pb.gz" | sed -n 's/.* \[\([0-9]*\)\/.*/\1/p' | sort -u)" \
		= "$(cat "$work/inner.pid")"
else
	skip "in a pid namespace" "unshare -pf does not work here"
fi

finish
