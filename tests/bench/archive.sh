#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# archive.sh [MEASURE...]: what an archive takes of a machine that builds this project all the time: disk
# of a day, CPU time and memory of merging, and the time to ask for a week. All measures by default.
# Windows are made from recordings of a minute of the build. Needs root.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

make_archive=$build/tests/unit/archive_make
now=$(date -u -d '2026-11-22 00:00' +%s)

# build_forever: compiles this project's files, one after the other.
build_forever() {
	local file

	cd "$top" || exit
	while :; do
		for file in user/*/*.c; do
			gcc -std=gnu11 -D_GNU_SOURCE -I. -Iuser -I"$build/proto" -I"$build/embed" -O1 \
				-c "$file" -o /dev/null 2>/dev/null
		done
	done
}

# record: six profiles of ten seconds.
record() {
	local i builder

	[ ! -e "$work/recorded6.pb.gz" ] || return 0
	build_forever &
	builder=$!
	note_started "$builder"
	for i in 1 2 3 4 5 6; do
		"$profiltool" record -a -g -F 97 -d 10 -q -o "$work/recorded$i.pb.gz" >/dev/null 2>"$work/record.err"
	done
	stop "$builder"
	[ -e "$work/recorded6.pb.gz" ]
}

# fill: an hour of minutes in $work/hour, its sums of ten minutes and its sum.
fill() {
	[ ! -e "$work/1h.pb.gz" ] || return 0
	record || return
	mkdir -p "$work/hour" "$work/merged"
	"$make_archive" write "$work/hour" host "$((now - 86400 * 2))" 60 6 "$work"/recorded?.pb.gz >/dev/null || return
	cp -r "$work/hour/." "$work/merged"
	measured=$({ time -p "$make_archive" tidy "$work/merged" host "$((now - 86400 * 2 + 3600 * 4))" 4; } 2>&1)
	cp "$(find "$work/merged" -name '*-10m.pb.gz' | head -n 1)" "$work/10m.pb.gz" || return
	"$make_archive" tidy "$work/merged" host "$now" 2 && cp "$(find "$work/merged" -name '*-1h.pb.gz')" "$work/1h.pb.gz"
}

# fill_week: 144 hours, 22 hours of ten minutes, two hours of minutes; and their sums.
fill_week() {
	local minutes

	[ ! -d "$work/week" ] || return 0
	fill || return
	mapfile -t minutes < <(find "$work/hour" -name '*.pb.gz' | sort)
	mkdir "$work/week" &&
		"$make_archive" place "$work/week" host "$((now - 7 * 86400))" 144 3600 "$work/1h.pb.gz" &&
		"$make_archive" place "$work/week" host "$((now - 86400))" 132 600 "$work/10m.pb.gz" &&
		"$make_archive" place "$work/week" host "$((now - 7200))" 120 60 "${minutes[@]}" &&
		"$make_archive" tidy "$work/week" host "$((now + 180))" 30
}

measure_disk() {
	local minute ten hour day

	fill || not_measured "disk" "see below" || return
	minute=$(($(du -sk "$work/hour" | cut -f 1) / 60))
	ten=$(du -k "$work/10m.pb.gz" | cut -f 1)
	hour=$(du -k "$work/1h.pb.gz" | cut -f 1)
	# Two hours of minutes with their sums, 22 of ten minutes with theirs, and the day's
	day=$(((120 * minute + (12 + 132) * ten + 25 * hour) / 1024))
	judge "disk of a day" "$day" "$day MiB (minute $minute, ten $ten, hour $hour KiB)" 250 MiB
	judge "merging, of a core" "$(awk '/user|sys/ { s += $2 } END { print s / 36 }' <<<"$measured")" \
		"$(awk '/user|sys/ { s += $2 } END { printf "%.2f s for an hour of windows", s }' <<<"$measured")" 0.5 %
}

# ask NAME ARGUMENT...: asks for the week.
ask() {
	local name=$1 times cpu
	shift

	times=$(TIMEFORMAT='%U %S %R' && { time "$profiltool" "$@" >/dev/null 2>"$work/ask.err"; } 2>&1) ||
		not_measured "$name" "see below" || return
	cpu=$(awk '{ print $1 + $2 }' <<<"$times")
	judge "$name" "$cpu" "$(printf '%.2f s of CPU (%s s)' "$cpu" "${times##* }")" 2 s
}

measure_week() {
	fill_week || not_measured "week" "see below" || return
	export PROFIL_ARCHIVE=$work/week
	ask "week: report" report --since "@$((now - 7 * 86400))" --until "@$now"
	ask "week: one unit" report --unit cc1.service --since "@$((now - 7 * 86400))" --until "@$now"
	ask "week: --by unit" report --by unit --since "@$((now - 7 * 86400))" --until "@$now"
	ask "week: flamegraph" flamegraph --since "@$((now - 7 * 86400))" --until "@$now" -o "$work/week.svg"
	ask "ten minutes: report" report --since "@$((now - 1800))" --until "@$((now - 1200))"
	ask "day: --by time" report --by time --since "@$((now - 86400))" --until "@$now"
}

measures=(disk week)
bench "$@"
