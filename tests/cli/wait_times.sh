#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# record --wall: when threads waited. The program says by its own clock when each of its phases was: a wait must lie
# within its phase, and tables of a part or of rows of time must have the parts of the waits that dump prints.

# shellcheck source=SCRIPTDIR/../lib.sh
# shellcheck disable=SC2317 # functions are called by check
. "$(dirname "$0")/../lib.sh"
export TZ=UTC
cd "$work" || exit

# record OPTION...
record() {
	begin phases "$progs/phases" 300
	record_begin phases record "$@" --max-overhead 0 --json -q -o phases.pb.gz -p "$pid"
	send_line phases go
	wait "$pid"
	wait "$recorder"
}

# about EXPRESSION [FILE...]: a Python expression about the recording, or its last output, with these names:
#   j              the JSON in the file FILE
#   phases         NAME: (BEGIN, END), ns since the epoch
#   waits          (SINCE, LENGTH, STATE, FUNCTIONS, COMM, TID) of each wait
#   values         (VALUE, TIMED, FUNCTIONS) of each sample that is a wait: its nanoseconds, and those with a time
#   among(SINCE, UNTIL, STATE)  the nanoseconds of waits in this interval whose state begins so
about() {
	python3 -S -c '
import json, sys
d = json.load(open("dumped"))
j = json.load(open(sys.argv[2])) if len(sys.argv) > 2 else None
wall = [v["type"] for v in d["values"]].index("wall")
phases = {l.split()[0]: tuple(map(int, l.split()[1:])) for l in open("phases.out") if l.count(" ") == 2}
waits, values = [], []
for s in d["stacks"]:
	names = [n for f in s.get("functions", []) for n in f]
	if not names or not names[0].startswith("["):
		continue
	timed = s.get("waits_ns", [])
	values.append((s["values"][wall], sum(t[1] for t in timed), names))
	waits += [(d["time_ns"] + t[0], t[1], names[0], names, s["labels"].get("comm", ""), s["labels"].get("tid")) for t in timed]
def among(since, until, state=""):
	return sum(max(0, min(w[0] + w[1], until) - max(w[0], since)) for w in waits if w[2][1:].startswith(state))
value = eval(sys.argv[1])
print(value)
sys.exit(not value)' "$@"
}

check "waits are recorded with their times" record --wall
"$profiltool" dump --json phases.pb.gz >dumped

# Files hold waits in units of 10 us, of which a sample may lack one.
check "all waits have times" about 'values and all(0 <= v - t < 10000 for v, t, names in values)'
# inside PHASE FUNCTION: all waits in this function are between begin and end of its phase, to 1 ms: an interval of clocks.
# Each has half of what the program waited at least, for the host may take the CPU in the middle.
inside() {
	about "(lambda b, e, w: sum(l for s, l, *_ in w) > (e - b) / 2 and
		all(b - 1e6 <= s and s + l <= e + 1e6 for s, l, *_ in w))(*phases['$1'], [w for w in waits if '$2' in w[3]])"
}
check "a sleep was when the program slept" inside sleeps sleep_once
check "a wait for a lock was when the program waited for it" inside locks wait_for_lock
check "the waits of 20 us were when the program made them" inside naps nap_often
# In each state one for 10 ms, and those at both ends; and where the machine is busy, one for each wait of 10 ms or more.
check "many short waits are a hundred a second" about "(lambda b, e: 0 < len([w for w in waits if 'nap_often' in w[3] and
	': sleep]' in w[2]]) <= 2 * (e - b) / 1e7 + 2)(*phases['naps'])"
check "a wait has the name that the thread had then" about "all(w[4] == p for w in waits for p, f in
	(('sleeps', 'sleep_once'), ('locks', 'wait_for_lock'), ('naps', 'nap_often')) if f in w[3])"

# --- Rows of time ---

# rows EXPRESSION OPTION...: about the rows of 10 ms; r[0] is the begin of a row
rows() {
	local expression=$1
	shift
	"$profiltool" report -q --json --by time:10ms "$@" phases.pb.gz >rows.json 2>err || return
	about "(lambda rows: $expression)([(int(__import__('calendar').timegm(__import__('time').strptime(
		r['time'][:19], '%Y-%m-%dT%H:%M:%S'))) * 10**9 + int((r['time'][20:23] or '0').replace('Z', '') or 0) * 10**6,
		r) for r in j['rows']])" rows.json
}
check "report --by time has in each row the waits that were in it" rows \
	"rows and all(r['runnable_ns'] == among(b, b + 10**7, 'runnable') and
	r['runnable_ns'] + r['blocked_ns'] + r['idle_ns'] == among(b, b + 10**7) for b, r in rows)"
check "and in all rows together all waits" rows \
	"sum(r['runnable_ns'] + r['blocked_ns'] + r['idle_ns'] for b, r in rows) == sum(w[1] for w in waits)"
check "a thread that computes is not blocked in these rows" rows \
	"(lambda k: len(k) > 1 and all(r['blocked_ns'] == r['idle_ns'] == 0 for b, r in k))(
	[(b, r) for b, r in rows if phases['computes'][0] <= b and b + 10**7 <= phases['computes'][1]])" --comm computes
check "--state and --reason choose what rows count" rows \
	"all(r['blocked_ns'] == sum(max(0, min(w[0] + w[1], b + 10**7) - max(w[0], b)) for w in waits
	if ': lock]' in w[2]) and r['runnable_ns'] == 0 and r['samples'] == 0 for b, r in rows)" --reason lock
check "--by time prints seconds of both" exits 0 "$profiltool" report -q --by time:100ms phases.pb.gz
check "with their titles" grep -qE '^samples +cpu s +CPUs +runnable s +blocked s +idle s +time$' out
check "what no thread did is no sample, and no other error" exits 4 "$profiltool" report -q --by time:100ms --comm nobody phases.pb.gz

# --- A part of the recording ---

# second NS: a time for --since
second() {
	printf '@%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000))
}
# part EXPRESSION SINCE UNTIL [OPTION...]: about the summary of the part of the recording; JSON in part.json
part() {
	local expression=$1 since=$2 until=$3
	shift 3
	"$profiltool" report -q --json --since "$(second "$since")" --until "$(second "$until")" "$@" phases.pb.gz \
		>part.json 2>err || return
	about "(lambda b, e: $expression)($since, $until)" part.json
}
read -r _ begin end < <(grep ^sleeps phases.out)
read -r _ lock_begin _ < <(grep ^locks phases.out)
check "a part in the middle of a sleep has the part of the sleep" part \
	"sum(r['self'] for r in j['functions']) == sum(j['wall'][k] for k in ('on_cpu_ns', 'runnable_ns', 'blocked_ns', 'idle_ns')) ==
	j['wall']['wall_ns'] and j['wall']['blocked_ns'] + j['wall']['idle_ns'] + j['wall']['runnable_ns'] == among(b, e) > 0" \
	$((begin + 100000000)) $((begin + 200000000)) --value wall
check "and its reasons" part "all(j['wall'][s + '_by'].get('sleep', 0) == among(b, e, s + ': sleep')
	for s in ('blocked', 'idle')) and sum(j['wall']['blocked_by'].values()) ==
	j['wall']['blocked_ns']" $((begin + 100000000)) $((end + 100000000))
check "the threads of a part have their part of the wall time" part \
	"sum(r['wall']['blocked_ns'] + r['wall']['idle_ns'] for r in j['rows']) == among(b, e) - among(b, e, 'runnable') and
	all(r['wall']['wall_ns'] == sum(r['wall'][k] for k in ('on_cpu_ns', 'runnable_ns', 'blocked_ns', 'idle_ns')) for r in j['rows'])" \
	"$begin" $((lock_begin + 100000000)) --by thread
check "the part before the lock has no wait for it" part "not among(b, e, 'blocked: lock') or
	j['wall']['blocked_by']['lock'] > 0" "$begin" "$end"
parts() {
	"$profiltool" snapshot -q --since "$(second "$begin")" --until "$(second "$end")" -o part.pb.gz phases.pb.gz &&
		"$profiltool" dump --json part.pb.gz >part.json &&
		about "(lambda w: 0 <= among(*phases['sleeps']) - w < 10**4 * len(values))(
			sum(t[1] for s in j['stacks'] for t in s.get('waits_ns', [])))" part.json
}
check "snapshot writes the waits of a part" parts

# --- Files ---

merged() {
	"$profiltool" merge -q -o merged.pb.gz phases.pb.gz phases.pb.gz && "$profiltool" dump --json merged.pb.gz >merged.json &&
		about "sum(t[1] for s in j['stacks'] for t in s.get('waits_ns', [])) == 2 * sum(w[1] for w in waits)" merged.json
}
check "merge adds up the waits with their times" merged
without() {
	"$profiltool" convert -q --no-times phases.pb.gz without.pb.gz && "$profiltool" dump --json without.pb.gz >without.json &&
		about "not any('waits_ns' in s or 'times_ns' in s for s in j['stacks'])" without.json
}
check "--no-times leaves them out" without
check "dump prints them" grep -qE '^[0-9]+ [0-9]+\.[0-9]{5}\+[0-9]+\.[0-9]{5}' <("$profiltool" dump phases.pb.gz | sed -n '/^waits:/,$p')

# --- Each wait ---

check "record --chains records" record --chains
check "it keeps the time of each wait" exits 0 "$profiltool" dump --json phases.pb.gz
cp out dumped
check "of short ones, too" about "(lambda b, e: len([w for w in waits if 'nap_often' in w[3] and ': sleep]' in w[2]]) >
	5 * (e - b) / 1e7)(*phases['naps'])"
check "to a microsecond" about 'values and all(0 <= v - t < 1000 for v, t, names in values)'
named() {
	"$profiltool" convert -q phases.pb.gz again.pb.gz && "$profiltool" dump --json again.pb.gz >again.json &&
		cmp -s dumped again.json
}
check "and a file that is written again has the same" named
check "what keeps no times of short waits has no chains" exits 2 "$profiltool" record --chains --no-times -o x.pb.gz -- true
check "nor has what is not written" exits 2 "$profiltool" record --chains -- true

finish
