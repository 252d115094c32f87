#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# chains.sh [MEASURE...]: what `record --chains` of the machine costs PostgreSQL beside `--wall` and beside no recording, by
# turns: select (pgbench -S), write (pgbench -c 8, read and write); and why: what `profiltool why` takes for a million waits
# of a minute. PROFIL_BENCH_ROUNDS (9) of PROFIL_BENCH_SECONDS (10). As root, on a quiet machine, with PostgreSQL.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

rounds=${PROFIL_BENCH_ROUNDS:-9}
seconds=${PROFIL_BENCH_SECONDS:-10}

# transactions NAME OPTION...: adds the transactions of a second to NAME.
transactions() {
	pgbench -n -T "$seconds" "${@:2}" >"$work/pgbench.out" 2>"$work/pgbench.err" &&
		sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/pgbench.out" | grep . >>"$work/$1"
}

# recorded NAME OPTION -- PGBENCH_OPTION...: the same while the machine is recorded.
recorded() {
	record_begin record record -q -a "$2" -o "$work/$1.pb.gz" && transactions "$1" "${@:4}" && record_end
}

# kept TITLE NAME BESIDE GOAL: of each round, what NAME has of BESIDE.
kept() {
	paste "$work/$2" "$work/$3" | awk '{ print $1 / $2 }' >"$work/ratio"
	judge_least "$1" "$(median "$work/ratio")" "$(summary "$work/ratio" 3)" "$4"
}

# throughput TITLE PGBENCH_OPTION...
throughput() {
	local round title=$1
	shift
	rm -f "$work"/{alone,wall,chains}
	for ((round = 0; round < rounds; round++)); do
		transactions alone "$@" && recorded wall --wall -- "$@" && recorded chains --chains -- "$@" ||
			not_measured "$title" "round $round" || return
	done
	row "$title, transactions/s alone" "$(summary "$work/alone" 0)" "" ""
	kept "  --chains beside --wall" chains wall 0.98
	kept "  --wall beside alone" wall alone 0.95
	kept "  --chains beside alone" chains alone 0.93
}

measures=(select write why)

measure_select() {
	throughput "pgbench -S" -S -c 1
}

measure_write() {
	throughput "pgbench -c 8" -c 8 -j 2
}

# A minute of a server whose threads wait a million times and more, all of whose turns are explained.
measure_why() {
	local waits minute=${PROFIL_BENCH_MINUTE:-60}
	rm -f "$work/why"
	seconds=$minute
	record_begin record record -a --json --chains --max-overhead 0 -o "$work/why.pb.gz" &&
		transactions tps -S -c 8 -j 2 && record_end || not_measured "why" "a recording" || return
	waits=$(python3 -S -c 'import json, sys; print(json.load(open(sys.argv[1]))["wall"]["waits"])' "$work/record.json")
	for _ in 1 2 3 4 5; do
		/usr/bin/env TIMEFORMAT=%R bash -c 'time "$@" >/dev/null 2>&1' - "$profiltool" why -q -p postgres "$work/why.pb.gz" \
			2>>"$work/why" || not_measured "why" "$profiltool why" || return
	done
	awk -v waits="$waits" '{ print 1e6 * $1 / waits }' "$work/why" >"$work/million"
	judge "why, of a million waits" "$(median "$work/million")" "$(summary "$work/million" 2 s), $waits waits" 1 s
}

find_postgres || { echo "chains.sh: no PostgreSQL here, nor in PGBINDIR" >&2; exit 1; }
make_postgres || { echo "chains.sh: initdb failed" >&2; exit 1; }
start "${postmaster[@]}"
pid=""
wait_for pgbench -i -q -s 10 || { echo "chains.sh: PostgreSQL did not start" >&2; exit 1; }
bench "$@"
