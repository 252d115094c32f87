#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# context.sh [MEASURE...]: labels of what PostgreSQL works for. cost: what `record -a -g` takes with them beside --no-context, a
# tick and of the transactions of pgbench -S, by turns; shares: of three statements, each of which has a backend alone, the
# CPU time by query beside the kernel's account of the backends; waits: the time of statements that wait for a row, for their
# commit and for the disk, by query, beside what the server has logged of them; archive: what labels add to a day of minutes in
# which two CPUs run 5,000 different queries. PROFIL_BENCH_ROUNDS (9) of PROFIL_BENCH_SECONDS (10). As root, on a quiet
# machine, with PostgreSQL.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

rounds=${PROFIL_BENCH_ROUNDS:-9}
seconds=${PROFIL_BENCH_SECONDS:-10}
measures=(cost shares waits archive)
make_archive=$build/tests/unit/archive_make

# recorded NAME [OPTION...]: adds the transactions of a second to NAME, and the nanoseconds of BPF a tick to NAME.ns.
recorded() {
	record_begin record record -a -g -F 999 --json -o "$work/$1.pb.gz" "${@:2}" &&
		pgbench -n -S -c 2 -T "$seconds" >"$work/pgbench.out" 2>"$work/pgbench.err" && record_end &&
		sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/pgbench.out" | grep . >>"$work/$1" &&
		sed -n 's/.*"bpf_ns_per_tick": \([0-9.]*\).*/\1/p' "$work/record.json" | grep . >>"$work/$1.ns"
}

measure_cost() {
	local round
	rm -f "$work"/{with,without}{,.ns}
	for ((round = 0; round < rounds; round++)); do
		# What else the machine does may favour whoever is first.
		if ((round % 2)); then
			recorded with && recorded without --no-context
		else
			recorded without --no-context && recorded with
		fi || not_measured "pgbench -S" "round $round" || return
	done
	paste "$work/with" "$work/without" | awk '{ print $1 / $2 }' >"$work/ratio"
	judge_least "pgbench -S, of that without labels" "$(median "$work/ratio")" "$(summary "$work/ratio" 3)" 0.99
	paste "$work/with.ns" "$work/without.ns" | awk '{ print $1 - $2 }' >"$work/more"
	row "  a tick without them" "$(summary "$work/without.ns" 0 ns)" "" ""
	judge "  a tick, more" "$(median "$work/more")" "$(summary "$work/more" 0 ns)" 1200 ns
}

# cpu_ns: prints the CPU time of each of $backends.
cpu_ns() {
	local process
	for process in "${backends[@]}"; do
		cut -d ' ' -f 1 "/proc/$process/schedstat"
	done
}

measure_shares() {
	local statement kind backends=() targets=() clients=() statements=(
		"SELECT sum(sqrt(g)) FROM generate_series(1, 200000) g;"
		"SELECT count(md5(g::text)) FROM generate_series(1, 100000) g;"
		"SELECT max(g % 7) FROM generate_series(1, 300000) g;")
	for kind in 0 1 2; do
		echo "${statements[kind]}" >"$work/$kind.sql"
		PGAPPNAME=kind$kind pgbench -n -f "$work/$kind.sql" -T $((seconds + 60)) >"$work/$kind.out" 2>&1 &
		clients+=($!)
		note_started $!
	done
	find_backends() {
		mapfile -t backends < <("$postgres/psql" -X -q -At -h "$pgdata" -U test postgres -c \
			"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'kind%' ORDER BY application_name")
		[ ${#backends[@]} -eq 3 ]
	}
	wait_for find_backends || not_measured "shares" "the backends" || return
	for statement in "${backends[@]}"; do
		targets+=(-p "$statement")
	done
	record_begin record record "${targets[@]}" -F 999 --json -d "$seconds" -o "$work/shares.pb.gz"
	cpu_ns >"$work/before"
	wait "$recorder" || not_measured "shares" "the recording" || return
	cpu_ns >"$work/after"
	for statement in "${clients[@]}"; do
		stop "$statement"
	done
	"$profiltool" report -q --json --by query "$work/shares.pb.gz" >"$work/shares.json" 2>"$work/shares.err"
	python3 -S - "$work" >"$work/z" <<-'END'
		import json, math, sys
		work = sys.argv[1]
		ns = [int(b) - int(a) for a, b in zip(open(work + "/before"), open(work + "/after"))]
		rows = {r.get("query"): r["self"] for r in json.load(open(work + "/shares.json"))["rows"]}
		counts = [sum(n for q, n in rows.items() if q and part in q) for part in ("sqrt", "md5", "max")]
		n = sum(counts)
		for k, share in zip(counts, (v / sum(ns) for v in ns)):
		    print(abs(k - n * share) / math.sqrt(n * share * (1 - share)))
	END
	judge "shares of three statements" "$(quantile 1 "$work/z")" "$(summary "$work/z" 2) standard deviations" 3
}

# sql STATEMENT...: runs statements.
sql() {
	local statement
	for statement; do
		PGOPTIONS="-c client_min_messages=warning" "$postgres/psql" -X -q -At -h "$pgdata" -U test postgres -c "$statement" || return
	done
}

# client NAME SCRIPT: one client runs it meanwhile. The server logs what its statements take.
client() {
	echo "$2" >"$work/$1.sql"
	PGOPTIONS="-c log_min_duration_statement=0" pgbench -n -f "$work/$1.sql" -T "$seconds" >"$work/$1.out" 2>&1 &
	clients+=($!)
	note_started $!
}

# measured STATEMENT: the seconds that the server has taken for it. A client's own clock has also what passes until the
# server and the client have a CPU, when no statement is in work.
measured() {
	awk -v statement="statement: $1" 'index($0, statement) {
		for (i = 1; i < NF; i++) if ($i == "duration:") sum += $(i + 1) } END { print sum / 1000 }' "$work/start.out"
}

measure_waits() {
	local clients=() file kind query
	local -A texts=([row]="UPDATE held SET waited" [commit]="END;" [read]="SELECT count(*) FROM cold")
	# Its pages are not in memory: the client has the kernel drop them before each statement.
	sql "DROP TABLE IF EXISTS held, committed, cold" "CREATE TABLE held AS SELECT 1 AS id, 0 AS n, 0 AS waited" \
		"CREATE TABLE committed (n int)" "CREATE TABLE cold AS SELECT g, repeat('x', 1000) FROM generate_series(1, 60000) g" \
		"VACUUM cold" CHECKPOINT || not_measured waits "the tables" || return
	file=$pgdata/data/$(sql "SELECT pg_relation_filepath('cold')")
	record_begin record record -u 65534 -g --wall --max-overhead 0 -F 999 -o "$work/waits.pb.gz"
	client holder "BEGIN; UPDATE held SET n = n + 1 WHERE id = 1; SELECT pg_sleep(0.05); COMMIT;"
	client row "UPDATE held SET waited = waited + 1 WHERE id = 1;"
	client commit "$(printf '%s\n' 'BEGIN;' 'SET LOCAL synchronous_commit = on;' 'INSERT INTO committed VALUES (1);' 'END;')"
	client read "$(printf '%s\n' "\\shell dd if=$file iflag=nocache count=0 status=none" 'SELECT count(*) FROM cold;')"
	wait "${clients[@]}"
	record_end || not_measured waits "the recording" || return
	"$profiltool" report -q --json --by query --value wall "$work/waits.pb.gz" >"$work/waits.json" 2>"$work/waits.err"
	for kind in row commit read; do
		query=${texts[$kind]}
		python3 -S - "$work/waits.json" "${query%;}" "$(measured "$query")" >"$work/off" <<-'END' ||
			import json, sys
			rows = json.load(open(sys.argv[1]))["rows"]
			own = sum(r["self"] for r in rows if (r.get("query") or "").startswith(sys.argv[2])) / 1e9
			print(abs(own / float(sys.argv[3]) - 1) * 100, own)
		END
			not_measured "waits, $kind" "see below" || return
		judge "waits by query, $kind" "$(cut -d ' ' -f 1 "$work/off")" \
			"$(awk '{ printf "%.2f %% off: %.2f s", $1, $2 }' "$work/off") of $(measured "$query") s" 2 %
	done
}

# day NAME: KiB of a day of windows like those that were recorded as NAME1, NAME2, ...
day() {
	local minute ten hour start=$(($(date -u +%s) / 86400 * 86400 - 86400 * 2)) all=("$work/$1"[0-9]*.pb.gz)

	mkdir -p "$work/$1.hour" &&
		"$make_archive" place "$work/$1.hour" host "$start" 60 60 "${all[@]}" || return
	minute=$(($(du -sk "$work/$1.hour" | cut -f 1) / 60))
	"$make_archive" tidy "$work/$1.hour" host $((start + 3600 * 4)) 4 >/dev/null || return
	ten=$(du -k "$(find "$work/$1.hour" -name '*-10m.pb.gz' | head -n 1)" | cut -f 1)
	"$make_archive" tidy "$work/$1.hour" host $((start + 86400 * 2)) 4 >/dev/null || return
	hour=$(du -k "$(find "$work/$1.hour" -name '*-1h.pb.gz' | head -n 1)" | cut -f 1)
	# Two hours of minutes with their sums, 22 of ten minutes with theirs, and the day's
	echo $((120 * minute + (12 + 132) * ten + 25 * hour)) "(minute $minute, ten $ten, hour $hour KiB)"
}

measure_archive() {
	local i with without backends=()

	echo '\set n random(1, 5000)
		SELECT abalance AS of_:n FROM pgbench_accounts WHERE aid = :n;' >"$work/many.sql"
	pgbench -n -f "$work/many.sql" -c 2 -T $((rounds * seconds * 3 + 60)) >"$work/many.out" 2>&1 &
	note_started $!
	find_backends() {
		mapfile -t backends < <(sql "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench'")
		[ ${#backends[@]} -eq 2 ]
	}
	wait_for find_backends || not_measured archive "the backends" || return
	# As many ticks as a minute of two CPUs has, in so many seconds.
	for ((i = 1; i <= rounds; i++)); do
		for kind in "with -g" "without -g --no-context"; do
			# shellcheck disable=SC2086 # words
			"$profiltool" record -q -p "${backends[0]}" -p "${backends[1]}" -F $((97 * 60 / seconds)) -d "$seconds" \
				${kind#* } -o "$work/${kind%% *}$i.pb.gz" >/dev/null 2>"$work/archive.err" ||
				not_measured archive "a recording" || return
		done
	done
	with=$(day with) && without=$(day without) || not_measured archive "the archive" || return
	"$profiltool" report -q --json --by query "$work"/with[0-9]*.pb.gz >"$work/many.json" 2>"$work/archive.err"
	row "different queries that were met" "$(grep -c '"query": "SELECT' "$work/many.json") in $rounds recordings" "" ""
	row "a day without labels" "$((${without%% *} / 1024)) MiB ${without#* }" "" ""
	judge "5,000 queries, more" $(((${with%% *} - ${without%% *}) / 1024)) \
		"$(((${with%% *} - ${without%% *}) / 1024)) MiB ${with#* }" 10 MiB
}

find_postgres || { echo "context.sh: no PostgreSQL here, nor in PGBINDIR" >&2; exit 1; }
make_postgres || { echo "context.sh: initdb failed" >&2; exit 1; }
# A commit takes 20 ms at least.
start "${postmaster[@]}" -c fsync=on -c synchronous_commit=off -c commit_delay=20000 -c commit_siblings=0
pid=""
wait_for pgbench -i -q -s 10 || { echo "context.sh: PostgreSQL did not start" >&2; exit 1; }
bench "$@"
