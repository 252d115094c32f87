#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Intervals of files and archives by the times of their ticks: --since, --until, --around, --for, --by time, --against;
# files without times, and times that are outside. The files are made by times_make: what they hold is known.
# shellcheck disable=SC2317,SC2016 # functions are called through check; shells expand

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

make_times=$build/tests/unit/times_make
make_archive=$build/tests/unit/archive_make
export TZ=UTC PROFIL_ARCHIVE=$work/none
cd "$work" || exit

start_s=1795000000 # 2026-11-18 11:06:40 UTC

# times FILE MS: a file of so many ms, of lines for times_make.
times() {
	"$make_times" "$1" ${start_s}000000000 "$2" one ${3:+"$3"}
}

# Six seconds. Two threads of "web" are busy for 10 and 4 of 100 ms; "burst" for 150 ms from 2.3 s on.
web='0 10 600 17 17 web main;serve;parse
5 25 240 17 18 web main;serve;send'
burst='2300 1 150 20 20 burst main;work;compress'
printf '%s\n%s\n' "$web" "$burst" | times spike.pb.gz 6000
printf '%s\n%s\n0 - 7 17 17 web main;lost\n' "$web" "$burst" | times some.pb.gz 6000
printf '%s\n' "$web" | times quiet.pb.gz 6000
echo '0 - 100 17 17 web main;serve' | times untimed.pb.gz 6000
printf 'main;work 40\n' >plain.folded

# run COMMAND...: its output is in $work/out and $work/err.
run() {
	"$profiltool" "$@" >"$work/out" 2>"$work/err"
}

# counts EXPECTED OPTION...: the functions with samples of their own in a report, by name: "compress 150, parse 20".
counts() {
	local expected=$1 found
	shift
	run report -q "$@"
	found=$(awk 'NR > 1 && $1 > 0 { print $(NF - 1), $1 }' out | sort | paste -sd , | sed 's/,/, /g')
	[ "$found" = "$expected" ] && return
	echo "$found"
	cat err
	return 1
}

# --- CPU time ---

# table COMMAND...: the command prints the table on standard input.
table() {
	diff - <("$profiltool" "$@" 2>err)
}
check "rows of processes have seconds and percent of a CPU" table report --by process spike.pb.gz <<'EOF_TABLE'
samples      %    cum%  cpu s   cpu%  pid  comm
    840  84.85   84.85  0.840  14.00   17  web
    150  15.15  100.00  0.150   2.50   20  burst
EOF_TABLE
check "of an interval, of its length" table report --by comm --since +2s --for 1s spike.pb.gz <<'EOF_TABLE'
samples      %    cum%  cpu s   cpu%  comm
    150  51.72   51.72  0.150  15.00  burst
    140  48.28  100.00  0.140  14.00  web
EOF_TABLE
check "--cpu-time: functions, too, and with what they call" table report --cpu-time --comm burst spike.pb.gz <<'EOF_TABLE'
self   self%  self s  total  total%  total s  cpu%  function  image
 150  100.00   0.150    150  100.00    0.150  2.50  compress  server
   0    0.00   0.000    150  100.00    0.150  2.50  main      server
   0    0.00   0.000    150  100.00    0.150  2.50  work      server
EOF_TABLE
check "in 80 columns without numbers of samples" grep -q '^ self%  self s  total%  total s  cpu%  function  image' \
	<(NO_COLOR=1 terminal 80 "$profiltool" report -q --cpu-time --comm burst spike.pb.gz)
cpu_json() {
	"$profiltool" report -q --json --comm web --since +2s --for 1s spike.pb.gz >cpu.json 2>err
	json "((j['samples'], j['cpu_s'], j['cpu_percent']) == (140, 0.14, 14) and
		{f['name']: (f['cpu_s'], f['cpu_percent'], f['total_cpu_s'], f['total_cpu_percent']) for f in j['functions']} ==
		{'parse': (0.1, 10, 0.1, 10), 'send': (0.04, 4, 0.04, 4), 'main': (0, 0, 0.14, 14), 'serve': (0, 0, 0.14, 14)})" cpu.json
}
check "JSON has the CPU time of rows, and of what filters left" cpu_json

# --- Latency ---

# A second in which one thread runs, and one in which two do: half of the time each. At the borders, what is within 1.5
# periods counts together. Then two threads that take turns: each counts in full.
printf '%s\n' '0 1 1000 17 17 par main;serial' '1000 1 1000 17 17 par main;parallel' '1000 1 1000 17 18 par main;parallel' |
	times par.pb.gz 2000
printf '%s\n' '0 2 500 17 17 par main;even' '1 2 500 17 18 par main;odd' | times turns.pb.gz 1000
check "--latency: serial parts have their share of the time" table report --latency par.pb.gz <<'EOF_TABLE'
latency s  latency%  total s  total%  samples      %  cpu s   cpu%  function  image
    1.001     50.02    1.001   50.02     2000  66.67  2.000  66.67  parallel  server
    1.000     49.98    1.000   49.98     1000  33.33  1.000  33.33  serial    server
    0.000      0.00    2.000  100.00        0   0.00  0.000   0.00  main      server
EOF_TABLE
check "also with a filter" table report --latency --focus serial par.pb.gz <<'EOF_TABLE'
latency s  latency%  total s  total%  samples      %  cpu s   cpu%  function  image
    1.000     49.98    1.000   49.98     1000  33.33  1.000  33.33  serial    server
    0.000      0.00    1.000   49.98        0   0.00  0.000   0.00  main      server
EOF_TABLE
latency_json() {
	"$profiltool" report -q --latency --json turns.pb.gz >latency.json
	json "(j['value'] == 'latency/nanoseconds' and {f['name']: (f['self'], f['cpu_ns']) for f in j['functions']} ==
		{'even': (500000000, 500000000), 'odd': (500000000, 500000000), 'main': (0, 0)})" latency.json
}
check "in JSON: threads that take turns count in full" latency_json
check "not without times" exits 1 "$profiltool" report --latency plain.folded
check "which is said" grep -q 'plain.folded does not have when the ticks of a clock came' err
check "nor with another value" exits 2 "$profiltool" report --latency --value cpu par.pb.gz

# --- Which ticks an interval has ---

check "--around and --for choose the middle and the length" counts 'compress 150, parse 20, send 8' \
	--around +2.4s --for 200ms spike.pb.gz
check "--around alone is a second" counts 'compress 150, parse 100, send 40' --around +2.5s spike.pb.gz
check "--since and --until" counts 'compress 50, parse 5, send 2' --since +2.3s --until +2.35s spike.pb.gz
check "--since with --for" counts 'compress 50, parse 5, send 2' --since +2.3s --for 50ms spike.pb.gz
check "--until with --for" counts 'compress 50, parse 5, send 2' --until +2.35s --for 50ms spike.pb.gz
check "--since alone is up to the end" counts 'parse 100, send 40' --since +5s spike.pb.gz
check "--until alone is from the start" counts 'parse 100, send 40' --until +1s spike.pb.gz
check "a time of day is that of the file" counts 'compress 150, parse 20, send 8' \
	--around 11:06:42.4 --for 200ms spike.pb.gz
check "a time of day in another time zone" env TZ=Asia/Kolkata "$profiltool" report -q --around 16:36:42.4 --for 1ms \
	spike.pb.gz
check "a date" counts 'compress 150, parse 20, send 8' --around '2026-11-18 11:06:42.4' --for 200ms spike.pb.gz
check "seconds since the epoch" counts 'compress 150, parse 20, send 8' --around @$((start_s + 2)).4 --for 200ms spike.pb.gz
check "to the millisecond" counts 'compress 2' --since +2.301s --for 2ms --comm burst spike.pb.gz
check "labels select in the interval" counts 'send 8' --around +2.4s --for 200ms --by function --comm web --focus send spike.pb.gz
check "intervals of several files add up" counts 'compress 150, parse 40, send 16' \
	--around +2.4s --for 200ms spike.pb.gz quiet.pb.gz
standard_input() {
	"$profiltool" report -q --around +2.4s --for 200ms - <spike.pb.gz | grep -q '^ *150 .*compress'
}
check "of standard input" standard_input

selected='selected: 178 samples, 0.18 s of CPU in 0.200 s: 17.98 % of 990 samples, 0.99 s of CPU'
check_rows <<EOF
NAME report prints which part of the recording an interval is
RUN "$profiltool" report --around +2.4s --for 200ms spike.pb.gz 2>&1
EXPECT profiltool: $selected
EXPECT profiltool: in all: spike.pb.gz: 6.00 s, 0.99 s of CPU

NAME report prints how many ticks have no time
RUN "$profiltool" report --around +2.4s --for 200ms some.pb.gz 2>&1
EXPECT some.pb.gz: 7 of 997 samples have no time, and are missing
EOF
check "JSON has the interval, and the whole" json "(j['duration_s'] == 0.2 and j['selected'] == {'samples': 178,
	'of_samples': 990, 'percent': 17.98, 'cpu_s': 0.178, 'of_cpu_s': 0.99, 'of_duration_s': 6})" \
	<("$profiltool" report -q --json --around +2.4s --for 200ms spike.pb.gz)

# --- Other commands ---

check_rows <<'EOF'
NAME dump prints the ticks of an interval alone
RUN "$profiltool" dump --since +2.3s --for 3ms --quiet spike.pb.gz
EXPECT all_samples 990
EXPECT duration_s 0.003000000
EXPECT samples 4

NAME top shows an interval of a file
RUN "$profiltool" top --around +2.4s --for 200ms spike.pb.gz
EXPECT 2026-11-18 11:06:42.300 UTC to 2026-11-18 11:06:42.500 UTC: cpu-clock
EXPECT     150   84.27   84.27    75.0  compress  server

NAME top shows a file as a whole
RUN "$profiltool" top --by process spike.pb.gz
EXPECT 840   84.85    14.0   17  web

NAME annotate takes the samples of an interval
RUN "$profiltool" annotate --around +2.4s --for 200ms compress spike.pb.gz
STATUS 1
EXPECT cannot disassemble compress

NAME flamegraph has the frames of an interval alone
RUN "$profiltool" flamegraph --around +1s --for 200ms spike.pb.gz -f html -o graph.html; grep -c compress graph.html | tr 0 n
EXPECT n

NAME snapshot writes an interval of a file
RUN "$profiltool" snapshot --since +2s --for 1s -o second.pb.gz spike.pb.gz && "$profiltool" report -q --since +0s --for 301ms second.pb.gz
EXPECT 1   2.27      1    2.27  compress

NAME snapshot keeps how long was recorded
RUN "$profiltool" report second.pb.gz 2>&1
EXPECT 0.29 s of CPU in 1.000 s: 29.29 % of 990 samples

NAME a graph of the archive is compared with a file, which is taken as a whole
RUN "$profiltool" flamegraph --since +1s --diff plain.folded spike.pb.gz -o graph.svg
STATUS 1
EXPECT plain.folded has no times of ticks
EOF

# --- Slots of time ---

slots() {
	run report -q --by "$@" spike.pb.gz
	diff - out
}
check "--by time:500ms counts ticks in slots" slots time:500ms --since +2s --for 1s <<'EOF'
samples  cpu s  CPUs  time
    220  0.220  0.44  2026-11-18 11:06:42.000 UTC
     70  0.070  0.14  2026-11-18 11:06:42.500 UTC
EOF
check "-E: a line has the other slots" slots time:500ms --since +2s --for 1s -E 1 <<'EOF'
samples  cpu s  CPUs  time
    220  0.220  0.44  2026-11-18 11:06:42.000 UTC
... 1 more slot, 24.14 %
EOF
check "a slot that is recorded in part has as many busy CPUs" slots time:1s --since +2.3s --until +3.1s <<'EOF'
samples  cpu s  CPUs  time
    248  0.248  0.35  2026-11-18 11:06:42 UTC
     14  0.014  0.14  2026-11-18 11:06:43 UTC
EOF
check "slots without a tick have rows" json "([(r['samples'], r['cpus']) for r in j['rows']] ==
	[(0, 0)] * 6 + [(50, 1)] * 3 + [(0, 0)] * 3)" \
	<("$profiltool" report -q --json --by time:50ms --since +2s --until +2.6s --comm burst spike.pb.gz)
# A hundred days from 11:06 on, of which each has a tick.
echo '0 86400000 100 17 17 web main;serve' | times long.pb.gz 8640000000
at_most_60_rows() {
	run report -q --by time long.pb.gz
	awk 'NR > 1 { sum += $1 } END { print NR - 1, sum; exit !(NR > 30 && NR <= 61 && sum == 100) }' out
}
check "--by time alone has 60 rows at most, however long was recorded" at_most_60_rows
check "JSON of slots has times in UTC" json "(j['by'] == 'time' and j['step_s'] == 0.01 and len(j['rows']) == 600 and
	j['rows'][230] == {'time': '2026-11-18T11:06:42.300Z', 'samples': 12, 'cpu_s': 0.012, 'cpus': 1.2})" \
	<(TZ=Asia/Kolkata "$profiltool" report -q --json --by time:10ms spike.pb.gz)
check "--by time chooses a length of slots" json "j['step_s'] == 0.1 and len(j['rows']) == 60" \
	<("$profiltool" report -q --json --by time spike.pb.gz)
check_rows <<'EOF'
NAME slots are longer than a recording, too
RUN "$profiltool" report -q --by time:1h spike.pb.gz
EXPECT     990  0.990  0.17  2026-11-18 11:00 UTC

NAME --by time prints how many ticks have no time
RUN "$profiltool" report --by time:1s some.pb.gz 2>&1
EXPECT 7 of 997 samples have no time

NAME slots are 10 ms long at least
RUN "$profiltool" report --by time:9ms spike.pb.gz
STATUS 2
EXPECT takes a length of time from 10ms on, not "9ms"

NAME diff has no slots of time
RUN "$profiltool" diff --by time:1s spike.pb.gz quiet.pb.gz
STATUS 2
EXPECT --by time:DURATION is for report
EOF

# --- Two intervals of a file ---

differences() {
	run diff -q --around +2.4s --for 200ms spike.pb.gz
	diff - out
}
check "diff compares an interval with the one before it, by CPU time" differences <<'EOF'
old  old ms/s  new  new ms/s  diff ms/s  range%       p  function  image
  0     0.000  150   750.000   +750.000  100.00  <0.001  compress  server
 20   100.000   20   100.000      0.000    0.00  ~1.000  parse     server
  8    40.000    8    40.000      0.000    0.00  ~1.000  send      server
EOF
check_rows <<'EOF'
NAME diff names both intervals
RUN "$profiltool" diff --around +2.4s --for 200ms spike.pb.gz 2>&1
EXPECT old: 2026-11-18 11:06:42.100 UTC to 2026-11-18 11:06:42.300 UTC: 28 samples of cpu-clock
EXPECT new: 2026-11-18 11:06:42.300 UTC to 2026-11-18 11:06:42.500 UTC: 178 samples of cpu-clock
EXPECT 1 of 3 functions differs by more than chance

NAME diff --before takes another interval of a file
RUN "$profiltool" diff --since +4s --for 1s --before +2s..+3s spike.pb.gz
EXPECT 150   150.000    0     0.000   -150.000  100.00  <0.001  compress

NAME diff --before rest takes all else
RUN "$profiltool" diff --since +1s --for 1s --before rest spike.pb.gz
EXPECT 500   100.000  100   100.000      0.000

NAME diff reads standard input once for two intervals
RUN "$profiltool" diff --around +2.4s --for 200ms - <spike.pb.gz
EXPECT +750.000

NAME diff reads intervals of a file alone
RUN "$profiltool" diff --since +1s spike.pb.gz quiet.pb.gz
STATUS 2
EXPECT intervals are for an archive or one profile

NAME diff of the start of a file has nothing to compare with
RUN "$profiltool" diff --since +0s --for 1s spike.pb.gz
STATUS 1
EXPECT the old profile does not hold how long it was recorded

NAME flamegraph --diff takes the interval before
RUN "$profiltool" flamegraph --around +2.4s --for 200ms --diff before spike.pb.gz -o - -f html
EXPECT 2026-11-18 11:06:42.300 UTC to 2026-11-18 11:06:42.500 UTC against 2026-11-18 11:06:42.100 UTC to 2026-11-18 11:06:42.300 UTC

NAME flamegraph --diff takes an interval
RUN "$profiltool" flamegraph --since +2s --for 1s --diff +0s..+1s spike.pb.gz -o - -f html
EXPECT against 2026-11-18 11:06:40 UTC to 2026-11-18 11:06:41 UTC

NAME flamegraph --diff takes a file, of which the interval is, too
RUN "$profiltool" flamegraph --since +2s --for 1s --diff quiet.pb.gz spike.pb.gz -o - -f html
EXPECT spike.pb.gz against quiet.pb.gz
EOF

# --- What was different ---

moment() {
	run report -q --around 11:06:42.4 --for 200ms --against before spike.pb.gz
	diff - out
}
check "--against before prints what was different" moment <<'EOF'
before%  moment%    diff       p  what             name      where
   0.00    75.00  +75.00  <0.001  process          burst     20
   0.00    75.00  +75.00  <0.001  thread           burst     20/20
   0.00    75.00  +75.00  <0.001  function, self   compress  server
  14.00    89.00  +75.00  <0.001  function, total  main      server
   0.00    75.00  +75.00  <0.001  function, total  work      server
EOF
check "JSON has it, too" json "(j['moment'] == {'start_ns': ${start_s}000000000 + 2300000000, 'duration_s': 0.2,
	'samples': 178} and j['other']['samples'] == 812 and j['tested'] == 11 and j['rows'][0] == {'what': 'process',
	'pid': 20, 'comm': 'burst', 'other_samples': 0, 'other_cpu_percent': 0, 'samples': 150, 'cpu_percent': 75,
	'difference': 75, 'p': 0} and {r['name'] for r in j['rows'] if r.get('amount') == 'self'} == {'compress'})" \
	<("$profiltool" report -q --json --around +2.4s --for 200ms --against rest spike.pb.gz)
check_rows <<'EOF'
NAME a quiet moment differs in nothing
RUN "$profiltool" report --around +4s --for 200ms --against rest quiet.pb.gz
EXPECT nothing differs by more than chance

NAME report --against prints both parts, and how many rows were compared
RUN "$profiltool" report --around +2.4s --for 200ms --against rest spike.pb.gz 2>&1
EXPECT moment: 2026-11-18 11:06:42.300 UTC to 2026-11-18 11:06:42.500 UTC: 178 samples, 0.178 s of CPU in 0.200 s
EXPECT other: without 2026-11-18 11:06:42.300 UTC to 2026-11-18 11:06:42.500 UTC: 812 samples, 0.812 s of CPU in 5.800 s
EXPECT 5 of 11 rows differ by more than chance

NAME report --against takes an interval
RUN "$profiltool" report -q --around +2.4s --for 200ms --against +5s..+6s spike.pb.gz
EXPECT other%  moment%

NAME report --against --by compares these rows alone
RUN "$profiltool" report -q --around +2.4s --for 200ms --against before --by process spike.pb.gz | wc -l
EXPECT 2

NAME report --against finds what ran less
RUN "$profiltool" report -q --since +2.5s --for 200ms --against +2.3s..+2.45s --by process spike.pb.gz
EXPECT 100.00     0.00  -100.00  <0.001  process  burst  20

NAME report --against compares intervals of one profile
RUN "$profiltool" report --around +2.4s --against before quiet.pb.gz spike.pb.gz
STATUS 2
EXPECT --against is for one profile

NAME report --against needs an interval
RUN "$profiltool" report --against before spike.pb.gz
STATUS 2
EXPECT --against needs an interval

NAME report --against takes before, rest or an interval
RUN "$profiltool" report --around +2.4s --against after spike.pb.gz
STATUS 2
EXPECT --against takes TIME..TIME, not "after"

NAME report --against has nothing before the start
RUN "$profiltool" report -q --since +0s --for 1s --against before spike.pb.gz
STATUS 4
EXPECT nothing was recorded from 2026-11-18 11:06:39 UTC to 2026-11-18 11:06:40 UTC

NAME report --against is not for trees
RUN "$profiltool" report --tree --around +2.4s --against before spike.pb.gz
STATUS 2
EXPECT --against is not for trees
EOF

# --- Files without times, and intervals outside ---

check "record, convert and merge leave times out with --no-times" test \
	"$("$profiltool" record --help | grep -c -- --no-times)" -eq 1
check_rows <<'EOF'
NAME convert keeps the times
RUN "$profiltool" convert spike.pb.gz copy.pb.gz && "$profiltool" report -q --around +2.4s --for 200ms copy.pb.gz
EXPECT 150   84.27

NAME merge keeps the times of one host
RUN "$profiltool" merge -q spike.pb.gz quiet.pb.gz -o sum.pb.gz && "$profiltool" report -q --around +2.4s --for 200ms sum.pb.gz
EXPECT 40   19.42

NAME convert --no-times leaves the times out
RUN "$profiltool" convert --no-times spike.pb.gz none.pb.gz && "$profiltool" report --since +1s none.pb.gz
STATUS 1
EXPECT none.pb.gz has no times of ticks
EXPECT without --no-times

NAME merge --no-times leaves the times out
RUN "$profiltool" merge --no-times spike.pb.gz quiet.pb.gz -o none.pb.gz && "$profiltool" report --since +1s none.pb.gz
STATUS 1
EXPECT none.pb.gz has no times of ticks

NAME a file whose ticks have no times has no intervals
RUN "$profiltool" report --since +1s untimed.pb.gz
STATUS 1
EXPECT untimed.pb.gz has no times of ticks

NAME a format without times has no intervals
RUN "$profiltool" report --around 03:00 plain.folded
STATUS 1
EXPECT plain.folded has no times of ticks

NAME --by time of a file without times is an error
RUN "$profiltool" report --by time:1s untimed.pb.gz
STATUS 1
EXPECT --by time: no sample has a time

NAME --by host: where hosts are
RUN "$profiltool" report --by host untimed.pb.gz
STATUS 1
EXPECT --by host: no sample has a host
EXPECT   the windows of profild --continuous have it: --since TIME

NAME diff of intervals needs times
RUN "$profiltool" diff --since +1s untimed.pb.gz
STATUS 1
EXPECT untimed.pb.gz has no times of ticks

NAME --host is for archives
RUN "$profiltool" report --host one --since +1s spike.pb.gz
STATUS 2
EXPECT --host is for archives

NAME --since after --until is a mistake
RUN "$profiltool" report --since +3s --until +2s spike.pb.gz
STATUS 2
EXPECT the interval is empty: it begins at 2026-11-18 11:06:43 UTC and ends at 2026-11-18 11:06:42 UTC

NAME --around excludes --since
RUN "$profiltool" report --around +3s --since +2s spike.pb.gz
STATUS 2
EXPECT --around excludes --since and --until

NAME --for needs a time
RUN "$profiltool" report --for 2s spike.pb.gz
STATUS 2
EXPECT --for needs --around, --since or --until

NAME --since, --until and --for are one too many
RUN "$profiltool" report --since +1s --until +2s --for 2s spike.pb.gz
STATUS 2
EXPECT one too many

NAME --for takes a length of time
RUN "$profiltool" report --around +1s --for 2 spike.pb.gz
STATUS 2
EXPECT --for takes a length of time, as 200ms or 2.5s, not "2"

NAME a time that is not understood is a mistake
RUN "$profiltool" report --around 3pm spike.pb.gz
STATUS 2
EXPECT --around takes a time, not "3pm"
EXPECT "+2.5s" from its start

NAME archives have no start to count from
RUN PROFIL_ARCHIVE=. "$profiltool" report --since +2s
STATUS 2
EXPECT --since takes a time, not "+2s"
EOF

# outside PATTERN OPTION...: nothing is there; the message says what the file has.
outside() {
	local pattern=$1
	shift
	exits 4 "$profiltool" report "$@" && says "$pattern; it was recorded from 2026-11-18 11:06:40 UTC to 2026-11-18 11:06:46 UTC"
}
check "--around with nothing there says what the file has" outside \
	'spike.pb.gz: no tick from 2026-11-18 11:08:19.900 UTC to 2026-11-18 11:08:20.100 UTC' --around +100s --for 200ms spike.pb.gz
check "between two ticks, too" outside 'no tick from 2026-11-18 11:06:44.001 UTC to 2026-11-18 11:06:44.002 UTC' \
	--since +4.001s --for 1ms spike.pb.gz
check "before the file" outside 'no tick from 2026-11-18 11:00:00 UTC to 2026-11-18 11:01:00 UTC' \
	--since 11:00 --until 11:01 spike.pb.gz
check "after its end, without --until" outside 'no tick from 2026-11-18 11:07:00 UTC to 2026-11-18 11:07:01 UTC' \
	--since 11:07 spike.pb.gz
check "before its start, without --since" outside 'no tick from 2026-11-18 11:04:59 UTC to 2026-11-18 11:05:00 UTC' \
	--until 11:05 spike.pb.gz

# A tick of which the file says that it came an hour after its end is in the interval of its time.
printf '%s\n3600000 1 3 9 9 late main;late\n' "$web" | times late.pb.gz 6000
check "a tick after the end of the file is where it is" counts 'late 3' --since +1h late.pb.gz
# 1e18 ns are 31 years.
printf '%s\n1e12 1 3 9 9 late main;late\n' "$web" | times far.pb.gz 6000
check "a tick of another age is found, and slots until then are refused" eval \
	'exits 0 "$profiltool" report -q --since 2050-01-01 far.pb.gz && exits 2 "$profiltool" report --by time:10ms far.pb.gz &&
	says "there would be more than"'
printf '%s\n' "$web" | times faults.pb.gz 6000 values
check "values that are not of the clock have no intervals" eval \
	'exits 0 "$profiltool" report --around +1s faults.pb.gz && [ "$(grep -c faults out)" -eq 0 ]'
check "asked for, they are an error" eval \
	'exits 2 "$profiltool" report --around +1s --value faults faults.pb.gz && says "has no value"'

# --- An archive ---

# window SECONDS LINE...: a window of a minute, so long after 2026-11-18 12:00:00 UTC.
archive=$work/archive
mkdir "$archive"
window() {
	local at=$((1795003200 + $1))
	shift
	printf '%s\n' "$@" | "$make_times" window.pb.gz "${at}000000000" 60000 one &&
		"$make_archive" place "$archive" one "$at" 1 60 window.pb.gz
}
minute='0 100 600 17 17 web main;serve;parse'
windows() {
	window 0 "$minute" && window 60 "$minute" '30000 1 150 20 20 burst main;work;compress' && window 120 "$minute" &&
		window 180 '0 - 600 17 17 web main;serve;parse'
}
check "windows with times are written" windows
PROFIL_ARCHIVE=$archive
check "the windows at the ends are cut at ticks" counts 'compress 150, parse 10' --around '2026-11-18 12:01:30.5' --for 1s
check "an interval over several windows" counts 'compress 150, parse 906' \
	--since '2026-11-18 12:00:59.5' --until '2026-11-18 12:02:30.05'
check_rows <<'EOF'
NAME what was asked of the archive is said, with the part that it is
RUN "$profiltool" report --around '2026-11-18 12:01:30.5' --for 1s 2>&1
EXPECT 2026-11-18 12:01:30 UTC to 2026-11-18 12:01:31 UTC on host one: 1 window
EXPECT selected: 160 samples, 0.16 s of CPU in 1.000 s: 21.33 % of 750 samples

NAME a window without times counts as a whole, which is said
RUN "$profiltool" report --since '2026-11-18 12:03:10' --until '2026-11-18 12:03:20' 2>&1
EXPECT 1 at the ends of the interval has no times of ticks, and counts as a whole
EXPECT 600

NAME diff compares intervals of the archive at their ticks
RUN "$profiltool" diff --around '2026-11-18 12:01:30.5' --for 1s
EXPECT 0     0.000  150   150.000   +150.000

NAME report --against compares them, too
RUN "$profiltool" report -q --around '2026-11-18 12:01:30.5' --for 1s --against before
EXPECT 0.00    15.00  +15.00  <0.001  process          burst     20

NAME the rest of an archive is that of the windows
RUN "$profiltool" report --around '2026-11-18 12:01:30.5' --for 1s --against rest 2>&1
EXPECT other: without 2026-11-18 12:01:30 UTC to 2026-11-18 12:01:31 UTC: 590 samples, 0.590 s of CPU in 59.000 s

NAME slots of time in an archive
RUN "$profiltool" report -q --by time:500ms --around '2026-11-18 12:01:30.5' --for 1s
EXPECT     155  0.155  0.31  2026-11-18 12:01:30.000 UTC
EXPECT       5  0.005  0.01  2026-11-18 12:01:30.500 UTC

NAME slots of minutes need no times
RUN "$profiltool" report -q --by time:1m --since '2026-11-18 12:02' --until '2026-11-18 12:04'
EXPECT     600  0.600  0.01  2026-11-18 12:02 UTC
EXPECT     600  0.600  0.01  2026-11-18 12:03 UTC

NAME slots that are shorter than a window without times are refused
RUN "$profiltool" report -q --by time:1s --since '2026-11-18 12:02' --until '2026-11-18 12:04'
STATUS 1
EXPECT some windows have no times of ticks, and are 1 min long

NAME dump prints an interval of the archive
RUN "$profiltool" dump -q --around '2026-11-18 12:01:30.5' --for 1s
EXPECT samples 160

NAME snapshot keeps the times of an archive
RUN "$profiltool" snapshot -q --since '2026-11-18 12:00' --until '2026-11-18 12:03' -o ticket.pb.gz && "$profiltool" report -q --around +90.5s ticket.pb.gz
EXPECT 150   93.75

NAME flamegraph compares the archive with a file
RUN "$profiltool" flamegraph --around '2026-11-18 12:01:30.5' --for 1s --diff spike.pb.gz -o - -f html
EXPECT compress

NAME flamegraph compares a file with the archive
RUN "$profiltool" flamegraph --around '2026-11-18 12:01:30.5' --for 1s --diff "$PROFIL_ARCHIVE" spike.pb.gz -o - -f html
EXPECT compress

NAME --around with nothing in the archive says what it has
RUN "$profiltool" report --around '2026-11-18 13:00'
STATUS 1
EXPECT it has windows from 2026-11-18 12:00 UTC to 2026-11-18 12:04 UTC
EOF

# --- A recording ---

recorded_times() {
	"$profiltool" record -F 999 -q -o recorded.pb.gz -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' >out 2>err
	# The ticks of all slots are all that there are.
	json "sum(r['samples'] for r in j['rows']) == j['counted'] - j.get('times_lost', 0) > 0" \
		<("$profiltool" report -q --json --by time:10ms recorded.pb.gz)
}
check_recorded "a recording has the times of its ticks" recorded_times
no_times() {
	"$profiltool" record --no-times -F 999 -q -o recorded.pb.gz -- sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done' \
		>out 2>err
	exits 1 "$profiltool" report --since +0s recorded.pb.gz && says 'has no times of ticks'
}
check_recorded "record --no-times leaves them out" no_times

finish
