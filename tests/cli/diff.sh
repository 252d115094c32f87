#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# diff of two builds of a program, compared with the report of each; exact tables of files made by hand.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317,SC2016 # functions are called by check; awk expands
. "$(dirname "$0")/../lib.sh"

source=$top/tests/progs/shares.c
flags=(-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-inline -pthread)

diff_of() {
	"$profiltool" diff "$@" 2>"$work/err"
}

# --- Two recordings with waits: one waits twice as long ---

# waits NAME MS: a file of 30 ticks of 1 ms and a sleep of so many, or with MS alone, of the sleep.
waits() {
	{
		[ $# -eq 1 ] || echo '0 1 30 17 17 sh main;loop'
		echo "30 =${!#} 1 17 17 sh main;[blocked: sleep]"
	} | "$build/tests/unit/times_make" "$work/wait-$1.pb.gz" 1795000000000000000 $((30 + ${!#})) one wall
}
waits one 200
waits two 400
waits=("$work/wait-one.pb.gz" "$work/wait-two.pb.gz")
check "diff compares the time of waits" exits 0 "$profiltool" diff --value wall --json --normalize time "${waits[@]}"
check "a wait that became longer is a row" json \
	"[(r['old_seconds'], r['new_seconds']) for r in j['rows'] if r['name'] == '[blocked: sleep]'] == [(0.2, 0.4)]" "$work/out"
check "waits are compared by their rate" exits 0 "$profiltool" diff --value wall "${waits[@]}"
check "their times are in seconds" grep -Eq '^ *old s +old ms/s +new s +new ms/s +diff ms/s ' "$work/out"
check "in the summary, too" says ' s of wall time; '
check "a row has the seconds of both" grep -Eq '^ *0\.200 +[0-9.]+ +0\.400 .*\[blocked: sleep\]' "$work/out"
check "a diff of samples names the value of waits" exits 0 "$profiltool" diff "${waits[@]}"
check "which compares them" says "both have waits: --value wall compares them"
waits 100
waits 300
check "without samples there is nothing else to compare" exits 4 "$profiltool" diff "$work/wait-100.pb.gz" "$work/wait-300.pb.gz"
check "and the messages say how" says "--value wall compares their waits"
check "a flame graph shows both" exits 0 "$profiltool" flamegraph --value wall --diff "${waits[@]}" -o "$work/wait.svg"
check "in seconds" grep -Eq '^0\.400 s, [0-9.]+ %; old 0\.200 s, [0-9.]+ %' "$work/wait.svg"

# --- Two builds in separate directories: 60, 30, 10 % become 30, 60, 10 % ---

mkdir "$work/old" "$work/new"
gcc "${flags[@]}" "$source" -o "$work/old/shares"
sed 's/burn_sixty(6 \* turns)/burn_sixty(3 * turns)/; s/burn_thirty(3 \* turns)/burn_thirty(6 * turns)/' "$source" \
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
		if not row["self"]: # only what is inlined there was met
			continue
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
	assert {row["name"] for row in diff["rows"][:2]} == {"burn_sixty", "burn_thirty"}
	sixty, thirty = sides["burn_sixty", "shares"], sides["burn_thirty", "shares"]
	assert sixty[0] > thirty[0] and sixty[1] < thirty[1], (sixty, thirty)
EOF_PYTHON
}
check "by function, as the reports say" as_reports_say function
check "by image, as the reports say" as_reports_say image
check "a build is the same program wherever it lies" test \
	"$(diff_of --by-image "$work/old.pb.gz" "$work/new.pb.gz" | grep -c '  shares$')" -eq 1
check "nothing has changed in the same file" test -z \
	"$(diff_of "$work/old.pb.gz" "$work/old.pb.gz" | awk 'NR > 1 && ($5 != "0.00" || $6 != "0.00")')"

for by in process thread; do
	check "the same $by in two runs is known by its name" json "(j['by'] == '$by' and
		[(r['comm'], r['old'] > 0, r['new'] > 0) for r in j['rows']] == [('shares', True, True)])" \
		<(diff_of --json --by $by "$work/old.pb.gz" "$work/new.pb.gz")
done
check "and has no number" test "$(diff_of --by thread "$work/old.pb.gz" "$work/new.pb.gz" | sed 1q | grep -cE ' [pt]id ')" -eq 0

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
check "its first rows" diff - <(diff_of -E 3 "$work/a.cg" "$work/b.cg" | tail -n 2) <<'EOF_TABLE'
 10  10.00    0   0.00  -10.00  100.00  goes(int)  libx.so
... 1 more function
EOF_TABLE
check "JSON" json "([j['old_samples'], j['new_samples'], j['by'], len(j['rows'])] ==
	[100, 200, 'function', 4] and j['rows'][1] == {'name': 'shrinks', 'image': 'libx.so',
	'old': 50, 'old_percent': 50, 'new': 50, 'new_percent': 25, 'difference': -25,
	'range_percent': 33.33})" <(diff_of --json "$work/a.cg" "$work/b.cg")
check "its first rows" json "[r['name'] for r in j['rows']] == ['comes'] and j['omitted'] == 3" \
	<(diff_of --json -E 1 "$work/a.cg" "$work/b.cg")
check "one image alone" test "$(diff_of -d libx.so "$work/a.cg" "$work/b.cg" | wc -l)" -eq 5
check "no such image" exits 1 "$profiltool" diff -d liby.so "$work/a.cg" "$work/b.cg"
printf 'events: cycles\nfn=f\n1 0\n' >"$work/empty.cg"
check "against a profile without samples" diff - <(diff_of "$work/empty.cg" "$work/b.cg" | sed -n 2p) \
	<<'EOF_TABLE'
  0  0.00   80  40.00  +40.00  100.00  stays     libx.so
EOF_TABLE

# --- Significance, of profiles that count samples ---

cat >"$work/a.folded" <<'EOF_FOLDED'
main;shrinks 500
main;goes(int) 100
main;stays 400
main;rare 2
EOF_FOLDED
cat >"$work/b.folded" <<'EOF_FOLDED'
main;shrinks 500
main;comes 700
main;stays 805
main;rare 5
main;once 1
EOF_FOLDED
check "the table has p" diff - <(diff_of "$work/a.folded" "$work/b.folded") <<'EOF_TABLE'
old   old%  new   new%    diff  range%       p  function   image
  0   0.00  700  34.81  +34.81  100.00  <0.001  comes      [unknown]
500  49.90  500  24.86  -25.04   33.49  <0.001  shrinks    [unknown]
100   9.98    0   0.00   -9.98  100.00  <0.001  goes(int)  [unknown]
400  39.92  805  40.03   +0.11    0.14  ~1.000  stays      [unknown]
  0   0.00    1   0.05   +0.05  100.00       ~  once       [unknown]
  2   0.20    5   0.25   +0.05   10.94  ~1.000  rare       [unknown]
EOF_TABLE
check "on a terminal" diff - <(NO_COLOR=1 terminal 80 "$profiltool" diff --significant "$work/a.folded" "$work/b.folded") \
	<<'EOF_TABLE'
old   old%  new   new%    diff       p  function   image
  0   0.00  700  34.81  +34.81  <0.001  comes      [unknown]
500  49.90  500  24.86  -25.04  <0.001  shrinks    [unknown]
100   9.98    0   0.00   -9.98  <0.001  goes(int)  [unknown]
... 3 more functions, not significant
EOF_TABLE
check "what is not significant is faint there" grep -q $'^\x1b\\[2m400 .* stays ' \
	<(terminal 80 "$profiltool" diff "$work/a.folded" "$work/b.folded")
check "what is compared is reported" exits 0 "$profiltool" diff "$work/a.folded" "$work/b.folded"
check "the old one" says "old: $work/a.folded: 1002 samples"
check "the new one" says "new: $work/b.folded: 2011 samples"
check "the number of rows that differ is printed" says "3 of 6 functions differ by more than chance (p <= 0.05: at most 1 in 20 such rows is false)"
check "the last line is the answer" test "$(tail -n 1 "$work/err")" = \
	"profiltool: more: comes +34.81; less: shrinks -25.04, goes(int) -9.98"
check "JSON has it" json "([r.get('significant') for r in j['rows']] == [True] * 3 + [False] * 3 and
	['p' in r for r in j['rows']] == [True] * 4 + [False, True])" \
	<(diff_of --json "$work/a.folded" "$work/b.folded")
check "counts that are no samples have none" test -z "$(diff_of "$work/a.cg" "$work/b.cg" | grep -w p)"
check "nor are they significant" exits 1 "$profiltool" diff --significant "$work/a.cg" "$work/b.cg"
check "nor are they significant: reported" says "counts no samples"
check "the same program is the same" test "$(diff_of --significant "$work/old.pb.gz" "$work/old.pb.gz" | head -n 2 | wc -l)" -eq 2
swapped() {
	diff_of --significant --json "$work/old.pb.gz" "$work/new.pb.gz" >"$work/swapped.json"
	json "{r['name'] for r in j['rows'][:2]} == {'burn_sixty', 'burn_thirty'}" "$work/swapped.json"
}
check "what was swapped is significant" swapped

# --- With what is called ---

# "work" calls itself in 10 of the new samples.
printf 'main;%s\n' 'work;leaf 60' 'rest 40' >"$work/calls-old.folded"
printf 'main;%s\n' 'work;leaf 30' 'work;other 60' 'work;work;leaf 10' 'rest 10' >"$work/calls-new.folded"
calls=("$work/calls-old.folded" "$work/calls-new.folded")
check "--children counts a stack once for each function in it, however often it calls itself" diff - \
	<(diff_of --children "${calls[@]}") <<'EOF_TABLE'
old    old%  new    new%    diff  range%       p  function  image
  0    0.00   60   54.55  +54.55  100.00  <0.001  other     [unknown]
 40   40.00   10    9.09  -30.91   62.96  <0.001  rest      [unknown]
 60   60.00  100   90.91  +30.91   20.48  <0.001  work      [unknown]
 60   60.00   40   36.36  -23.64   24.53  <0.001  leaf      [unknown]
100  100.00  110  100.00    0.00    0.00       ~  main      [unknown]
EOF_TABLE
# children_p TESTED: p of "leaf" is Fisher's, corrected as the largest of four.
children_p() {
	diff_of --children --json "${calls[@]}" >"$work/children.json"
	python3 - "$work/children.json" <<'EOF_PYTHON'
import json, math, sys
j = json.load(open(sys.argv[1]))
assert j["amount"] == "total"
row = next(r for r in j["rows"] if r["name"] == "leaf")
def chance(k): # of the 100 samples that are leaf's in both, k in the old
	return math.comb(100, k) * math.comb(110, 100 - k) / math.comb(210, 100)
p = 2 * sum(chance(k) for k in range(row["old"], 101))
assert (row["old"], row["new"]) == (60, 40) and abs(row["p"] - p) < 2e-6, (row, p)
EOF_PYTHON
}
check "their significance is that of these counts" children_p
check "the summary says what is compared" grep -q 'compared: shares of all samples, with what is called$' "$work/err"
check "without it, functions are compared alone" json "j['amount'] == 'self' and 'work' not in [r['name'] for r in j['rows']]" \
	<(diff_of --json "${calls[@]}")

# --- Time ---

# clock PERIOD_NS HOST: such a header, for a Callgrind file like those that convert writes
clock() {
	printf 'events: task-clock\ndesc: Event: task-clock\ndesc: Period: %s ns\ndesc: Host: %s\nob=/lib/x\n' "$@"
}
{ clock 10000000 one && printf 'fn=work\n1 600\nfn=rest\n2 200\n'; } >"$work/slow.cg"
{ clock 1000000 two && printf 'fn=work\n1 3000\nfn=rest\n2 1000\n'; } >"$work/fast.cg"
check "twice as fast all over: the shares are the same" diff - <(diff_of "$work/slow.cg" "$work/fast.cg") \
	<<'EOF_TABLE'
old   old%   new   new%  diff  range%       p  function  image
600  75.00  3000  75.00  0.00    0.00  ~1.000  work      x
200  25.00  1000  25.00  0.00    0.00  ~1.000  rest      x
EOF_TABLE
check "the times are not" diff - <(diff_of --normalize time "$work/slow.cg" "$work/fast.cg") <<'EOF_TABLE'
old  old s   new  new s  diff s  range%       p  function  image
600  6.000  3000  3.000  -3.000   33.33  <0.001  work      x
200  2.000  1000  1.000  -1.000   33.33  <0.001  rest      x
EOF_TABLE
{ clock 1000000 two && printf 'fn=work\n1 6000\nfn=rest\n2 1000\n'; } >"$work/same.cg"
check "ten times the samples of a tenth of the time are no difference" diff - \
	<(diff_of --normalize time "$work/slow.cg" "$work/same.cg") <<'EOF_TABLE'
old  old s   new  new s  diff s  range%       p  function  image
200  2.000  1000  1.000  -1.000   33.33  <0.001  rest      x
600  6.000  6000  6.000   0.000    0.00  ~1.000  work      x
EOF_TABLE
check "JSON of times" json "(j['normalize'] == 'time' and j['rows'][0] == {'name': 'work', 'image': 'x',
	'old': 600, 'old_seconds': 6, 'new': 3000, 'new_seconds': 3, 'difference': -3,
	'range_percent': 33.33, 'p': 0, 'significant': True})" \
	<(diff_of --json --normalize time "$work/slow.cg" "$work/fast.cg")
check "other machines" exits 0 "$profiltool" diff "$work/slow.cg" "$work/fast.cg"
check "other machines: reported" says "the profiles are of different machines: one and two"
check "other machines: with the clock and the time" says "slow.cg: 800 task-clock, 100 Hz, 8.00 s"
check "-q: no summary" exits 0 "$profiltool" diff -q "$work/slow.cg" "$work/fast.cg"
check "-q: no summary, but the warning" test "$(grep -v 'different machines: one and two' "$work/err")" = ''
check "no time known" exits 1 "$profiltool" diff --normalize time "$work/a.folded" "$work/slow.cg"
check "no time known: reported" says "the old profile does not hold the time of its counts"
check "no such unit" exits 2 "$profiltool" diff --normalize weight "$work/a.cg" "$work/b.cg"

# --- Several events, and what is not the same ---

sed 's/cycles/cycles imiss/; s/^1 \(.*\)/1 \1 7/' "$work/a.cg" >"$work/two.cg"
check "another event" test "$(diff_of --value imiss "$work/two.cg" "$work/two.cg" | awk '/goes/ { print $1, $3 }')" = "7 7"
sed 's/cycles/other/' "$work/a.cg" >"$work/other.cg"
check "diff compares profiles of different events" exits 0 "$profiltool" diff "$work/other.cg" "$work/b.cg"
check "diff warns that the events differ" says "the profiles count different things: other and cycles"

check_rows <<'EOF'
NAME diff by an event that one of the profiles lacks is a mistake
RUN "$profiltool" diff --value imiss "$work/two.cg" "$work/b.cg"
STATUS 2
EXPECT imiss

NAME diff of one profile is a mistake
RUN "$profiltool" diff "$work/a.cg"
STATUS 2

NAME diff of three profiles is a mistake
RUN "$profiltool" diff "$work/a.cg" "$work/a.cg" "$work/a.cg"
STATUS 2

NAME diff names a file that does not exist
RUN "$profiltool" diff "$work/a.cg" "$work/nowhere"
STATUS 1
EXPECT nowhere

NAME diff has no interval of two profiles
RUN "$profiltool" diff --since -1h a b
STATUS 2
EXPECT are for an archive or one profile, not for two profiles

NAME diff needs --since with --before
RUN "$profiltool" diff --before 03:00..04:00
STATUS 2
EXPECT need --since

NAME diff names an interval that has no times
RUN "$profiltool" diff --since -1h --before xx..yy
STATUS 2
EXPECT --before takes TIME..TIME, not "xx..yy"

NAME diff names an interval that has no end
RUN "$profiltool" diff --since -1h --before 03:00..zz
STATUS 2
EXPECT --before takes TIME..TIME, not "03:00..zz"

NAME diff names an interval that is one time
RUN "$profiltool" diff --since -1h --before 03:00
STATUS 2
EXPECT --before takes TIME..TIME, not "03:00"
EOF

check "large changes are red on a terminal" grep -q $'\x1b\[31m+35.00' \
	<(terminal 100 "$profiltool" diff "$work/a.cg" "$work/b.cg")
printf 'events: e\nob=/x\033[31m\nfn=f\033[2J\n1 5\n' >"$work/hostile.cg"
printf 'events: Ir\nfn=main\n1 0\ncfn=f\ncalls=5 2\n1 0\nfn=f\n2 0\n' >"$work/calls.callgrind"
check_rows <<'EOF'
NAME diff names the command for two files that have calls alone
RUN "$profiltool" diff "$work/calls.callgrind" "$work/calls.callgrind"
STATUS 4
EXPECT profiltool report shows the calls
EOF
check "a hostile name does not reach the terminal" test -z \
	"$(diff_of "$work/hostile.cg" "$work/a.cg" | grep $'\x1b')"
check "a hostile name does not reach the terminal: it is escaped" \
	grep -q 'f.x1b' <(diff_of "$work/hostile.cg" "$work/a.cg")

finish
