#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# continuous.sh [MEASURE...]: what profild --continuous takes of a machine that builds this project all the
# time, and of a PostgreSQL server; and how its files survive kill -9. All measures by default. Needs root.
# SOAK_SECONDS=3600 makes the build an hour (300).
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

directory=$work/archive
seconds=${SOAK_SECONDS:-300}
hz=$(getconf CLK_TCK)

begin_daemon() {
	: >"$work/daemon.err" # at once, lest the last one's is read
	"$build/profild" --continuous --directory "$directory" "$@" 2>>"$work/daemon.err" &
	daemon=$!
	note_started "$daemon"
	wait_for grep -q "records cpu-clock" "$work/daemon.err"
}

end_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
}

# used: the CPU time of both processes, in ticks of CLK_TCK, and their resident memory, in KiB.
used() {
	local process

	for process in "$daemon" $(pgrep -P "$daemon"); do
		awk '{ print "ticks", $14 + $15 }' "/proc/$process/stat"
		awk '/^VmRSS/ { print "rss", $2 }' "/proc/$process/status"
	done | awk '{ sum[$1] += $2 } END { print sum["ticks"], sum["rss"] }'
}

counter() {
	"$build/profild" --status --json --directory "$directory" | sed -n "s/^\"$1\": \([0-9]*\).*/\1/p"
}

measures+=(build)
measure_build() {
	local before after builder disk windows samples

	git -C "$top" archive HEAD | (mkdir "$work/tree" && tar -x -C "$work/tree") || return
	(while make -C "$work/tree" clean all >/dev/null 2>&1; do :; done) &
	builder=$!
	note_started "$builder"
	begin_daemon
	sleep 60 # the first window has the attachment in it
	before=$(used)
	sleep "$seconds"
	after=$(used)
	stop "$builder"
	end_daemon
	judge "CPU beside a build" \
		"$(calculate "(${after% *} - ${before% *}) / $hz / $seconds * 100")" \
		"$(calculate "(${after% *} - ${before% *}) / $hz / $seconds * 100") % of a core" 1 "% of a core"
	judge "resident" "$(calculate "${after#* } / 1024")" \
		"$(calculate "${before#* } / 1024") MiB, after $seconds s $(calculate "${after#* } / 1024")" 60 MiB
	windows=$(counter windows_total)
	disk=$(du -sk "$directory" | cut -f1)
	judge "disk of a day, unmerged" "$(calculate "$disk / 1024 / $windows * 1440")" \
		"$(calculate "$disk / 1024 / $windows * 1440") MiB" 250 MiB
	samples=$(counter samples_total)
	judge "samples in no image" "$(calculate "100 * $(counter unknown_image_samples_total) / $samples")" \
		"$(calculate "100 * $(counter unknown_image_samples_total) / $samples") % of $samples" 1 %
}

transactions() {
	pgbench -n -S -c 4 -T 5 2>/dev/null | sed -n 's/^tps = \([0-9.]*\) .*/\1/p'
}

measures+=(database)
measure_database() {
	local before with after

	if ! find_postgres || ! make_postgres; then
		not_measured "database" "no PostgreSQL"
		return
	fi
	"${postmaster[@]}" >"$work/postgres.err" 2>&1 &
	pid=$!
	note_started "$pid"
	wait_for "$postgres/pg_isready" -q -h "$pgdata"
	pgbench -i -q -s 10 >"$work/init.err" 2>&1
	transactions >/dev/null
	# Each time against those before and after: a machine's speed drifts by more than what is measured.
	before=$(transactions)
	for _ in $(seq 16); do
		begin_daemon
		with=$(transactions)
		end_daemon
		after=$(transactions)
		echo "$after" >>"$work/without"
		calculate "100 * $with / (($before + $after) / 2)" >>"$work/kept"
		before=$after
	done
	row "transactions of pgbench -S kept" "$(summary "$work/kept" 1 "%"), of $(median "$work/without") a second" \
		">= 99 %" "$(awk -v n="$(median "$work/kept")" 'BEGIN { print (n >= 99) ? "met" : "not" }')"
	end_target
}

measures+=(kills)
measure_kills() {
	local bad=0 file files i

	rm -rf "$directory"
	for i in $(seq 300); do
		begin_daemon --window 1
		sleep "$(awk -v seed="$i" 'BEGIN { srand(seed); print rand() * 1.5 }')"
		stop "$daemon"
	done
	mapfile -t files < <(find "$directory" -name '*.pb.gz')
	for file in "${files[@]}"; do
		"$profiltool" dump "$file" >/dev/null 2>&1 || bad=$((bad + 1))
	done
	judge "files that cannot be read" "$bad" "$bad of ${#files[@]}, 300 times kill -9" 0
}

bench "$@"
