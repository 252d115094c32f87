#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# flame.sh [MEASURE...]: the time to draw flame graphs of a million distinct stacks, as wide as folding
# allows, and to show them in a browser. All measures by default.
# shellcheck disable=SC2317 # the measures are called by their names

# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# draw NAME FILE FORM LIMIT: draws it, for at most LIMIT seconds of CPU time.
draw() {
	local times cpu
	times=$(TIMEFORMAT='%U %S %R' && { time "$profiltool" flamegraph "$2" -o "$work/$1.$3" \
		>/dev/null 2>"$work/draw.err"; } 2>&1) || not_measured "$1, .$3" "see below" || return
	cpu=$(awk '{ print $1 + $2 }' <<<"$times")
	judge "$1, .$3: drawn" "$cpu" "$(printf '%.2f s of CPU (%s s), %d KiB' "$cpu" "${times##* }" \
		$(($(stat -c %s "$work/$1.$3") / 1024)))" "$4" s
}

# show NAME FORM: what Chromium takes to zoom.
show() {
	local times open zoom reset search
	times=$(python3 -B "$top/tests/chromium/flame_graph_speed.py" "$work/$1.$2" 2>"$work/show.err") ||
		not_measured "$1, .$2" "see below" || return
	read -r _ open zoom reset search <<<"$times"
	row "$1, .$2: opened" "$open ms" "" ""
	judge "$1, .$2: zoomed" "$zoom" "$zoom ms; back $reset ms; searched $search ms" 100 ms
}

measure_stacks() {
	local form
	build_writers && mkdir -p "$work/written" && "$helpers/writers" "$work/written" pprof \
		>"$work/writers" 2>"$work/writers.err" || not_measured writers "see below" || return
	for form in svg html; do
		draw "10^6 stacks" "$work/written/pprof" "$form" 3
		show "10^6 stacks" "$form"
	done
}

# 950 frames, each a little above what is folded, on each of 40 levels.
measure_wide() {
	local form
	awk 'BEGIN {
		for (i = 0; i < 950; i++)
			for (depth = 0; depth < 40; depth++)
				printf "module::function_%d_%d%s", i, depth, depth < 39 ? ";" : " 100\n"
	}' >"$work/wide.folded"
	for form in svg html; do
		draw "38,000 frames" "$work/wide.folded" "$form" 3
		show "38,000 frames" "$form"
	done
}

measures=(stacks wide)
bench "$@"
