#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# changes.sh [MEASURE...]: how often `profiltool changes` is right, over archives of three services with the noise
# of real ones (tests/deploys.py): same, hours, slower, slightly, whole; all by default. $PROFIL_BENCH_ROUNDS archives
# each. recorded: over an archive that was really recorded, in which nothing was deployed: $PROFIL_BENCH_ARCHIVE.
# Fails only if something could not be measured.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

rounds=${PROFIL_BENCH_ROUNDS:-20}

# requests: sets `per` to the options for the requests of the last archive.
requests() {
	local unit
	per=()
	for unit in web db jobs; do
		per+=(--per "$unit=$work/archive.$unit.service.requests")
	done
}

# print_outcomes: "SERVICE OUTCOME FUNCTION..." of each change in $work/changes.json; "a-request" among functions: the
# CPU time of a request differs.
print_outcomes() {
	python3 -c '
import json, sys
for c in json.load(open(sys.argv[1]))["changes"]:
    print(c.get("unit") or c["container"], c["outcome"], *(r["name"] for r in c["rows"] if r["amount"] == "self" and r["difference"] > 0),
          *("a-request" for m in c["measures"] if m["name"] == "cpu_us_per_request" and m["differs"]))' \
		"$work/changes.json"
}

# outcomes HOURS MIN DEPLOY...: "SERVICE OUTCOME FUNCTION..." of each change of all archives. F in a deploy is the
# number of a function, another one in each archive.
outcomes() {
	local hours=$1 least=$2 seed
	shift 2
	for ((seed = 1; seed <= rounds; seed++)); do
		rm -rf "$work/archive"
		"$top/tests/deploys.py" "$work/archive" "$seed" "$hours" "${@//F/f$((seed % 20))}" || return
		"$profiltool" changes --min "$least" --since @0 -q --json "${per[@]}" "$work/archive" \
			>"$work/changes.json" 2>"$work/changes.err" || [ $? -eq 3 ] || return
		print_outcomes || return
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

# Twenty hours of the same code, with a restart of each service at each hour: each hour is compared with the next.
measure_hours() {
	local hour counted worse all archives restarts=()
	for ((hour = 1; hour < 20; hour++)); do
		restarts+=({web,db,jobs}.service:"$hour":restart)
	done
	for counted in "" ", with requests"; do
		per=()
		[ -z "$counted" ] || requests
		outcomes 20 1 "${restarts[@]}" >"$work/hours" || not_measured "twenty hours" "an archive" || return
		all=$(wc -l <"$work/hours")
		worse=$(grep -c ' worse' "$work/hours")
		archives=$(awk -v n=57 '/ worse/ { a[int((NR - 1) / n)] } END { print length(a) }' "$work/hours")
		judge "hour by hour$counted, false findings" "$archives" \
			"$worse of $all comparisons, in $archives of $rounds archives" $(((rounds + 19) / 20))
	done
}

# Each of twenty times in an archive in which nothing was deployed, as if something had been: up to an hour on each
# side.
measure_recorded() {
	local -a times
	local length at i all worse
	[ "${PROFIL_BENCH_ARCHIVE:-}" ] || not_measured "recorded" "PROFIL_BENCH_ARCHIVE names no archive" || return
	readarray -t times < <(find "$PROFIL_BENCH_ARCHIVE" -name '[0-9]*.pb.gz' ! -name '*.sum.*' ! -name '*-trigger-*' |
		sed -nE 's,.*/([0-9-]{10})/(..)(..)(..)[^/]*$,\1 \2:\3:\4 UTC,p' | sort | sed -n '1p;$p' | date -f - +%s)
	length=$(((times[1] - times[0]) / 2))
	length=$((length > 3600 ? 3600 : length * 2 / 3))
	for ((i = 0; i < 20; i++)); do
		at=$((times[0] + length + (times[1] - times[0] - 2 * length) * i / 19))
		"$profiltool" changes --at "@$at" --since "@$((at - length))" --until "@$((at + length))" -q --json \
			"$PROFIL_BENCH_ARCHIVE" >"$work/changes.json" 2>"$work/changes.err" || [ $? -eq 3 ] ||
			not_measured "recorded" "the archive" || return
		print_outcomes
	done >"$work/all"
	grep -v ' too-early' "$work/all" >"$work/recorded"
	all=$(wc -l <"$work/recorded")
	worse=$(grep -c ' worse' "$work/recorded")
	judge "recorded, the same code, false findings" "$worse" "$worse of $all comparisons at 20 times" 1
	awk '{ print "# " $1, $2 }' "$work/recorded" | sort | uniq -c >&2
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

# All of web.service costs more, as without optimization: its functions cannot tell, requests can.
measure_whole() {
	local missed
	requests
	outcomes 3 1 web.service:2:whole=20 db.service:1:load=20 db.service:2:restart >"$work/whole" ||
		not_measured "20 % slower as a whole" "an archive" || return
	missed=$((rounds - $(grep -c '^web.service worse .*a-request' "$work/whole")))
	judge "20 % slower as a whole, missed" "$missed" "$missed of $rounds" $((rounds / 20))
	per=()
}

measure_slightly() {
	outcomes 8 0.5 web.service:4:slower=F,1 db.service:4:moved=F,g,1 >"$work/slower" ||
		not_measured "1 % slower" "an archive" || return
	judge_missed "1 % slower for four hours"
}

measures=(same hours slower whole slightly ${PROFIL_BENCH_ARCHIVE:+recorded})
per=()
bench "$@"
