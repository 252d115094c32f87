# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # scripts that source it use the variables
# Functions that the benchmarks share, in addition to those of the tests. A benchmark sources this file,
# defines measure_NAME for each of its `measures`, builds its helpers, and ends with `bench "$@"`.

# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

here=$top/tests/bench
helpers=$build/bench
measures=()
failed=0
pid=""

row() { # MEASURE RESULT GOAL MET
	printf '%-38s | %-46s | %-11s | %s\n' "$@"
}

# judge MEASURE NUMBER RESULT LIMIT UNIT: a row that is met when the number is at most the limit.
judge() {
	local met=not
	awk -v n="$2" -v limit="$4" 'BEGIN { exit !(n <= limit) }' && met=met
	row "$1" "$3" "<= $4${5:+ $5}" "$met"
}

# judge_least: the same, met when the number is at least the limit.
judge_least() {
	local met=not
	awk -v n="$2" -v limit="$4" 'BEGIN { exit !(n >= limit) }' && met=met
	row "$1" "$3" ">= $4${5:+ $5}" "$met"
}

end_target() {
	[ -z "$pid" ] || stop "$pid"
	pid=""
}

not_measured() { # MEASURE WHY
	failed=1
	row "$1" "could not be measured: $2" "" ""
	cat "$work"/*.err 2>/dev/null | sed 's/^/# /' | head -n 5
	end_target
	[ -z "${profild:-}" ] || stop "$profild"
	return 1
}

# quantile Q FILE: of the numbers in a file, one per line.
quantile() {
	sort -g "$2" | awk -v q="$1" '
		{ v[NR] = $1 }
		END {
			at = 1 + q * (NR - 1)
			low = int(at)
			high = low < NR ? low + 1 : low
			print v[low] + (at - low) * (v[high] - v[low])
		}'
}

median() { quantile 0.5 "$1"; }

# summary FILE DIGITS UNIT: "median unit (quartile..quartile)"
summary() {
	printf "%.$2f%s (%.$2f..%.$2f)" "$(median "$1")" "${3:+ $3}" "$(quantile 0.25 "$1")" \
		"$(quantile 0.75 "$1")"
}

calculate() { awk "BEGIN { printf \"%.4f\\n\", $* }"; }

# session ARG...: one run of a profiler; value NAME is then a number that it gave.
session() {
	rm -f "$work"/profiler.*
	"$helpers/session" -o "$work/profiler" "$@" >"$work/session" 2>"$work/session.err" || return
	case $(value status) in
	"" | 0 | 3 | -2) ;; # nothing was run; done; samples were lost; ended by our SIGINT
	*) return 1 ;;
	esac
}

value() { sed -n "s/^$1=//p" "$work/session"; }

# build_helper NAME [LIBRARY...]: compiles NAME.c, unless that is done.
build_helper() {
	mkdir -p "$helpers"
	[ -x "$helpers/$1" ] &&
		[ -z "$(find "$here" -name '*.[ch]' -newer "$helpers/$1" -print -quit)" ] && return
	${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra "$here/$1.c" -pthread -ldl \
		"${@:2}" -o "$helpers/$1"
}

# build_writers: compiles writers.c, with what files are written by.
build_writers() {
	local objects
	objects=$(find "$build"/user/{util,dcpi,profile,format} "$build/proto" "$build/user/symbol/zstd.o" -name '*.o')
	mkdir -p "$helpers"
	# shellcheck disable=SC2046,SC2086 # lists of words
	${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -I"$top" -I"$top/user" \
		"$here/writers.c" $objects $(pkg-config --libs libprotobuf-c zlib json-c) \
		-o "$helpers/writers"
}

# bench [MEASURE...]: prints the table of them; of all when none is named.
bench() {
	local measure
	[ $# -gt 0 ] || set -- "${measures[@]}"
	for measure; do
		[[ " ${measures[*]} " == *" $measure "* ]] && continue
		echo "${0##*/}: no measure \"$measure\": ${measures[*]}" >&2
		exit 2
	done
	row measure result goal met
	row "$(printf -- '-%.0s' {1..38})" "$(printf -- '-%.0s' {1..46})" ----------- ---
	row "load of the machine before" "$(cut -d ' ' -f 1 /proc/loadavg)" "" ""
	for measure; do
		"measure_$measure"
	done
	exit $failed
}
