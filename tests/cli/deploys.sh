#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# changes: what got worse with a deploy, in archives with known deploys (tests/deploys.py).
# shellcheck disable=SC2317 # functions are called through check

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

export TZ=UTC

# archive NAME SEED HOURS [DEPLOY]...
archive() {
	python3 "$top/tests/deploys.py" "$work/$1" "${@:2}"
}

# changes CODE ARCHIVE [OPTION]...: the command exits with this code; its output is in $work/out and $work/err.
changes() {
	local code=$1 name=$2 status=0
	shift 2
	"$profiltool" changes --since @0 "$@" "$work/$name" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq "$code" ]
}

# no_line PATTERN FILE
no_line() {
	! grep "$@"
}

# json_of UNIT OUTCOME: the outcomes of that service's changes, in the last archive.
json_of() {
	"$profiltool" changes --since @0 -q --json --unit "$1" "$work/other" >"$work/out" || return
	json "' '.join(c['outcome'] for c in j['changes']) == '$2'" "$work/out"
}

archive three 1 4 web.service:2:slower=f3,2 db.service:2.5:build jobs.service:1.5:restart jobs.service:2.5:moved=f0,g,3

check "something got worse" changes 3 three
check "the deploy is named, with its time and builds" \
	grep -qxF 'web.service on host one, 2026-11-20 02:00: a new build of web (02020202, before 01010101), restarted' \
	"$work/out"
check "and by how much its work costs more" grep -qE '^  worse: the same work takes (1\.[789]|2\.[0-3])[0-9] % more CPU time$' \
	"$work/out"
check "the function is a row" grep -qE '^ +[0-9.]+ +[0-9.]+ +\+[12]\.[0-9]{2} +0\.[0-9]{2} +self +f3 +web$' "$work/out"
check "a new build that costs the same is none" grep -qE '^  nothing differs by more than chance, of [0-9]+ functions and callers$' "$work/out"
check "a restart is a deploy" grep -qxF 'jobs.service on host one, 2026-11-20 01:30: restarted' "$work/out"
check "what has only moved did not get worse" \
	grep -qxF '  nothing got worse: time has moved from some functions to others' "$work/out"
check "where to is a row" grep -qE ' \+1\.[0-9]{2} .* self +g +jobs$' "$work/out"
check "the summary counts them" grep -qxF 'profiltool: 4 changes: 1 worse, 0 better, 1 moved, 0 of another mixture, 0 of other waits, 2 the same, 0 too early to tell' \
	"$work/err"

# In the service's time, what f16 has lost is less than what its requests' number varies by; what f11's siblings
# lose, because there are fewer of their requests, is more than chance.
archive moves 36 8 db.service:4:moved=f16,g,1
check "what gave its time is found among what its caller calls" changes 0 moves --min 0.5 --unit db.service
check "where it got to is a row" grep -qE ' \+[01]\.[0-9]{2} .* self +g +db$' "$work/out"
archive less 11 8 web.service:4:slower=f11,1
check "fewer requests of a kind do not hide that they cost more" changes 3 less --min 0.5 --unit web.service
check "the function that costs it is a row" grep -qE ' self +f11 +web$' "$work/out"

check "--unit chooses services" changes 0 three --unit 'db*'
check "by which nothing got worse" grep -q '^db.service on host one' "$work/out"
check "alone" no_line '^web' "$work/out"
check "--min leaves out what is less" changes 0 three --unit web.service --min 5%
check "--until leaves out what came later" changes 0 three --unit web.service --until '2026-11-20 01:50'
check "in which nothing was deployed" grep -q '0 changes: 0 worse' "$work/err"
check "--at takes any time" changes 0 three --at @0
check "after ten minutes it is too early" changes 0 three --unit web.service --until '2026-11-20 02:10'
check "which is said" grep -qxF '  nothing is compared: too little was recorded before or after it' "$work/out"
check "--at compares whatever was deployed" changes 3 three --unit web.service --at '2026-11-20 02:00'
check "at that time" grep -qx 'web.service on host one, 2026-11-20 02:00' "$work/out"
check "--limit leaves rows out" changes 3 three --unit web.service -E 1
check "and says how many" grep -qxE '\.\.\. [0-9]+ more' "$work/out"

check "JSON has the same" changes 3 three --json
check "the worst outcome" json "j['outcome'] == 'worse'" "$work/out"
check "each change" json "[(c['unit'], c['outcome'], c['restarted'], [b['image'] for b in c['builds']]) for c in j['changes']] == [
	('web.service', 'worse', True, ['web']), ('db.service', 'same', True, ['db']),
	('jobs.service', 'same', True, []), ('jobs.service', 'moved', True, ['jobs'])]" "$work/out"
check "the spans that are compared" json "(j['changes'][0]['before']['until'], j['changes'][0]['after']['since'],
	round(j['changes'][0]['after']['recorded_s'])) == ('2026-11-20T02:00:00Z', '2026-11-20T02:00:00Z', 7200)" "$work/out"
check "each row" json "[(r['name'], abs(r['difference'] - 2) < 3 * r['error'], r['p'] < 0.05)
	for r in j['changes'][0]['rows'] if r['amount'] == 'self'] == [('f3', True, True)]" "$work/out"

# Builds of one package, and of another; and what another user may have written there.
build_of() {
	printf "%.0s$1" {1..20}
}
{
	echo "$(build_of 01) shop 1:1.0-1~deb12u1"
	printf '\377 x\n\n%s shop\n%s shop 3 4\nzz shop 5\n' "$(build_of 02)" "$(build_of 02)"
	head -c 2000 /dev/zero | tr '\0' a
	echo
	echo "$(build_of 02) shop 1:1.0-2"
	echo "$(build_of 02) shop 6"
} >"$work/three/one/.packages"
check "deploys have the versions of their packages" changes 3 three
check "what is deployed, and what was before" \
	grep -qF ': a new build of web (shop 1:1.0-2, before 1:1.0-1~deb12u1), restarted' "$work/out"
check "in JSON, too" changes 3 three --json
check "with their names" json "[(b['package_before'], b['package_after']) for b in j['changes'][0]['builds']] == [
	({'name': 'shop', 'version': '1:1.0-1~deb12u1'}, {'name': 'shop', 'version': '1:1.0-2'})]" "$work/out"
echo "$(build_of 02) store 2" >"$work/three/one/.packages"
check "one whose package before is unknown" changes 3 three
check "has its build IDs" grep -qF ': a new build of web (02020202, before 01010101), restarted' "$work/out"
truncate -s 1T "$work/three/one/.packages"
check "a file of 1 TB has no lines" changes 3 three

# Two hours in which only the load differs; two builds that are used side by side; a function that becomes faster.
archive other 2 4 web.service:1:load=60 web.service:2:build db.service:0:beside jobs.service:2:slower=f5,-3
check "a larger load is not worse, nor is a faster function" changes 0 other
check "the load alone" json_of web.service same
check "the faster function" json_of jobs.service better
check "builds side by side are no deploy" json_of db.service ''

# More requests of one kind: all that they call costs more, alike.
archive mixture 5 4 web.service:2:more=1,30
check "another mixture of requests is not worse" changes 0 mixture
check "which is said" grep -q '^  nothing got worse by itself: these differ with all that they call' "$work/out"
check "with what is asked more often" grep -qE ' \+[0-9.]+ .* total  request_1  web$' "$work/out"
check "in JSON, too" exits 0 "$profiltool" changes --since @0 -q --json "$work/mixture"
check "as an outcome" json "[c['outcome'] for c in j['changes']] == ['mixture']" "$work/out"

# Services of three functions, beside which something else takes the cache of one at times: a function that is 25 % slower,
# time that moves to another one, and all slower alike. And one of few, in which the scale is known badly.
DEPLOYS_COSTS='[[0.25, 0.5, 0.22], [0.03]]' archive few 1 2 {web,db,jobs}.service:0:disturbed=f1,4 web.service:1:slower=f0,6.25 \
	db.service:1:moved=f0,f2,6.25 jobs.service:1:whole=25
check "one of three functions that is slower is worse" changes 3 few --unit web.service
check "the other two are what it is compared with" grep -qE ' \+[567]\.[0-9]{2} .* self +f0 +web$' "$work/out"
check "time that moves between two of three did not get worse" changes 0 few --unit db.service
check "it has moved" grep -qxF '  nothing got worse: time has moved from some functions to others' "$work/out"
check "all slower alike is not seen in three functions" changes 0 few --unit jobs.service
check "but in the CPU time of a request" changes 3 few --per "jobs=$work/few.jobs.service.requests"
DEPLOYS_COSTS='[[0.25, 0.4, 0.2], [0.05, 0.04, 0.03, 0.02, 0.01]]' archive scale 7 2 web.service:1:build db.service:1:moved=f0,f2,6.25
check "an error of the scale is no cost of time that moved" changes 0 scale --unit db.service
check "which is said" grep -qxF '  nothing got worse: time has moved from some functions to others' "$work/out"

# Three functions, and two small ones of which more is asked, as some of the kernel's when the machine is busy.
DEPLOYS_COSTS='[[0.25, 0.5, 0.2], [0.02, 0.015]]' archive small 1 2 web.service:1:slower=f0,6.25 web.service:1:more=1,20
check "small functions are not what the others are compared with" changes 3 small
check "but the larger ones" grep -qE ' \+[567]\.[0-9]{2} .* self +f0 +web$' "$work/out"

# Two functions of each kind of requests: where one is slower, the other one's part of their caller's time falls.
DEPLOYS_COSTS='[[0.2, 0.1], [0.2, 0.1], [0.15, 0.05], [0.15, 0.05]]' archive pairs 14 2 web.service:1:slower=f1,3 \
	db.service:1:moved=f0,f2,6.25
check "one of two functions of a caller that is slower is worse" changes 3 pairs --unit web.service
check "time that moves to another caller's did not get worse" changes 0 pairs --unit db.service
check "it has moved" grep -qxF '  nothing got worse: time has moved from some functions to others' "$work/out"

# A service that logs since, in functions of which each is too small to be compared; and one that is only asked more.
archive added 3 0.8 jobs.service:0.4:added=1,4 db.service:0.4:more=2,40
check "what is done since a deploy is worse" changes 3 added --unit jobs.service
check "by so much" grep -qE '^  worse: the same work takes (3\.[5-9]|4\.[0-5])[0-9] % more CPU time$' "$work/out"
check "with all that is called for it" grep -qE '^ +0\.00 +[34]\.[0-9]{2} +\+[34]\.[0-9]{2} +[0-9.]+ +total  log +jobs$' "$work/out"
check "more of what was done before is not" changes 0 added --unit db.service
check "without a deploy it may be a new kind of requests" changes 0 added --unit jobs.service --at '2026-11-20 00:24'

# Threads that are blocked for longer: of one reason in two, in windows that have waits.
DEPLOYS_WAITS=1 archive blocked 8 2 web.service:1:blocked=2 db.service:1:restart
check "longer waits for a lock are not worse" changes 0 blocked
check "but are said" grep -qxF '  nothing got worse by itself: what differs is for how long it was blocked, which also' "$work/out"
check "with where and for how long, for each second of CPU time" \
	grep -qE '^ *(9[0-9]|10[0-9])\.[0-9]{2} +(1[89]|2[01])[0-9]\.[0-9]{2} +\+[0-9.]+ +[0-9.]+  lock    get       web$' "$work/out"
check "the disk, for which it is blocked as before, is no row" no_line '  disk ' "$work/out"
check "nor are those of a service that is blocked as before" \
	grep -qE '^  nothing differs by more than chance, of [0-9]+ functions and callers, and of 2 waits$' "$work/out"
check "JSON has them as waits" changes 0 blocked -q --json --unit web.service
check "with their reason, function and chance" json "[(r['reason'], r['name'], r['image'], 60 < r['difference'] < 140, r['p'] < 0.05)
	for r in j['changes'][0]['waits']] == [('lock', 'get', 'web', True, True)] and j['changes'][0]['outcome'] == 'waits'" "$work/out"
check "JSON is what the schema says" python3 -S "$top/tests/schema.py" "$top/user/doc/profiltool.schema.json" changes "$work/out"
check "the windows after, which lack waits" sh -c "DEPLOYS_WAITS='' python3 '$top/tests/deploys.py' '$work/lacking' 8 2 web.service:1:restart &&
	mv '$work'/lacking/one/2026-11-20/01* '$work/blocked/one/2026-11-20'"
check "are no shorter waits" changes 0 blocked --unit web.service
check "as none are compared" grep -qE '^  nothing differs by more than chance, of [0-9]+ functions and callers$' "$work/out"

# Of which query there are more: how many there were is unknown, so this is not worse.
archive queries 5 4 web.service:2:more=1,30 db.service:2:build
check "--by query compares queries" changes 0 queries --by query
check "of which there may be more" grep -q '^  nothing got worse by itself: of these queries there are more, or fewer' "$work/out"
check "which ones" grep -qE '^ *[0-9.]+ +[0-9.]+ +\+[0-9.]+ +[0-9.]+  select 1$' "$work/out"
check "and no function" no_line -E 'request_|web$' "$work/out"
check "or says that none differs" grep -qxF '  nothing differs by more than chance, of 4 queries' "$work/out"
check "as JSON" changes 0 queries --by query -q --json --unit web.service
check "by what rows are" json "(j['by'], j['outcome']) == ('query', 'mixture') and ('select 1', True) in [
	(r['name'], r['difference'] > 0) for r in j['changes'][0]['rows']]" "$work/out"
check "as the schema says" python3 -S "$top/tests/schema.py" "$top/user/doc/profiltool.schema.json" changes "$work/out"
check "--query chooses the ticks of some" changes 0 queries --query 'select 1' --by query --unit web.service
check "which are all there is" grep -qE 'of 0 queries$' "$work/out"
check "a label that no tick has" changes 0 queries --by tenant
check "is said" says "--by tenant: no sample has a label tenant"
check "rows of code other than functions" exits 2 "$profiltool" changes --by line "$work/queries"
check "are no label" says '--by takes function, query, route, application or another label, not "line"'

# per FILE [OPTION]...: of web.service in the archive "whole", as exits.
per() {
	exits "$1" "$profiltool" changes --since @0 -q --json --unit web.service "${@:3}" --per "$2" "$work/whole" &&
		cp "$work/out" "$work/per"
}

# measured EXPRESSION: of the measures m of the last comparison.
measured() {
	json "(lambda m: $1)({m['name']: m for m in j['changes'][0]['measures']})" "$work/per"
}

# A program that became slower as a whole; threads that wait longer for CPUs.
archive whole 6 2 web.service:1:whole=30 db.service:1:waits=3 jobs.service:1:halfway
requests=$work/whole.web.service.requests
check "what is slower as a whole is not seen in functions" changes 0 whole --unit web.service
check "but in the CPU time of a request" changes 3 whole --per "web=$requests"
check "which is said" grep -qE '^  worse: a request takes (29|30)\.[0-9]{2} % more CPU time$' "$work/out"
check "in its unit, with its error" grep -qE '^ *[0-9.]+ +[0-9.]+ +\+(29|30)\.[0-9]{2} +[0-9]\.[0-9]{2}  us of CPU time for a request$' "$work/out"
check "waits of another service are compared with those elsewhere" \
	grep -qE '  ms runnable for each s on CPU; elsewhere (39|4[01])\.[0-9]{2}, then (39|4[01])\.[0-9]{2}$' "$work/out"
check "requests are beside it" grep -qE '  requests in a second$' "$work/out"
check "other services have none" [ "$(grep -c 'for a request$' "$work/out")" -eq 1 ]
check "longer waits for a CPU are not worse" changes 0 whole --unit db.service
check "but are said" grep -q '^  nothing got worse by itself: what differs is how long it was runnable, or its$' "$work/out"
check "with how long these were" grep -qE '^ *4[0-9]\.[0-9]{2} +1[12][0-9]\.[0-9]{2} +\+[0-9.]+ +[0-9.]+  ms runnable for each s on CPU$' \
	"$work/out"
check "as an outcome of JSON" exits 0 "$profiltool" changes --since @0 -q --json --unit db.service "$work/whole"
check "of its own" json "j['outcome'] == 'waits' and [m['name'] for m in j['changes'][0]['measures'] if m['differs']
	and m['name'].startswith('runnable')] == ['runnable_ms_per_cpu_s']" "$work/out"
check "a restart within a minute is a deploy" changes 0 whole --unit jobs.service
check "at that minute" grep -qxF 'jobs.service on host one, 2026-11-20 01:00 to 01:01: restarted' "$work/out"
check "JSON has what is measured" per 3 "$requests"
check "of the service as a whole" measured "sorted(m) == ['blocked_threads', 'cpu_s_per_hour', 'cpu_us_per_request',
	'delay_ms_per_cpu_s', 'requests_per_s', 'runnable_ms_per_cpu_s'] and m['cpu_us_per_request']['differs'] and
	abs(m['cpu_us_per_request']['before'] / 10000 - 1) < 0.1 and abs(m['delay_ms_per_cpu_s']['after'] - 50) < 0.1"
expected=$(python3 -c 'import json, sys
print([m["after"] for m in json.load(open(sys.argv[1]))["changes"][0]["measures"] if m["name"] == "cpu_us_per_request"][0])' "$work/per")

# The same requests in other forms.
awk '{ print "http_requests_total{path=\"/a b\\\"}\"} " $2 " " $1 "000" }' "$requests" | gzip >"$work/text.gz"
check "Prometheus' text is read" per 3 "$work/text.gz"
check "as the same" measured "m['cpu_us_per_request']['after'] == $expected"
awk 'NR > 1 { print $1 "," ($2 >= last ? $2 - last : $2) / 15 } NR == 1 { print $1 ",0" } { last = $2 }' "$requests" >"$work/rates"
check "rates are read" per 3 "$work/rates" --per-rate
check "as the same" measured "abs(m['cpu_us_per_request']['after'] / $expected - 1) < 1e-4"
check "rates are no counter" exits 1 "$profiltool" changes --unit web.service --per "$work/rates" "$work/whole"
check "which is said" says "$work/rates is no counter: it falls in "
check "with what reads them" says "--per-rate reads values that are requests in a second"
python3 - "$requests" >"$work/range" <<'EOF'
import json, sys
lines = [line.split() for line in open(sys.argv[1])]
half = [[[int(time), str(int(count) // 2 + odd * (int(count) % 2))] for time, count in lines] for odd in (0, 1)]
print(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
    {"metric": {"instance": str(odd)}, "values": half[odd]} for odd in (0, 1)]}}))
EOF
check "two series of query_range are added up" per 3 "$work/range"
check "to the same" measured "abs(m['cpu_us_per_request']['after'] / $expected - 1) < 1e-4"
# Half of the requests, for which the service takes as much time: what does not depend on them may explain that.
awk 'NR == 1 { begin = $1 } { count += $1 - begin < 3600 ? 100 : 50; print strftime("%Y-%m-%dT%H:%M:%SZ", $1, 1), count }' \
	"$work/whole.db.service.requests" >"$work/fewer"
check "fixed costs of fewer requests are not worse" exits 0 "$profiltool" changes --since @0 -q --json --unit db.service \
	--per "$work/fewer" "$work/whole"
check "though each takes twice as long" json "[(1.5 < m['after'] / m['before'] < 2.5, m['differs'])
	for m in j['changes'][0]['measures'] if m['name'] == 'cpu_us_per_request'] == [(True, False)]" "$work/out"
head -n 100 "$requests" >"$work/short"
check "a metric that ends too early is not compared" changes 0 whole --unit web.service --per "$work/short"
check "which is said" grep -qxF '  requests are not compared: the metric covers too little of this time' "$work/out"

# bad_metric NAME CONTENT MESSAGE
bad_metric() {
	printf '%b' "$2" >"$work/bad"
	check "$1" exits 1 "$profiltool" changes --per "web=$work/bad" "$work/whole"
	check "  is said" says "$work/bad$3"
}
bad_metric "a line without a value" '1795132800 5\n1795132815\n' ':2: it is no TIME VALUE'
bad_metric "a value that is none" '1795132800 5\n1795132815 x\n' ':2: its value is no number'
bad_metric "a negative one" '1795132800 -5\n' ':1: a value is no number of requests'
bad_metric "a huge one" '1795132800 1e300\n' ':1: a value is no number of requests'
bad_metric "a time that is none" '# a\n\nwhen 5 6\nxx 7 8\n1795132815x 7\n' ':5: its time is none'
bad_metric "times that go back" '1795132800 5\n1795132799 7\n' ':2: its time is not later'
bad_metric "a scrape without times" 'http_requests_total{a="b"} 7\n' ':1: its value has no time'
bad_metric "labels without an end" 'http_requests_total{a="}" 7\n' ':1: it has no value behind'
bad_metric "one value" '1795132800 5\n' ' has no two values within 15 minutes'
bad_metric "JSON that ends too early" '{"data": {"result": [' ': at byte '
bad_metric "other JSON" '{"data": {"result": [{"value": [1, "2"]}]}}' ': a result has no values'
check "a metric of two services" exits 2 "$profiltool" changes --since @0 --per "$requests" "$work/whole"
check "is said" says "would be of web.service on host one and of db.service on host one"
check "a metric of a service that is not there" changes 0 whole --unit db.service --per "web=$requests"
check "is said" grep -qF "nothing was deployed of what it counts" "$work/err"
check "--per without a unit before =" exits 2 "$profiltool" changes --per "=$requests" "$work/whole"

archive damaged 3 2 web.service:1:slower=f3,5
head -c 100 /dev/zero >"$work/damaged/one/2026-11-20/003000.pb.gz"
check "a damaged window is left out" changes 3 damaged
check "which is said" says "some windows are damaged, and were not compared"

# A year apart, on the same day.
DEPLOYS_START=$((1795132800 - 365 * 86400)) archive years 1 0.5
archive years 1 0.5 web.service:0:build
check "a deploy after a year" exits 0 "$profiltool" changes --since @0 --unit web.service "$work/years"
check "has both dates" grep -qxF \
	'web.service on host one, 2025-11-20 00:30 to 2026-11-20 00:00: a new build of web (02020202, before 01010101), restarted' \
	"$work/out"

# Ticks that stand for so long that a block of them is more than 64 bits hold.
DEPLOYS_PERIOD=9000000000000000000 archive long 1 2 web.service:1:build
check "sums of times that have no end" exits 0 "$profiltool" changes --since @0 -q --unit web.service "$work/long"
check "are not negative" no_line -F ', -' "$work/out"
check "nor in JSON" exits 0 "$profiltool" changes --since @0 -q --json --unit web.service "$work/long"
check "where they end as numbers" json "[s['cpu_s'] > 9e9 for c in j['changes'] for s in (c['before'], c['after'])] == [True, True]" \
	"$work/out"

# Builds one after another: each is compared with the one before.
archive chain 1 2 web.service:0.5:build web.service:1:restart web.service:1.5:build
check "three deploys" exits 0 "$profiltool" changes --since @0 -q --json --unit web.service "$work/chain"
check "each of its own builds" json "[[(b['before'][:2], b['after'][:2]) for b in c['builds']] for c in j['changes']] == [
	[('01', '02')], [], [('02', '03')]]" "$work/out"

# More functions than there is room for, but most have one tick: they do not hide what comes later.
DEPLOYS_ONCE=100 archive once 1 1.6 web.service:1.1:added=1,6
check "functions that run once do not hide a deploy" changes 3 once
check "nor what is new with it" grep -qE ' total +log +web$' "$work/out"
check "no other is left out" no_line "too many functions" "$work/err"

# Windows of other writers, whose ids are no places in the file.
archive places 1 4 web.service:2:slower=f3,2 db.service:2.5:build
DEPLOYS_IDS=7 archive ids 1 4 web.service:2:slower=f3,2 db.service:2.5:build
"$profiltool" changes --since @0 -q "$work/places" >"$work/expected" 2>/dev/null
check "windows with other ids" changes 3 ids -q
check "say the same" cmp "$work/expected" "$work/out"

# Windows that became one of ten minutes lack callers of their many stacks, such as those of what only a part of these
# calls; the windows after them have all.
for i in {0..9}; do
	awk -v i="$i" 'BEGIN { for (k = 0; k < 1200; k++)
		printf "main;a%d;b%d;c%d_%d;%swork %d\n", k % 30, k, i, k, k % 4 ? "" : "log;", 3 + (k * k + i) % 7 }' >"$work/folded"
	"$profiltool" convert "$work/folded" "$work/many$i.pb.gz" 2>/dev/null
done
make_archive=$build/tests/unit/archive_make
"$make_archive" write "$work/merged" one "$(date -d '2026-11-20 03:00' +%s)" 60 1 web="$work"/many{0..9}.pb.gz >/dev/null
check "all windows have all callers" changes 0 merged --at '2026-11-20 03:30'
check "these are compared" no_line "callers are not compared" "$work/out"
check "nothing differs" grep -q '^  nothing differs' "$work/out"
"$make_archive" tidy "$work/merged" one "$(date -d '2026-11-20 05:32' +%s)" 4
check "windows before were merged, and lack callers" changes 0 merged --at '2026-11-20 03:30'
check "callers are not compared" \
	grep -qE '^  callers are not compared: [0-9.]+ % of stacks are complete before, 100(\.0+)? % after$' "$work/out"
check "still nothing differs" grep -q '^  nothing differs' "$work/out"
check "the same in JSON" changes 0 merged --at '2026-11-20 03:30' -q --json
check "names what is not compared" json "j['changes'][0]['not_compared'] == ['callers']" "$work/out"

# A name is text: of a function that would clear the screen.
archive hostile 4 2 web.service:1:moved=f1,$'\e[2Jg',3
check "names do not act on the terminal" changes 0 hostile
check "but are shown" grep -qF '\x1b[2Jg' "$work/out"

check "a directory that is no archive is an error" exits 1 "$profiltool" changes "$work"
check "which is named" says "$work is no archive of profild --continuous"
check "an archive that is not there" exits 1 "$profiltool" changes "$work/none"
check "no window" exits 1 "$profiltool" changes --since 2026-11-21 "$work/three"
check "is said" says "$work/three has no windows of this time"
check "two archives" exits 2 "$profiltool" changes "$work/three" "$work/other"
check "a minimum of nothing" exits 2 "$profiltool" changes --min 0 "$work/three"
check "is no percentage" says '--min takes a percentage above 0, not "0"'
check "a time that is none" exits 2 "$profiltool" changes --at whenever "$work/three"

finish
