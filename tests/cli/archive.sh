#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Intervals of an archive: --since, --until, --host, labels, rows of time, diff, snapshot, top; gaps and damage.
# The windows are written as profild --continuous does, from profiles in files.
# shellcheck disable=SC2317,SC2016 # functions are called through check; shells expand

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

make_archive=$build/tests/unit/archive_make
archive=$work/archive
export PROFIL_ARCHIVE=$archive TZ=UTC
mkdir "$archive"

# profile NAME FOLDED...: $work/NAME.pb.gz, of folded stacks whose first frame is the process.
profile() {
	local name=$1
	shift
	printf '%s\n' "$@" >"$work/$name.folded"
	"$profiltool" convert "$work/$name.folded" "$work/$name.pb.gz" 2>/dev/null
}

# write HOST TIME COUNT NAME...: COUNT windows from TIME on, in a circle of these profiles.
write() {
	local host=$1 time=$2 count=$3 name files=()
	shift 3
	for name; do
		files+=("$work/$name.pb.gz")
	done
	"$make_archive" write "$archive" "$host" "$(date -u -d "$time" +%s)" "$count" 1 "${files[@]}"
}

profile quiet 'main;idle 10'
profile busy 'main;work 40' 'main;idle 10'

# On 2026-11-20, an hour of quiet from 03:00, in which 03:20 to 03:30 are busy; nothing from 03:40 to 03:50.
write one '2026-11-20 03:00' 20 quiet >/dev/null
write one '2026-11-20 03:20' 10 busy >/dev/null
write one '2026-11-20 03:30' 10 quiet >/dev/null
write one '2026-11-20 03:50' 10 quiet >/dev/null
write two '2026-11-20 03:00' 2 busy >/dev/null

# run COMMAND...: sets $status; its output is in $work/out and $work/err.
run() {
	"$profiltool" "$@" >"$work/out" 2>"$work/err"
	status=$?
}

# row NAME: the samples of a row of the last output.
row() {
	awk -v name="$1" '$0 ~ "(^| )" name "( |$)" { print $1; exit }' "$work/out"
}

# prints CODE PATTERN COMMAND...: the command exits with this code and prints such a line.
prints() {
	local code=$1 pattern=$2
	shift 2
	run "$@"
	cat "$work/err" "$work/out"
	[ "$status" -eq "$code" ] && cat "$work/err" "$work/out" | grep -qE -- "$pattern"
}

interval() {
	run report -q --host one --since '2026-11-20 03:20' --until '2026-11-20 03:30'
	[ "$status" -eq 0 ] && [ "$(row work)" = 400 ] && [ "$(row idle)" = 100 ]
}
check "an interval has the samples of its windows" interval

partial() {
	run report -q --host one --since '2026-11-20 03:29:30' --until '2026-11-20 03:30:30'
	[ "$(row work)" = 40 ] && [ "$(row idle)" = 20 ]
}
check "windows count of which a part lies in it" partial

adds_hosts() {
	run report -q --since '2026-11-20 03:00' --until '2026-11-20 03:02'
	[ "$(row work)" = 80 ] && [ "$(row idle)" = 40 ] &&
		grep -q 'on host two: 2 windows' <("$profiltool" report --since @0 2>&1)
}
check "hosts add up" adds_hosts

host_patterns() {
	run report -q --host 't*' --since @0
	[ "$(row work)" = 80 ] && [ "$(row idle)" = 20 ] &&
		run report -q --host two --host one --since @0 && [ "$(row work)" = 480 ]
}
check "--host takes patterns, and several" host_patterns

check "a host's directory is read alone" prints 0 ' work' report -q "$archive/two"
of_directory() {
	run report -q "$archive"
	[ "$(row work)" = 480 ] && run report -q "$archive/one" && [ "$(row work)" = 400 ]
}
check "an archive is read without an interval" of_directory

zone() {
	TZ=Asia/Kolkata run report -q --host one --since '2026-11-20 08:50' --until '2026-11-20 09:00'
	[ "$(row work)" = 400 ]
}
check "times are those of TZ" zone

coverage() {
	run report --host one --since '2026-11-20 03:30' --until '2026-11-20 04:00'
	cat "$work/err"
	grep -q '2026-11-20 03:30:00 UTC to 2026-11-20 04:00:00 UTC on host one: 20 windows' "$work/err" &&
		grep -q 'no window for 10 min from 2026-11-20 03:40:00 UTC on' "$work/err"
}
check "what is covered is printed, and the gap" coverage
check "a gap is printed with -q, too" prints 0 'no window for 10 min from 2026-11-20 03:40' \
	report -q --host one --since '2026-11-20 03:30' --until '2026-11-20 04:00'
check "a gap at the end is printed" prints 0 'no window for 5 min from 2026-11-20 04:00:00' \
	report --host one --since '2026-11-20 03:55' --until '2026-11-20 04:05'
check "a gap at the beginning is printed" prints 0 'no window for 30 min from 2026-11-20 02:30:00' \
	report --host one --since '2026-11-20 02:30' --until '2026-11-20 03:05'

# --- Errors ---

check "without windows, the error says what there is" \
	prints 1 'has windows from 2026-11-20 03:00 UTC to 2026-11-20 04:00 UTC' report --since '2026-11-21'
check "an unknown host is an error" prints 1 'has no host "three"' report --since @0 --host three
check "an odd time is an error" prints 2 '--since takes a time, not "3pm"' report --since 3pm
check "the error says which times there are" prints 2 '"yesterday 14:30"' report --since 3pm
check "an empty interval is an error" prints 2 'the interval is empty' \
	report --since '2026-11-20 04:00' --until '2026-11-20 03:00'
# prints_of ARCHIVE CODE PATTERN COMMAND...: the same with another archive.
prints_of() {
	PROFIL_ARCHIVE=$1 prints "${@:2}"
}
check "an archive that is not there is an error" prints_of /no/archive 1 'cannot read the archive /no/archive' \
	report --since -2h
check "a directory that is no archive is an error" prints_of /proc/self/fd 1 'is no archive of profild' \
	report --since -2h
check "--since is not for files without times" prints 1 'busy.pb.gz has no times of ticks' \
	report --since -2h "$work/busy.pb.gz"
check "--host is not for files" prints 2 '--host is for archives, and .* is a profile' \
	report --host one "$work/busy.pb.gz"
check "--by time needs windows" prints 1 '--by time: no sample has a time' report --by time "$work/busy.pb.gz"
check "--by host needs hosts" prints 1 '--by host: no sample has a host' report --by host "$work/busy.pb.gz"

# --- Rows and labels ---

minutes() {
	run report -q --host one --by time --since '2026-11-20 03:18' --until '2026-11-20 03:22'
	cat "$work/out"
	[ "$(awk 'NR > 1 { print $1, $4, $6 }' "$work/out" | tr '\n' ' ')" = \
		'10 0.100 03:18 10 0.100 03:19 50 0.500 03:20 50 0.500 03:21 ' ]
}
check "--by time has a row for each minute, in their order" minutes

minutes_json() {
	"$profiltool" report -q --host one --by time --since '2026-11-20 03:20' --until '2026-11-20 03:21' --json \
		2>/dev/null | tr -d ' \n' | grep -q '"rows":\[{"time":"2026-11-20T03:20:00Z","self":50,'
}
check "JSON has the times in UTC" minutes_json
by_host() {
	run report -q --by host --since @0
	[ "$(row two)" = 100 ] && [ "$(row one)" = 900 ]
}
check "--by host has a row for each host" by_host


# Files with processes' names come from a recording.
record_labels() {
	"$profiltool" record -g -F 499 -q -o "$work/recorded.pb.gz" -- sh -c \
		'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done' >/dev/null 2>&1
	"$make_archive" write "$archive" labels "$(date -u -d '2026-11-19 12:00' +%s)" 2 1 "$work/recorded.pb.gz" >/dev/null
}
check_recorded "a recording becomes windows with labels" record_labels

# all_are FIELD VALUE: every row of a report by this field has the value.
all_are() {
	run report -q --host labels --by "$1" --since @0
	cat "$work/out"
	[ "$(wc -l <"$work/out")" -eq 2 ] && grep -qE " $2\$" "$work/out"
}
check_recorded "--by unit" all_are unit sh.service
check_recorded "--by comm" all_are comm sh
# With --focus, the code is read, too.
same_with_code() {
	local by

	for by in unit user comm process cpu time host; do
		run report -v --host labels --by "$by" --since @0
		"$profiltool" report -q --host labels --by "$by" --since @0 --focus . >"$work/code.out" &&
			cmp "$work/out" "$work/code.out" && exits 1 grep ' % in ' "$work/err" || return
	done
}
check_recorded "rows without code are the same where it is not read" same_with_code

keeps() {
	run report --host labels --since @0 "$@"
	cat "$work/err"
	[ "$status" -eq 0 ]
}
keeps_none() {
	run report --host labels --since @0 "$@"
	cat "$work/err"
	[ "$status" -eq 4 ]
}
check_recorded "--unit" keeps --unit sh.service
check_recorded "--unit takes a pattern" keeps --unit 's*'
check_recorded "another --unit has no samples" keeps_none --unit cron.service
check_recorded "--comm" keeps --comm sh
check_recorded "another --comm has no samples" keeps_none --comm bash
check_recorded "all of several labels have to match" keeps_none --comm sh --unit cron.service
check_recorded "a label that no sample has is printed" prints 4 'no sample has a label "container"' \
	report --host labels --since @0 --container web
check_recorded "rows by it: nothing ran in one" prints 1 'nothing ran in one: .*--by comm' \
	report --host labels --since @0 --by container
check_recorded "--comm selects samples of a file" prints 0 'have 100.00 % of the samples' \
	report --comm sh "$work/recorded.pb.gz"
check_recorded "a file without wakers has none" prints 4 'the profile has no wakers' \
	report --waker sh "$work/recorded.pb.gz"
check_recorded "--unit without .service" keeps --unit sh
check_recorded "--user takes a number, too" keeps_none --user 65533

check_recorded "none of a file is selected: where the names are" prints 4 'no sample is selected: .*report --by comm' \
	report --comm nope "$work/recorded.pb.gz"

# --- What a filter selects, and of how much ---

# In 10 minutes before 03:10, "web" has 4 samples a window, then 600; "db" always has 100. A sample is 10 ms.
profile few 'work 4'
profile many 'work 600'
profile query 'query 100'
units() {
	"$make_archive" write "$archive" units "$(date -u -d "2026-11-17 $1" +%s)" 10 2 "web=$work/$2.pb.gz" "db=$work/query.pb.gz"
}
units 03:00 few >/dev/null
units 03:10 many >/dev/null
"$profiltool" merge "$work/few.pb.gz" "$(find "$archive/units" -name '*.pb.gz' | sort | head -n 1)" -o "$work/some.pb.gz" 2>"$work/err"
check "what is in no unit is called so" sh -c '"$1" report --by unit "$2" 2>&1 | grep -q " \[no unit\]$"' - \
	"$profiltool" "$work/some.pb.gz"
later=(--host units --since '2026-11-17 03:10' --until '2026-11-17 03:20')
selected='selected: 6000 samples, 60.00 s of CPU: 85.71 % of 7000 samples, 70.00 s of CPU'
check "--unit: the summary has what is selected, and of how much" prints 0 "^profiltool: $selected\$" \
	report "${later[@]}" --unit web.service
check "--unit: the totals of all are said to be that" prints 0 '^profiltool: in all: ticks 7000 = ' \
	report "${later[@]}" --unit web.service
check "without a filter, nothing is selected" sh -c '! "$@" 2>&1 | grep -E "selected|in all"' - "$profiltool" report "${later[@]}"
check "--by unit: seconds and percent of a CPU, of 10 minutes" sh -c \
	'"$@" 2>/dev/null | awk "NR > 1 { print \$4, \$5, \$6 }" | diff - /dev/fd/3 3<<EOF_ROWS
60.000 10.00 web.service
10.000 1.67 db.service
EOF_ROWS' - "$profiltool" report "${later[@]}" --by unit
selected_json() {
	run report --json "${later[@]}" --unit web.service
	json "(j['selected'] == {'samples': 6000, 'of_samples': 7000, 'percent': 85.71, 'cpu_s': 60, 'of_cpu_s': 70} and
		(j['samples'], j['cpu_s'], j['cpu_percent'], j['counted']) == (6000, 60, 10, 7000) and
		[(f['self'], f['cpu_s'], f['cpu_percent']) for f in j['functions']] == [(6000, 60, 10)])" "$work/out" &&
		run report --json "${later[@]}" && json "'selected' not in j" "$work/out"
}
check "--unit: JSON, too" selected_json
check "--focus: the summary has what is selected" prints 0 "^profiltool: $selected\$" report "${later[@]}" --focus work
check "several filters: all that was recorded is the whole" \
	prints 4 'selected: 0 samples, 0.00 s of CPU: 0.00 % of 7000 samples' report "${later[@]}" --unit web.service --ignore work
ticket() {
	"$profiltool" snapshot -q "${later[@]}" --unit web.service -o "$work/$1" &&
		prints 0 "^profiltool: $selected\$" report "$work/$1"
}
check "a file of what is selected keeps that" ticket web.pb.gz
check "a Callgrind file, too" ticket web.callgrind
added() {
	"$profiltool" merge -q "$work/web.pb.gz" "$work/web.pb.gz" "$work/many.pb.gz" -o "$work/added.pb.gz" &&
		prints 0 'selected: 12600 samples.*of 14600 samples' report "$work/added.pb.gz"
}
check "sums of such files, and others" added

# differs EXPRESSION OPTION...: of the JSON of diff with a filter.
differs() {
	local expression=$1
	shift
	run diff --json --host units --since '2026-11-17 03:10' --until '2026-11-17 03:20' --unit web.service "$@"
	json "$expression" "$work/out"
}
check "diff with a filter compares CPU time in each second" differs "(j['normalize'] == 'rate' and
	[(r['old'], r['new'], r['old_ms_per_s'], r['new_ms_per_s'], r['difference'], r['significant']) for r in j['rows']] ==
	[(40, 6000, 0.667, 100, 99.333, True)])"
check "that is said" prints 0 '^profiltool: compared: CPU time in each second of the recordings$' \
	diff "${later[@]}" --unit web.service
check "the summary has what is selected of each" prints 0 'old: .* 0.40 s of 10.40 s of CPU in 600.00 s' \
	diff "${later[@]}" --unit web.service
check "--normalize share compares shares of what is selected" differs "(j['normalize'] == 'share' and
	[(r['difference'], r['significant']) for r in j['rows']] == [(0, False)])" --normalize share
check "that is said, too" prints 0 '^profiltool: compared: shares of all samples that are selected$' \
	diff "${later[@]}" --unit web.service --normalize share
check "how much all of it rose is said" prints 0 \
	'^profiltool: in each second: 0.667 ms, then 100.000 ms: 150.00 times as much$' diff "${later[@]}" --unit web.service
check "without a filter, diff compares CPU time in each second, too" prints 0 'old ms/s' diff "${later[@]}"
check "--normalize share is for all" prints 0 '^profiltool: compared: shares of all samples$' \
	diff "${later[@]}" --normalize share
# All of a machine rises 170 times, with the same shares inside.
profile idling 'a;b 2' 'a;c 1'
profile loaded 'a;b 340' 'a;c 170'
"$make_archive" write "$archive" rise "$(date -u -d '2026-11-18 03:00' +%s)" 10 1 "all=$work/idling.pb.gz" >/dev/null
"$make_archive" write "$archive" rise "$(date -u -d '2026-11-18 03:10' +%s)" 10 1 "all=$work/loaded.pb.gz" >/dev/null
rise=(--host rise --since '2026-11-18 03:10' --until '2026-11-18 03:20')
rises() {
	run diff --json "${rise[@]}"
	json "((j['old_s'], j['old_duration_s'], j['new_s'], j['new_duration_s']) == (0.3, 600, 51, 600) and
		[(r['name'], r['old_ms_per_s'], r['new_ms_per_s'], r['significant']) for r in j['rows']] ==
		[('b', 0.333, 56.667, True), ('c', 0.167, 28.333, True)])" "$work/out"
}
check "a load that rose 170 times all over is significant in each function" rises
check "and in the summary" prints 0 '2 of 2 functions differ' diff "${rise[@]}"
check "with what is called, it is three" prints 0 '3 of 3 functions differ' diff "${rise[@]}" --children
check "shares show none of it" prints 0 '0 of 2 functions differ' diff "${rise[@]}" --normalize share
check "but the summary does" prints 0 '170.00 times as much; --normalize rate compares that$' \
	diff "${rise[@]}" --normalize share
same_load() {
	run diff --host rise --since '2026-11-18 03:15' --until '2026-11-18 03:20' --normalize share &&
		! grep 'in each second' "$work/err"
}
check "the summary of shares has no rate where it is the same" same_load
# In 4 minutes 4 x 4 samples, then in 8 minutes 8 x 3. By chance, each of the 40 is an older one with the probability 1/3.
profile three 'work 3'
"$make_archive" write "$archive" lengths "$(date -u -d '2026-11-17 03:00' +%s)" 4 1 "web=$work/few.pb.gz" >/dev/null
"$make_archive" write "$archive" lengths "$(date -u -d '2026-11-17 03:04' +%s)" 8 1 "web=$work/three.pb.gz" >/dev/null
exact_p() {
	run diff --json --host lengths --unit web.service --since '2026-11-17 03:04' --until '2026-11-17 03:12' \
		--before '2026-11-17 03:00..2026-11-17 03:04'
	json "(lambda r, comb: (r['old'], r['new']) == (16, 24) and abs(r['p'] -
		2 * sum(comb(40, k) * 2 ** (40 - k) for k in range(16, 41)) / 3 ** 40) < 1e-6)(j['rows'][0], __import__('math').comb)" \
		"$work/out"
}
check "p is that of recordings of these lengths" exact_p
check "no length known" prints 1 'the old profile does not hold how long it was recorded' \
	diff --normalize rate "$work/quiet.pb.gz" "$work/busy.pb.gz"

# --- The other commands ---

diff_before() {
	run diff --host one --since '2026-11-20 03:20' --until '2026-11-20 03:30'
	cat "$work/out" "$work/err"
	[ "$status" -eq 0 ] && grep -qE '^ *0 +0.000 +400 +6.667 .* work' "$work/out" &&
		grep -q 'old: 2026-11-20 03:10:00 UTC to 2026-11-20 03:20:00 UTC: 100 samples' "$work/err"
}
check "diff compares with the interval before" diff_before

diff_chosen() {
	run diff --host one --since '2026-11-20 03:30' --until '2026-11-20 03:40' \
		--before '2026-11-20 03:20..2026-11-20 03:30'
	[ "$status" -eq 0 ] && grep -qE '^ *400 +6.667 +0 +0.000 .* work' "$work/out"
}
check "diff --before chooses another one" diff_chosen
check "--before takes an interval" prints 2 '--before takes TIME..TIME, not "Tue"' \
	diff --since '2026-11-20 03:30' --before Tue
check "diff takes no interval with two files" prints 2 'for an archive or one profile, not for two profiles' \
	diff --since -1h "$work/busy.pb.gz" "$work/quiet.pb.gz"

snapshot() {
	run snapshot --host one --since '2026-11-20 03:20' --until '2026-11-20 03:55' -o "$work/ticket.pb.gz"
	cat "$work/err"
	[ "$status" -eq 0 ] && run report "$work/ticket.pb.gz" && [ "$(row work)" = 400 ] && [ "$(row idle)" = 250 ] &&
		"$profiltool" dump "$work/ticket.pb.gz" | grep -q "gap=$(date -u -d '2026-11-20 03:40' +%s)+600" &&
		run report --by host "$work/ticket.pb.gz" && [ "$(row one)" = 650 ]
}
check "snapshot writes one file, with its gaps" snapshot
check "snapshot needs an interval" prints 2 'snapshot takes --since TIME, and -o OUT' snapshot -o "$work/x.pb.gz"
check "snapshot writes nothing without windows" prints 1 'has no windows of this time' \
	snapshot --since 2026-11-21 -o "$work/none.pb.gz"
check "not even a part" test ! -e "$work/none.pb.gz"

flame_graph() {
	run flamegraph --host one --since '2026-11-20 03:20' --until '2026-11-20 03:30' -o "$work/graph.svg"
	[ "$status" -eq 0 ] && grep -q work "$work/graph.svg"
}
check "flamegraph" flame_graph

top_shows() {
	run record -F 997 -q -o "$work/top.pb.gz" -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
	"$make_archive" write "$archive" top "$(date -u -d '2026-11-18 12:00' +%s)" 1 1 "$work/top.pb.gz" >/dev/null
	run top --host top --since '2026-11-18 12:00' --until '2026-11-18 12:01' --by process
	cat "$work/out" "$work/err"
	[ "$status" -eq 0 ] && grep -q '^2026-11-18 12:00:00 UTC to 2026-11-18 12:01:00 UTC' "$work/out" &&
		grep -qE '100.00 .* sh$' "$work/out"
}
check_recorded "top shows an interval" top_shows
check "top takes no process besides" prints 2 'the archive has all processes' top -a --since -2h

# --- Merged and damaged windows ---

totals() {
	"$profiltool" report -q --host one --since @0 2>/dev/null | awk 'NR > 1 { print $1, $3, $NF }' | sort
}
merged() {
	local before

	before=$(totals)
	"$make_archive" tidy "$archive" one "$(date -u -d '2026-11-22' +%s)" 20
	[ "$(find "$archive/one" -name '*.pb.gz' ! -name '*.sum.*' | wc -l)" -eq 1 ] && [ "$(totals)" = "$before" ]
}
check "merged windows have the same samples" merged
check "an interval in a merged window has all of it" prints 0 ' to 2026-11-20 04:00:00 UTC on host one: 50 windows, some merged to 1 h' \
	report --host one --since '2026-11-20 03:20' --until '2026-11-20 03:21'
check "a merged window has its gaps" prints 0 'no window for 10 min from 2026-11-20 03:40' \
	report --host one --since '2026-11-20 03:00' --until '2026-11-20 04:00'

# tidy_times TIME HOURS: tidies the host "times" at this time, with times of ticks for so many hours.
tidy_times() {
	"$make_archive" tidy "$archive" times "$(date -u -d "2026-11-16 $1" +%s)" 30 0 0 0 "$2"
}
# times FILE...: prints how many times of ticks the host's files of these names have, and how many samples.
times() {
	local file

	for file; do
		"$profiltool" dump --json "$archive/times/2026-11-16/$file"
	done | python3 -S -c '
import json, sys
text, at, times, samples = sys.stdin.read(), 0, 0, 0
while text[at:].strip():
	j, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
	at = len(text) - len(text[at:].lstrip()) + end
	times += sum(len(s.get("times_ns", [])) for s in j["stacks"])
	samples += j["samples"]
print(times, samples)'
}
merged_times() {
	local one

	"$make_archive" write "$archive" times "$(date -u -d '2026-11-16 03:00' +%s)" 60 1 "$work/recorded.pb.gz" >/dev/null
	one=$(times 030000.pb.gz)
	one=${one#* }
	echo "$one"
	[ "$(times 030000.pb.gz)" = "$one $one" ] && tidy_times 06:00 6 && [ "$(times 030000-10m.pb.gz)" = "$((10 * one)) $((10 * one))" ] &&
		tidy_times 06:00 2 && [ "$(times 03{0,1,2,3,4,5}000-10m.pb.gz)" = "0 $((60 * one))" ] || return
	"$make_archive" write "$archive" times "$(date -u -d '2026-11-16 10:00' +%s)" 10 1 "$work/recorded.pb.gz" >/dev/null
	tidy_times 11:00 1 && tidy_times 23:00 24 && [ "$(times 100000-10m.pb.gz)" = "$((10 * one)) $((10 * one))" ] &&
		tidy_times '12:00 1 day' 24 && [ "$(times 100000-1h.pb.gz)" = "0 $((10 * one))" ]
}
check_recorded "windows of ten minutes keep the times of ticks, for the hours to retain; those of an hour do not" merged_times

damaged() {
	local file=$archive/two/2026-11-20/030000.pb.gz

	truncate -s 50 "$file"
	ln -s 030100.pb.gz "$archive/two/2026-11-20/030200.pb.gz"
	mkfifo "$archive/two/2026-11-20/030300.pb.gz"
	run report --host two --since @0
	cat "$work/err"
	[ "$status" -eq 3 ] && [ "$(row work)" = 40 ] && grep -q "not read: $file" "$work/err" &&
		grep -q 'not read: .*/030200.pb.gz is not a regular file' "$work/err" &&
		grep -q 'not read: .*/030300.pb.gz is not a regular file' "$work/err"
}
check "damaged windows are skipped, with a warning, and exit status 3" damaged

only_damaged() {
	rm "$archive/two/2026-11-20/030100.pb.gz"
	prints 1 'none of the 3 windows can be read' report --host two --since @0
}
check "an error, when none is left" only_damaged

finish
