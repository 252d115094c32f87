#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# continuous.sh [MEASURE...]: what profild --continuous takes of a machine that builds this project all the
# time, and of a PostgreSQL server; and how its files survive kill -9. All measures by default. Needs root.
# SOAK_SECONDS=3600 makes the build an hour (300). OTHER_PROFILD=FILE is another build, such as an older one, which
# `other` runs beside this one: how much more CPU time this one takes.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/postgres.sh
. "$top/tests/postgres.sh"

directory=$work/archive
make_archive=$build/tests/unit/archive_make
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

# watch SECONDS: writes the resident memory to $work/rss, once a minute.
watch() {
	local end=$((SECONDS + $1))

	while [ "$SECONDS" -lt "$end" ]; do
		used | cut -d ' ' -f 2 >>"$work/rss"
		sleep $((end - SECONDS < 60 ? end - SECONDS : 60))
	done
}

# sizes PATTERN: of the archive's files of that name, in KiB.
sizes() {
	find "$directory" -name "$1" -printf '%s\n' | awk '{ print $1 / 1024 }' >"$work/sizes"
	[ -s "$work/sizes" ]
}

# judge_disk: what a day takes when two hours of it are in minutes, the others in files of ten minutes,
# and with the sums that answer for longer intervals, six hours of them with the times of ticks. Those are made as if
# time had passed.
judge_disk() {
	local now minute untimed ten timed hour day

	now=$(date +%s)
	sizes '[0-9][0-9][0-9][0-9][0-9][0-9].pb.gz' || return
	minute=$(median "$work/sizes")
	cp -r "$directory" "$work/timed"
	"$make_archive" tidy "$directory" "$(hostname)" "$now" 100 0 0 0 0 || return
	sizes '[0-9][0-9][0-9][0-9][0-9][0-9].pb.gz' || return
	untimed=$(median "$work/sizes")
	rm -rf "$directory"
	mv "$work/timed" "$directory"
	"$make_archive" tidy "$directory" "$(hostname)" $((now + 4 * 3600)) 20 || return
	sizes '*-10m.pb.gz' || return
	timed=$(median "$work/sizes")
	"$make_archive" tidy "$directory" "$(hostname)" $((now + 8 * 3600)) 20 || return
	sizes '*-10m.pb.gz' || return
	ten=$(median "$work/sizes")
	"$make_archive" tidy "$directory" "$(hostname)" $((now + 2 * 86400)) 20 || return
	sizes '*-1h.pb.gz' || return
	hour=$(awk '{ sum += $1 } END { print sum }' "$work/sizes") # of two that each have a part of the hour
	day=$(calculate "(120 * $untimed + (12 + 132) * $ten + 25 * $hour) / 1024")
	judge "disk of a day" "$day" \
		"$(printf '%.0f MiB (minute %.0f, ten %.0f, hour %.0f KiB)' "$day" "$untimed" "$ten" "$hour")" 250 MiB
	day=$(calculate "(120 * ($minute - $untimed) + 36 * ($timed - $ten)) / 1024")
	judge "times of six hours" "$day" \
		"$(printf '%.1f MiB (minute +%.0f, ten +%.0f KiB)' "$day" $((${minute%.*} - ${untimed%.*})) \
			$((${timed%.*} - ${ten%.*})))" 28.6 MiB
}

measures+=(build)
measure_build() {
	local before after builder samples unknown cpu

	git -C "$top" archive HEAD | (mkdir "$work/tree" && tar -x -C "$work/tree") || return
	(while make -C "$work/tree" clean all >/dev/null 2>&1; do :; done) &
	builder=$!
	note_started "$builder"
	begin_daemon
	sleep 60 # the first window has the attachment in it
	before=$(used)
	watch "$seconds"
	after=$(used)
	stop "$builder"
	end_daemon
	cpu=$(calculate "(${after% *} - ${before% *}) / $hz / $seconds * 100")
	judge "CPU beside a build" "$cpu" "$cpu % of a core, in $seconds s" 1 "% of a core"
	judge "resident, at most" "$(calculate "$(quantile 1 "$work/rss") / 1024")" \
		"each ten minutes: $(awk 'NR % 10 == 1 { printf "%d ", $1 / 1024 }' "$work/rss")MiB" 60 MiB
	samples=$(counter samples_total)
	unknown=$(calculate "100 * $(counter unknown_image_samples_total) / $samples")
	judge "samples in no image" "$unknown" "$unknown % of $samples" 1 %
	judge_disk || not_measured "disk of a day" "see below"
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

# Both record the same machine at once, whatever else it does; which of them begins changes from time to time.
measures+=(other)
measure_other() {
	local i profild directories=("$work/this" "$work/other") daemons before after

	[ -n "${OTHER_PROFILD:-}" ] || return 0
	mkdir "$work/other.build"
	ln -s "$OTHER_PROFILD" "$work/other.build/profild"
	for i in $(seq 7); do
		for profild in $((i % 2)) $((1 - i % 2)); do
			directory=${directories[profild]}
			if [ "$profild" = 0 ]; then
				begin_daemon --window 10
			else
				build=$work/other.build begin_daemon --window 10
			fi
			daemons[profild]=$daemon
		done
		sleep 12
		for profild in 0 1; do
			daemon=${daemons[profild]}
			before[profild]=$(used)
		done
		sleep 30 # three windows
		for profild in 0 1; do
			daemon=${daemons[profild]}
			after[profild]=$(used)
			calculate "${after[profild]% *} - ${before[profild]% *}" >>"$work/used.$profild"
		done
		for profild in 0 1; do
			daemon=${daemons[profild]}
			end_daemon
		done
		calculate "100 * $(tail -n 1 "$work/used.0") / $(tail -n 1 "$work/used.1") - 100" >>"$work/more"
	done
	judge "CPU beside another profild" "$(median "$work/more")" \
		"$(printf '%s more; %s and %s ms a second' "$(summary "$work/more" 1 "%")" \
			"$(calculate "$(median "$work/used.0") * 1000 / $hz / 30")" \
			"$(calculate "$(median "$work/used.1") * 1000 / $hz / 30")")" 10 %
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
