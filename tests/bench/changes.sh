#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# changes.sh [MEASURE...]: how often `profiltool changes` is right, over archives of three services with the noise
# of real ones (tests/deploys.py): same, slower, slightly; all by default. $PROFIL_BENCH_ROUNDS archives each.
# Fails only if something could not be measured.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

rounds=${PROFIL_BENCH_ROUNDS:-20}

# outcomes HOURS MIN DEPLOY...: "SERVICE OUTCOME FUNCTION..." of each change of all archives. F in a deploy is the
# number of a function, another one in each archive.
outcomes() {
	local hours=$1 least=$2 seed
	shift 2
	for ((seed = 1; seed <= rounds; seed++)); do
		rm -rf "$work/archive"
		"$top/tests/deploys.py" "$work/archive" "$seed" "$hours" "${@//F/f$((seed % 20))}" || return
		"$profiltool" changes --min "$least" --since @0 -q --json "$work/archive" \
			>"$work/changes.json" 2>"$work/changes.err" || [ $? -eq 3 ] || return
		python3 -c '
import json, sys
for c in json.load(open(sys.argv[1]))["changes"]:
    print(c["unit"], c["outcome"], *(r["name"] for r in c["rows"] if r["amount"] == "self" and r["difference"] > 0))' \
			"$work/changes.json" || return
	done
}

# Builds of the same code, two hours of each: none is worse.
measure_same() {
	local worse all
	outcomes 4 1 web.service:2:build db.service:2:build jobs.service:2:build >"$work/same" ||
		not_measured "the same code" "an archive" || return
	all=$(wc -l <"$work/same")
	worse=$(grep -c ' worse' "$work/same")
	judge "the same code, false findings" "$worse" "$worse of $all comparisons in $rounds archives" 1
}

# judge_missed MEASURE: a function of web.service is slower; one of db.service has given time to another.
judge_missed() {
	local missed moved
	missed=$((rounds - $(grep -c '^web.service worse f' "$work/slower")))
	judge "$1, missed" "$missed" "$missed of $rounds" $((rounds / 20))
	moved=$(grep -c '^db.service worse' "$work/slower")
	judge "  time moved beside it, taken for worse" "$moved" "$moved of $rounds" 0
}

measure_slower() {
	outcomes 3 1 web.service:2:slower=F,2 db.service:2:moved=F,g,2 >"$work/slower" ||
		not_measured "2 % slower" "an archive" || return
	judge_missed "2 % slower for an hour at 97 Hz"
}

measure_slightly() {
	outcomes 8 0.5 web.service:4:slower=F,1 db.service:4:moved=F,g,1 >"$work/slower" ||
		not_measured "1 % slower" "an archive" || return
	judge_missed "1 % slower for four hours"
}

measures=(same slower slightly)
bench "$@"
