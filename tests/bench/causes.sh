#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# causes.sh [MEASURE...]: a web server with Python workers and PostgreSQL, of whose requests one in a hundred is slow, each
# time for another cause: lock (a thread of the worker has it), disk (a file of 64 MiB is written: fsync, and the copy before),
# neighbour (takes the CPUs), query (a slow one in the database); and row, a session that waits for a row that another one has
# changed, whose client does nothing. The machine is recorded, and one command, printed with the begin of what it prints, is to
# find the cause: for how much of the time of the slowest 1 % of turns it says so. As root, on a quiet machine. On Debian:
#
#	apt-get install postgresql gunicorn python3-psycopg2
#
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

seconds=${PROFIL_BENCH_SECONDS:-12}
port=${CAUSES_PORT:-8765}
export TZ=UTC PGHOST=$pgdata PGUSER=test PGDATABASE=postgres
export CAUSES_FILES=${CAUSES_FILES:-$work} # on a disk

serves() {
	python3 -S -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$port"
}

start_services() {
	find_postgres || { echo "no PostgreSQL here, nor in PGBINDIR"; return 1; }
	make_postgres || { echo "the server's files"; return 1; }
	start "${postmaster[@]}"
	wait_for pgbench -i -q -s 5 || { echo "PostgreSQL's start"; return 1; }
	# Its workers, which outlive a master that is killed, are of its group.
	PYTHONPATH=$here start setsid gunicorn --bind "127.0.0.1:$port" --workers 2 --threads 4 causes:application
	note_started "-$pid"
	wait_for serves || { echo "gunicorn's start"; return 1; }
	pid=""
}

# found NAME PROCESS EXPRESSION: the row of a recording: for which share of the slowest turns of a process a part of
# their tree, n, makes the expression true; what is below such a part is not asked. On a busy machine the slowest turns are
# also those for which other programs had the CPUs: it says for how much of them.
found() {
	local name=$1 process=$2 why
	"$profiltool" why -q -p "$process" --json "$work/causes.pb.gz" >"$work/why.json" 2>"$work/why.err" ||
		{ not_measured "$name" "why"; return; }
	why=$(python3 -S - "$work/why.json" "$3" <<'EOF_PYTHON'
import json, sys
j = json.load(open(sys.argv[1]))
found = all = others = 0
below = None
for n in j["tree"]:
	if below is not None and n["depth"] > below:
		continue
	below = None
	if eval(sys.argv[2]):
		below = n["depth"]
		found += n["slow_ns"]
		all += n["ns"]
	elif n["kind"] == "other_ran" and n["comm"] not in ("gunicorn", "postgres", "python3", "neighbour"):
		others += n["slow_ns"]
print("%.1f %% of the slowest turns, %.1f of all; others %.1f" % (100 * found / j["slow_turns_ns"],
	100 * all / j["turns_ns"], 100 * others / j["slow_turns_ns"]))
EOF_PYTHON
	)
	judge_least "$name" "${why%% *}" "$why" 50 %
	echo
	echo "\$ profiltool why -p $process x.pb.gz"
	"$profiltool" why -q -p "$process" --limit 3 "$work/causes.pb.gz" | head -n 24 | cut -c 1-140
	echo "..."
	echo
}

# record_while COMMAND...: records the machine while a command runs.
record_while() {
	record_begin record record -q -a --chains -o "$work/causes.pb.gz"
	"$@" >"$work/client.out" 2>"$work/client.err" && record_end
}

# requests NAME PATH EXPRESSION
requests() {
	record_while python3 -S "$here/causes.py" client "$port" "$seconds" "$2" ||
		{ not_measured "$1" "client and recording"; return; }
	row "$1" "$(cat "$work/client.out")" "" ""
	found "$1" gunicorn "$3"
}

measures=(lock disk neighbour query row)

measure_lock() {
	requests "a lock that a thread has" /stock 'n.get("reason") == "lock" and "show_stock" in n["place"]'
}

measure_disk() {
	requests "fsync of much" /save \
		'n.get("reason") == "disk" and "save_order" in n["place"] or n.get("function") == "save_order"'
}

measure_neighbour() {
	local cpu neighbours=()
	for cpu in $(python3 -S -c 'import os; print(*os.sched_getaffinity(0))'); do
		start python3 -S "$here/causes.py" neighbour "$cpu"
		neighbours+=("$pid")
	done
	pid=""
	requests "a neighbour that takes the CPUs" / 'n["kind"] == "other_ran" and n["comm"] == "neighbour"'
	for cpu in "${neighbours[@]}"; do
		stop "$cpu"
	done
}

measure_query() {
	requests "a slow query" /sum 'n.get("waker") == "postgres" and "sum_orders" in n["place"]'
}

psql() { "$postgres/psql" -q "$@"; }

holds_row() {
	psql -At -c "select 'yes' from pg_stat_activity where state = 'idle in transaction'" | grep -q yes
}

# One session changes a row, and thinks; another one waits for it.
sessions() {
	local holder
	{ echo 'begin; update pgbench_branches set bbalance = 1 where bid = 1;' && sleep $((seconds / 2)) && echo 'commit;'; } |
		psql -f - &
	holder=$!
	wait_for holds_row
	psql -c 'update pgbench_branches set bbalance = 2 where bid = 1'
	wait "$holder"
	sleep 1 # a thread that ends with the recording is not known to have ended
}

measure_row() {
	record_while sessions || { not_measured "a row" "sessions and recording"; return; }
	found "a row that another session has changed" postgres \
		'n.get("reason") == "lock" and "XactLockTableWait" in n["place"]'
}

error=$(
	find_postgres || echo "no PostgreSQL here, nor in PGBINDIR"
	type -p gunicorn >/dev/null || echo "no gunicorn"
)
[ -z "$error" ] || { echo "causes.sh: $error" >&2; exit 1; }
start_services >"$work/services" || { echo "causes.sh: $(cat "$work/services")" >&2; exit 1; }
bench "$@"
