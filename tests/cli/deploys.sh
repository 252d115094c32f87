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
check "a new build that costs the same is none" grep -qE '^  nothing differs, of [0-9]+ functions and callers$' "$work/out"
check "a restart is a deploy" grep -qxF 'jobs.service on host one, 2026-11-20 01:30: restarted' "$work/out"
check "what has only moved did not get worse" \
	grep -qxF '  nothing got worse: time has moved from some functions to others' "$work/out"
check "where to is a row" grep -qE ' \+1\.[0-9]{2} .* self +g +jobs$' "$work/out"
check "the summary counts them" grep -qxF 'profiltool: 4 changes: 1 worse, 0 better, 1 moved, 0 of another mixture, 2 the same, 0 too early to tell' \
	"$work/err"

check "--unit chooses services" changes 0 three --unit 'db*'
check "by which nothing got worse" grep -q '^db.service on host one' "$work/out"
check "alone" no_line '^web' "$work/out"
check "--min leaves out what is less" changes 0 three --unit web.service --min 5%
check "--until leaves out what came later" changes 0 three --unit web.service --until '2026-11-20 01:50'
check "in which nothing was deployed" grep -q '0 changes: 0 worse' "$work/err"
check "after ten minutes it is too early" changes 0 three --unit web.service --until '2026-11-20 02:10'
check "which is said" grep -qxF '  nothing is compared yet: it takes 15 minutes before and after' "$work/out"
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

archive damaged 3 2 web.service:1:slower=f3,5
head -c 100 /dev/zero >"$work/damaged/one/2026-11-20/003000.pb.gz"
check "a damaged window is left out" changes 3 damaged
check "which is said" says "some windows are damaged, and were not compared"

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
