#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# diff: two builds of a program side by side, compared with what report says of each; exact tables
# of files made by hand.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread)

diff_of() {
	"$profiltool" diff "$@" 2>"$work/err"
}

# --- Two builds in folders of their own: 60, 30, 10 % become 30, 60, 10 % ---

mkdir "$work/old" "$work/new"
gcc "${flags[@]}" "$source" -o "$work/old/shares"
sed 's/burn_sixty(6000)/burn_sixty(3000)/; s/burn_thirty(3000)/burn_thirty(6000)/' "$source" \
	>"$work/changed.c"
check "the source is changed" test "$(diff "$source" "$work/changed.c" | grep -c '^>')" -eq 2
gcc "${flags[@]}" "$work/changed.c" -o "$work/new/shares"
for name in old new; do
	check "$name: recorded" exits 0 "$profiltool" record -F 999 -o "$work/$name.pb.gz" -- \
		"$work/$name/shares" 1 0.8 stay
done

# The rows are those of the two reports, with shares of all samples; the largest change first.
as_reports_say() {
	python3 - "$profiltool" "$work" "$1" <<'EOF_PYTHON'
import collections, json, os, subprocess, sys
profiltool, work, by = sys.argv[1:]

def run(*arguments):
	return json.loads(subprocess.run((profiltool,) + arguments, check=True, text=True,
		stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)

def key(row):
	return row.get("name", row.get("function")), os.path.basename(row["image"])

sides, sums = collections.defaultdict(lambda: [0, 0]), [0, 0]
for side, name in enumerate(("old", "new")):
	report = run("report", "--json", "--by", by, "%s/%s.pb.gz" % (work, name))
	for row in report["functions" if by == "function" else "rows"]:
		sides[key(row)][side] += row["self"]
		sums[side] += row["self"]
diff = run("diff", "--json", "--by", by, work + "/old.pb.gz", work + "/new.pb.gz")
assert [diff["old_samples"], diff["new_samples"]] == sums
assert len(diff["rows"]) == len(sides)
last = 100
for row in diff["rows"]:
	old, new = sides[key(row)]
	assert (row["old"], row["new"]) == (old, new), row
	a, b = 100 * old / sums[0], 100 * new / sums[1]
	for value, expected in (("old_percent", a), ("new_percent", b), ("difference", b - a),
			("range_percent", 100 * abs(b - a) / (a + b))):
		assert abs(row[value] - expected) < 0.006, (row, value, expected)
	assert abs(row["difference"]) <= last + 0.001
	last = abs(row["difference"])
if by == "function":
	first = {row["name"]: row["difference"] for row in diff["rows"][:2]}
	assert -40 < first["burn_sixty"] < -20 and 20 < first["burn_thirty"] < 40, first
EOF_PYTHON
}
check "by function, as the reports say" as_reports_say function
check "by image, as the reports say" as_reports_say image
check "a build is the same program wherever it lies" test \
	"$(diff_of -i "$work/old.pb.gz" "$work/new.pb.gz" | grep -c '  shares$')" -eq 1
check "nothing has changed in the same file" test -z \
	"$(diff_of "$work/old.pb.gz" "$work/old.pb.gz" | awk 'NR > 1 && ($5 != "0.00" || $6 != "0.00")')"

# --- Tables of files made by hand ---

cat >"$work/a.cg" <<'EOF_CALLGRIND'
events: cycles
ob=/lib/libx.so
fn=shrinks
1 50
fn=goes(int)
1 10
fn=stays
1 40
EOF_CALLGRIND
cat >"$work/b.cg" <<'EOF_CALLGRIND'
events: cycles
ob=/usr/lib/libx.so
fn=stays
1 80
fn=comes
1 70
fn=shrinks
1 50
EOF_CALLGRIND

check "the table" diff - <(diff_of "$work/a.cg" "$work/b.cg") <<'EOF_TABLE'
old   old%  new   new%    diff  range%  function   image
  0   0.00   70  35.00  +35.00  100.00  comes      libx.so
 50  50.00   50  25.00  -25.00   33.33  shrinks    libx.so
 10  10.00    0   0.00  -10.00  100.00  goes(int)  libx.so
 40  40.00   80  40.00    0.00    0.00  stays      libx.so
EOF_TABLE
check "its first rows" diff - <(diff_of -n 3 "$work/a.cg" "$work/b.cg" | tail -n 2) <<'EOF_TABLE'
 10  10.00    0   0.00  -10.00  100.00  goes(int)  libx.so
... 1 more function
EOF_TABLE
check "JSON" json "([j['old_samples'], j['new_samples'], j['by'], len(j['rows'])] ==
	[100, 200, 'function', 4] and j['rows'][1] == {'name': 'shrinks', 'image': 'libx.so',
	'old': 50, 'old_percent': 50, 'new': 50, 'new_percent': 25, 'difference': -25,
	'range_percent': 33.33})" <(diff_of --json "$work/a.cg" "$work/b.cg")
check "one image alone" test "$(diff_of -p libx.so "$work/a.cg" "$work/b.cg" | wc -l)" -eq 5
check "no such image" exits 1 "$profiltool" diff -p liby.so "$work/a.cg" "$work/b.cg"
printf 'events: cycles\nfn=f\n1 0\n' >"$work/empty.cg"
check "against a profile without samples" diff - <(diff_of "$work/empty.cg" "$work/b.cg" | sed -n 2p) \
	<<'EOF_TABLE'
  0  0.00   80  40.00  +40.00  100.00  stays     libx.so
EOF_TABLE

# --- Several events, and what is not the same ---

sed 's/cycles/cycles imiss/; s/^1 \(.*\)/1 \1 7/' "$work/a.cg" >"$work/two.cg"
check "another event" test "$(diff_of --value imiss "$work/two.cg" "$work/two.cg" | awk '/goes/ { print $1, $3 }')" = "7 7"
check "an event that one of them lacks" exits 2 "$profiltool" diff --value imiss "$work/two.cg" "$work/b.cg"
sed 's/cycles/other/' "$work/a.cg" >"$work/other.cg"
check "different events are compared" exits 0 "$profiltool" diff "$work/other.cg" "$work/b.cg"
check "with a warning" says "the profiles count different things: other and cycles"

check "one profile" exits 2 "$profiltool" diff "$work/a.cg"
check "three profiles" exits 2 "$profiltool" diff "$work/a.cg" "$work/a.cg" "$work/a.cg"
check "a file that is not there" exits 1 "$profiltool" diff "$work/a.cg" "$work/nowhere"

check "large changes are red on a terminal" grep -q $'\x1b\[31m+35.00' \
	<(terminal 100 "$profiltool" diff "$work/a.cg" "$work/b.cg")
printf 'events: e\nob=/x\033[31m\nfn=f\033[2J\n1 5\n' >"$work/hostile.cg"
check "a hostile name does not reach the terminal" test -z \
	"$(diff_of "$work/hostile.cg" "$work/a.cg" | grep $'\x1b')"
check "but is visible" grep -q 'f.x1b' <(diff_of "$work/hostile.cg" "$work/a.cg")

finish
